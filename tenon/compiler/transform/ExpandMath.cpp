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
// with half of 1 + erf(x); what is marked relaxed (Relaxable.h) is computed in fewer steps. The expansion carries no
// fast-math flags, whatever the op had: reassociation would undo its rounding steps.
#include "tenon/compiler/transform/ExpandMath.h"

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/math/Functions.h"
#include "tenon/compiler/math/Gelu.h"
#include "tenon/compiler/math/MlirArithmetic.h"
#include "tenon/compiler/transform/Cubic.h"
#include "tenon/compiler/transform/Relaxable.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
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

/// One number, or a known number of them.
bool hasFixedShape(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (shaped && (!shaped.hasStaticShape() || !isa<VectorType, RankedTensorType>(type)))
    return false;
  auto vector = dyn_cast<VectorType>(type);
  return !vector || !vector.isScalable();
}

bool isConstant(Value value, double number) { return constantOf(value) == number; }

/// The product by which a value is halved, if that is its only use; null else.
arith::MulFOp halvingOf(Value value) {
  if (!value.hasOneUse())
    return {};
  auto product = dyn_cast<arith::MulFOp>(*value.user_begin());
  return product && (isConstant(product.getLhs(), 0.5) || isConstant(product.getRhs(), 0.5)) ? product : nullptr;
}

/// x and s where the value is s x with a positive constant s, as GELU's argument of erf is; else the value and 1.
std::pair<Value, float> takeScale(Value value) {
  if (auto product = value.getDefiningOp<arith::MulFOp>())
    for (auto [x, other] :
         {std::pair(product.getLhs(), product.getRhs()), std::pair(product.getRhs(), product.getLhs())})
      if (std::optional<double> number = constantOf(other); number && *number >= 0x1p-10 && *number <= 0x1p10)
        return {x, static_cast<float>(*number)};
  return {value, 1};
}

math::Grain grainOf(Operation *relaxed) { return relaxed->hasAttr(coarseAttr) ? math::Grain::bf16 : math::Grain::f16; }

/// The operand of the sum that is a function of f32 nothing else wants, where the other one is 1; null else.
Operation *functionPlusOne(arith::AddFOp sum) {
  if (!getElementTypeOrSelf(sum.getType()).isF32() || !hasFixedShape(sum.getType()))
    return nullptr;
  for (auto [value, other] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())}) {
    Operation *function = value.getDefiningOp();
    if (function && isa<::mlir::math::ErfOp, ::mlir::math::TanhOp>(function) && value.hasOneUse() &&
        isConstant(other, 1))
      return function;
  }
  return nullptr;
}

/// 1 + erf(x) and 1 + tanh(x) of f32, or half of it.
Value expandSum(ImplicitLocOpBuilder &b, arith::AddFOp sum, Operation *function, bool halved) {
  MlirArithmetic arithmetic(b, sum.getType());
  MlirArithmetic::Value<float> x{function->getOperand(0)};
  bool isErf = isa<::mlir::math::ErfOp>(function);
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

bool isHalfOf(Value value, Value x) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  return product && ((product.getLhs() == x && isConstant(product.getRhs(), 0.5)) ||
                     (product.getRhs() == x && isConstant(product.getLhs(), 0.5)));
}

/// The product of half of 1 + erf(s x) with x, or of the sum with half of x, where nothing else wants the half, or the
/// sum; null else.
arith::MulFOp geluOf(arith::AddFOp sum, arith::MulFOp half, Operation *function) {
  Operation *factor = half ? half.getOperation() : sum.getOperation();
  if (!factor->hasOneUse() || !isa<::mlir::math::ErfOp>(function))
    return {};
  Value x = takeScale(function->getOperand(0)).first;
  auto product = dyn_cast<arith::MulFOp>(*factor->user_begin());
  auto isOther = [&](Value value) { return half ? value == x : isHalfOf(value, x); };
  return product && (isOther(product.getLhs()) || isOther(product.getRhs())) ? product : nullptr;
}

Value expandGelu(ImplicitLocOpBuilder &b, arith::AddFOp sum, Operation *function) {
  auto [x, scale] = takeScale(function->getOperand(0));
  MlirArithmetic arithmetic(b, x.getType());
  MlirArithmetic::Value<float> argument{x};
  if (!sum->hasAttr(tile::relaxedAttr))
    return math::gelu(arithmetic, argument, scale).value;
  return math::relaxedGelu(arithmetic, argument, scale, grainOf(sum)).value;
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
    SmallVector<arith::AddFOp> sums;
    getOperation()->walk([&](arith::AddFOp sum) { sums.push_back(sum); });
    for (arith::AddFOp sum : sums) {
      ImplicitLocOpBuilder b(sum.getLoc(), sum);
      Operation *function = functionPlusOne(sum);
      if (!function)
        continue;
      arith::MulFOp halving = halvingOf(sum), gelu = geluOf(sum, halving, function);
      Value result = gelu ? expandGelu(b, sum, function) : expandSum(b, sum, function, halving != nullptr);
      Operation *replaced = gelu ? gelu.getOperation() : halving ? halving.getOperation() : sum.getOperation();
      replaced->getResult(0).replaceAllUsesWith(result);
      SmallVector<Value> operands(sum->getOperands());
      for (Operation *op : {gelu.getOperation(), halving.getOperation(), sum.getOperation()})
        if (op)
          op->erase();
      for (Value operand : operands)
        if (Operation *op = operand.getDefiningOp(); op && op->use_empty() && isMemoryEffectFree(op))
          op->erase();
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
  math::PowerUse use{.isNonPositive = op->hasAttr(tile::nonPositiveAttr), .isLost = isLostInSums(op)};
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
