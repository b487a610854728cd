// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/threads/AxisInfo.h"

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

constexpr int64_t most = Divisibility::most;
using Axis = AxisInfo::Axis;

RankedTensorType typeOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()); }

/// Booleans are left out: one and minus one are the same there.
bool isIntegerTile(Value value) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isIntOrIndex() && !type.getElementType().isInteger(1);
}

unsigned widthOf(Value tile) {
  Type element = typeOf(tile).getElementType();
  return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
}

/// Every element is the same multiple of `divisibility`.
AxisInfo uniform(size_t rank, int64_t divisibility) {
  return {SmallVector<Axis, 5>(rank, Axis{1, most, std::min(divisibility, most)})};
}

/// Nothing is known but that along a dimension of one element there is one element.
AxisInfo anything(ArrayRef<int64_t> shape) {
  AxisInfo info;
  for (int64_t size : shape)
    info.axes.push_back({1, size == 1 ? most : 1, 1});
  return info;
}

AxisInfo ofIota(tile::IotaOp iota) {
  ArrayRef<int64_t> shape = typeOf(iota).getShape();
  int64_t size = shape[iota.getDim()];
  if (size == 1)
    return uniform(shape.size(), most);
  AxisInfo info = uniform(shape.size(), 1);
  info.axes[iota.getDim()] = {std::min<int64_t>(llvm::PowerOf2Ceil(size), most), 1, most};
  return info;
}

AxisInfo ofSum(const AxisInfo &a, const AxisInfo &b, bool isDifference) {
  AxisInfo sum;
  for (size_t d = 0; d < a.axes.size(); ++d) {
    Axis axis;
    axis.contiguity = std::min(a.axes[d].contiguity, b.axes[d].constancy);
    if (!isDifference)
      axis.contiguity = std::max(axis.contiguity, std::min(a.axes[d].constancy, b.axes[d].contiguity));
    axis.constancy = std::min(a.axes[d].constancy, b.axes[d].constancy);
    axis.divisibility =
        std::min(a.divisibilityOfRuns(d, axis.contiguity), b.divisibilityOfRuns(d, axis.contiguity));
    sum.axes.push_back(axis);
  }
  return sum;
}

AxisInfo ofProduct(const AxisInfo &a, const AxisInfo &b) {
  AxisInfo product;
  int64_t divisibility = std::min(a.divisibility() * b.divisibility(), most);
  for (size_t d = 0; d < a.axes.size(); ++d)
    product.axes.push_back({1, std::min(a.axes[d].constancy, b.axes[d].constancy), divisibility});
  return product;
}

/// Shifted right by less than the width. Within an aligned block of 2^amount numbers the result does not change, and a
/// run that begins with a multiple of its length does not leave its block (nor pass the largest number).
AxisInfo ofShiftRight(const AxisInfo &value, int64_t amount) {
  AxisInfo result;
  int64_t block = std::min<int64_t>(int64_t(1) << std::min<int64_t>(amount, 62), most);
  for (size_t d = 0; d < value.axes.size(); ++d) {
    int64_t run = std::min(value.axes[d].contiguity, block), first = value.divisibilityOfRuns(d, run);
    bool inBlock = first >= run;
    result.axes.push_back({1, inBlock ? std::max(run, value.axes[d].constancy) : value.axes[d].constancy,
                           inBlock && amount < 62 ? std::max<int64_t>(first >> amount, 1) : 1});
  }
  return result;
}

/// To more bits: a run stays one only where it is sure not to wrap.
AxisInfo ofExtension(const AxisInfo &value, unsigned fromWidth) {
  AxisInfo result;
  for (auto [d, axis] : llvm::enumerate(value.axes)) {
    int64_t run = std::min<int64_t>(value.alignedRun(d), int64_t(1) << (fromWidth - 1));
    result.axes.push_back({run, axis.constancy, value.divisibilityOfRuns(d, run)});
  }
  return result;
}

AxisInfo ofBroadcast(const AxisInfo &value, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  AxisInfo result = value;
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] != to[d])
      result.axes[d].constancy = most;
  return result;
}

/// Where only dimensions of one element come or go; else nothing is known.
AxisInfo ofReshape(const AxisInfo &value, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  AxisInfo result;
  size_t next = 0;
  auto skipUnits = [&] {
    while (next < from.size() && from[next] == 1)
      ++next;
  };
  for (int64_t size : to) {
    if (size == 1) {
      result.axes.push_back({1, most, value.divisibility()});
      continue;
    }
    skipUnits();
    if (next == from.size() || from[next] != size)
      return anything(to);
    result.axes.push_back(value.axes[next++]);
  }
  return result;
}

/// The number that every element is, if it is known.
std::optional<APInt> constantOf(Value tile) {
  APInt value;
  if (auto splat = tile.getDefiningOp<tile::SplatOp>())
    tile = splat.getValue();
  return matchPattern(tile, m_ConstantInt(&value)) ? std::optional(value) : std::nullopt;
}

} // namespace

int64_t AxisInfo::divisibility() const {
  int64_t best = 1;
  for (const Axis &axis : axes)
    if (axis.contiguity == 1)
      best = std::max(best, axis.divisibility);
  return best;
}

int64_t AxisInfo::divisibilityOfRuns(size_t dim, int64_t run) const {
  // Inside a longer run: its first element, plus a multiple of `run`.
  const Axis &axis = axes[dim];
  int64_t along = run >= axis.contiguity ? axis.divisibility : std::min(axis.divisibility, run);
  return std::max(along, divisibility());
}

int64_t AxisInfo::alignedRun(size_t dim) const { return std::min(axes[dim].contiguity, axes[dim].divisibility); }

AxisInfo AxisAnalysis::of(Value tile) {
  if (auto found = known_.find(tile); found != known_.end())
    return found->second;
  AxisInfo info = compute(tile);
  known_[tile] = info;
  return info;
}

bool AxisAnalysis::isConstantInRuns(Value tile, size_t dim, int64_t run) {
  Operation *definition = tile.getDefiningOp();
  auto both = [&] {
    return llvm::all_of(definition->getOperands(), [&](Value operand) { return isConstantInRuns(operand, dim, run); });
  };
  if (typeOf(tile).getDimSize(static_cast<unsigned>(dim)) == 1 || (definition && constantOf(tile)))
    return true;
  if (auto broadcast = llvm::dyn_cast_or_null<tile::BroadcastOp>(definition))
    return isConstantInRuns(broadcast.getValue(), dim, run);
  if (llvm::isa_and_nonnull<tile::SplatOp>(definition))
    return true;
  if (llvm::isa_and_nonnull<arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::CmpIOp>(definition))
    return both();
  return isIntegerTile(tile) && of(tile).axes[dim].constancy >= run;
}

AxisInfo AxisAnalysis::compute(Value tile) {
  ArrayRef<int64_t> shape = typeOf(tile).getShape();
  AxisInfo unknown = anything(shape);
  Operation *definition = tile.getDefiningOp();
  if (!definition || !isIntegerTile(tile))
    return unknown;
  // What is known of an operand comes with its shape: the same as the result's, unless the op is about shapes.
  auto operand = [&](unsigned i) { return of(definition->getOperand(i)); };
  auto ofCast = [&] {
    Value from = definition->getOperand(0);
    if (!isIntegerTile(from))
      return unknown;
    return widthOf(from) < widthOf(tile) ? ofExtension(of(from), widthOf(from)) : of(from);
  };
  auto amountOf = [&](Value amount) -> std::optional<int64_t> { // at most the width
    std::optional<APInt> value = constantOf(amount);
    return value ? std::optional<int64_t>(value->getLimitedValue(widthOf(tile))) : std::nullopt;
  };
  return llvm::TypeSwitch<Operation *, AxisInfo>(definition)
      .Case<tile::IotaOp>([&](auto iota) { return ofIota(iota); })
      .Case<tile::SplatOp>([&](auto splat) { return uniform(shape.size(), scalars_.of(splat.getValue())); })
      .Case<arith::ConstantOp>([&](auto constant) {
        std::optional<APInt> value = constantOf(constant);
        if (!value)
          return unknown;
        return uniform(shape.size(), value->isZero() ? most : int64_t(1) << std::min(value->countr_zero(), 20u));
      })
      .Case<tile::BroadcastOp>(
          [&](auto op) { return ofBroadcast(operand(0), typeOf(op.getValue()).getShape(), shape); })
      .Case<tile::ReshapeOp>([&](auto op) { return ofReshape(operand(0), typeOf(op.getValue()).getShape(), shape); })
      .Case<tile::TransposeOp>([&](auto op) {
        AxisInfo from = operand(0), result;
        for (int64_t d : op.getPermutation())
          result.axes.push_back(from.axes[d]);
        return result;
      })
      .Case<ConvertOp>([&](auto) { return operand(0); })
      .Case<arith::AddIOp>([&](auto) { return ofSum(operand(0), operand(1), /*isDifference=*/false); })
      .Case<arith::SubIOp>([&](auto) { return ofSum(operand(0), operand(1), /*isDifference=*/true); })
      .Case<arith::MulIOp>([&](auto) { return ofProduct(operand(0), operand(1)); })
      .Case<arith::ShLIOp, tile::ShlOp>([&](auto op) {
        std::optional<int64_t> amount = amountOf(op.getRhs());
        if (!amount)
          return unknown;
        int64_t factor = *amount == widthOf(tile) ? most : int64_t(1) << std::min<int64_t>(*amount, 20);
        return ofProduct(operand(0), uniform(shape.size(), factor));
      })
      .Case<arith::ShRUIOp, arith::ShRSIOp, tile::ShrOp>([&](auto op) {
        std::optional<int64_t> amount = amountOf(op.getRhs());
        return amount && *amount < widthOf(tile) ? ofShiftRight(operand(0), *amount) : unknown;
      })
      .Case<tile::CastOp, arith::ExtUIOp, arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(
          [&](auto) { return ofCast(); })
      .Default([&](Operation *) { return unknown; });
}

} // namespace tenon::nvidia
