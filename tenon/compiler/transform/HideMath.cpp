// SPDX-License-Identifier: Apache-2.0
//
// MLIR folds a function of a constant with the host's C library, whose last bit may differ from that of the functions
// of compiler/math: the same kernel would give another result when an operand happens to be known. While other passes
// canonicalise, the functions therefore hide behind an op that is as pure and says as little as possible:
//
//     %y = math.exp %x : tensor<16xf32>
// becomes
//     %y = "hidden.function"(%x) {name = "math.exp"} : (tensor<16xf32>) -> tensor<16xf32>
//
// and back. Nothing is lost by not folding: the expansion of a function is arithmetic that LLVM folds exactly.
#include "tenon/compiler/transform/HideMath.h"

#include "tenon/compiler/math/Functions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace tenon {
namespace {

class HiddenFunctionOp
    : public Op<HiddenFunctionOp, OpTrait::ZeroRegions, OpTrait::OneResult, OpTrait::OneOperand,
                OpTrait::ZeroSuccessors, OpTrait::SameOperandsAndResultType, MemoryEffectOpInterface::Trait,
                ConditionallySpeculatable::Trait, OpTrait::AlwaysSpeculatableImplTrait> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HiddenFunctionOp)
  using Op::Op;
  static StringRef getOperationName() { return "hidden.function"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
  void getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &) {}
};

class HiddenDialect : public Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HiddenDialect)
  explicit HiddenDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<HiddenDialect>()) {
    addOperations<HiddenFunctionOp>();
  }
  static constexpr llvm::StringLiteral getDialectNamespace() { return "hidden"; }
};

constexpr llvm::StringLiteral nameAttr = "name";

bool isOurFunction(Operation *op) {
  StringRef name = op->getName().getStringRef();
  return name.consume_front("math.") &&
         llvm::any_of(math::allFunctions, [&](math::Function function) { return name == math::name(function); });
}

void replace(Operation *op, StringRef name, ArrayRef<NamedAttribute> attributes) {
  OperationState state(op->getLoc(), name, op->getOperands(), op->getResultTypes(), attributes);
  Operation *other = OpBuilder(op).create(state);
  op->replaceAllUsesWith(other->getResults());
  op->erase();
}

struct HideMath : PassWrapper<HideMath, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HideMath)
  StringRef getArgument() const override { return "tenon-hide-math"; }
  StringRef getDescription() const override { return "Keep MLIR from folding the functions that Tenon expands itself"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<HiddenDialect>(); }

  void runOnOperation() override {
    Builder b(&getContext());
    getOperation()->walk([&](Operation *op) {
      if (isOurFunction(op))
        replace(op, HiddenFunctionOp::getOperationName(),
                b.getNamedAttr(nameAttr, b.getStringAttr(op->getName().getStringRef())));
    });
  }
};

struct ShowMath : PassWrapper<ShowMath, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ShowMath)
  StringRef getArgument() const override { return "tenon-show-math"; }
  StringRef getDescription() const override { return "Undo tenon-hide-math"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<::mlir::math::MathDialect>(); }

  void runOnOperation() override {
    getOperation()->walk([&](HiddenFunctionOp op) {
      StringRef name = op->getAttrOfType<StringAttr>(nameAttr).getValue();
      replace(op, name, {});
    });
  }
};

} // namespace

std::unique_ptr<Pass> createHideMathPass() { return std::make_unique<HideMath>(); }
std::unique_ptr<Pass> createShowMathPass() { return std::make_unique<ShowMath>(); }

} // namespace tenon
