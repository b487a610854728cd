// SPDX-License-Identifier: Apache-2.0
//
// Masks of positions. A kernel writes them in 64 bits, as all indices are:
//
//     Tile column = iota(i64, {1, bn}, 1) + j, row = iota(i64, {bm, 1}, 0) + i * bm;
//     where(column <= row, score, -inf)
//
// Element by element that is an addition and a comparison of 64 bits, two instructions each, for every element of the
// tile, and two registers for every row and column. But the difference of the two sides is one number for the thread,
// its coordinates included, plus one that is known for each of its registers: one comparison of 32 bits with a
// constant. The number is the same up to what a tile spans, or it is further from zero than that: then all elements
// agree, and any number as far away does.
//
// Right where the sums that the kernel writes do not wrap. Sizes of views and places in the grid are below 2^48, which
// more memory than there can be would take; what is loaded from memory, or is an argument, may be anything of its type.
#include "tenon/compiler/target/nvidia/threads/Positions.h"

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// Sums of a few numbers between minus this and this do not wrap.
constexpr int64_t most = int64_t(1) << 58;
constexpr int64_t mostSize = int64_t(1) << 48;
/// Of definitions that are looked through.
constexpr int deepest = 16;
/// Terms of a difference: fewer than would wrap.
constexpr size_t mostTerms = 8;

/// Further from zero than any sum of coordinates, and still within 32 bits with one.
constexpr int64_t farAway = int64_t(1) << 29;
/// Fewer comparisons cost less as they are than the number that they would be compared with.
constexpr int fewRegisters = 8;

/// The left side of a comparison less the right one: in each element, the scalars and constant plus the sum of
/// factors[d] * (coordinate d).
struct Difference {
  llvm::SmallVector<int64_t, 5> factors;
  llvm::SmallVector<std::pair<Value, bool>> scalars; ///< whether it is subtracted
  int64_t constant = 0;
};

struct Bounds {
  int64_t low, high;
};
using MaybeBounds = std::optional<Bounds>;

MaybeBounds checked(__int128 low, __int128 high) {
  if (low < -most || high > most)
    return std::nullopt;
  return Bounds{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

MaybeBounds ofType(Type type) {
  if (!type.isInteger() || type.getIntOrFloatBitWidth() > 32 || type.isInteger(1))
    return std::nullopt;
  int64_t limit = int64_t(1) << type.getIntOrFloatBitWidth(); // signed or not
  return Bounds{-limit, limit};
}

/// Between what a scalar lies, whatever the launch; nothing if it may be anything, or is not known.
MaybeBounds boundsOf(Value value, int depth = 0) {
  if (depth > deepest)
    return std::nullopt;
  auto of = [&](Value operand) { return boundsOf(operand, depth + 1); };
  if (auto argument = llvm::dyn_cast<BlockArgument>(value)) {
    auto loop = llvm::dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument != loop.getInductionVar())
      return ofType(value.getType());
    MaybeBounds first = of(loop.getLowerBound()), end = of(loop.getUpperBound());
    return first && end ? checked(first->low, std::max(first->high, end->high)) : std::nullopt;
  }
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return checked(constant.getSExtValue(), constant.getSExtValue());
  auto both = [&](Operation *op, auto combine) -> MaybeBounds {
    MaybeBounds a = of(op->getOperand(0)), b = of(op->getOperand(1));
    return a && b ? combine(*a, *b) : std::nullopt;
  };
  return llvm::TypeSwitch<Operation *, MaybeBounds>(value.getDefiningOp())
      .Case<tile::SizeOp, tile::GridOp>([](auto) { return Bounds{0, mostSize}; })
      .Case<arith::IndexCastOp, arith::ExtSIOp>([&](auto op) { return of(op.getIn()); })
      .Case<tile::CastOp>([&](auto op) -> MaybeBounds {
        Type from = op.getValue().getType();
        return from.isIntOrIndex() && !op.getIsUnsigned() ? of(op.getValue()) : std::nullopt;
      })
      .Case<arith::AddIOp>([&](auto op) {
        return both(op, [](Bounds a, Bounds b) { return checked(__int128(a.low) + b.low, __int128(a.high) + b.high); });
      })
      .Case<arith::SubIOp>([&](auto op) {
        return both(op, [](Bounds a, Bounds b) { return checked(__int128(a.low) - b.high, __int128(a.high) - b.low); });
      })
      .Case<arith::MulIOp>([&](auto op) {
        return both(op, [](Bounds a, Bounds b) {
          __int128 ends[] = {__int128(a.low) * b.low, __int128(a.low) * b.high, __int128(a.high) * b.low,
                             __int128(a.high) * b.high};
          return checked(*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4));
        });
      })
      .Case<arith::MinSIOp>([&](auto op) -> MaybeBounds {
        MaybeBounds a = of(op.getLhs()), b = of(op.getRhs());
        return a && b ? checked(std::min(a->low, b->low), std::min(a->high, b->high)) : std::nullopt;
      })
      .Case<arith::MaxSIOp>([&](auto op) {
        return both(op, [](Bounds a, Bounds b) { return checked(std::max(a.low, b.low), std::max(a.high, b.high)); });
      })
      .Case<arith::SelectOp>([&](auto op) -> MaybeBounds {
        MaybeBounds a = of(op.getTrueValue()), b = of(op.getFalseValue());
        return a && b ? checked(std::min(a->low, b->low), std::max(a->high, b->high)) : std::nullopt;
      })
      // No quotient and no remainder is further from zero than what was divided.
      .Case<tile::DivOp, tile::RemOp>([&](auto op) -> MaybeBounds {
        MaybeBounds a = of(op->getOperand(0));
        if (!a || op.getIsUnsigned())
          return std::nullopt;
        APInt divisor;
        if (llvm::isa<tile::DivOp>(op) && matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) &&
            divisor.isStrictlyPositive())
          return Bounds{a->low / divisor.getSExtValue(), a->high / divisor.getSExtValue()};
        return Bounds{std::min<int64_t>({a->low, -a->high, 0}), std::max<int64_t>({a->high, -a->low, 0})};
      })
      .Default([&](Operation *) { return ofType(value.getType()); });
}

bool addScalar(Difference &sum, Value scalar, bool isMinus) {
  if (!scalar.getType().isInteger(64) || !boundsOf(scalar))
    return false;
  sum.scalars.push_back({scalar, isMinus});
  return sum.scalars.size() <= mostTerms;
}

/// Adds what a tile of positions is made of.
bool addTile(Difference &sum, Value tile, bool isMinus, int depth = 0) {
  if (depth > deepest)
    return false;
  int64_t sign = isMinus ? -1 : 1;
  APInt constant;
  if (matchPattern(tile, m_ConstantInt(&constant))) { // of a splat, too
    if (!checked(constant.getSExtValue(), constant.getSExtValue()))
      return false;
    sum.constant += sign * constant.getSExtValue();
    return checked(sum.constant, sum.constant).has_value();
  }
  Operation *op = tile.getDefiningOp();
  if (!op)
    return false;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<tile::IotaOp>([&](auto iota) {
        if (llvm::cast<RankedTensorType>(iota.getType()).getShape()[iota.getDim()] > 1)
          sum.factors[iota.getDim()] += sign;
        return true;
      })
      .Case<tile::SplatOp>([&](auto splat) { return addScalar(sum, splat.getValue(), isMinus); })
      .Case<tile::BroadcastOp>([&](auto broadcast) { return addTile(sum, broadcast.getValue(), isMinus, depth + 1); })
      .Case<arith::AddIOp>([&](auto add) {
        return addTile(sum, add.getLhs(), isMinus, depth + 1) && addTile(sum, add.getRhs(), isMinus, depth + 1);
      })
      .Case<arith::SubIOp>([&](auto difference) {
        return addTile(sum, difference.getLhs(), isMinus, depth + 1) &&
               addTile(sum, difference.getRhs(), !isMinus, depth + 1);
      })
      .Default([](Operation *) { return false; });
}

std::optional<Difference> differenceOf(arith::CmpIOp op) {
  auto type = llvm::dyn_cast<RankedTensorType>(op.getLhs().getType());
  if (!type || !type.getElementType().isInteger(64))
    return std::nullopt;
  Difference sum;
  sum.factors.assign(type.getRank(), 0);
  if (!addTile(sum, op.getLhs(), false) || !addTile(sum, op.getRhs(), true))
    return std::nullopt;
  int64_t span = 0;
  for (auto [factor, size] : llvm::zip(sum.factors, type.getShape()))
    span += std::abs(factor) * static_cast<int64_t>(llvm::PowerOf2Ceil(size));
  return span > 0 && span < farAway ? std::optional(sum) : std::nullopt;
}

} // namespace

std::optional<SmallVector<Value>> comparePositions(ImplicitLocOpBuilder &b, Operation *op, const Distribution &tile,
                                                   llvm::function_ref<ArrayRef<Value>()> coordinates,
                                                   llvm::function_ref<Value(Value)> scalar) {
  using enum arith::CmpIPredicate;
  auto compare = llvm::dyn_cast<arith::CmpIOp>(op);
  if (!compare || tile.registers() < fewRegisters ||
      !llvm::is_contained({eq, ne, slt, sle, sgt, sge}, compare.getPredicate()))
    return std::nullopt;
  std::optional<Difference> difference = differenceOf(compare);
  if (!difference)
    return std::nullopt;
  auto constant = [&](int64_t value, unsigned bits) -> Value { return b.create<arith::ConstantIntOp>(value, bits); };
  Value wide = constant(difference->constant, 64);
  for (auto [value, isMinus] : difference->scalars)
    wide = isMinus ? b.create<arith::SubIOp>(wide, scalar(value)).getResult()
                   : b.create<arith::AddIOp>(wide, scalar(value)).getResult();
  wide = b.create<arith::MaxSIOp>(b.create<arith::MinSIOp>(wide, constant(farAway, 64)), constant(-farAway, 64));
  Value sum = b.create<arith::TruncIOp>(b.getI32Type(), wide);
  for (auto [factor, coordinate] : llvm::zip(difference->factors, coordinates()))
    if (factor)
      sum = b.create<arith::AddIOp>(sum, b.create<arith::MulIOp>(coordinate, constant(factor, 32)));
  SmallVector<Value> flags(tile.registers());
  for (int reg = 0; reg < tile.registers(); ++reg) {
    if (!tile.exists(reg))
      continue;
    int64_t own = 0;
    for (auto [factor, offset] : llvm::zip(difference->factors, tile.offset(reg)))
      own += factor * offset;
    flags[reg] = b.create<arith::CmpIOp>(compare.getPredicate(), sum, constant(-own, 32));
  }
  return flags;
}

} // namespace tenon::nvidia
