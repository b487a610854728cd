// SPDX-License-Identifier: Apache-2.0
//
// tile.reduce: first inside a thread, then across the lanes of a warp (butterfly shuffles), the warps of a block (through
// shared memory) and the blocks of a cluster (through each other's shared memory). Every thread that held an element of a
// row ends with the row's result, which is the operand's layout with the reduced dimension projected away.
//
// Where a register lies past the tile's edge for some threads it takes part as the neutral element, if the combination has
// a known one; otherwise each partial result carries a flag that says whether it holds anything.
#include "tenon/compiler/target/nvidia/threads/Layouts.h"
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {

Partial ThreadEmitter::joinPartials(Region &combine, const Partial &left, const Partial &right) {
  Partial joined{combineElements(b_, combine, left.values, right.values), {}};
  if (!left.filled && !right.filled)
    return joined;
  auto isFilled = [&](const Partial &side) { return side.filled ? side.filled : boolean(true); };
  for (size_t i = 0; i < joined.values.size(); ++i) {
    Value whenRight = b_.create<arith::SelectOp>(isFilled(right), joined.values[i], left.values[i]);
    joined.values[i] = b_.create<arith::SelectOp>(isFilled(left), whenRight, right.values[i]);
  }
  joined.filled = b_.create<arith::OrIOp>(isFilled(left), isFilled(right));
  return joined;
}

void ThreadEmitter::emitReduce(tile::ReduceOp op) {
  const Distribution &tile = distribution(op.getValues()[0]), &result = distribution(op.getResults()[0]);
  int64_t dim = op.getDim();
  Region &combine = op.getCombine();
  std::optional<SmallVector<TypedAttr>> neutral = neutralElements(combine);

  auto join = [&](const Partial &left, const Partial &right) { return joinPartials(combine, left, right); };

  // Inside the thread, registers in order.
  SmallVector<Partial> partials(result.registers());
  for (int reg = 0; reg < tile.registers(); ++reg) {
    if (!tile.exists(reg))
      continue;
    Coords at = tile.offset(reg);
    at[dim] = 0;
    int target = result.registerAt(at);
    Partial one;
    for (Value operand : op.getValues())
      one.values.push_back(registers(operand)[reg]);
    if (tile.isPartial(reg, dim)) {
      Value limit = i32(tile.shape()[dim] - tile.offset(reg)[dim]);
      Value holds = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, threadCoords(tile)[dim], limit);
      if (neutral)
        one.values[0] = b_.create<arith::SelectOp>(holds, one.values[0], b_.create<arith::ConstantOp>((*neutral)[0]));
      else
        one.filled = holds;
    }
    Partial &sum = partials[target];
    sum = sum.values.empty() ? one : join(sum, one);
  }

  // Across lanes, warps and blocks: the bits of the thread's number that move along the dimension.
  SmallVector<int> warpBits, blockBits;
  int64_t sameMask = 0; // threads that differ in these bits alone end with the same values
  for (const Distribution::ThreadBit &bit : tile.threadBits()) {
    if (bit.bit < Distribution::blockBit && (bit.dim == dim || bit.dim < 0))
      sameMask |= int64_t(1) << bit.bit;
    if (bit.dim != dim)
      continue;
    if (bit.bit >= Distribution::blockBit) {
      blockBits.push_back(bit.bit - Distribution::blockBit);
    } else if (bit.bit >= 5) {
      warpBits.push_back(bit.bit - 5);
    } else {
      Value mask = i32(int64_t(1) << bit.bit);
      for (Partial &partial : partials) {
        if (partial.values.empty())
          continue;
        Partial other;
        for (Value value : partial.values)
          other.values.push_back(shuffle(ShuffleMode::bfly, value, mask));
        if (partial.filled)
          other.filled = shuffle(ShuffleMode::bfly, partial.filled, mask);
        partial = join(partial, other);
      }
    }
  }
  // Each partial as a list of plain values, the flag last.
  auto flat = [](const Partial &partial) {
    SmallVector<Value> values = partial.values;
    if (partial.filled)
      values.push_back(partial.filled);
    return values;
  };
  auto unflat = [&](SmallVector<Value> values) {
    Partial partial{values, {}};
    if (values.size() > op.getNumResults())
      partial.filled = partial.values.pop_back_val();
    return partial;
  };
  for (bool ofBlocks : {false, true}) {
    ArrayRef<int> bits = ofBlocks ? blockBits : warpBits;
    if (bits.empty())
      continue;
    SmallVector<SmallVector<Value>> lists;
    for (Partial &partial : partials)
      if (!partial.values.empty())
        lists.push_back(flat(partial));
    auto combineLists = [&](const SmallVector<Value> &left, const SmallVector<Value> &right) {
      return flat(join(unflat(left), unflat(right)));
    };
    if (ofBlocks)
      combineAcrossBlocks(lists, bits, sameMask, combineLists);
    else
      combineAcrossWarps(lists, bits, sameMask >> 5, combineLists);
    size_t next = 0;
    for (Partial &partial : partials)
      if (!partial.values.empty())
        partial = unflat(lists[next++]);
  }

  for (auto [i, value] : llvm::enumerate(op.getResults())) {
    Registers values(result.registers());
    for (int reg = 0; reg < result.registers(); ++reg)
      if (result.exists(reg))
        values[reg] = partials[reg].values[i];
    registers(value) = std::move(values);
  }
}

Value ThreadEmitter::toBits(Value value) {
  Type type = value.getType();
  if (type.isF64())
    return b_.create<arith::BitcastOp>(b_.getI64Type(), value);
  if (type.isF32())
    return b_.create<arith::BitcastOp>(b_.getI32Type(), value);
  if (type.isInteger(32) || type.isInteger(64))
    return value;
  return b_.create<arith::ExtUIOp>(b_.getI32Type(), value);
}

Value ThreadEmitter::fromBits(Value bits, Type type) {
  if (bits.getType() == type)
    return bits;
  if (llvm::isa<FloatType>(type))
    return b_.create<arith::BitcastOp>(type, bits);
  return b_.create<arith::TruncIOp>(type, bits);
}

/// lists[i] becomes the combination of the lists[i] of all warps that differ in these bits of their number. Each warp
/// leaves its values in shared memory, slot by slot, and everybody reads and combines all of them in one order, so that
/// all get the same bits. Lanes hold different rows: a slot has 32 places. `same`: bits of the warps' numbers that make
/// no difference to the result, the given ones and those of duplicates.
void ThreadEmitter::combineAcrossWarps(MutableArrayRef<SmallVector<Value>> lists, ArrayRef<int> bits, int64_t same,
                                       CombineLists combine) {
  int64_t warps = options_.threads / 32, mark = markShared(), slotBytes = exchangedBytes(lists);
  int64_t perWarp = 0;
  for (const auto &list : lists)
    perWarp += static_cast<int64_t>(list.size()) * 32 * slotBytes;
  SharedWindow window;
  window.begin = allocateShared(warps * perWarp);
  window.end = window.begin + warps * perWarp;
  int write = newGroup(), read = newGroup();
  Value warp = b_.create<arith::ShRUIOp>(threadId_, i32(5)), lane = b_.create<arith::AndIOp>(threadId_, i32(31));
  Value laneOffset = b_.create<arith::MulIOp>(lane, i32(slotBytes));
  Value mine = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(warp, i32(perWarp)), laneOffset);
  int64_t at = window.begin;
  for (const auto &list : lists)
    for (Value value : list) {
      storeShared(toBits(value), mine, at, {}, window, write);
      at += 32 * slotBytes;
    }
  // The first warp of this warp's row: its number with those bits cleared.
  Value first = b_.create<arith::AndIOp>(warp, i32(~same & (layoutWarps(warps) - 1)));
  Value firstOffset = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(first, i32(perWarp)), laneOffset);
  SmallVector<SmallVector<Value>> sums(lists.size());
  for (int64_t number = 0; number < (int64_t(1) << bits.size()); ++number) {
    int64_t step = 0;
    for (size_t i = 0; i < bits.size(); ++i)
      if (number >> i & 1)
        step |= int64_t(1) << bits[i];
    if (step >= warps)
      continue; // there is no such warp
    int64_t from = window.begin + step * perWarp;
    for (size_t i = 0; i < lists.size(); ++i) {
      SmallVector<Value> values;
      for (Value value : lists[i]) {
        Type bitsType = value.getType().getIntOrFloatBitWidth() == 64 ? b_.getI64Type() : b_.getI32Type();
        values.push_back(fromBits(loadShared(bitsType, firstOffset, from, {}, window, read), value.getType()));
        from += 32 * slotBytes;
      }
      sums[i] = sums[i].empty() ? values : combine(sums[i], values);
    }
  }
  std::copy(sums.begin(), sums.end(), lists.begin());
  releaseShared(mark);
}

} // namespace tenon::nvidia
