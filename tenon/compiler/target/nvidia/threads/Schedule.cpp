// SPDX-License-Identifier: Apache-2.0
//
// Program instances that take different times: whoever is free takes the next.
//
// Blocks that stay on the device usually take every so-many-th instance. That is right while all take the same time:
// neighbours are then at work at the same time and find what they share in the L2 cache. Where memory decides how long
// an instance takes (the rows of an expert, say), blocks drift apart, each tile is read again and again, and some
// blocks end early. There the instances are counted in memory instead: the thread that loads takes the next number,
// when it has started almost all transfers of the instance at hand, and hands instances to the threads of its block
// through two slots of shared memory.
//
// It hands over more than the number: where the instance is in the grid, and the scalars that it found in memory for
// its own addresses (which expert, from which row to which). It runs ahead of the others, so that a search costs them
// nothing; they would begin each instance with it.
//
//     loading thread                                   threads that hold tiles
//     number = block
//     while number < instances:                        forever:
//       what is found in memory                          wait until full[slot];  read slot
//       wait until empty[slot]                           end where number >= instances
//       slot = number, place, what was found             arrive on empty[slot]
//       arrive on full[slot]                             the rest of the program
//       the transfers; before the last few: next = blocks + counter++ (the last to ask: counter = 0)
//       number = next
//     hand over number, as the end
//
// Blocks of a cluster that share loads work on one number together. The loading thread of the first takes it and sends
// it to those of the others, each of which finds for itself what its block needs to know:
//
//     next = clusters + counter++                      expect 4 bytes on sent; wait until they have come
//     wait until what was sent before is taken         next = what has come
//     send next to the others (store_async)            arrive on the first block's taken
#include "tenon/compiler/target/nvidia/threads/Passes.h"
#include "tenon/compiler/target/nvidia/threads/Rings.h"
#include "tenon/compiler/target/nvidia/threads/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// On a tile.workspace (unit): its element counts the program instances that were taken.
constexpr llvm::StringLiteral counterAttr = "nvidia.counts_instances";

constexpr int64_t slots = 2;
/// Transfers that are left to start when the next number is asked for: what an answer and the search for its place take
/// is then hidden. Whoever asks earlier takes what a neighbour would do sooner.
constexpr int64_t stepsAhead = 2;
/// Behind the number that the first block of a cluster sends: the barriers at which it comes, and at which the others
/// say that they have it.
constexpr int64_t numberSent = 8, numberTaken = 16;

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
  auto type = tile::ViewType::get(b.getContext(), 1, b.getI32Type());
  auto counter = b.create<tile::WorkspaceOp>(grid.getLoc(), type, one, tile::Initial::restored);
  counter->setAttr(counterAttr, b.getUnitAttr());
}

bool takesInstances(func::FuncOp kernel) {
  return kernel
      .walk([](tile::WorkspaceOp op) {
        return op->hasAttr(counterAttr) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The operation of the program's own block that an operation is in.
static Operation *outermost(Operation *op, Block *program) { return program->findAncestorOpInBlock(*op); }

/// Whether one thread can compute an operation for all: nothing but numbers, and nothing that shows.
static bool isQuiet(Operation *op) {
  return !op->walk([](Operation *inside) {
              bool reads = llvm::isa<tile::LoadOp, tile::GatherOp>(inside) && !inside->hasAttr(bulkAttr);
              bool holds = inside->getNumRegions() > 0; // speaks for what is in it
              return reads || holds || isMemoryEffectFree(inside) ? WalkResult::advance() : WalkResult::interrupt();
            }).wasInterrupted();
}

/// What the loading thread computes from memory before its first transfer, and what the others need of it.
void ThreadEmitter::planFindings(ArrayRef<Operation *> program, const ProducerSlice &slice) {
  SmallVector<Operation *> candidates;
  llvm::DenseSet<Operation *> found;
  for (Operation *op : program) {
    if (hasTransfer(op))
      break;
    bool fromMemory = op->walk([&](Operation *inside) {
                          bool is = llvm::isa<tile::LoadOp, tile::GatherOp>(inside) ||
                                    llvm::any_of(inside->getOperands(), [&](Value operand) {
                                      return found.contains(operand.getDefiningOp());
                                    });
                          return is ? WalkResult::interrupt() : WalkResult::advance();
                        }).wasInterrupted();
    if (fromMemory && slice.ops.contains(op) && isQuiet(op)) {
      candidates.push_back(op);
      found.insert(op);
    }
  }
  auto isNeededBy = [&](Operation *user) {
    return !isTransfer(user) && !found.contains(outermost(user, program.front()->getBlock()));
  };
  auto isKnown = [&](OpResult result) { // by the loading thread, as a number
    Operation *op = result.getOwner();
    auto loop = llvm::dyn_cast<scf::ForOp>(op);
    bool computed = loop ? slice.arguments.contains(loop.getRegionIterArg(result.getResultNumber()))
                         : op->getNumRegions() == 0 || slice.arguments.contains(result);
    return computed && result.getType().isIntOrIndex();
  };
  // What others need more of than the loading thread knows they compute themselves.
  for (bool changed = true; changed;) {
    changed = false;
    schedule_->findings.clear();
    for (Operation *op : candidates) {
      if (!found.contains(op))
        continue;
      for (OpResult result : op->getResults()) {
        if (llvm::none_of(result.getUsers(), isNeededBy))
          continue;
        schedule_->findings.push_back(result);
        if (!isKnown(result))
          changed |= found.erase(op);
      }
    }
  }
  for (Operation *op : candidates)
    if (found.contains(op)) {
      schedule_->found.insert(op);
      schedule_->lastFound = op;
    }
}

void ThreadEmitter::planSchedule(tile::GridOp grid, ArrayRef<Operation *> program, const ProducerSlice &slice) {
  auto places = static_cast<int64_t>(grid.getNumResults());
  kernel_.walk([&](tile::WorkspaceOp op) {
    if (!op->hasAttr(counterAttr))
      return;
    schedule_ = std::make_unique<Schedule>();
    schedule_->counter = views_.find(op.getView())->second.address;
    for (Operation *each : program)
      if (hasTransfer(each) && !each->hasAttr(lateAttr))
        schedule_->lastLoop = llvm::dyn_cast<scf::ForOp>(each);
    planFindings(program, slice);
    schedule_->slotBytes = 8 * places + 8 * static_cast<int64_t>(1 + schedule_->findings.size());
    schedule_->records = allocateShared(slots * schedule_->slotBytes);
    schedule_->full = allocateShared(16 * slots);
    schedule_->empty = schedule_->full + 8 * slots;
    schedule_->group = newGroup();
    if (options_.sharers > 1)
      schedule_->sent = allocateShared(24);
    remark(op.getLoc(), "program instances take different times: blocks take the next one when they are free");
    if (!schedule_->findings.empty())
      remark(schedule_->findings.front().getLoc(),
             "what is found in memory here is handed over by the thread that loads; numbers for each program instance: " +
                 std::to_string(schedule_->findings.size()));
  });
}

/// By one thread, before anybody uses them.
void ThreadEmitter::initialiseSchedule() {
  if (!schedule_)
    return;
  for (int64_t slot = 0; slot < slots; ++slot) {
    b_.create<MbarrierInitOp>(i32(schedule_->full + 8 * slot), i32(1));
    b_.create<MbarrierInitOp>(i32(schedule_->empty + 8 * slot), i32(options_.threads / (turns_ ? 1 : 32)));
  }
  if (options_.sharers > 1) {
    b_.create<MbarrierInitOp>(i32(schedule_->sent + numberSent), i32(1));
    b_.create<MbarrierInitOp>(i32(schedule_->sent + numberTaken), i32(options_.sharers - 1));
  }
}

/// The next instance's number, of the cluster where its blocks share loads.
Value ThreadEmitter::takeNumber() {
  Type type = b_.getI32Type();
  Value parity = schedule_->slot; // of how often there was a next one
  // Each instance is followed by one question for the next: as many as there are instances, the last of which leaves
  // the counter as it was.
  auto count = [&]() -> Value {
    Value before = b_.create<AtomicOp>(type, AtomicKind::add, schedule_->counter, i32(1), Value());
    Value asked = b_.create<arith::AddIOp>(before, i32(1));
    auto last = b_.create<scf::IfOp>(b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, asked, instances_.count));
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(last.thenBlock());
    b_.create<AtomicOp>(type, AtomicKind::exchange, schedule_->counter, i32(0), Value());
    b_.setInsertionPointAfter(last);
    return b_.create<arith::AddIOp>(before, instances_.step);
  };
  if (options_.sharers == 1)
    return count();
  int64_t at = schedule_->sent;
  SharedWindow window{at, at + 8};
  auto which = b_.create<scf::IfOp>(type, b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, clusterRank_, i32(0)),
                                    /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(which.thenBlock());
  Value number = count();
  awaitTaken(parity);
  for (int64_t rank = 1; rank < options_.sharers; ++rank)
    b_.create<StoreAsyncOp>(number, b_.create<MapSharedOp>(type, i32(at), i32(rank)),
                            b_.create<MapSharedOp>(type, i32(at + numberSent), i32(rank)), Value(),
                            b_.getDenseI64ArrayAttr({window.begin, window.end}));
  b_.create<scf::YieldOp>(number);
  b_.setInsertionPointToStart(which.elseBlock());
  b_.create<MbarrierArriveOp>(i32(at + numberSent), i32(4), /*cluster=*/false);
  b_.create<MbarrierWaitOp>(i32(at + numberSent), parity);
  number = loadShared(type, i32(0), at, {}, window, schedule_->group);
  b_.create<MbarrierArriveOp>(b_.create<MapSharedOp>(type, i32(at + numberTaken), i32(0)), /*bytes=*/Value(),
                              /*behind=*/number, /*cluster=*/true);
  b_.create<scf::YieldOp>(number);
  return which.getResult(0);
}

/// In an iteration of the loop that starts the instance's last transfers: the next number, where few are left.
void ThreadEmitter::takeNumberAhead(scf::ForOp loop) {
  Value left = b_.create<arith::SubIOp>(scalar(loop.getUpperBound()), scalar(loop.getInductionVar()));
  Value few = b_.create<arith::MulIOp>(scalar(loop.getStep()), b_.create<arith::ConstantIndexOp>(stepsAhead));
  Value isSoon = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sle, left, few);
  Value isUnknown = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, schedule_->next, i32(-1));
  auto takes = b_.create<scf::IfOp>(b_.getI32Type(), both(isSoon, isUnknown), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(takes.elseBlock());
  b_.create<scf::YieldOp>(schedule_->next);
  b_.setInsertionPointToStart(takes.thenBlock());
  b_.create<scf::YieldOp>(takeNumber());
  schedule_->next = takes.getResult(0);
}

/// Behind the instance's transfers.
Value ThreadEmitter::nextNumber() {
  Value next = std::exchange(schedule_->next, Value());
  if (!next)
    return takeNumber();
  Value isKnown = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, next, i32(-1));
  auto known = b_.create<scf::IfOp>(b_.getI32Type(), isKnown, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(known.thenBlock());
  b_.create<scf::YieldOp>(next);
  b_.setInsertionPointToStart(known.elseBlock());
  b_.create<scf::YieldOp>(takeNumber());
  return known.getResult(0);
}

/// By the first block of a cluster: the others have the number that was sent last, and will not arrive any more.
void ThreadEmitter::awaitTaken(Value parity) {
  b_.create<MbarrierWaitOp>(i32(schedule_->sent + numberTaken), b_.create<arith::XOrIOp>(parity, i32(1)));
}

/// The loading thread's side of a slot: the instance's number, its place and what was found for it.
void ThreadEmitter::handOverInstance(Value number, ArrayRef<Value> rest) {
  Value slot = schedule_->slot, begin = b_.create<arith::MulIOp>(slot, i32(schedule_->slotBytes));
  SharedWindow window{schedule_->records, schedule_->records + slots * schedule_->slotBytes};
  b_.create<MbarrierWaitOp>(barrierAt(schedule_->empty, slot), b_.create<arith::XOrIOp>(schedule_->phase, i32(1)));
  storeShared(b_.create<arith::ExtUIOp>(b_.getI64Type(), number), begin, schedule_->records, {}, window,
              schedule_->group);
  for (auto [i, value] : llvm::enumerate(rest))
    storeShared(value, begin, schedule_->records + 8 * static_cast<int64_t>(1 + i), {}, window, schedule_->group);
  b_.create<MbarrierArriveOp>(barrierAt(schedule_->full, slot), /*bytes=*/Value(), /*cluster=*/false);
}

void ThreadEmitter::handOverFindings() {
  SmallVector<Value> words(programIds_);
  for (Value value : schedule_->findings) {
    Value number = scalar(value);
    if (!number.getType().isIndex() && number.getType().getIntOrFloatBitWidth() < 64)
      number = b_.create<arith::ExtUIOp>(b_.getI64Type(), number);
    words.push_back(toI64(number));
  }
  handOverInstance(schedule_->number, words);
}

/// The others' side, behind the wait.
void ThreadEmitter::takeFindings(tile::GridOp grid, Value begin, SharedWindow window) {
  int64_t next = schedule_->records + 8;
  auto take = [&] {
    next += 8;
    return loadShared(b_.getI64Type(), begin, next - 8, {}, window, schedule_->group);
  };
  programIds_.clear();
  for (Value id : grid.getIds()) {
    programIds_.push_back(take());
    scalars_[id] = b_.create<arith::IndexCastOp>(b_.getIndexType(), programIds_.back());
  }
  if (options_.sharers > 1)
    setLive(grid, b_.create<arith::TruncIOp>(b_.getI32Type(), programIds_[shared_.axis]));
  for (Value value : schedule_->findings) {
    Value word = take();
    Type type = value.getType();
    scalars_[value] = type.isIndex() ? b_.create<arith::IndexCastOp>(type, word).getResult()
                      : type.isInteger(64) ? word
                                           : b_.create<arith::TruncIOp>(type, word).getResult();
  }
}

LogicalResult ThreadEmitter::emitTakenInstances(tile::GridOp grid, Value count, const CarriedRings &carried,
                                                bool produces, llvm::function_ref<LogicalResult()> body) {
  Type i32Type = b_.getI32Type();
  static_assert(slots == 2);
  bool takesTurns = turns_ && !produces; // then each team has a slot of its own
  SmallVector<Value> inits = {takesTurns ? turns_->team : i32(0), i32(0)}; // slot and phase
  if (produces)
    inits.push_back(instances_.first);
  append(carried, inits);
  SmallVector<Type> types(ValueRange(inits).getTypes());
  SharedWindow window{schedule_->records, schedule_->records + slots * schedule_->slotBytes};
  auto loop = b_.create<scf::WhileOp>(types, inits);
  OpBuilder::InsertionGuard guard(b_);

  Block *before = b_.createBlock(&loop.getBefore(), {}, types, SmallVector<Location>(types.size(), b_.getLoc()));
  Value slot = before->getArgument(0), phase = before->getArgument(1), number;
  if (produces) {
    number = before->getArgument(2);
  } else {
    b_.create<MbarrierWaitOp>(barrierAt(schedule_->full, slot), phase);
    Value begin = b_.create<arith::MulIOp>(slot, i32(schedule_->slotBytes));
    number = b_.create<arith::TruncIOp>(
        i32Type, loadShared(b_.getI64Type(), begin, schedule_->records, {}, window, schedule_->group));
  }
  b_.create<scf::ConditionOp>(b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, number, count),
                              before->getArguments());

  Block *after = b_.createBlock(&loop.getAfter(), {}, types, SmallVector<Location>(types.size(), b_.getLoc()));
  slot = after->getArgument(0), phase = after->getArgument(1);
  Value next;
  ValueRange rest = after->getArguments().drop_front(produces ? 3 : 2);
  take(carried, rest);
  if (takesTurns)
    turns_->phase = phase;
  if (produces) {
    schedule_->slot = slot;
    schedule_->phase = phase;
    schedule_->number = after->getArgument(2);
    setIds(grid, groupedIds(grid, schedule_->number, divisorsOf(grid, /*inverses=*/false)));
  } else {
    takeFindings(grid, b_.create<arith::MulIOp>(slot, i32(schedule_->slotBytes)), window);
    // A warp's lanes meet before one of them arrives, which racecheck does not follow where teams take turns: there
    // each arrives for itself.
    if (takesTurns)
      b_.create<MbarrierArriveOp>(barrierAt(schedule_->empty, slot), /*bytes=*/Value(), /*cluster=*/false);
    else
      arriveByWarp(barrierAt(schedule_->empty, slot));
  }
  if (failed(body()))
    return failure();
  b_.setLoc(grid.getLoc());
  if (produces)
    next = nextNumber();
  auto following = [&](Value slot, Value phase) -> SmallVector<Value> {
    if (takesTurns)
      return {slot, b_.create<arith::XOrIOp>(phase, i32(1))};
    return {b_.create<arith::XOrIOp>(slot, i32(1)), b_.create<arith::XOrIOp>(phase, slot)};
  };
  SmallVector<Value> states = following(slot, phase);
  if (produces)
    states.push_back(next);
  append(carried, states);
  b_.create<scf::YieldOp>(states);
  if (produces) { // the end, to each team
    b_.setInsertionPointAfter(loop);
    ValueRange results = loop.getResults().drop_front(3);
    take(carried, results);
    SmallVector<Value> end = {loop.getResult(0), loop.getResult(1)};
    for (int64_t team = 0; team < options_.teams; ++team) {
      schedule_->slot = end[0];
      schedule_->phase = end[1];
      handOverInstance(loop.getResult(2), {});
      end = following(end[0], end[1]);
    }
    if (options_.sharers > 1) {
      auto first = b_.create<scf::IfOp>(b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, clusterRank_, i32(0)));
      OpBuilder::InsertionGuard inFirst(b_);
      b_.setInsertionPointToStart(first.thenBlock());
      awaitTaken(loop.getResult(0));
    }
  }
  return success();
}

} // namespace tenon::nvidia
