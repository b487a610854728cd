// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/transform/Relaxable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon {
namespace {

/// Moves elements without touching them.
bool isMovement(Operation *op) {
  return llvm::isa<tile::BroadcastOp, tile::ReshapeOp, tile::TransposeOp, tile::SliceOp, tile::ConcatOp, tile::SplatOp,
                   tile::ScalarOp>(op);
}

/// The one operation of a reduction's region, or null.
Operation *combinerOf(tile::ReduceOp reduce) {
  Block &block = reduce.getCombine().front();
  return std::distance(block.begin(), block.end()) == 2 ? &block.front() : nullptr;
}

} // namespace

bool Relaxable::isNonNegative(Value value) {
  if (auto found = nonNegative_.find(value); found != nonNegative_.end())
    return found->second;
  nonNegative_[value] = false; // a value that depends on itself: not known
  return nonNegative_[value] = decideNonNegative(value);
}

bool Relaxable::operator()(Value value) {
  if (auto found = relaxable_.find(value); found != relaxable_.end())
    return found->second;
  relaxable_[value] = false;
  bool all = !value.use_empty();
  for (Operation *user : value.getUsers())
    all = all && carries(value, user);
  return relaxable_[value] = all;
}

bool Relaxable::carries(Value value, Operation *user) {
  if (isMovement(user))
    return (*this)(user->getResult(0));
  return llvm::TypeSwitch<Operation *, bool>(user)
      .Case<tile::CastOp>([&](auto cast) {
        auto element = llvm::dyn_cast<FloatType>(getElementTypeOrSelf(cast.getType()));
        return element && (element.getWidth() <= 16 || (*this)(cast));
      })
      .Case<arith::MulFOp, arith::DivFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp, math::AbsFOp,
            math::SqrtOp, math::RsqrtOp>([&](auto op) { return (*this)(op); })
      .Case<arith::AddFOp>([&](auto add) {
        return isNonNegative(add.getLhs()) && isNonNegative(add.getRhs()) && (*this)(add);
      })
      .Case<arith::SelectOp>([&](auto select) { return (*this)(select); })
      .Case<tile::ReduceOp>([&](auto reduce) {
        Operation *combiner = combinerOf(reduce);
        bool keeps = combiner && (llvm::isa<arith::MaximumFOp, arith::MinimumFOp>(combiner) ||
                                  (llvm::isa<arith::AddFOp>(combiner) && isNonNegative(reduce.getValues()[0])));
        return keeps && (*this)(reduce.getResults()[0]);
      })
      .Default([](Operation *) { return false; });
}

bool Relaxable::decideNonNegative(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isMovement(op))
    return llvm::all_of(op->getOperands(), [&](Value operand) { return isNonNegative(operand); });
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<math::ExpOp, math::Exp2Op, math::SqrtOp, math::RsqrtOp, math::AbsFOp>([](auto) { return true; })
      .Case<arith::ConstantOp>([&](auto) {
        llvm::APFloat number(0.0);
        return matchPattern(value, m_ConstantFloat(&number)) && !number.isNegative() && !number.isNaN();
      })
      .Case<arith::MulFOp>([&](auto mul) {
        return mul.getLhs() == mul.getRhs() || (isNonNegative(mul.getLhs()) && isNonNegative(mul.getRhs()));
      })
      .Case<arith::AddFOp, arith::DivFOp, arith::MinimumFOp>(
          [&](auto both) { return isNonNegative(both.getLhs()) && isNonNegative(both.getRhs()); })
      .Case<arith::MaximumFOp>(
          [&](auto max) { return isNonNegative(max.getLhs()) || isNonNegative(max.getRhs()); })
      .Case<arith::SelectOp>([&](auto select) {
        return isNonNegative(select.getTrueValue()) && isNonNegative(select.getFalseValue());
      })
      .Case<tile::CastOp>([&](auto cast) {
        return llvm::isa<FloatType>(getElementTypeOrSelf(cast.getValue().getType())) &&
               isNonNegative(cast.getValue());
      })
      .Case<tile::ReduceOp>([&](auto reduce) {
        Operation *combiner = combinerOf(reduce);
        return combiner && llvm::isa<arith::AddFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MulFOp>(combiner) &&
               isNonNegative(reduce.getValues()[0]);
      })
      .Default([](Operation *) { return false; });
}

bool isSumWith(Operation *op, StringRef functionName) {
  return llvm::isa<arith::AddFOp>(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
    Operation *definition = operand.getDefiningOp();
    return definition && definition->getName().getStringRef() == functionName;
  });
}

} // namespace tenon
