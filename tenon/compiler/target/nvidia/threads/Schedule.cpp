// SPDX-License-Identifier: Apache-2.0
//
// Program instances that take different times: whoever is free takes the next.
//
// Blocks that stay on the device usually take every so-many-th instance. That is right while all take the same time:
// neighbours are then at work at the same time and find what they share in the L2 cache. Where memory decides how long
// an instance takes (the rows of an expert, say), blocks drift apart, each tile is read again and again, and some blocks
// end early. There the instances are counted in memory instead: the thread that loads takes the next number, before it
// begins with the instance at hand, and hands it to the threads of its block through two slots of shared memory.
//
//     loading thread                                   threads that hold tiles
//     number = block                                   number = block
//     while number < instances:                        while number < instances:
//       next = blocks + counter++                        the program
//       the transfers                                    wait until full[slot];  number = numbers[slot]
//       wait until empty[slot]                           arrive on empty[slot]
//       numbers[slot] = next;  arrive on full[slot]
#include "tenon/compiler/target/nvidia/threads/Passes.h"
#include "tenon/compiler/target/nvidia/threads/Rings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// On a tile.workspace (unit): its element counts the program instances that were taken.
constexpr llvm::StringLiteral counterAttr = "nvidia.counts_instances";

constexpr int64_t slots = 2;

/// Whether a number is computed from what is in memory.
bool isFromMemory(Value number) {
  SmallVector<Value> open = {number};
  llvm::DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (auto argument = llvm::dyn_cast<BlockArgument>(value)) {
      auto loop = llvm::dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (loop && argument != loop.getInductionVar())
        open.append({loop.getTiedLoopInit(argument)->get(), loop.getTiedLoopYieldedValue(argument)->get()});
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (llvm::isa<tile::LoadOp, tile::GatherOp>(op))
      return true;
    if (auto loop = llvm::dyn_cast<scf::ForOp>(op))
      open.push_back(loop.getRegionIterArg(llvm::cast<OpResult>(value).getResultNumber()));
    else if (op->getNumRegions() == 0)
      llvm::append_range(open, op->getOperands());
  }
  return false;
}

} // namespace

void countInstances(ModuleOp module, const std::string &architecture) {
  if (architecture != "sm_90a")
    return;
  tile::GridOp grid;
  bool differ = false;
  module.walk([&](tile::GridOp op) { grid = op; });
  module.walk([&](scf::ForOp loop) {
    bool hasDot = loop.walk([](tile::DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
    differ |= hasDot && (isFromMemory(loop.getUpperBound()) || isFromMemory(loop.getLowerBound()));
  });
  if (!grid || !differ)
    return;
  OpBuilder b(grid);
  Value one = b.create<arith::ConstantIndexOp>(grid.getLoc(), 1);
  auto counter = b.create<tile::WorkspaceOp>(grid.getLoc(), tile::ViewType::get(b.getContext(), 1, b.getI32Type()), one);
  counter->setAttr(counterAttr, b.getUnitAttr());
}

void ThreadEmitter::planSchedule() {
  if (options_.sharers > 1)
    return;
  kernel_.walk([&](tile::WorkspaceOp op) {
    if (!op->hasAttr(counterAttr))
      return;
    schedule_.emplace();
    schedule_->counter = views_.find(op.getView())->second.address;
    schedule_->numbers = allocateShared(4 * slots);
    schedule_->full = allocateShared(16 * slots);
    schedule_->empty = schedule_->full + 8 * slots;
    schedule_->group = newGroup();
    remark(op.getLoc(), "program instances take different times: blocks take the next one when they are free");
  });
}

/// By one thread, before anybody uses them.
void ThreadEmitter::initialiseSchedule() {
  if (!schedule_)
    return;
  for (int64_t slot = 0; slot < slots; ++slot) {
    b_.create<MbarrierInitOp>(i32(schedule_->full + 8 * slot), i32(1));
    b_.create<MbarrierInitOp>(i32(schedule_->empty + 8 * slot), i32(options_.threads));
  }
}

LogicalResult ThreadEmitter::emitTakenInstances(tile::GridOp grid, Value count, const CarriedRings &carried,
                                                bool produces, llvm::function_ref<LogicalResult()> body) {
  Type i32Type = b_.getI32Type();
  SmallVector<Value> inits = {b_.create<BlockIdOp>(i32Type), i32(0), i32(0)};
  Value blocks = b_.create<GridSizeOp>(i32Type);
  append(carried, inits);
  SmallVector<Type> types(ValueRange(inits).getTypes());
  SmallVector<Location> locations(types.size(), b_.getLoc());
  auto loop = b_.create<scf::WhileOp>(types, inits);
  OpBuilder::InsertionGuard guard(b_);
  Block *before = b_.createBlock(&loop.getBefore(), {}, types, locations);
  b_.create<scf::ConditionOp>(
      b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, before->getArgument(0), count), before->getArguments());

  Block *after = b_.createBlock(&loop.getAfter(), {}, types, locations);
  Value slot = after->getArgument(1), phase = after->getArgument(2), next;
  ValueRange rest = after->getArguments().drop_front(3);
  take(carried, rest);
  setIds(grid, groupedIds(grid, after->getArgument(0)));
  if (produces) // asked for early, and there when it is needed
    next = b_.create<arith::AddIOp>(
        b_.create<AtomicOp>(i32Type, AtomicKind::add, schedule_->counter, i32(1), Value()), blocks);
  if (failed(body()))
    return failure();
  b_.setLoc(grid.getLoc());
  SharedWindow window{schedule_->numbers, schedule_->numbers + 4 * slots};
  Value place = b_.create<arith::ShLIOp>(slot, i32(2));
  if (produces) {
    b_.create<MbarrierWaitOp>(barrierAt(schedule_->empty, slot), b_.create<arith::XOrIOp>(phase, i32(1)));
    storeShared(next, place, schedule_->numbers, {}, window, schedule_->group);
    b_.create<MbarrierArriveOp>(barrierAt(schedule_->full, slot), /*bytes=*/Value(), /*cluster=*/false);
  } else {
    b_.create<MbarrierWaitOp>(barrierAt(schedule_->full, slot), phase);
    next = loadShared(i32Type, place, schedule_->numbers, {}, window, schedule_->group);
    b_.create<MbarrierArriveOp>(barrierAt(schedule_->empty, slot), /*bytes=*/Value(), /*cluster=*/false);
  }
  Value wraps = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, slot, i32(slots - 1));
  SmallVector<Value> states = {
      next, b_.create<arith::XOrIOp>(slot, i32(1)),
      b_.create<arith::XOrIOp>(phase, b_.create<arith::ExtUIOp>(i32Type, wraps))};
  append(carried, states);
  b_.create<scf::YieldOp>(states);
  return success();
}

} // namespace tenon::nvidia
