// SPDX-License-Identifier: Apache-2.0
//
// Operands of dots on warpgroups that no engine can copy, since their rows begin anywhere: the threads load them, shift
// them into place and write them to shared memory, for the next iteration, while the instruction multiplies what they
// wrote in the last one.
//
//     load iteration 0 and write it to slot 0
//     for i:
//       barrier                              // slot i is written, and everybody is done with slot i - 1
//       start the dots, which read slot i
//       load iteration i + 1, if there is one, and write it to the other slot
//       wait for the dots
//
// There are two slots. The one barrier orders everything in the loop, so that its accesses are one group; those before
// the loop are another.
#include "tenon/compiler/target/nvidia/threads/Ahead.h"

#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {

std::unique_ptr<ThreadEmitter::Ahead> ThreadEmitter::planAhead(scf::ForOp loop) {
  auto ahead = std::make_unique<Ahead>();
  ahead->loop = loop;
  for (tile::LoadOp op : loop.getBody()->getOps<tile::LoadOp>()) {
    if (!op->hasAttr(aheadAttr))
      continue;
    Operation *other = nullptr;
    Ahead::Load load;
    load.op = op;
    load.offsets = *offsetSlice(op, loop);
    load.columnDim = *contiguousDim(op.getView());
    load.rowDim = load.columnDim ? 0 : 1;
    bool alongK = false;
    for (const DotUse &use : dotUses(op, other))
      alongK |= use.isK(load.columnDim);
    ArrayRef<int64_t> shape = op.getType().getShape();
    for (auto [d, size] : llvm::enumerate(shape))
      if (static_cast<int64_t>(d) != load.columnDim && size != 1)
        load.rowDim = static_cast<int64_t>(d);
    int64_t bytes = byteSize(memoryType(op.getType().getElementType()));
    load.tile = planPanelTile(shape[load.rowDim], shape[load.columnDim], bytes,
                              panelBytes(shape[load.columnDim] * bytes, /*padded=*/!alongK));
    load.begin = ahead->slotBytes;
    ahead->slotBytes += llvm::alignTo(load.tile.bytes(), panelAlignment);
    remark(op.getLoc(), "load is made by the threads one iteration ahead of its loop, through two slots of shared "
                        "memory: the tensor memory accelerator cannot address its rows");
    ahead->loads.push_back(std::move(load));
  }
  if (ahead->loads.empty())
    return nullptr;
  ahead->window.begin = allocateShared(2 * ahead->slotBytes, panelAlignment);
  ahead->window.end = ahead->window.begin + 2 * ahead->slotBytes;
  ahead->before = newGroup();
  ahead->inside = newGroup();
  return ahead;
}

/// The iteration with this value of the loop's variable, into a slot (i32: its beginning). Most tiles are inside their
/// views, and then nothing has to be checked.
void ThreadEmitter::loadAhead(Ahead &ahead, Value variable, Value slot, int group) {
  llvm::DenseMap<Value, Value> now = scalars_; // of the iteration at hand
  scalars_[ahead.loop.getInductionVar()] = variable;
  Value inside;
  for (const Ahead::Load &load : ahead.loads) {
    for (Operation *op : load.offsets)
      (void)emitOp(*op);
    b_.setLoc(load.op->getLoc());
    orderGlobal(load.op);
    inside = both(inside, isWellInside(load.op));
  }
  auto branch = b_.create<scf::IfOp>(inside, /*withElseRegion=*/true);
  for (bool isInside : {true, false}) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(isInside ? branch.thenBlock() : branch.elseBlock());
    SmallVector<std::shared_ptr<UnalignedLoad>> underWay; // all of them before the first is waited for
    for (const Ahead::Load &load : ahead.loads)
      underWay.push_back(startUnalignedLoad(load.op, isInside));
    for (auto [load, started] : llvm::zip(ahead.loads, underWay)) {
      tile::LoadOp op = load.op;
      b_.setLoc(op.getLoc());
      if (started)
        finishUnalignedLoad(*started);
      else
        emitLoad(op);
      writeMatrix(op, op.getType().getElementType(), load.tile, ahead.window.begin + load.begin, load.rowDim,
                  load.columnDim, ahead.window, group, {}, slot);
    }
  }
  b_.create<FenceOp>(FenceKind::proxy_async); // the instruction reads past what threads see
  scalars_ = std::move(now);
}

void ThreadEmitter::startAhead(Ahead &ahead) {
  for (const Ahead::Load &load : ahead.loads)
    for (int64_t slot : {0, 1})
      zeroPadding(load.tile, ahead.window.begin + slot * ahead.slotBytes + load.begin, ahead.window, ahead.before);
  loadAhead(ahead, scalar(ahead.loop.getLowerBound()), i32(0), ahead.before);
}

void ThreadEmitter::enterAhead(Ahead &ahead, Value slot) {
  b_.setLoc(ahead.loop.getLoc());
  blockBarrier();
  for (const Ahead::Load &load : ahead.loads) {
    StagedOperand operand;
    operand.tile = load.tile;
    operand.at = b_.create<arith::AddIOp>(slot, i32(ahead.window.begin + load.begin));
    operand.window = ahead.window;
    operand.group = ahead.inside;
    copied_[load.op] = operand;
  }
}

Value ThreadEmitter::leaveAhead(Ahead &ahead, Value variable, Value slot) {
  b_.setLoc(ahead.loop.getLoc());
  Value next = b_.create<arith::AddIOp>(variable, scalar(ahead.loop.getStep()));
  Value other = b_.create<arith::SubIOp>(i32(ahead.slotBytes), slot);
  Value exists = b_.create<arith::CmpIOp>(arith::CmpIPredicate::slt, next, scalar(ahead.loop.getUpperBound()));
  auto branch = b_.create<scf::IfOp>(exists);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(branch.thenBlock());
    loadAhead(ahead, next, other, ahead.inside);
  }
  return other;
}

} // namespace tenon::nvidia
