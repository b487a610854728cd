// SPDX-License-Identifier: Apache-2.0
//
//     %y = math.exp %x : vector<16xbf16>
// becomes
//     %w = arith.extf %x : vector<16xbf16> to vector<16xf32>
//     ...                                                        // math::exp<float> in arith ops, on vector<16xf32>
//     %y = arith.truncf %v : vector<16xf32> to vector<16xbf16>
//
// A walk that replaces ops where they stand: there is nothing to match but the op's name, and no pattern can enable
// another. Before it, 1 + erf(x) and 1 + tanh(x) become one function each, and so do their halves and the product of x
// with half of 1 + erf(x); what is marked relaxed (Relaxable.h) is computed in fewer steps, and a sigmoid is one
// function then. The expansion carries no fast-math flags, whatever the op had: reassociation would undo its rounding
// steps.
#include "tenon/compiler/transform/ExpandMath.h"

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/math/Functions.h"
#include "tenon/compiler/math/Gelu.h"
#include "tenon/compiler/math/MlirArithmetic.h"
#include "tenon/compiler/transform/Cubic.h"
#include "tenon/compiler/transform/EraseDead.h"
#include "tenon/compiler/transform/Relaxable.h"
#include "tenon/compiler/transform/Sigmoid.h"
#include "tenon/compiler/transform/SumsWithOne.h"

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
      .Case([](::mlir::math::ExpM1Op) { return Function::Expm1; })
      .Case([](::mlir::math::LogOp) { return Function::Log; })
      .Case([](::mlir::math::Log2Op) { return Function::Log2; })
      .Case([](::mlir::math::Log1pOp) { return Function::Log1p; })
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

math::Grain grainOf(Operation *relaxed) { return relaxed->hasAttr(coarseAttr) ? math::Grain::bf16 : math::Grain::f16; }

/// 1 + erf(x) and 1 + tanh(x) of f32, or half of it.
Value expandSum(ImplicitLocOpBuilder &b, SumWithOne found) {
  arith::AddFOp sum = found.sum;
  MlirArithmetic arithmetic(b, sum.getType());
  MlirArithmetic::Value<float> x{found.function->getOperand(0)};
  bool isErf = found.isErf(), halved = found.half != nullptr;
  bool relaxed = sum->hasAttr(tile::relaxedAttr);
  if (isErf && !relaxed)
    return math::onePlusErf(arithmetic, x, halved).value;
  math::Grain grain = grainOf(sum);
  if (isErf) {
    auto [unscaled, scale] = takeScale(x.value);
    return math::relaxedOnePlusErf(arithmetic, MlirArithmetic::Value<float>{unscaled}, halved, grain, scale).value;
  }
  if (relaxed && grain != math::Grain::bf16)
    return math::relaxedOnePlusTanh(arithmetic, x, halved, grain).value;
  std::optional<Cubic> cubic = cubicOf(x.value);
  MlirArithmetic::Value<float> cubed{cubic ? cubic->x : Value()};
  if (!relaxed)
    return (cubic ? math::onePlusTanhOfCubic(arithmetic, cubed, cubic->first, cubic->third, halved)
                  : math::onePlusTanh(arithmetic, x, halved))
        .value;
  Value quotient =
      (cubic ? math::relaxedOnePlusTanhOfCubic(arithmetic, cubed, cubic->first, cubic->third, halved, grain)
             : math::relaxedOnePlusTanh(arithmetic, x, halved, grain))
          .value;
  // As RelaxPrecision does with quotients of the program's own.
  quotient.getDefiningOp<arith::DivFOp>().setFastmath(arith::FastMathFlags::arcp);
  return quotient;
}

Value expandGelu(ImplicitLocOpBuilder &b, arith::AddFOp sum, Value x, float scale) {
  MlirArithmetic arithmetic(b, x.getType());
  MlirArithmetic::Value<float> argument{x};
  if (!sum->hasAttr(tile::relaxedAttr))
    return math::gelu(arithmetic, argument, scale).value;
  return math::relaxedGelu(arithmetic, argument, scale, grainOf(sum)).value;
}

/// A sigmoid of f32 that need not be exact; null for anything else.
Value expandSigmoid(ImplicitLocOpBuilder &b, arith::DivFOp quotient) {
  bool isRelaxed = quotient->hasAttr(tile::relaxedAttr) && getElementTypeOrSelf(quotient.getType()).isF32() &&
                   hasFixedShape(quotient.getType());
  Value x = isRelaxed ? sigmoidOf(quotient) : Value();
  if (!x)
    return {};
  MlirArithmetic arithmetic(b, x.getType());
  Value result = math::relaxedSigmoid(arithmetic, MlirArithmetic::Value<float>{x}, grainOf(quotient)).value;
  result.getDefiningOp<arith::DivFOp>().setFastmath(quotient.getFastmath());
  return result;
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
    getOperation()->walk([&](arith::DivFOp quotient) {
      ImplicitLocOpBuilder b(quotient.getLoc(), quotient);
      if (Value result = expandSigmoid(b, quotient)) {
        quotient.replaceAllUsesWith(result);
        eraseIfDead(quotient);
        changed = true;
      }
    });
    SmallVector<arith::AddFOp> sums;
    getOperation()->walk([&](arith::AddFOp sum) { sums.push_back(sum); });
    for (arith::AddFOp sum : sums) {
      std::optional<SumWithOne> found = matchSumWithOne(sum);
      if (!found)
        continue;
      ImplicitLocOpBuilder b(sum.getLoc(), sum);
      auto [x, scale] = takeScale(found->function->getOperand(0));
      arith::MulFOp gelu = found->isErf() ? found->productWith(x) : nullptr;
      found->replaceBy(gelu ? expandGelu(b, sum, x, scale) : expandSum(b, *found), gelu);
      changed = true;
    }
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

/// Whether all that becomes of a power of f32 is a sum with a constant in which one below 2^-63 is lost. Then it need
/// not be one that is subnormal, for which a processor takes a hundred cycles: 1 + e^-x, as in a sigmoid.
bool isLostInSums(Operation *power) {
  return !power->use_empty() && llvm::all_of(power->getUsers(), [](Operation *user) {
    return isa<arith::AddFOp, arith::SubFOp>(user) && llvm::any_of(user->getOperands(), [](Value operand) {
             std::optional<double> number = constantOf(operand);
             return number && std::abs(*number) >= 0x1p-30;
           });
  });
}

/// exp and exp2 of f32.
Value expandPower(ImplicitLocOpBuilder &b, Operation *op, bool isExp2, Value x) {
  MlirArithmetic arithmetic(b, x.getType());
  MlirArithmetic::Value<float> argument{x};
  math::PowerUse use{.isNonPositive = op->hasAttr(tile::nonPositiveAttr),
                     .isLost = isLostInSums(op),
                     .isSummed = op->hasAttr(summedAttr)};
  if (isExp2 && use.isSummed)
    return math::exp2OfSummand(arithmetic, argument).value;
  if (!op->hasAttr(tile::relaxedAttr))
    return (isExp2 ? math::exp2<float>(arithmetic, argument, use) : math::exp<float>(arithmetic, argument, use)).value;
  math::Grain grain = grainOf(op);
  if (isExp2)
    return math::relaxedExp2(arithmetic, argument, grain, use).value;
  if (use.isNonPositive && !use.isLost)
    return math::relaxedExpOfNonPositive(arithmetic, argument, grain).value;
  return math::relaxedExp(arithmetic, argument, grain, use).value;
}

} // namespace

Value expandMathOp(ImplicitLocOpBuilder &b, Operation *op) {
  std::optional<Function> function = functionOf(op);
  if (!function)
    return {};
  Value x = op->getOperand(0);
  Type type = x.getType();
  if (!hasFixedShape(type))
    return {};
  auto shaped = dyn_cast<ShapedType>(type);

  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  if (!element)
    return {};
  if (element.isF64())
    return expand<double>(b, *function, x);
  if (element.isF32() && (*function == Function::Exp || *function == Function::Exp2))
    return expandPower(b, op, *function == Function::Exp2, x);
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
