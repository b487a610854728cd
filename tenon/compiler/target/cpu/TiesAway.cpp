// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/TiesAway.h"

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/lower/Elements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"

#include <limits>

using namespace mlir;

namespace tenon::cpu {
namespace {

bool movesElements(Operation *op) {
  return llvm::isa<tile::BroadcastOp, tile::ReshapeOp, tile::TransposeOp, tile::SliceOp, tile::ConcatOp, tile::ScalarOp,
                   tile::SplatOp>(op);
}

bool isFloat(Value value) { return llvm::isa<FloatType>(getElementTypeOrSelf(value.getType())); }

/// Whether the sum of a tile's elements, or anything else whose order shows in the last bits.
bool roundsInSomeOrder(Operation *op) {
  auto reduce = llvm::dyn_cast<tile::ReduceOp>(op);
  return llvm::isa<tile::DotOp>(op) ||
         (reduce && isFloat(reduce.getResults()[0]) &&
          llvm::any_of(reduce.getCombine().front(),
                       [](Operation &inner) { return llvm::isa<arith::AddFOp, arith::MulFOp>(inner); }));
}

/// What a rounding's operand is computed from, as far back as it is f32 all the way.
class Origins {
public:
  explicit Origins(Value rounded) {
    values_.insert(rounded);
    for (size_t at = 0; at < values_.size() && isKnown_; ++at)
      follow(values_[at]);
  }

  /// Whether its bits are promised to nobody, and its NaNs are short.
  bool allowTiesAway() const { return isKnown_ && isInexact_; }
  ArrayRef<Value> scalars() const { return scalars_; }

private:
  void add(ValueRange operands) {
    for (Value operand : operands)
      if (isFloat(operand) && !getElementTypeOrSelf(operand.getType()).isBF16())
        values_.insert(operand);
  }

  void follow(Value value) {
    if (auto argument = llvm::dyn_cast<BlockArgument>(value))
      return followArgument(argument);
    Operation *op = value.getDefiningOp();
    isInexact_ |= op->hasAttr(tile::relaxedAttr) || roundsInSomeOrder(op);
    Type element = getElementTypeOrSelf(value.getType());
    llvm::APFloat number(0.0);
    if (auto loop = llvm::dyn_cast<scf::ForOp>(op)) {
      unsigned result = llvm::cast<OpResult>(value).getResultNumber();
      add({loop.getInitArgs()[result], loop.getYieldedValues()[result]});
    } else if (auto branch = llvm::dyn_cast<scf::IfOp>(op)) {
      unsigned result = llvm::cast<OpResult>(value).getResultNumber();
      add({branch.thenYield()->getOperand(result), branch.elseYield()->getOperand(result)});
    } else if (auto splat = llvm::dyn_cast<tile::SplatOp>(op);
               splat && element.isF32() && !matchPattern(splat.getValue(), m_Constant())) {
      scalars_.push_back(splat.getValue());
    } else if (llvm::isa<arith::ConstantOp>(op)) {
      isKnown_ &= matchPattern(value, m_ConstantFloat(&number)) && !number.isNaN();
    } else if (auto cast = llvm::dyn_cast<tile::CastOp>(op)) {
      Type from = getElementTypeOrSelf(cast.getValue().getType());
      isKnown_ &= from.isBF16() || !llvm::isa<FloatType>(from);
    } else if (llvm::isa<tile::ReduceOp, tile::DotOp>(op) || movesElements(op) || lower::isElementwise(op)) {
      auto takesBits = [](Operation *inner) {
        return llvm::isa<arith::BitcastOp>(inner) ? WalkResult::interrupt() : WalkResult::advance();
      };
      isKnown_ &= element.isF32() && !op->walk(takesBits).wasInterrupted();
      add(op->getOperands());
    } else {
      isKnown_ = false; // a load of f32 among them
    }
  }

  void followArgument(BlockArgument argument) {
    auto loop = llvm::dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    OpOperand *init = loop ? loop.getTiedLoopInit(argument) : nullptr;
    if (init)
      add({init->get(), loop.getTiedLoopYieldedValue(argument)->get()});
    else
      isKnown_ = false;
  }

  llvm::SetVector<Value> values_;
  SmallVector<Value> scalars_;
  bool isKnown_ = true, isInexact_ = false;
};

/// The scalar, or a NaN that ends in zeros.
Value withShortNan(Value scalar) {
  ImplicitLocOpBuilder b(scalar.getLoc(), scalar.getContext());
  b.setInsertionPointAfterValue(scalar);
  Value nan = b.create<arith::ConstantOp>(b.getF32FloatAttr(std::numeric_limits<float>::quiet_NaN()));
  auto isNan = b.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, scalar, scalar);
  return b.create<arith::SelectOp>(isNan, nan, scalar);
}

} // namespace

void allowTiesAway(func::FuncOp kernel) {
  SmallVector<tile::CastOp> casts;
  kernel.walk([&](tile::CastOp cast) {
    bool rounds = getElementTypeOrSelf(cast.getType()).isBF16() &&
                  getElementTypeOrSelf(cast.getValue().getType()).isF32() && !cast->use_empty();
    if (rounds && llvm::all_of(cast->getUsers(), [](Operation *user) { return llvm::isa<tile::StoreOp>(user); }))
      casts.push_back(cast);
  });
  llvm::DenseSet<Value> replaced;
  for (tile::CastOp cast : casts) {
    Origins origins(cast.getValue());
    if (!origins.allowTiesAway())
      continue;
    cast->setAttr(tile::tiesAwayAttr, UnitAttr::get(cast.getContext()));
    for (Value scalar : origins.scalars()) {
      SmallVector<tile::SplatOp> splats;
      for (Operation *user : scalar.getUsers())
        if (auto splat = llvm::dyn_cast<tile::SplatOp>(user))
          splats.push_back(splat);
      if (splats.empty() || !replaced.insert(scalar).second)
        continue;
      Value shorter = withShortNan(scalar);
      replaced.insert(shorter);
      for (tile::SplatOp splat : splats)
        splat.getValueMutable().assign(shorter);
    }
  }
}

} // namespace tenon::cpu
