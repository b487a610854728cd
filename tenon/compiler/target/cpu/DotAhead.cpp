// SPDX-License-Identifier: Apache-2.0
//
// Memory has nothing to do while packed operands are multiplied. So the steps of the blocks of AMX's tiles bring in, a
// few lines each, what is waited for afterwards (DotNext.cpp does it for blocks of vectors):
//
//     for k in steps of the kernel's loop:
//       pack A[i, k] and B[k, j]
//       for each block, for each step of its loop along K:
//         multiply
//         in the last step of the kernel: prefetch the next lines of C[i, j], to write them
//         prefetch the next lines of A[i, k + 1] and of B[k + 1, j]
//
// A store to a line that is not in the cache reads it first; the pass that stores the result would wait for that.
// Operands are packed out of L2 then instead of L3 or memory. Not for tiles of many rows: they multiply so fast that
// they wait for L3 as packing would. After the last step comes the first one of the next instance, one extent further
// along the fastest axis of the grid. Nothing happens if that guess is wrong, or points past the end: a prefetch never
// faults.
#include "tenon/compiler/target/cpu/Dot.h"

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
  unsigned ofGrid = fastestAxis(op_->getParentOfType<func::FuncOp>());
  auto isOfGrid = [&](Value offset) { return ofGrid && paceOf(offset) == ofGrid; };
  bool movesWithGrid = llvm::count_if(load.getOffsets(), isOfGrid) == 1, moves = false;
  Value isLast = isLastStep(), place;
  for (auto [d, offset] : llvm::enumerate(load.getOffsets())) {
    Value here = e_.scalar(offset), further = plus(here, e_.index(load.getType().getDimSize(d)));
    if (ofLoop && paceOf(offset) == ofLoop) {
      moves = true;
      here = offset == loop.getInductionVar()
                 ? b_.create<arith::SelectOp>(isLast, e_.scalar(loop.getLowerBound()), further).getResult()
                 : further;
    } else if (movesWithGrid && isOfGrid(offset)) {
      moves = true;
      here = isLast ? b_.create<arith::SelectOp>(isLast, further, here).getResult() : further;
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

Value DotEmitter::firstStep(Value row, const Columns &columns) {
  return times(blockNumber(row, columns), stepsOfBlock());
}

/// For a dot in tiles whose blocks take `steps` steps in all.
void DotEmitter::findAhead(int64_t steps) {
  if (!e_.isa().bringsRows || !plan_.usesTiles())
    return;
  b_.setLoc(op_.getLoc());
  findResult(steps);
  if (m_ > fewRows)
    return;
  findAhead(op_.getA(), steps);
  findAhead(op_.getB(), steps);
}

/// With step `number` of all that the blocks take.
void DotEmitter::bringAhead(Value number) {
  for (const AheadRows &next : ahead_) {
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
}

} // namespace tenon::cpu
