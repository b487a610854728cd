// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/transform/SumsWithOne.h"

#include "tenon/compiler/transform/Cubic.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tenon {
namespace {

bool isConstant(Value value, double number) { return constantOf(value) == number; }

bool isHalfOf(Value value, Value x) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  return product && ((product.getLhs() == x && isConstant(product.getRhs(), 0.5)) ||
                     (product.getRhs() == x && isConstant(product.getLhs(), 0.5)));
}

/// The product by which a value is halved, if that is its only use; null else.
arith::MulFOp halvingOf(Value value) {
  if (!value.hasOneUse())
    return {};
  auto product = dyn_cast<arith::MulFOp>(*value.user_begin());
  return product && (isConstant(product.getLhs(), 0.5) || isConstant(product.getRhs(), 0.5)) ? product : nullptr;
}

} // namespace

bool hasFixedShape(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (shaped && (!shaped.hasStaticShape() || !isa<VectorType, RankedTensorType>(type)))
    return false;
  auto vector = dyn_cast<VectorType>(type);
  return !vector || !vector.isScalable();
}

std::pair<Value, float> takeScale(Value value) {
  if (auto product = value.getDefiningOp<arith::MulFOp>())
    for (auto [x, other] :
         {std::pair(product.getLhs(), product.getRhs()), std::pair(product.getRhs(), product.getLhs())})
      if (std::optional<double> number = constantOf(other); number && *number >= 0x1p-10 && *number <= 0x1p10)
        return {x, static_cast<float>(*number)};
  return {value, 1};
}

bool SumWithOne::isErf() { return isa<::mlir::math::ErfOp>(function); }

arith::MulFOp SumWithOne::productWith(Value x) {
  Operation *factor = half ? half.getOperation() : sum.getOperation();
  if (!factor->hasOneUse())
    return {};
  auto product = dyn_cast<arith::MulFOp>(*factor->user_begin());
  auto isOther = [&](Value value) { return half ? value == x : isHalfOf(value, x); };
  return product && (isOther(product.getLhs()) || isOther(product.getRhs())) ? product : nullptr;
}

void SumWithOne::replaceBy(Value result, arith::MulFOp product) {
  SmallVector<Value> operands(sum->getOperands());
  bool isReplaced = false;
  for (Operation *op : {product.getOperation(), half.getOperation(), sum.getOperation()}) {
    if (!op)
      continue;
    if (!isReplaced)
      op->getResult(0).replaceAllUsesWith(result);
    isReplaced = true;
    op->erase();
  }
  for (Value operand : operands)
    if (Operation *op = operand.getDefiningOp(); op && op->use_empty() && isMemoryEffectFree(op))
      op->erase();
}

std::optional<SumWithOne> matchSumWithOne(arith::AddFOp sum) {
  if (!getElementTypeOrSelf(sum.getType()).isF32() || !hasFixedShape(sum.getType()))
    return std::nullopt;
  for (auto [value, other] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())}) {
    Operation *function = value.getDefiningOp();
    if (function && isa<::mlir::math::ErfOp, ::mlir::math::TanhOp>(function) && value.hasOneUse() &&
        isConstant(other, 1))
      return SumWithOne{sum, function, halvingOf(sum)};
  }
  return std::nullopt;
}

} // namespace tenon
