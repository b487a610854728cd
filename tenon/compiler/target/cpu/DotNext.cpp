// SPDX-License-Identifier: Apache-2.0
//
// What a dot in a loop reads in the next iteration is brought to L2 while this one multiplies, because packing it out
// of L3 or memory takes a good part of the time that the product does, and the register block leaves memory at rest:
//
//     for k in steps of K:                          for k in steps of K:
//       pack A[.., k], B[k, ..]                       pack A[.., k], B[k, ..]
//       for each register block:             ->       for each register block:
//         for each unit of K: multiply                  for each piece of K:
//                                                         choose a piece of A[.., k + 1] or B[k + 1, ..]
//                                                         for each unit of K: multiply; prefetch a line of it
//
// The rows of both windows are cut into pieces of a few lines, and every iteration of the loop in the block brings in
// one line: a core has only so many on their way.
#include "tenon/compiler/target/cpu/Dot.h"
#include "tenon/compiler/target/cpu/Prefetch.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

/// Fewer bytes of an operand are soon there.
constexpr int64_t leastBytes = 8192;
/// Lines that an iteration brings in, at most.
constexpr int64_t mostAtOnce = 2;

} // namespace

void DotEmitter::findNext(int64_t blocks) {
  for (Value tile : {op_.getA(), op_.getB()}) {
    Origin origin = originOf(tile);
    int moving = origin.source ? dimMovedByLoop(origin.source->load) : -1;
    if (moving < 0)
      continue;
    tile::LoadOp load = origin.source->load;
    const ViewParts &view = e_.view(load.getView());
    int64_t bytes = byteSize(memoryType(view.element));
    if (load.getType().getNumElements() * bytes < leastBytes)
      continue;
    int alongRow = origin.source->dims[origin.contiguous], acrossRows = origin.source->dims[1 - origin.contiguous];
    Window window = windowOf(origin);
    Value away = e_.index(load.getType().getDimSize(moving));
    if (moving != view.unitStride)
      away = b_.create<arith::MulIOp>(away, view.strides[moving]);
    NextRows rows;
    rows.pointer = at(window.pointer, away, memoryType(view.element));
    rows.stride = times(window.stride, bytes);
    rows.pieces = llvm::divideCeil(load.getType().getDimSize(alongRow) * bytes, linesOfPiece * lineBytes);
    next_.push_back(rows);
    nextPieces_ += rows.pieces * (acrossRows < 0 ? 1 : load.getType().getDimSize(acrossRows));
    next_.back().end = nextPieces_;
  }
  nextAtOnce_ = std::clamp<int64_t>(llvm::divideCeil(nextPieces_, blocks), 1, mostAtOnce);
}

SmallVector<Value> DotEmitter::nextLines(Value block) {
  SmallVector<Value> lines;
  if (next_.empty())
    return lines;
  for (int64_t i = 0; i < nextAtOnce_; ++i) {
    Value number = minimum(plus(times(block, nextAtOnce_), e_.index(i)), e_.index(nextPieces_ - 1));
    Value chosen;
    int64_t begin = 0;
    for (const NextRows &rows : next_) {
      Value piece = b_.create<arith::SubIOp>(number, e_.index(begin));
      Value row = b_.create<arith::DivUIOp>(piece, e_.index(rows.pieces));
      Value column = b_.create<arith::RemUIOp>(piece, e_.index(rows.pieces));
      Value start = at(rows.pointer, b_.create<arith::MulIOp>(row, rows.stride), b_.getI8Type());
      start = at(start, times(column, linesOfPiece * lineBytes), b_.getI8Type());
      if (chosen) {
        Value reached = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, number, e_.index(begin));
        start = b_.create<arith::SelectOp>(reached, start, chosen);
      }
      chosen = start;
      begin = rows.end;
    }
    lines.push_back(chosen);
  }
  return lines;
}

void DotEmitter::bringLine(ArrayRef<Value> lines, Value number) {
  for (Value line : lines)
    b_.create<LLVM::Prefetch>(at(line, times(number, lineBytes), b_.getI8Type()), /*rw=*/0, /*hint=*/2, /*cache=*/1);
}

} // namespace tenon::cpu
