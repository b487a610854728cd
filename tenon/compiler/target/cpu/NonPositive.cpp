// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/NonPositive.h"

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

Value behindCopies(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!llvm::isa<tile::BroadcastOp, tile::SplatOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool isMinusInfinity(Value value) {
  llvm::APFloat number(0.0);
  return matchPattern(behindCopies(value), m_ConstantFloat(&number)) && number.isInfinity() && number.isNegative();
}

/// Whether `bound` is at least `x`, where neither is NaN.
bool isAtLeast(Value bound, Value x) {
  bound = behindCopies(bound);
  Operation *op = bound.getDefiningOp();
  if (!op)
    return false;
  if (auto reduce = llvm::dyn_cast<tile::ReduceOp>(op)) {
    Block &block = reduce.getCombine().front();
    return reduce.getValues().size() == 1 && reduce.getValues()[0] == x &&
           std::distance(block.begin(), block.end()) == 2 && llvm::isa<arith::MaximumFOp>(block.front());
  }
  if (auto larger = llvm::dyn_cast<arith::MaximumFOp>(op))
    return isAtLeast(larger.getLhs(), x) || isAtLeast(larger.getRhs(), x);
  if (auto select = llvm::dyn_cast<arith::SelectOp>(op)) {
    auto compare = behindCopies(select.getCondition()).getDefiningOp<arith::CmpFOp>();
    return compare && compare.getPredicate() == arith::CmpFPredicate::OEQ && isMinusInfinity(compare.getRhs()) &&
           behindCopies(compare.getLhs()) == behindCopies(select.getFalseValue()) && isAtLeast(select.getFalseValue(), x);
  }
  return false;
}

bool isMagnitude(Value x) { return behindCopies(x).getDefiningOp<math::AbsFOp>() != nullptr; }

/// x less what is at least x, -|x|, |x| times a negative number; or NaN.
bool isNonPositive(Value value) {
  if (auto difference = value.getDefiningOp<arith::SubFOp>())
    return isAtLeast(difference.getRhs(), difference.getLhs());
  if (auto negated = value.getDefiningOp<arith::NegFOp>())
    return isMagnitude(negated.getOperand());
  llvm::APFloat factor(0.0);
  auto product = value.getDefiningOp<arith::MulFOp>();
  auto isNegative = [&](Value x) {
    return matchPattern(behindCopies(x), m_ConstantFloat(&factor)) && factor.isNegative();
  };
  return product && ((isMagnitude(product.getLhs()) && isNegative(product.getRhs())) ||
                     (isMagnitude(product.getRhs()) && isNegative(product.getLhs())));
}

} // namespace

void markNonPositive(func::FuncOp kernel) {
  kernel.walk([](math::ExpOp op) {
    if (isNonPositive(op.getOperand()))
      op->setAttr(tile::nonPositiveAttr, UnitAttr::get(op->getContext()));
  });
}

} // namespace tenon::cpu
