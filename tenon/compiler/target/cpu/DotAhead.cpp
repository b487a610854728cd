// SPDX-License-Identifier: Apache-2.0
//
// Memory has nothing to do while packed operands are multiplied. So the steps of the blocks of AMX's tiles bring in, a
// few lines each, what is waited for afterwards (DotNext.cpp does it for blocks of vectors):
//
//     for k in steps of the kernel's loop:
//       pack B[k, j]
//       for each strip of A[i, k], for each block, for each step of its loop along K:
//         multiply
//         prefetch the next lines of the strip that follows
//         in the last step of the kernel: prefetch the next lines of C[i, j], to write them
//         prefetch the next lines of B[k + 1, j]
//
// A store to a line that is not in the cache reads it first; the pass that stores the result would wait for that.
// Operands are packed out of L2 then instead of L3 or memory. Not B for tiles of many rows: they multiply so fast that
// they wait for L3 as packing would. After the last step comes the first one of the next instance, one extent further
// along the fastest axis of the grid that has more than one. Nothing happens if that guess is wrong, or points past the
// end: a prefetch never faults.
#include "tenon/compiler/target/cpu/Dot.h"
#include "tenon/compiler/target/cpu/DotKept.h"
#include "tenon/compiler/target/cpu/Prefetch.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

constexpr int64_t fewRows = 64;
constexpr int64_t mostBytes = 512 << 10; ///< of an operand: what is packed and the result want their part of L2
/// In one step of a block; with more of them the block would wait for memory as well.
constexpr int64_t mostLines = 8;

int64_t linesOf(const AheadRows &rows, int64_t steps) {
  int64_t each = llvm::divideCeil(rows.rows * rows.lines, std::max<int64_t>(steps, 1));
  return std::min({each, rows.lines, mostLines});
}

} // namespace

/// Whether the innermost loop ends with this step; null: there is no loop.
Value DotEmitter::isLastStep() {
  auto loop = op_->getParentOfType<scf::ForOp>();
  if (!loop)
    return {};
  Value next = plus(e_.scalar(loop.getInductionVar()), e_.scalar(loop.getStep()));
  return b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, next, e_.scalar(loop.getUpperBound()));
}

/// Whether the next instance lies along the axis of the grid with that pace: faster ones have one instance each. Null:
/// it is the pace of none.
Value DotEmitter::nextMovesAlong(unsigned pace) {
  tile::GridOp grid;
  op_->getParentOfType<func::FuncOp>().walk([&](tile::GridOp found) { grid = found; });
  if (!grid || pace == 0 || pace > grid->getNumResults())
    return {};
  SmallVector<int64_t> order = orderOfAxes(grid);
  Value moves = constantBits(b_, b_.getI1Type(), 1);
  for (int64_t axis : llvm::drop_begin(order, pace)) {
    Value isOne = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sle, e_.scalar(grid.getExtents()[axis]), e_.index(1));
    moves = b_.create<arith::AndIOp>(moves, isOne);
  }
  return moves;
}

/// Where the rows of an operand begin that is packed next.
void DotEmitter::findAhead(Value operand, int64_t steps) {
  Origin origin = originOf(operand);
  if (!origin.source || e_.buffer(origin.base))
    return;
  tile::LoadOp load = origin.source->load;
  const ViewParts &view = e_.view(load.getView());
  auto type = llvm::cast<RankedTensorType>(operand.getType());
  int64_t size = byteSize(memoryType(view.element)), rowBytes = type.getDimSize(origin.contiguous) * size;
  AheadRows next;
  next.rows = type.getDimSize(1 - origin.contiguous);
  next.lines = llvm::divideCeil(rowBytes, lineBytes);
  if (next.rows * rowBytes > mostBytes)
    return;

  auto loop = op_->getParentOfType<scf::ForOp>();
  unsigned ofLoop = loop ? paceOf(loop.getInductionVar()) : 0;
  Value isLast = isLastStep(), place;
  bool moves = false;
  for (auto [d, offset] : llvm::enumerate(load.getOffsets())) {
    Value here = e_.scalar(offset), further = plus(here, e_.index(load.getType().getDimSize(d)));
    unsigned pace = paceOf(offset);
    auto isAsFast = [&](Value other) { return paceOf(other) == pace; };
    if (ofLoop && pace == ofLoop) {
      moves = true;
      here = offset == loop.getInductionVar()
                 ? b_.create<arith::SelectOp>(isLast, e_.scalar(loop.getLowerBound()), further).getResult()
                 : further;
    } else if (Value movesNext = nextMovesAlong(pace); movesNext && llvm::count_if(load.getOffsets(), isAsFast) == 1) {
      moves = true;
      Value isDue = isLast ? b_.create<arith::AndIOp>(isLast, movesNext).getResult() : movesNext;
      here = b_.create<arith::SelectOp>(isDue, further, here);
    }
    if (static_cast<int>(d) != view.unitStride)
      here = b_.create<arith::MulIOp>(here, view.strides[d]);
    place = place ? plus(place, here) : here;
  }
  if (!moves)
    return;
  next.pointer = at(view.pointer, place, memoryType(view.element));
  int rowDim = origin.source->dims[1 - origin.contiguous];
  next.strideBytes = rowDim < 0 ? e_.index(0) : times(view.strides[rowDim], size);
  next.linesAtOnce = linesOf(next, steps);
  ahead_.push_back(next);
}

/// The rows of a view that the result goes to.
void DotEmitter::findResult(int64_t steps) {
  auto stores = storesOf(op_.getResult());
  if (!stores || stores->size() != 1 || !e_.views_.contains(stores->front().getView()))
    return;
  tile::StoreOp store = stores->front();
  const ViewParts &view = e_.view(store.getView());
  if (view.unitStride != 1 || view.sizes.size() != 2)
    return;
  Value row = scalarHere(store.getOffsets()[0], /*depth=*/8), column = scalarHere(store.getOffsets()[1], /*depth=*/8);
  if (!row || !column)
    return;
  Type element = memoryType(view.element);
  int64_t size = byteSize(element);
  AheadRows result;
  if (auto loop = op_->getParentOfType<scf::ForOp>(); loop && !loop->isAncestor(store))
    result.condition = isLastStep();
  if (e_.isa().streams) { // large results go past the cache (Streaming.cpp)
    Value bytes = times(b_.create<arith::MulIOp>(view.sizes[0], view.sizes[1]), size);
    Value isSmall = b_.create<arith::CmpIOp>(
        arith::CmpIPredicate::slt, b_.create<arith::IndexCastOp>(b_.getI64Type(), bytes), e_.streamingThreshold());
    result.condition = result.condition ? b_.create<arith::AndIOp>(result.condition, isSmall).getResult() : isSmall;
  }
  result.rows = m_;
  result.lines = llvm::divideCeil(n_ * size, lineBytes);
  result.pointer = at(view.pointer, plus(b_.create<arith::MulIOp>(row, view.strides[0]), column), element);
  result.strideBytes = times(view.strides[0], size);
  result.linesAtOnce = linesOf(result, steps);
  result.isWritten = true;
  ahead_.push_back(result);
}

int64_t DotEmitter::stepsOfBlock() const { return units_ / plan_.lanes; }

/// For a dot in tiles whose blocks take `steps` steps in all.
void DotEmitter::findAhead(int64_t steps) {
  if (!e_.isa().bringsRows || !plan_.usesTiles())
    return;
  b_.setLoc(op_.getLoc());
  findResult(steps);
  if (m_ > fewRows && plan_.pieces == 1)
    return;
  if (!unpackedA_.window.inside)
    findAhead(op_.getA(), steps);
  findAhead(op_.getB(), steps);
}

/// The rows of A after a strip: below it, or at the top of what the loop's next step reads. Where the next instance is
/// the one below, its first strip follows the last one of this.
void DotEmitter::findNextStrip(Value row) {
  nextStrip_.reset();
  if (!e_.isa().bringsRows || !unpackedA_.window.inside)
    return;
  const Window &window = unpackedA_.window;
  Type element = plan_.pieces > 1 ? inPieces_.rowsOfA.element : plan_.packed;
  int64_t size = byteSize(element);
  AheadRows next;
  next.rows = plan_.rows;
  next.lines = llvm::divideCeil(k_ * size, lineBytes);
  next.linesAtOnce = linesOf(next, panels() * stepsOfBlock());
  next.strideBytes = times(window.stride, size);
  Value following = plus(row, e_.index(plan_.rows));
  next.pointer = at(window.pointer, b_.create<arith::MulIOp>(following, window.stride), element);
  tile::LoadOp load = originOf(op_.getA()).source->load;
  if (int moving = dimMovedByLoop(load); moving >= 0 && moving == e_.view(load.getView()).unitStride) {
    Value isLast =
        b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, following, limits_.rows ? limits_.rows : e_.index(m_));
    Value goesOn =
        b_.create<arith::AndIOp>(isLast, b_.create<arith::XOrIOp>(isLastStep(), constantBits(b_, b_.getI1Type(), 1)));
    next.pointer = b_.create<arith::SelectOp>(goesOn, at(window.pointer, k_, element), next.pointer);
  }
  nextStrip_ = next;
}

/// With step `number` of all that bring them in.
void DotEmitter::bringAhead(const AheadRows &next, Value number) {
  OpBuilder::InsertionGuard guard(b_);
  if (next.condition) {
    auto branch = b_.create<scf::IfOp>(next.condition, /*withElseRegion=*/false);
    b_.setInsertionPoint(branch.thenBlock()->getTerminator());
  }
  Value pieces = e_.index(llvm::divideCeil(next.lines, next.linesAtOnce));
  Value row = minimum(b_.create<arith::DivUIOp>(number, pieces), e_.index(next.rows - 1));
  Value within = times(b_.create<arith::RemUIOp>(number, pieces), next.linesAtOnce * lineBytes);
  Value place = at(next.pointer, plus(b_.create<arith::MulIOp>(row, next.strideBytes), within), b_.getI8Type());
  for (int64_t line = 0; line < next.linesAtOnce; ++line)
    b_.create<LLVM::Prefetch>(at(place, line * lineBytes, b_.getI8Type()), next.isWritten, /*hint=*/2,
                              /*cache=*/1); // to L2, data
}

void DotEmitter::bringAhead(Value block, Value panel, Value step) {
  if (nextStrip_)
    bringAhead(*nextStrip_, plus(times(panel, stepsOfBlock()), step));
  for (const AheadRows &next : ahead_)
    bringAhead(next, plus(times(block, stepsOfBlock()), step));
}

} // namespace tenon::cpu
