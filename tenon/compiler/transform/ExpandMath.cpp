// SPDX-License-Identifier: Apache-2.0
//
//     %y = math.exp %x : vector<16xbf16>
// becomes
//     %w = arith.extf %x : vector<16xbf16> to vector<16xf32>
//     ...                                                        // math::exp<float> in arith ops, on vector<16xf32>
//     %y = arith.truncf %v : vector<16xf32> to vector<16xbf16>
//
// A walk that replaces ops where they stand: there is nothing to match but the op's name, and no pattern can enable
// another. The expansion carries no fast-math flags, whatever the op had: reassociation would undo its rounding steps.
#include "tenon/compiler/transform/ExpandMath.h"

#include "tenon/compiler/math/Functions.h"
#include "tenon/compiler/math/MlirArithmetic.h"

#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/TypeSwitch.h"

#include <optional>

using namespace mlir;
using tenon::math::Function;
using tenon::math::MlirArithmetic;

namespace tenon {
namespace {

std::optional<Function> functionOf(Operation *op) {
  using Result = std::optional<Function>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([](::mlir::math::ExpOp) { return Function::Exp; })
      .Case([](::mlir::math::Exp2Op) { return Function::Exp2; })
      .Case([](::mlir::math::LogOp) { return Function::Log; })
      .Case([](::mlir::math::Log2Op) { return Function::Log2; })
      .Case([](::mlir::math::SinOp) { return Function::Sin; })
      .Case([](::mlir::math::CosOp) { return Function::Cos; })
      .Case([](::mlir::math::TanhOp) { return Function::Tanh; })
      .Case([](::mlir::math::ErfOp) { return Function::Erf; })
      .Case([](::mlir::math::RsqrtOp) { return Function::Rsqrt; })
      .Default([](Operation *) { return Result(); });
}

template <class T> Value expand(ImplicitLocOpBuilder &b, Function function, Value x) {
  MlirArithmetic arithmetic(b, x.getType());
  return math::evaluate<T>(arithmetic, function, MlirArithmetic::Value<T>{x}).value;
}

class ExpandMathPass : public PassWrapper<ExpandMathPass, OperationPass<>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandMathPass)

  StringRef getArgument() const final { return "tenon-expand-math"; }
  StringRef getDescription() const final {
    return "Expand exp, log, sin, cos, tanh, erf and rsqrt into arith ops, the same on every target";
  }

  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, ::mlir::math::MathDialect>();
  }

  void runOnOperation() final {
    bool changed = false;
    // Post-order, so that the walk has left an op before it is erased.
    getOperation()->walk([&](Operation *op) {
      ImplicitLocOpBuilder b(op->getLoc(), op);
      Value result = expandMathOp(b, op);
      if (!result)
        return;
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
      changed = true;
    });
    if (!changed)
      markAllAnalysesPreserved();
  }
};

} // namespace

Value expandMathOp(ImplicitLocOpBuilder &b, Operation *op) {
  std::optional<Function> function = functionOf(op);
  if (!function)
    return {};
  Value x = op->getOperand(0);
  Type type = x.getType();
  auto shaped = dyn_cast<ShapedType>(type);
  if (shaped && (!shaped.hasStaticShape() || !isa<VectorType, RankedTensorType>(type)))
    return {};
  auto vector = dyn_cast<VectorType>(type);
  if (vector && vector.isScalable())
    return {};

  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  if (!element)
    return {};
  if (element.isF64())
    return expand<double>(b, *function, x);
  if (element.isF32())
    return expand<float>(b, *function, x);
  if (!element.isF16() && !element.isBF16())
    return {};
  Type wide = shaped ? Type(shaped.clone(b.getF32Type())) : Type(b.getF32Type());
  Value result = expand<float>(b, *function, b.create<arith::ExtFOp>(wide, x));
  return b.create<arith::TruncFOp>(type, result);
}

std::unique_ptr<Pass> createExpandMathPass() { return std::make_unique<ExpandMathPass>(); }

} // namespace tenon
