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

/// Carried values whose signs depend on each other: each is looked at under the assumptions on the others.
constexpr size_t mostAssumed = 4;

/// The one operation of a reduction's region, or null.
Operation *combinerOf(tile::ReduceOp reduce) {
  Block &block = reduce.getCombine().front();
  return std::distance(block.begin(), block.end()) == 2 ? &block.front() : nullptr;
}

bool isZero(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isMovement(op) || op->getNumOperands() != 1)
      break;
    value = op->getOperand(0);
  }
  return matchPattern(value, m_AnyZeroFloat());
}

/// The argument of the loop around `yield` that gets its `index`th value; null if that is no such loop.
BlockArgument carriedBy(scf::YieldOp yield, unsigned index) {
  auto loop = llvm::dyn_cast<scf::ForOp>(yield->getParentOp());
  return loop ? loop.getRegionIterArg(index) : BlockArgument();
}

bool dependsOn(Value value, BlockArgument argument) {
  SmallVector<Value> work = {value};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value current = work.pop_back_val();
    if (current == argument)
      return true;
    Operation *op = current.getDefiningOp();
    if (!op || !seen.insert(current).second || !argument.getOwner()->getParentOp()->isAncestor(op))
      continue;
    llvm::append_range(work, op->getOperands());
    op->walk([&](Operation *inner) { llvm::append_range(work, inner->getOperands()); });
  }
  return false;
}

} // namespace

bool Relaxable::isNonNegative(Value value) {
  if (auto found = nonNegative_.find(value); found != nonNegative_.end())
    return found->second;
  nonNegative_[value] = false; // a value that depends on itself: not known
  return nonNegative_[value] = decideNonNegative(value);
}

bool Relaxable::reaches(Value value, bool isScaled) {
  std::pair<Value, unsigned> key(value, isScaled);
  if (auto found = relaxable_.find(key); found != relaxable_.end())
    return found->second;
  relaxable_[key] = false;
  bool all = !value.use_empty();
  for (Operation *user : value.getUsers())
    all = all && carries(value, user, isScaled);
  return relaxable_[key] = all;
}

bool Relaxable::carries(Value value, Operation *user, bool isScaled) {
  if (isMovement(user))
    return reaches(user->getResult(0), isScaled);
  return llvm::TypeSwitch<Operation *, bool>(user)
      .Case<tile::CastOp>([&](auto cast) {
        auto element = llvm::dyn_cast<FloatType>(getElementTypeOrSelf(cast.getType()));
        return element && (element.getFPMantissaWidth() <= bits_ || reaches(cast, isScaled));
      })
      .Case<arith::MulFOp, arith::DivFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp, math::AbsFOp,
            math::SqrtOp, math::RsqrtOp>([&](auto op) { return reaches(op, /*isScaled=*/true); })
      .Case<arith::AddFOp>([&](auto add) {
        return isNonNegative(add.getLhs()) && isNonNegative(add.getRhs()) && reaches(add, isScaled);
      })
      .Case<arith::SelectOp>([&](auto select) { return reaches(select, isScaled); })
      .Case<arith::CmpFOp>([&](auto compare) {
        using enum arith::CmpFPredicate;
        arith::CmpFPredicate predicate = compare.getPredicate();
        bool isEquality = predicate == OEQ || predicate == ONE || predicate == UEQ || predicate == UNE;
        return throughLoops_ && isEquality && (isZero(compare.getLhs()) || isZero(compare.getRhs()));
      })
      .Case<scf::YieldOp>([&](auto yield) { return throughLoops_ && !isScaled && carriesThroughLoop(value, yield); })
      .Case<tile::ReduceOp>([&](auto reduce) {
        Operation *combiner = combinerOf(reduce);
        bool keeps = combiner && (llvm::isa<arith::MaximumFOp, arith::MinimumFOp>(combiner) ||
                                  (llvm::isa<arith::AddFOp>(combiner) && isNonNegative(reduce.getValues()[0])));
        return keeps && reaches(reduce.getResults()[0], isScaled);
      })
      .Default([](Operation *) { return false; });
}

bool Relaxable::carriesThroughLoop(Value value, scf::YieldOp yield) {
  for (auto [index, operand] : llvm::enumerate(yield.getOperands())) {
    BlockArgument carried = carriedBy(yield, index);
    if (operand == value &&
        !(carried && isOnlySummedUp(carried, carried, yield) &&
          reaches(yield->getParentOp()->getResult(index), /*isScaled=*/false)))
      return false;
  }
  return true;
}

/// Whether all that becomes of `value`, the carried one or what was made of it, is the next one.
bool Relaxable::isOnlySummedUp(Value value, BlockArgument carried, scf::YieldOp yield) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (user == yield)
      return carriedBy(yield, use.getOperandNumber()) == carried;
    if (isMovement(user))
      return isOnlySummedUp(user->getResult(0), carried, yield);
    if (auto product = llvm::dyn_cast<arith::MulFOp>(user))
      return !dependsOn(product->getOperand(1 - use.getOperandNumber()), carried) &&
             isOnlySummedUp(product, carried, yield);
    auto add = llvm::dyn_cast<arith::AddFOp>(user);
    return add && isNonNegative(add.getLhs()) && isNonNegative(add.getRhs()) && isOnlySummedUp(add, carried, yield);
  });
}

bool Relaxable::decideNonNegative(Value value) {
  if (auto argument = llvm::dyn_cast<BlockArgument>(value)) {
    auto loop = llvm::dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    OpOperand *init = loop && throughLoops_ ? loop.getTiedLoopInit(argument) : nullptr;
    if (!init || !isNonNegative(init->get()))
      return false;
    if (llvm::is_contained(assumed_, value))
      return true;
    if (assumed_.size() >= mostAssumed)
      return false;
    // By induction: the next one is, if this one is. What is found out meanwhile holds only then.
    llvm::DenseMap<Value, bool> before;
    std::swap(before, nonNegative_);
    assumed_.push_back(value);
    bool stays = isNonNegative(loop.getTiedLoopYieldedValue(argument)->get());
    assumed_.pop_back();
    std::swap(before, nonNegative_);
    return stays;
  }
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

bool isMovement(Operation *op) {
  return llvm::isa<tile::BroadcastOp, tile::ReshapeOp, tile::TransposeOp, tile::SliceOp, tile::ConcatOp, tile::SplatOp,
                   tile::ScalarOp>(op);
}

bool isSumWith(Operation *op, StringRef functionName) {
  return llvm::isa<arith::AddFOp>(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
    Operation *definition = operand.getDefiningOp();
    return definition && definition->getName().getStringRef() == functionName;
  });
}

} // namespace tenon
