// SPDX-License-Identifier: Apache-2.0
//
// tile.scan, in the layout in which a thread has a run of neighbours along the dimension, lanes follow each other and then
// warps (ChooseLayouts.cpp): each thread scans its run, the totals are scanned across lanes by shuffles and across warps
// through shared memory, and what comes before a thread is combined with everything it has.
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {

void ThreadEmitter::emitScan(tile::ScanOp op) {
  const Distribution &tile = distribution(op.getResults()[0]);
  int64_t dim = op.getDim();
  bool reverse = op.getReverse();
  // In scan order: what came before, then what comes next.
  auto join = [&](const Partial &before, const Partial &next) {
    return reverse ? joinPartials(op.getCombine(), next, before) : joinPartials(op.getCombine(), before, next);
  };

  // The lines of this thread: registers that differ along the dimension only, in scan order.
  std::map<Coords, SmallVector<int>> lines;
  for (int reg = 0; reg < tile.registers(); ++reg)
    if (tile.exists(reg)) {
      Coords line = tile.offset(reg);
      line[dim] = 0;
      lines[line].push_back(reg);
    }
  int laneBits = 0, warpBits = 0;
  for (const Distribution::ThreadBit &bit : tile.threadBits())
    if (bit.dim == dim)
      ++(bit.bit >= 5 ? warpBits : laneBits);
  Value lane = b_.create<arith::AndIOp>(threadId_, i32((1 << laneBits) - 1));
  Value warp = b_.create<arith::AndIOp>(b_.create<arith::ShRUIOp>(threadId_, i32(5)), i32((1 << warpBits) - 1));
  Value first = reverse ? i32((1 << laneBits) - 1) : i32(0);
  // How far along the scan this lane is.
  Value place = reverse ? b_.create<arith::SubIOp>(first, lane).getResult() : lane;
  ShuffleMode backward = reverse ? ShuffleMode::down : ShuffleMode::up;
  auto fromLane = [&](const Partial &partial, int distance) {
    Partial other;
    for (Value value : partial.values)
      other.values.push_back(shuffle(backward, value, i32(distance)));
    Value exists = b_.create<arith::CmpIOp>(arith::CmpIPredicate::uge, place, i32(distance));
    other.filled = partial.filled ? both(exists, shuffle(backward, partial.filled, i32(distance))) : exists;
    return other;
  };

  SmallVector<Registers> results(op.getNumResults(), Registers(tile.registers()));
  for (auto &[line, regs] : lines) {
    llvm::sort(regs, [&](int a, int b) {
      return reverse ? tile.offset(a)[dim] > tile.offset(b)[dim] : tile.offset(a)[dim] < tile.offset(b)[dim];
    });
    SmallVector<Partial> run;
    for (int reg : regs) {
      Partial one;
      for (Value operand : op.getValues())
        one.values.push_back(registers(operand)[reg]);
      // Forward, what lies past the edge comes last and disturbs nobody.
      if (reverse && tile.isPartial(reg, dim)) {
        Value limit = i32(tile.shape()[dim] - tile.offset(reg)[dim]);
        one.filled = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, threadCoords(tile)[dim], limit);
      }
      run.push_back(run.empty() ? one : join(run.back(), one));
    }
    Partial total = run.back(), before;
    for (int bit = 0; bit < laneBits; ++bit)
      total = join(fromLane(total, 1 << bit), total);
    if (laneBits)
      before = fromLane(total, 1);
    if (warpBits) {
      Partial others = scanAcrossWarps(total, place, (1 << laneBits) - 1, warp, warpBits, reverse, op.getCombine());
      before = before.values.empty() ? others : join(others, before);
    }
    for (auto [reg, partial] : llvm::zip(regs, run)) {
      Partial whole = before.values.empty() ? partial : join(before, partial);
      for (size_t i = 0; i < results.size(); ++i)
        results[i][reg] = whole.values[i];
    }
  }
  for (auto [value, list] : llvm::zip(op.getResults(), results))
    registers(value) = list;
}

/// What the warps before this one have in total: their last lane's, left in shared memory and combined in order by all.
Partial ThreadEmitter::scanAcrossWarps(const Partial &total, Value place, int64_t lastPlace, Value warp, int warpBits,
                                       bool reverse, Region &combine) {
  int64_t mark = markShared(), warps = options_.threads / 32, count = int64_t(1) << warpBits;
  SmallVector<Value> values = total.values;
  if (total.filled)
    values.push_back(total.filled);
  int64_t perWarp = static_cast<int64_t>(values.size()) * 32 * 8;
  SharedWindow window;
  window.begin = allocateShared(warps * perWarp);
  window.end = window.begin + warps * perWarp;
  int write = newGroup(), read = newGroup();
  // A warp may hold several lines (lanes of other dimensions): each of its last lanes has a place of its own.
  Value allWarps = b_.create<arith::ShRUIOp>(threadId_, i32(5)), lane = b_.create<arith::AndIOp>(threadId_, i32(31));
  Value lineOfLane = b_.create<arith::MulIOp>(b_.create<arith::AndIOp>(lane, i32(31 & ~lastPlace)), i32(8));
  Value mine = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(allWarps, i32(perWarp)), lineOfLane);
  Value isLast = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, place, i32(lastPlace));
  for (auto [i, value] : llvm::enumerate(values))
    storeShared(toBits(value), mine, window.begin + static_cast<int64_t>(i) * 256, isLast, window, write);
  Value firstWarp = b_.create<arith::SubIOp>(allWarps, warp);
  Value base = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(firstWarp, i32(perWarp)), lineOfLane);
  Partial before;
  for (int64_t step = 0; step + 1 < count; ++step) {
    int64_t number = reverse ? count - 1 - step : step;
    Partial other;
    for (auto [i, value] : llvm::enumerate(values)) {
      Type bits = value.getType().getIntOrFloatBitWidth() == 64 ? b_.getI64Type() : b_.getI32Type();
      int64_t offset = window.begin + number * perWarp + static_cast<int64_t>(i) * 256;
      other.values.push_back(fromBits(loadShared(bits, base, offset, {}, window, read), value.getType()));
    }
    if (total.filled)
      other.filled = other.values.pop_back_val();
    Value precedes = b_.create<arith::CmpIOp>(reverse ? arith::CmpIPredicate::ult : arith::CmpIPredicate::ugt, warp,
                                              i32(number));
    other.filled = both(precedes, other.filled);
    if (before.values.empty())
      before = other;
    else
      before = reverse ? joinPartials(combine, other, before) : joinPartials(combine, before, other);
  }
  releaseShared(mark);
  return before;
}

} // namespace tenon::nvidia
