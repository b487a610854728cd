// SPDX-License-Identifier: Apache-2.0
//
// What the sums of a dot are added to. An accumulator that is a few operations away from what lies in scratch, such as
// the sums of a loop so far times a factor for each row, does not get a pass of its own: the block that adds to an
// element computes it.
//
//     for each element: C = C * factor[row]
//     for each block:   C += sums                  ->     for each block: C = C * factor[row] + sums
//
// The sums of AMX's tiles pass through a place of their own, which stays in L1.
#include "tenon/compiler/target/cpu/Dot.h"
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tenon::cpu {

bool DotEmitter::isComputedByBlocks(const Buffer &result) {
  constexpr int fewOperations = 4;
  Value accumulator = op_.getAcc();
  if (plan_.thin || startsAtZero_ || e_.buffer(accumulator))
    return false;
  int operations = 0;
  bool fits = true;
  walkPulled({{accumulator, true}}, [&](Value tile, bool inPlace) {
    // A block overwrites its elements: who else reads that buffer must want the same ones.
    if (const Buffer *present = e_.buffer(tile)) {
      fits &= inPlace || present->pointer != result.pointer;
      return false;
    }
    Operation *op = tile.getDefiningOp();
    bool isArithmetic =
        op && llvm::isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::AddIOp, arith::SubIOp, arith::MulIOp>(op);
    operations += isArithmetic;
    fits &= isArithmetic || (op && llvm::isa<arith::ConstantOp, tile::SplatOp, tile::BroadcastOp>(op));
    return fits;
  });
  return fits && operations <= fewOperations;
}

/// The accumulator's elements of a row from `column` on, in vectors of the block.
SmallVector<Value> DotEmitter::computedAccumulator(Value row, Value column, int64_t columns) {
  SmallVector<Value> vectors;
  NestGroup none;
  Nest nest(e_, none);
  for (int64_t at = 0; at < columns; at += plan_.lanes) {
    int64_t count = std::min(plan_.lanes, columns - at);
    Value first = at ? plus(column, e_.index(at)) : column;
    vectors.push_back(
        widened(nest.emitVector(op_.getAcc(), {Coord{row}, Coord{first, count > 1}}, count), plan_.lanes));
  }
  return vectors;
}

} // namespace tenon::cpu
