// SPDX-License-Identifier: Apache-2.0
//
// Loads that run ahead of their loop (PipelineLoads.cpp chooses them): asynchronous copies into a ring of `stages`
// slots of shared memory.
//
//     start the copies of iterations 0 ... stages - 2, a group each
//     for i:
//       wait until at most stages - 2 groups are incomplete        // those of iteration i are complete, of this thread
//       barrier                                                    // of all threads; and all are done with slot i - 1
//       start the copies of iteration i + stages - 1 into slot i - 1 (modulo stages), as one group
//       ... the body, whose dots read slot i ...
//     wait for all
//
// An iteration that there is not has its copies too, of zero bytes: they only write zeros into a slot that nobody
// reads, and the groups can be counted. The one barrier orders everything in the loop, so copies and reads there are
// one group of accesses; the copies before the loop are another, so that a barrier stands in front of them where the
// memory was in use.
#include "tenon/compiler/target/nvidia/threads/Pipeline.h"

#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {

std::unique_ptr<ThreadEmitter::Pipeline> ThreadEmitter::planPipeline(scf::ForOp loop) {
  auto pipeline = std::make_unique<Pipeline>();
  pipeline->loop = loop;
  pipeline->stages = options_.stages;
  for (tile::LoadOp load : loop.getBody()->getOps<tile::LoadOp>()) {
    if (!load->hasAttr(asyncAttr))
      continue;
    Operation *other = nullptr;
    SmallVector<DotUse> uses = dotUses(load, other);
    Copy copy;
    copy.load = load;
    copy.offsets = *offsetSlice(load, loop);
    copy.columnDim = *contiguousDim(load.getView());
    copy.rowDim = -1;
    int64_t rowMultiple = 1, columnMultiple = 1;
    std::optional<OperandUse> use;
    int64_t bytes = byteSize(memoryType(load.getType().getElementType()));
    for (const DotUse &dot : uses) {
      DotPlan plan = planDot(dot.dot, options_.architecture);
      bool alongK = dot.isK(copy.columnDim);
      use = useOf(plan, alongK);
      for (int64_t dim : dot.operand.dims)
        if (dim >= 0 && dim != copy.columnDim)
          copy.rowDim = dim;
      rowMultiple = std::max(rowMultiple, operandMultiple(plan, !alongK));
      columnMultiple = std::max(columnMultiple, operandMultiple(plan, alongK));
    }
    ArrayRef<int64_t> shape = load.getType().getShape();
    copy.tile = planOperandTile(copy.rowDim < 0 ? 1 : shape[copy.rowDim], shape[copy.columnDim], bytes, rowMultiple,
                                columnMultiple, *use);
    copy.width = accessWidth(load.getView(), load.getOffsets(), shape, divisibility_).elements * bytes;
    copy.begin = pipeline->slotBytes;
    pipeline->slotBytes += llvm::alignTo(copy.tile.bytes(), 16);
    pipeline->copies.push_back(std::move(copy));
  }
  if (pipeline->copies.empty())
    return nullptr;
  int64_t bytes = pipeline->stages * pipeline->slotBytes;
  pipeline->window.begin = allocateShared(bytes);
  stageBytes_ += pipeline->slotBytes;
  pipeline->window.end = pipeline->window.begin + bytes;
  pipeline->before = newGroup();
  pipeline->inside = newGroup();
  for (const Copy &copy : pipeline->copies)
    remark(copy.load->getLoc(), "load runs " + std::to_string(pipeline->stages - 1) +
                                   (pipeline->stages == 2 ? " iteration" : " iterations") +
                                   " ahead of its loop, in copies of " + std::to_string(copy.width) + " bytes");
  return pipeline;
}

void ThreadEmitter::startPipeline(Pipeline &pipeline) {
  scf::ForOp loop = pipeline.loop;
  for (const Copy &copy : pipeline.copies) {
    orderGlobal(copy.load);
    if (copy.tile.isPadded())
      for (int64_t stage = 0; stage < pipeline.stages; ++stage)
        zeroPadding(copy.tile, pipeline.window.begin + stage * pipeline.slotBytes + copy.begin, pipeline.window,
                    pipeline.before);
  }
  Value variable = scalar(loop.getLowerBound());
  for (int64_t stage = 0; stage + 1 < pipeline.stages; ++stage) {
    if (stage)
      variable = b_.create<arith::AddIOp>(variable, scalar(loop.getStep()));
    startCopies(pipeline, variable, i32(stage * pipeline.slotBytes), pipeline.before);
  }
}

Value ThreadEmitter::enterIteration(Pipeline &pipeline, Value variable, Value slot) {
  scf::ForOp loop = pipeline.loop;
  b_.setLoc(loop.getLoc());
  b_.create<CpAsyncWaitOp>(static_cast<int32_t>(pipeline.stages - 2));
  blockBarrier();
  int64_t bytes = pipeline.slotBytes, last = (pipeline.stages - 1) * bytes;
  Value isFirst = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, slot, i32(0));
  Value previous = b_.create<arith::SelectOp>(isFirst, i32(last), b_.create<arith::SubIOp>(slot, i32(bytes)));
  Value ahead = b_.create<arith::MulIOp>(scalar(loop.getStep()),
                                         constantBits(b_, variable.getType(), pipeline.stages - 1));
  startCopies(pipeline, b_.create<arith::AddIOp>(variable, ahead), previous, pipeline.inside);
  scalars_[loop.getInductionVar()] = variable;
  for (const Copy &copy : pipeline.copies) {
    StagedOperand operand;
    operand.tile = copy.tile;
    operand.at = b_.create<arith::AddIOp>(slot, i32(pipeline.window.begin + copy.begin));
    operand.window = pipeline.window;
    operand.group = pipeline.inside;
    copied_[copy.load] = operand;
  }
  Value isLast = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, slot, i32(last));
  return b_.create<arith::SelectOp>(isLast, i32(0), b_.create<arith::AddIOp>(slot, i32(bytes)));
}

/// The copies of the iteration with this value of the loop's variable, as one group.
void ThreadEmitter::startCopies(Pipeline &pipeline, Value variable, Value slot, int group) {
  scf::ForOp loop = pipeline.loop;
  scalars_[loop.getInductionVar()] = variable;
  Value active = b_.create<arith::CmpIOp>(arith::CmpIPredicate::slt, variable, scalar(loop.getUpperBound()));
  for (const Copy &copy : pipeline.copies) {
    for (Operation *op : copy.offsets)
      (void)emitOp(*op);
    b_.setLoc(copy.load->getLoc());
    orderGlobal(copy.load);
    startCopy(pipeline, copy, active, slot, group);
  }
  b_.create<CpAsyncCommitOp>();
}

/// Thread t moves pieces t, t + threads, ... in row-major order.
void ThreadEmitter::startCopy(const Pipeline &pipeline, const Copy &copy, Value active, Value slot, int group) {
  tile::LoadOp load = copy.load;
  const ViewWords &view = views_.find(load.getView())->second;
  const OperandTile &tile = copy.tile;
  Type i64Type = b_.getI64Type();
  Value linear, inside = active, rowOrigin, columnOrigin;
  for (auto [index, offset] : llvm::enumerate(load.getOffsets())) {
    int64_t d = static_cast<int64_t>(index);
    Value at = toI64(scalar(offset));
    Value part = d == copy.columnDim ? at : b_.create<arith::MulIOp>(at, view.strides[d]).getResult();
    linear = linear ? b_.create<arith::AddIOp>(linear, part).getResult() : part;
    if (d == copy.rowDim)
      rowOrigin = at;
    else if (d == copy.columnDim)
      columnOrigin = at;
    else
      inside = both(inside, b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, at, view.sizes[d]));
  }
  Value base = b_.create<arith::AddIOp>(view.address, b_.create<arith::MulIOp>(linear, i64(tile.elementBytes)));
  auto isBelow = [&](Value origin, Value add, Value size) -> Value {
    Value at = b_.create<arith::AddIOp>(origin, b_.create<arith::ExtUIOp>(i64Type, add));
    return b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, at, size); // before the view counts as far past
  };

  int64_t threads = options_.threads;
  int64_t perRow = tile.columns * tile.elementBytes / copy.width, pieces = tile.rows * perRow;
  bool sameColumn = threads % perRow == 0; // for all pieces of a thread
  Value destination = b_.create<arith::AddIOp>(slot, i32(pipeline.window.begin + copy.begin));
  for (int64_t first = 0; first < pieces; first += threads) {
    Value number = first && !sameColumn ? b_.create<arith::AddIOp>(threadId_, i32(first)).getResult() : threadId_;
    Value row = b_.create<arith::DivUIOp>(number, i32(perRow));
    if (first && sameColumn)
      row = b_.create<arith::AddIOp>(row, i32(first / perRow));
    Value byte = b_.create<arith::MulIOp>(b_.create<arith::RemUIOp>(number, i32(perRow)), i32(copy.width));
    Value element = b_.create<arith::DivUIOp>(byte, i32(tile.elementBytes));
    Value isInside = both(inside, isBelow(columnOrigin, element, view.sizes[copy.columnDim]));
    Value from = b_.create<arith::AddIOp>(base, b_.create<arith::ExtUIOp>(i64Type, byte));
    if (copy.rowDim >= 0) {
      isInside = both(isInside, isBelow(rowOrigin, row, view.sizes[copy.rowDim]));
      Value stride = b_.create<arith::MulIOp>(view.strides[copy.rowDim], i64(tile.elementBytes));
      from = b_.create<arith::AddIOp>(
          from, b_.create<arith::MulIOp>(b_.create<arith::ExtUIOp>(i64Type, row), stride));
    }
    Value to = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(row, i32(tile.pitch)), swizzled(tile, row, byte));
    to = b_.create<arith::AddIOp>(to, destination);
    Value bytes = b_.create<arith::SelectOp>(isInside, i32(copy.width), i32(0));
    auto start = [&] {
      b_.create<CpAsyncOp>(static_cast<int32_t>(copy.width), to, from, bytes,
                           b_.getDenseI64ArrayAttr({pipeline.window.begin, pipeline.window.end}),
                           b_.getI32IntegerAttr(group));
    };
    if (first + threads <= pieces) {
      start();
      continue;
    }
    Value exists = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, threadId_, i32(pieces - first));
    auto last = b_.create<scf::IfOp>(exists, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(last.thenBlock());
    start();
  }
}

} // namespace tenon::nvidia
