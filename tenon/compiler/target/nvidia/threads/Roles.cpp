// SPDX-License-Identifier: Apache-2.0
//
// Kernels whose loads have a warp of their own. The program is emitted twice, into the two sides of one branch: for the
// warpgroups that hold tiles, where such loads become waits, and for one thread of a further warpgroup, where
// everything but those loads and what they depend on is left out. Both run over the program instances that fall to
// this block, so that the loads of the next instance are under way while the last one is stored. Loads that are needed
// behind the dots only (LateLoads.cpp) are those of one more thread.
//
//     barriers of the rings; wait for the kernels before this one
//     if thread < workers:                                else:
//       take registers                                      give registers away
//       for each instance: the program                      one thread: for each instance: the transfers
//
// Barriers inside the program are those of the workers; the two sides meet in the rings' barriers only.
#include "tenon/compiler/target/nvidia/threads/Rings.h"
#include "tenon/compiler/target/nvidia/threads/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;

namespace tenon::nvidia {
namespace {

constexpr int64_t registersOfMultiprocessor = 65536, mostRegisters = 255;
/// A transfer's addresses and the rings' state, in one thread. Beside three warpgroups 32, which leave each of their
/// threads 160, where 40 leave 152.
constexpr int64_t producerRegisters = 40, producerRegistersOfThree = 32;
/// Of a block, one after the other, where how it begins still matters.
constexpr int64_t fewInstances = 4;
/// About as many blocks as work at a time.
constexpr double blocksTogether = 128;

/// What each thread begins with, when the assembler may use all that so many blocks leave each other; registers come in
/// eights.
int64_t registersAtEntry(int64_t threads, int64_t blocks) {
  return std::min(registersOfMultiprocessor / blocks / threads / 8 * 8, mostRegisters);
}

} // namespace

LogicalResult ThreadEmitter::emitSpecialised() {
  SmallVector<tile::LoadOp> loads, late, others;
  kernel_.walk([&](tile::LoadOp load) {
    if (!load->hasAttr(bulkAttr))
      return;
    loads.push_back(load);
    (load->hasAttr(lateAttr) ? late : others).push_back(load);
  });
  ProducerSlice slice = producerSlice(loads);
  if (options_.sharers > 1)
    shared_ = sharedLoads(kernel_, options_.sharers);
  planRings();
  if (options_.teams == 1) {
    planBulkStores();
    planGroupExchanges();
  }
  Block &program = kernel_.getBody().front();
  tile::GridOp grid;
  SmallVector<Operation *> rest;
  bool waited = false;
  for (Operation &op : program.without_terminator()) {
    if (grid) {
      rest.push_back(&op);
      continue;
    }
    if (!waited && touchesGlobal(op)) {
      awaitEarlierLaunches();
      waited = true;
    }
    if (!(grid = llvm::dyn_cast<tile::GridOp>(op)) && failed(emitOp(op))) {
      return failure();
    }
  }
  planSchedule(grid, rest, slice);
  planTurns(rest);
  planInstances(grid);
  if (!waited)
    prefetchFirstLoads(grid, rest, slice);
  initialiseRings();
  if (turns_) { // what follows each team has for itself
    teamsBegin_ = allocateShared(0, panelAlignment);
    planBulkStores();
  }
  if (!waited)
    awaitEarlierLaunches();
  awaitRings();

  int64_t workers = this->workers(), threads = workers + producerThreads,
          entry = registersAtEntry(threads, options_.blocks);
  int64_t forProducers = isOfThree(workers / 32) ? producerRegistersOfThree : producerRegisters;
  int64_t forWorkers = (entry * threads - forProducers * producerThreads) / workers / 8 * 8;
  bool moveRegisters = options_.steps.registers && entry < forWorkers && forWorkers <= mostRegisters && entry < mostRegisters;
  if (moveRegisters)
    function_->setAttr(minimumBlocksAttr, b_.getI64IntegerAttr(options_.blocks));
  Value isWorker = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, threadOfBlock_, i32(workers));
  auto roles = b_.create<scf::IfOp>(isWorker, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);

  b_.setInsertionPointToStart(roles.elseBlock());
  if (moveRegisters)
    b_.create<SetMaxRegistersOp>(static_cast<uint32_t>(forProducers), false);
  Value isProducer = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, threadOfBlock_, i32(workers));
  auto only = b_.create<scf::IfOp>(isProducer);
  b_.setInsertionPointToStart(only.thenBlock());
  auto produce = [&] {
    if (schedule_ && !schedule_->lastFound)
      handOverFindings();
    for (Operation *op : rest) {
      emitProducer(*op, slice);
      if (schedule_ && op == schedule_->lastFound)
        handOverFindings();
    }
    return success();
  };
  planStreams(grid);
  bool isLateApart = !late.empty() && !schedule_;
  if (isLateApart) {
    slice = producerSlice(others);
    startsLate_ = false;
  }
  if (failed(emitInstances(grid, /*produces=*/true, produce)))
    return failure();
  b_.create<AllowNextLaunchOp>(); // all loads are under way: this block ends soon
  awaitSharers();
  if (isLateApart) {
    b_.setInsertionPointAfter(only);
    Value isOther = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, threadOfBlock_, i32(workers + 32));
    b_.setInsertionPointToStart(b_.create<scf::IfOp>(isOther).thenBlock());
    slice = producerSlice(late);
    startsLate_ = true;
    if (failed(emitInstances(grid, /*produces=*/true, produce)))
      return failure();
  }

  b_.setInsertionPointToStart(roles.thenBlock());
  if (moveRegisters)
    b_.create<SetMaxRegistersOp>(static_cast<uint32_t>(forWorkers), true);
  auto work = [&]() -> LogicalResult {
    pendingGlobal_.clear(); // instances are not ordered
    for (Operation *op : rest) {
      if (turns_ && op == turns_->first)
        awaitTurn();
      if (!(schedule_ && schedule_->found.contains(op)) && failed(emitInOrder(*op)))
        return failure();
      if (turns_ && op == turns_->last && !turns_->isPassed)
        passTurn();
    }
    settle();
    return success();
  };
  if (failed(emitInstances(grid, /*produces=*/false, work)))
    return failure();
  sinkLateReads();
  if (!bulkStaging_.empty()) { // no block ends while its memory is read
    auto leader = b_.create<scf::IfOp>(warpgroupLeader());
    b_.setInsertionPointToStart(leader.thenBlock());
    b_.create<BulkWaitOp>(0, /*read=*/true);
  }
  return success();
}

/// Sums of dots that each thread holds.
int64_t ThreadEmitter::accumulators() {
  int64_t count = 0;
  kernel_.walk([&](tile::DotOp dot) {
    if (dot->hasAttr(warpgroupAttr))
      count += typeOf(dot).getNumElements() / options_.threads;
  });
  return count;
}

/// This block's: every grid_size-th, in an order that walks a few rows of tiles at a time.
void ThreadEmitter::planInstances(tile::GridOp grid) {
  b_.setLoc(grid.getLoc());
  Value count;
  for (size_t axis = 0; axis < grid.getNumResults(); ++axis) {
    Value size = clustersAlong(grid, axis);
    count = count ? b_.create<arith::MulIOp>(count, size).getResult() : size;
  }
  Value first = b_.create<BlockIdOp>(b_.getI32Type()), step = b_.create<GridSizeOp>(b_.getI32Type());
  if (options_.sharers > 1) {
    first = b_.create<arith::DivUIOp>(first, i32(options_.sharers));
    step = b_.create<arith::DivUIOp>(step, i32(options_.sharers));
  }
  instances_ = {count, first, step, planTail(count, first, step), {}};
  if (schedule_ || tail_)
    return;
  // Where the first one is comes out of divisions, one after the other, which the first load would otherwise wait for:
  // those that load find it while a thread of the others makes the barriers.
  Value loads = b_.create<arith::CmpIOp>(arith::CmpIPredicate::uge, threadOfBlock_, i32(workers()));
  SmallVector<Type> types(grid.getNumResults(), b_.getI32Type());
  auto found = b_.create<scf::IfOp>(types, loads, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(found.elseBlock());
  b_.create<scf::YieldOp>(SmallVector<Value>(types.size(), i32(0)));
  b_.setInsertionPointToStart(found.thenBlock());
  b_.create<scf::YieldOp>(groupedIds(grid, first, divisorsOf(grid, /*inverses=*/false)));
  instances_.firstToLoad = found.getResults();
}

/// What this block loads first is on its way to the L2 cache while blocks of the kernel before still run: one slot of
/// each ring, where addresses need no memory. More would stand in the way of the first real load, for clusters it was
/// no gain, and where blocks have many instances it costs more (0.3 %) than what it saves once.
void ThreadEmitter::prefetchFirstLoads(tile::GridOp grid, ArrayRef<Operation *> program, const ProducerSlice &slice) {
  bool needsMemory = llvm::any_of(slice.ops, [](Operation *op) { return globalAccess(op).has_value(); });
  if (!options_.steps.firstLoads || schedule_ || tail_ || needsMemory || options_.sharers > 1)
    return;
  b_.setLoc(grid.getLoc());
  Value isProducer = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, threadOfBlock_, i32(workers()));
  Value isAny = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, instances_.first, instances_.end);
  Value areFew = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ule, instances_.count,
                                          b_.create<arith::MulIOp>(instances_.step, i32(fewInstances)));
  auto only = b_.create<scf::IfOp>(both(isProducer, both(isAny, areFew)));
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(only.thenBlock());
  setIds(grid, SmallVector<Value>(instances_.firstToLoad));
  isPrefetching_ = true;
  for (Operation *op : program)
    emitProducer(*op, slice);
  isPrefetching_ = false;
}

LogicalResult ThreadEmitter::emitInstances(tile::GridOp grid, bool produces,
                                           llvm::function_ref<LogicalResult()> body) {
  b_.setLoc(grid.getLoc());
  CarriedRings carried;
  bool takesTurns = turns_ && !produces;
  for (auto &ring : rings_) {
    carried.rings.push_back(ring.get());
    ring->slot = ring->phase = i32(0);
    if (takesTurns && !ring->steps.empty())
      ring->slot = turns_->team; // which has a slot of its own
    ring->held = {};
  }
  if (schedule_)
    return emitTakenInstances(grid, instances_.count, carried, produces, body);
  SmallVector<Value> states;
  append(carried, states);
  // Who loads is ahead and has the time; teams that take turns have it, too, and few registers to spare.
  Divisors by = divisorsOf(grid, /*inverses=*/!produces && !turns_);
  Value first = instances_.first, step = instances_.step;
  if (takesTurns) {
    first = b_.create<arith::AddIOp>(first, b_.create<arith::MulIOp>(turns_->team, step));
    step = b_.create<arith::MulIOp>(step, i32(options_.teams));
    states.push_back(i32(0));
  }
  if (!tail_)
    llvm::append_range(states, produces ? instances_.firstToLoad : groupedIds(grid, first, by));
  auto loop = b_.create<scf::ForOp>(first, instances_.end, step, states);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(loop.getBody());
  ValueRange arguments = loop.getRegionIterArgs();
  take(carried, arguments);
  if (takesTurns) {
    turns_->phase = arguments.front();
    arguments = arguments.drop_front();
  }
  Value number = loop.getInductionVar();
  setIds(grid, tail_ ? groupedIds(grid, takePiece(number), by) : SmallVector<Value>(arguments));
  if (failed(body()))
    return failure();
  states.clear();
  append(carried, states);
  if (takesTurns)
    states.push_back(b_.create<arith::XOrIOp>(turns_->phase, i32(1)));
  if (!tail_) // of the next one, while the loads of this one are under way
    llvm::append_range(states, groupedIds(grid, b_.create<arith::AddIOp>(number, step), by));
  b_.create<scf::YieldOp>(states);
  ValueRange results = loop.getResults();
  take(carried, results);
  return success();
}

/// The grid's extent along an axis, in clusters where that is how their blocks are placed.
Value ThreadEmitter::clustersAlong(tile::GridOp grid, size_t axis) {
  Value extent = b_.create<arith::TruncIOp>(b_.getI32Type(), toI64(scalar(grid.getExtents()[axis])));
  if (options_.sharers == 1 || static_cast<int64_t>(axis) != shared_.axis)
    return extent;
  extent = b_.create<arith::AddIOp>(extent, i32(options_.sharers - 1));
  return b_.create<arith::DivUIOp>(extent, i32(options_.sharers));
}

/// Rows of tiles that are walked together, column by column: as many that what is worked on at a time is about as high
/// as it is wide, and reads the least.
int64_t ThreadEmitter::rowsTogether() {
  int64_t rows = 0, columns = 0;
  kernel_.walk([&](tile::DotOp dot) {
    if (!dot->hasAttr(warpgroupAttr) || startedBefore_.contains(dot))
      return;
    int64_t height = typeOf(dot).getDimSize(0), width = 0;
    for (tile::DotOp each : startedWith(dot))
      width += typeOf(each).getDimSize(1);
    if (height * width > rows * columns)
      rows = height, columns = width;
  });
  double ratio = rows == 0 ? 1 : static_cast<double>(columns) / static_cast<double>(rows);
  return int64_t(1) << std::clamp<int64_t>(std::lround(std::log2(blocksTogether * ratio) / 2), 2, 5);
}

/// The same for all instances. Inverses are worth their divisions where many instances follow.
ThreadEmitter::Divisors ThreadEmitter::divisorsOf(tile::GridOp grid, bool inverses) {
  size_t rank = grid.getNumResults();
  if (rank == 1)
    return {};
  auto divisor = [&](Value value) -> Divisor {
    value = b_.create<arith::MaxUIOp>(value, i32(1)); // an empty grid divides nothing
    return {value, inverses ? b_.create<arith::DivUIOp>(i32(-1), value).getResult() : Value()};
  };
  Value rows = clustersAlong(grid, rank - 2), columns = clustersAlong(grid, rank - 1);
  Divisors by;
  if (rank == 3)
    by.plane = divisor(b_.create<arith::MulIOp>(rows, columns));
  if (!options_.steps.order) {
    by.height = by.lastHeight = {i32(1), i32(-1)};
    by.group = divisor(columns);
    return by;
  }
  // Where all columns are worked on at a time, and more rows than that, neighbours share a row rather than a column.
  int64_t together = rowsTogether();
  Value isNarrow = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, b_.create<arith::MulIOp>(columns, i32(together)),
                                            i32(static_cast<int64_t>(blocksTogether)));
  auto unlessNarrow = [&](Value value, Value otherwise) -> Value {
    return b_.create<arith::SelectOp>(isNarrow, otherwise, value);
  };
  by.height = {unlessNarrow(i32(together), i32(1)), unlessNarrow(i32(0xffffffff / together), i32(-1))};
  by.lastHeight = divisor(unlessNarrow(b_.create<arith::RemUIOp>(rows, i32(together)), i32(1)));
  by.group = divisor(b_.create<arith::MulIOp>(columns, by.height.value));
  return by;
}

/// Quotient and remainder. By the inverse, the quotient may come out one too small.
std::pair<Value, Value> ThreadEmitter::divide(Value number, const Divisor &by) {
  auto rest = [&](Value quotient) -> Value {
    return b_.create<arith::SubIOp>(number, b_.create<arith::MulIOp>(quotient, by.value));
  };
  if (!by.inverse) {
    Value quotient = b_.create<arith::DivUIOp>(number, by.value);
    return {quotient, rest(quotient)};
  }
  Value below = b_.create<arith::MulUIExtendedOp>(number, by.inverse).getHigh(), left = rest(below);
  Value isBelow = b_.create<arith::CmpIOp>(arith::CmpIPredicate::uge, left, by.value);
  return {b_.create<arith::AddIOp>(below, b_.create<arith::ExtUIOp>(b_.getI32Type(), isBelow)),
          b_.create<arith::SelectOp>(isBelow, b_.create<arith::SubIOp>(left, by.value), left)};
}

/// Where the instance (or cluster of them) of that number is, i32.
SmallVector<Value> ThreadEmitter::groupedIds(tile::GridOp grid, Value number, const Divisors &by) {
  size_t rank = grid.getNumResults();
  if (rank == 1)
    return {number};
  Value rows = clustersAlong(grid, rank - 2), before;
  if (rank == 3)
    std::tie(before, number) = divide(number, by.plane);
  auto [group, inGroup] = divide(number, by.group);
  Value first = b_.create<arith::MulIOp>(group, by.height.value);
  Value isWhole = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ule,
                                           b_.create<arith::AddIOp>(first, by.height.value), rows);
  Divisor height{b_.create<arith::SelectOp>(isWhole, by.height.value, by.lastHeight.value), {}};
  if (by.lastHeight.inverse)
    height.inverse = b_.create<arith::SelectOp>(isWhole, by.height.inverse, by.lastHeight.inverse);
  auto [column, row] = divide(inGroup, height);
  SmallVector<Value> ids = {b_.create<arith::AddIOp>(first, row), column};
  if (rank == 3)
    ids.insert(ids.begin(), before);
  return ids;
}

/// Whether the instance at this place of the axis along which clusters lie is one of the grid's.
void ThreadEmitter::setLive(tile::GridOp grid, Value id) {
  Value extent = grid.getExtents()[shared_.axis];
  if (std::optional<int64_t> size = getConstantIntValue(extent); size && *size % options_.sharers == 0)
    return;
  Value size = b_.create<arith::TruncIOp>(b_.getI32Type(), toI64(scalar(extent)));
  isLive_ = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, id, size);
}

void ThreadEmitter::setIds(tile::GridOp grid, SmallVector<Value> ids) {
  if (options_.sharers > 1) {
    Value &id = ids[shared_.axis];
    id = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(id, i32(options_.sharers)), clusterRank_);
    setLive(grid, id);
  }
  programIds_.assign(ids.size(), Value());
  for (size_t axis = 0; axis < ids.size(); ++axis) {
    programIds_[axis] = b_.create<arith::ExtUIOp>(b_.getI64Type(), ids[axis]);
    scalars_[grid.getIds()[axis]] = b_.create<arith::IndexCastOp>(b_.getIndexType(), programIds_[axis]);
  }
}

/// What changes memory is left out in an instance that only its cluster has.
void ThreadEmitter::emitIfLive(Operation &op) {
  auto live = b_.create<scf::IfOp>(isLive_);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(live.thenBlock());
  (void)emitOp(op); // none of them fails
}

Value ThreadEmitter::warpgroupLeader() {
  Value inGroup = b_.create<arith::AndIOp>(threadId_, i32(127));
  return b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, inGroup, i32(0));
}

//===--- The producer's program -----------------------------------------------------------------------------------===//

void ThreadEmitter::emitProducer(Operation &op, const ProducerSlice &slice) {
  b_.setLoc(op.getLoc());
  for (auto &ring : rings_)
    if (ring->transfers.back().load == &op && startsLate_.value_or(!ring->steps.empty()) == !ring->steps.empty())
      startTransfers(*ring);
  if (!slice.ops.contains(&op))
    return;
  if (auto loop = llvm::dyn_cast<scf::ForOp>(op))
    emitProducerLoop(loop, slice);
  else if (auto branch = llvm::dyn_cast<scf::IfOp>(op))
    emitProducerBranch(branch, slice);
  else
    (void)emitOp(op);
}

void ThreadEmitter::emitProducerLoop(scf::ForOp loop, const ProducerSlice &slice) {
  CarriedRings carried;
  if (!isPrefetching_)
    carried.rings = ringsIn(loop);
  SmallVector<BlockArgument> needed;
  for (BlockArgument argument : loop.getRegionIterArgs())
    if (slice.arguments.contains(argument))
      needed.push_back(argument);
  SmallVector<Value> values;
  for (BlockArgument argument : needed)
    flatten(loop.getTiedLoopInit(argument)->get(), values);
  append(carried, values);
  bool isLast = schedule_ && schedule_->lastLoop == loop && !isPrefetching_;
  if (isLast)
    values.push_back(i32(-1));
  Value first = scalar(loop.getLowerBound()), end = scalar(loop.getUpperBound()), step = scalar(loop.getStep());
  if (isPrefetching_)
    end = b_.create<arith::MinSIOp>(end, b_.create<arith::AddIOp>(first, step)); // one iteration
  auto lowered = b_.create<scf::ForOp>(first, end, step, values);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(lowered.getBody());
    scalars_[loop.getInductionVar()] = lowered.getInductionVar();
    ValueRange arguments = lowered.getRegionIterArgs();
    for (BlockArgument argument : needed)
      unflatten(argument, arguments);
    take(carried, arguments);
    if (isLast) {
      schedule_->next = arguments.front();
      takeNumberAhead(loop);
    }
    for (Operation &op : loop.getBody()->without_terminator())
      emitProducer(op, slice);
    values.clear();
    for (BlockArgument argument : needed)
      flatten(loop.getTiedLoopYieldedValue(argument)->get(), values);
    append(carried, values);
    if (isLast)
      values.push_back(schedule_->next);
    if (!values.empty())
      b_.create<scf::YieldOp>(values);
  }
  ValueRange results = lowered.getResults();
  for (BlockArgument argument : needed)
    unflatten(loop.getTiedLoopResult(argument), results);
  take(carried, results);
  if (isLast)
    schedule_->next = results.front();
}

void ThreadEmitter::emitProducerBranch(scf::IfOp branch, const ProducerSlice &slice) {
  CarriedRings carried;
  if (!isPrefetching_)
    carried.rings = ringsIn(branch);
  SmallVector<OpResult> needed;
  SmallVector<Type> types;
  for (OpResult result : branch.getResults())
    if (slice.arguments.contains(result)) {
      needed.push_back(result);
      types.push_back(lower::registerType(getElementTypeOrSelf(result.getType())));
    }
  types.append(2 * carried.rings.size(), b_.getI32Type());
  SmallVector<Value> before;
  append(carried, before);
  auto lowered = b_.create<scf::IfOp>(types, scalar(branch.getCondition()), /*addThenBlock=*/true,
                                      /*addElseBlock=*/true);
  for (auto [from, to] : {std::pair(&branch.getThenRegion(), &lowered.getThenRegion()),
                          std::pair(&branch.getElseRegion(), &lowered.getElseRegion())}) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(&to->front());
    ValueRange states = before;
    take(carried, states);
    SmallVector<Value> values;
    if (!from->empty()) {
      for (Operation &op : from->front().without_terminator())
        emitProducer(op, slice);
      for (OpResult result : needed)
        flatten(from->front().getTerminator()->getOperand(result.getResultNumber()), values);
    }
    append(carried, values);
    b_.create<scf::YieldOp>(values);
  }
  ValueRange results = lowered.getResults();
  for (OpResult result : needed)
    unflatten(result, results);
  take(carried, results);
}

} // namespace tenon::nvidia
