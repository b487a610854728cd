// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/TiesAway.h"

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/transform/Relaxable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"

#include <climits>
#include <limits>

using namespace mlir;

namespace tenon::cpu {
namespace {

bool isFloat(Value value) { return llvm::isa<FloatType>(getElementTypeOrSelf(value.getType())); }

/// Whether every element is off by an error that relaxed operations may have, or a number of bf16. A sum, or a choice,
/// with another number that is exact may be exact, as is a quotient by a power of two.
class Inexact {
public:
  bool operator()(Value value) {
    auto [entry, isNew] = known_.insert({value, false});
    return isNew ? known_[value] = decide(value) : entry->second;
  }

private:
  bool decide(Value value);

  llvm::DenseMap<Value, bool> known_;
};

bool Inexact::decide(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  auto isInexact = [&](Value operand) { return (*this)(operand); };
  llvm::APFloat number(0.0);
  auto isInexactOrShort = [&](Value operand) { // what is bf16 already is no tie
    bool loses = true;
    if (matchPattern(operand, m_ConstantFloat(&number)))
      number.convert(llvm::APFloat::BFloat(), llvm::APFloat::rmNearestTiesToEven, &loses);
    return !isFloat(operand) || !loses || isInexact(operand);
  };
  if (auto quotient = llvm::dyn_cast<arith::DivFOp>(op);
      quotient && matchPattern(quotient.getRhs(), m_ConstantFloat(&number)) && number.getExactLog2Abs() != INT_MIN)
    return isInexact(quotient.getLhs());
  if (op->hasAttr(tile::relaxedAttr))
    return true;
  if (llvm::isa<arith::MulFOp, arith::DivFOp, arith::NegFOp, math::AbsFOp>(op) || isMovement(op))
    return llvm::any_of(op->getOperands(), isInexact);
  return llvm::isa<arith::AddFOp, arith::SubFOp, arith::SelectOp, arith::MaximumFOp, arith::MinimumFOp>(op) &&
         llvm::all_of(op->getOperands(), isInexactOrShort);
}

/// What a rounding's operand is computed from, as far back as it is f32 all the way.
class Origins {
public:
  explicit Origins(Value rounded) {
    values_.insert(rounded);
    for (size_t at = 0; at < values_.size() && areShort_; ++at)
      follow(values_[at]);
    for (tile::SplatOp splat : splats_) // somebody else may want the bits
      areShort_ &= llvm::all_of(splat->getUsers(), [&](Operation *user) {
        return user->getNumResults() == 1 && values_.contains(user->getResult(0));
      });
  }

  /// Whether all NaNs are short, if those of the scalars are that are splat.
  bool haveShortNans() const { return areShort_; }
  ArrayRef<tile::SplatOp> splats() const { return splats_; }

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
      splats_.push_back(splat);
    } else if (llvm::isa<arith::ConstantOp>(op)) {
      areShort_ &= matchPattern(value, m_ConstantFloat(&number)) && !number.isNaN();
    } else if (auto cast = llvm::dyn_cast<tile::CastOp>(op)) {
      Type from = getElementTypeOrSelf(cast.getValue().getType());
      areShort_ &= from.isBF16() || !llvm::isa<FloatType>(from);
    } else if (llvm::isa<tile::ReduceOp, tile::DotOp>(op) || isMovement(op) || lower::isElementwise(op)) {
      auto makesBits = [](Operation *inner) { // in the region of a reduction, too
        llvm::APFloat number(0.0);
        bool isNan = matchPattern(inner, m_ConstantFloat(&number)) && number.isNaN();
        return isNan || llvm::isa<arith::BitcastOp>(inner) ? WalkResult::interrupt() : WalkResult::advance();
      };
      areShort_ &= element.isF32() && !op->walk(makesBits).wasInterrupted();
      add(op->getOperands());
    } else {
      areShort_ = false; // a load of f32 among them
    }
  }

  void followArgument(BlockArgument argument) {
    auto loop = llvm::dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    OpOperand *init = loop ? loop.getTiedLoopInit(argument) : nullptr;
    if (init)
      add({init->get(), loop.getTiedLoopYieldedValue(argument)->get()});
    else
      areShort_ = false;
  }

  llvm::SetVector<Value> values_;
  SmallVector<tile::SplatOp> splats_;
  bool areShort_ = true;
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
  Inexact isInexact;
  llvm::DenseMap<Value, Value> shorter;
  for (tile::CastOp cast : casts) {
    if (!isInexact(cast.getValue()))
      continue;
    Origins origins(cast.getValue());
    if (!origins.haveShortNans())
      continue;
    cast->setAttr(tile::tiesAwayAttr, UnitAttr::get(cast.getContext()));
    for (tile::SplatOp splat : origins.splats()) {
      Value scalar = splat.getValue(), exchanged = shorter.lookup(scalar);
      if (!exchanged)
        exchanged = withShortNan(scalar);
      splat.getValueMutable().assign(exchanged);
      shorter[scalar] = exchanged;
      shorter[exchanged] = exchanged;
    }
  }
}

} // namespace tenon::cpu
