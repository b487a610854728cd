// SPDX-License-Identifier: Apache-2.0
//
// tenon-nvidia-relax-precision: marks the operations whose result reaches memory only after rounding to 16 bits or fewer,
// on ways that carry a relative error through unchanged. A relative error of 2^-17 (exp by one multiplication and one
// instruction, division by a reciprocal that a row shares) is then a thirty-second of half a unit in the last place of f16.
// erf is as good. 1 + erf(x), one function, is within 2^-16.6 for x above -3, where GELU is a normal number of f16; the
// smaller results that bf16 has besides are within 2^-13, a sixteenth of half a unit in its last place.
//
//     %e = math.exp %x                        %e = math.exp %x {nvidia.relaxed}
//     %s = tile.reduce %e ... addf            ...
//     %q = arith.divf %e, broadcast(%s)   ->  %q = arith.divf %e, ... {nvidia.relaxed}
//     %y = tile.cast %q : f32 -> bf16         %y = tile.cast %q : f32 -> bf16
//
// What carries a relative error: products, quotients, choosing, moving, sums of numbers that are known not to be negative
// (nothing cancels). What does not: differences, comparisons, exponentials, carried tiles, stores of f32.
#include "tenon/compiler/target/nvidia/threads/Passes.h"

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon::nvidia {
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

class Precision {
public:
  bool isNonNegative(Value value) {
    if (auto found = nonNegative_.find(value); found != nonNegative_.end())
      return found->second;
    nonNegative_[value] = false; // a value that depends on itself: not known
    return nonNegative_[value] = decideNonNegative(value);
  }

  /// Whether every use of the value carries a relative error to a rounding and no further.
  bool isRelaxable(Value value) {
    if (auto found = relaxable_.find(value); found != relaxable_.end())
      return found->second;
    relaxable_[value] = false;
    bool all = !value.use_empty();
    for (Operation *user : value.getUsers())
      all = all && carries(value, user);
    return relaxable_[value] = all;
  }

private:
  bool carries(Value value, Operation *user) {
    if (isMovement(user))
      return isRelaxable(user->getResult(0));
    return llvm::TypeSwitch<Operation *, bool>(user)
        .Case<tile::CastOp>([&](auto cast) {
          auto element = llvm::dyn_cast<FloatType>(getElementTypeOrSelf(cast.getType()));
          return element && (element.getWidth() <= 16 || isRelaxable(cast));
        })
        .Case<arith::MulFOp, arith::DivFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp, math::AbsFOp,
              math::SqrtOp, math::RsqrtOp>([&](auto op) { return isRelaxable(op); })
        .Case<arith::AddFOp>([&](auto add) {
          return isNonNegative(add.getLhs()) && isNonNegative(add.getRhs()) && isRelaxable(add);
        })
        .Case<arith::SelectOp>([&](auto select) { return isRelaxable(select); })
        .Case<tile::ReduceOp>([&](auto reduce) {
          Operation *combiner = combinerOf(reduce);
          bool keeps = combiner && (llvm::isa<arith::MaximumFOp, arith::MinimumFOp>(combiner) ||
                                    (llvm::isa<arith::AddFOp>(combiner) && isNonNegative(reduce.getValues()[0])));
          return keeps && isRelaxable(reduce.getResults()[0]);
        })
        .Default([](Operation *) { return false; });
  }

  bool decideNonNegative(Value value) {
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

  llvm::DenseMap<Value, bool> nonNegative_, relaxable_;
};

/// 1 + erf(x) is one function: the error of the sum counts, not that of erf, which cancels where erf is close to -1.
bool isSumWithErf(Operation *op) {
  return llvm::isa<arith::AddFOp>(op) &&
         llvm::any_of(op->getOperands(), [](Value operand) { return operand.getDefiningOp<math::ErfOp>() != nullptr; });
}

struct RelaxPrecision : PassWrapper<RelaxPrecision, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RelaxPrecision)
  StringRef getArgument() const override { return "tenon-nvidia-relax-precision"; }
  StringRef getDescription() const override {
    return "Mark f32 operations whose result is only ever seen rounded to 16 bits or fewer";
  }

  void runOnOperation() override {
    Precision precision;
    getOperation().walk([&](Operation *op) {
      if ((llvm::isa<math::ExpOp, math::Exp2Op, math::ErfOp, arith::DivFOp>(op) || isSumWithErf(op)) &&
          getElementTypeOrSelf(op->getResult(0).getType()).isF32() && !op->getParentOfType<tile::ReduceOp>() &&
          precision.isRelaxable(op->getResult(0)))
        op->setAttr(relaxedAttr, UnitAttr::get(op->getContext()));
    });
  }
};

} // namespace

std::unique_ptr<Pass> createRelaxPrecisionPass() { return std::make_unique<RelaxPrecision>(); }

} // namespace tenon::nvidia
