// SPDX-License-Identifier: Apache-2.0
//
// The rings of slots between the warp that loads and the warpgroups that multiply.
//
//     producer                                       consumers
//     wait until empty[slot]                         wait until full[slot]
//     expect the bytes of the transfers on           start the dots that read the slot
//       full[slot], start them                       when they are complete: arrive on empty[slot]
//     slot = slot + 1, round by round                slot = slot + 1, round by round
//
// A slot's barriers change phase once a round. The producer begins one round ahead: waiting for the phase before the
// first returns at once. Slot and phase are carried through every loop and branch that holds the loads, so that loops
// of no iterations and rounds that end anywhere need nothing special, and the producer runs ahead from one program
// instance into the next.
#include "tenon/compiler/target/nvidia/threads/Rings.h"

#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"
#include "tenon/compiler/target/nvidia/threads/Staging.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {
namespace {

/// Where a box begins in shared memory is a multiple of this; what is swizzled there goes by the address.
constexpr int64_t boxAlignment = 128;
/// What is added to a coordinate stays below.
constexpr int64_t largestTile = 1 << 20;

bool isInLoop(Block *block) {
  Operation *op = block->getParentOp();
  return llvm::isa<scf::ForOp>(op) || op->getParentOfType<scf::ForOp>();
}

/// Of an iteration.
bool isFirstDot(tile::DotOp dot) {
  for (Operation *before = dot->getPrevNode(); before; before = before->getPrevNode())
    if (before->getNumRegions() || before->hasAttr(warpgroupAttr))
      return false;
  return true;
}

} // namespace

/// Loads of one block that some dot reads together share a ring, and so do those that threads read.
void ThreadEmitter::planRings() {
  llvm::DenseMap<std::pair<Operation *, Block *>, Ring *> byDot;
  llvm::DenseMap<Block *, Ring *> readIn[2]; // by threads; the others, and those that are late
  kernel_.walk([&](tile::LoadOp load) {
    if (!load->hasAttr(bulkAttr))
      return;
    Operation *other = nullptr;
    SmallVector<DotUse> uses = dotUses(load, other);
    bool isRead = load->hasAttr(readAttr), isLate = load->hasAttr(lateAttr);
    if (isRead)
      uses.clear();
    Ring *ring = isRead ? readIn[isLate].lookup(load->getBlock()) : nullptr;
    // The threads wait for a ring at its first load, and its transfers are started at the last one: a loop in between,
    // with a ring of its own, would wait for the threads. Late loads are read where they are needed, so only a loop
    // with transfers stands between them.
    auto divides = [&](Operation *op) {
      return op->getNumRegions() > 0 && (!isLate || op->walk([](tile::LoadOp inside) {
                                                        return inside->hasAttr(bulkAttr) ? WalkResult::interrupt()
                                                                                         : WalkResult::advance();
                                                      }).wasInterrupted());
    };
    if (ring)
      for (Operation *op = ring->transfers.back().load; ring && op != load; op = op->getNextNode())
        if (divides(op))
          ring = nullptr;
    for (const DotUse &use : uses)
      if (auto found = byDot.find({use.dot, load->getBlock()}); found != byDot.end())
        ring = found->second;
    if (!ring) {
      rings_.push_back(std::make_unique<Ring>());
      ring = rings_.back().get();
      ring->block = load->getBlock();
      ring->stages = isInLoop(ring->block) ? std::max<int64_t>(options_.stages, 1) : 1;
      ring->isRead = isRead;
      if (isRead)
        readIn[isLate][load->getBlock()] = ring;
    }
    Transfer transfer;
    transfer.load = load;
    transfer.columnDim = *contiguousDim(load.getView());
    bool alongK = false;
    int64_t rows = 1;
    for (const DotUse &use : uses) {
      byDot[{use.dot, load->getBlock()}] = ring;
      alongK |= use.isK(transfer.columnDim);
      tile::DotOp dot = use.dot;
      Operation *user = ring->block->findAncestorOpInBlock(*dot.getOperation());
      if (!ring->firstUse || user->isBeforeInBlock(ring->firstUse))
        ring->firstUse = user;
      if (!ring->lastUse || ring->lastUse->isBeforeInBlock(user))
        ring->lastUse = user;
    }
    ArrayRef<int64_t> shape = load.getType().getShape();
    for (auto [d, size] : llvm::enumerate(shape))
      if (static_cast<int64_t>(d) != transfer.columnDim)
        rows *= size;
    int64_t bytes = byteSize(memoryType(load.getType().getElementType()));
    transfer.tile = isLate   ? (options_.teams > 1 ? narrowed(lateTile(load), options_.threads) : lateTile(load))
                    : isRead ? readTile(load)
                             : planPanelTile(rows, shape[transfer.columnDim], bytes,
                                             panelBytes(shape[transfer.columnDim] * bytes, /*padded=*/!alongK));
    int64_t panel = transfer.tile.panel;
    auto shared = shared_.loads.find(load);
    transfer.isShared = shared != shared_.loads.end();
    if (transfer.isShared)
      transfer.sharedIf = shared->second;
    transfer.rowDim = -1;
    ring->isShared |= transfer.isShared;
    int64_t sharers = transfer.isShared ? options_.sharers : 1;
    transfer.rows = transfer.tile.paddedRows / sharers;
    if (transfer.isShared && (transfer.tile.paddedRows % sharers || transfer.rows * panel % boxAlignment))
      transfer.rows = transfer.rows / swizzledRows * swizzledRows;
    auto mapOf = [&](int64_t rowsOfBox) {
      SmallVector<int64_t> dims = {transfer.columnDim}, box = {panel / bytes};
      for (int64_t d = static_cast<int64_t>(shape.size()) - 1; d >= 0; --d)
        if (d != transfer.columnDim) {
          dims.push_back(d);
          box.push_back(shape[d] == 1 ? 1 : rowsOfBox);
          if (shape[d] != 1)
            transfer.rowDim = d;
        }
      return tensorMap(load.getView(), dims, box, transfer.tile.swizzleBytes());
    };
    transfer.map = mapOf(transfer.rows);
    if (transfer.rows * sharers < transfer.tile.paddedRows)
      transfer.mapOfRest = mapOf(swizzledRows);
    if (!transfer.sharedIf.empty())
      transfer.mapOfAll = mapOf(transfer.tile.paddedRows);
    ring->transfers.push_back(std::move(transfer));
  });
  for (auto &ring : rings_)
    if (ring->transfers.front().load->hasAttr(lateAttr))
      planLate(*ring);
  planJoinedDots();
  for (auto &ring : rings_) {
    int64_t bytes = ring->stages * ring->slotBytes;
    b_.setLoc(ring->transfers.front().load.getLoc());
    ring->window.begin = allocateShared(bytes, panelAlignment);
    ring->window.end = ring->window.begin + bytes;
    if (ring->stages > 1 && ring->steps.empty())
      stageBytes_ += ring->slotBytes + 16; // its barriers
    for (Transfer &transfer : ring->transfers)
      remark(transfer.load.getLoc(),
             "load is made by the tensor memory accelerator, in boxes of " + std::to_string(transfer.tile.paddedRows) +
                 " x " + std::to_string(transfer.tile.panel) + " bytes, through " + std::to_string(ring->stages) +
                 (ring->stages == 1 ? " slot" : " slots") + " of shared memory" +
                 (transfer.isShared ? ", each of " + std::to_string(options_.sharers) + " blocks a part for all" : "") +
                 (transfer.sharedIf.empty() ? "" : " where it is the same for all") +
                 (ring->isRead ? ", where threads read it" : "") + (ring->steps.empty() ? "" : " panel by panel"));
  }
}

int ThreadEmitter::tensorMap(Value view, ArrayRef<int64_t> dims, ArrayRef<int64_t> box, int64_t swizzleBytes) {
  TensorMap map;
  if (auto argument = llvm::dyn_cast<BlockArgument>(view)) {
    map.argument = argument.getArgNumber();
  } else {
    map.argument = kernel_.getNumArguments();
    kernel_.walk([&](tile::WorkspaceOp op) {
      if (op.getView() == view)
        return WalkResult::interrupt();
      ++map.argument;
      return WalkResult::advance();
    });
  }
  Type element = llvm::cast<tile::ViewType>(view.getType()).getElementType();
  map.elementBytes = byteSize(memoryType(element));
  map.dims.assign(dims.begin(), dims.end());
  map.box.assign(box.begin(), box.end());
  map.swizzleBytes = swizzleBytes;
  llvm::raw_string_ostream(map.element) << element;
  for (auto [i, other] : llvm::enumerate(tensorMaps_))
    if (other.argument == map.argument && other.dims == map.dims && other.box == map.box &&
        other.swizzleBytes == map.swizzleBytes)
      return static_cast<int>(i);
  tensorMaps_.push_back(std::move(map));
  return static_cast<int>(tensorMaps_.size()) - 1;
}

/// An offset as the accelerator takes it, in 32 bits. Views that it addresses are smaller than that, so an offset
/// beyond means outside, and stays so.
Value ThreadEmitter::boxCoordinate(Value offset) {
  constexpr int64_t far = int64_t(1) << 30;
  Value at = toI64(scalar(offset));
  at = b_.create<arith::MaxSIOp>(b_.create<arith::MinSIOp>(at, i64(2 * far - largestTile)), i64(-far));
  return b_.create<arith::TruncIOp>(b_.getI32Type(), at);
}

/// By thread 0 of the block, before anybody uses them.
void ThreadEmitter::initialiseRings() {
  for (auto &ring : rings_) { // behind everything that has to begin at a multiple of more
    ring->full = allocateShared(16 * ring->stages);
    ring->empty = ring->full + 8 * ring->stages;
  }
  Value isFirst = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, threadOfBlock_, i32(0));
  auto only = b_.create<scf::IfOp>(isFirst);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(only.thenBlock());
    for (auto &ring : rings_)
      for (int64_t stage = 0; stage < ring->stages; ++stage) {
        b_.create<MbarrierInitOp>(i32(ring->full + 8 * stage), i32(1));
        int64_t groups = options_.threads / (ring->isRead ? 32 : 128) * (ring->isShared ? options_.sharers : 1);
        b_.create<MbarrierInitOp>(i32(ring->empty + 8 * stage), i32(groups));
      }
    initialiseSchedule();
    initialiseTurns();
    b_.create<FenceOp>(FenceKind::mbarrier_init);
    b_.create<FenceOp>(FenceKind::proxy_async);
  }
  if (options_.sharers == 1 || turns_ || tail_) // the latter have written more than barriers
    b_.create<BarrierOp>(allBarrier, static_cast<int32_t>(workers() + producerThreads));
  // The fence has released the barriers: an arrival that releases all writes takes half a microsecond.
  if (options_.sharers > 1)
    b_.create<ClusterArriveOp>(/*relaxed=*/true);
}

/// Behind initialiseRings(), when there is nothing left to do without the other blocks.
void ThreadEmitter::awaitRings() {
  if (options_.sharers > 1)
    b_.create<ClusterWaitOp>();
}

/// By the thread that loads, at the end: no block ends while others write its memory or arrive on its barriers. When
/// all blocks are done with all of its slots they do neither, and have what it loaded for them.
void ThreadEmitter::awaitSharers() {
  for (auto &ring : rings_)
    for (int64_t stage = 0; ring->isShared && stage < ring->stages; ++stage) {
      b_.create<MbarrierWaitOp>(barrierAt(ring->empty, ring->slot), b_.create<arith::XOrIOp>(ring->phase, i32(1)));
      advance(*ring);
    }
}

/// At the beginning, when all maps are known.
void ThreadEmitter::prefetchTensorMaps() {
  if (tensorMaps_.empty())
    return;
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(prologueEnd_);
  // By the thread that will load: another one makes the barriers meanwhile.
  Value isProducer = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, threadOfBlock_, i32(workers()));
  auto only = b_.create<scf::IfOp>(isProducer);
  b_.setInsertionPointToStart(only.thenBlock());
  for (size_t map = 0; map < tensorMaps_.size(); ++map)
    b_.create<PrefetchTensorMapOp>(b_.create<TensorMapOp>(b_.getI64Type(), static_cast<uint32_t>(map)));
}

Value ThreadEmitter::barrierAt(int64_t first, Value slot) {
  return b_.create<arith::AddIOp>(b_.create<arith::ShLIOp>(slot, i32(3)), i32(first));
}

/// Once for each warp, when all of its lanes are done with what they did before.
void ThreadEmitter::arriveByWarp(Value barrier) {
  b_.create<WarpBarrierOp>();
  Value lane = b_.create<arith::AndIOp>(threadId_, i32(31));
  auto first = b_.create<scf::IfOp>(b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, lane, i32(0)));
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(first.thenBlock());
  b_.create<MbarrierArriveOp>(barrier, /*bytes=*/Value(), /*cluster=*/false);
}

void ThreadEmitter::advance(Ring &ring) {
  if (options_.teams > 1 && !ring.steps.empty()) { // the team's slot, once more (LateLoads.cpp)
    ring.phase = b_.create<arith::XOrIOp>(ring.phase, b_.create<arith::ShLIOp>(i32(1), ring.slot));
    return;
  }
  Value next = b_.create<arith::AddIOp>(ring.slot, i32(1));
  Value wraps = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, next, i32(ring.stages));
  ring.slot = b_.create<arith::SelectOp>(wraps, i32(0), next);
  ring.phase = b_.create<arith::XOrIOp>(ring.phase, b_.create<arith::ExtUIOp>(b_.getI32Type(), wraps));
}

void ThreadEmitter::startTransfers(Ring &ring) {
  if (!ring.steps.empty())
    return isPrefetching_ ? void() : startLate(ring);
  if (isPrefetching_)
    return startBoxes(ring, {});
  b_.create<MbarrierWaitOp>(barrierAt(ring.empty, ring.slot), b_.create<arith::XOrIOp>(ring.phase, i32(1)));
  int64_t bytes = 0;
  for (const Transfer &transfer : ring.transfers)
    bytes += transfer.tile.bytes();
  Value full = barrierAt(ring.full, ring.slot);
  b_.create<MbarrierArriveOp>(full, i32(bytes), /*cluster=*/false);
  startBoxes(ring, b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(ring.slot, i32(ring.slotBytes)),
                                            i32(ring.window.begin)));
  advance(ring);
}

/// Into the slot that begins there; into the L2 cache where it is null.
void ThreadEmitter::startBoxes(Ring &ring, Value slotBegin) {
  SmallVector<Transfer *> order;
  for (bool isShared : {true, false}) // what others wait for comes first
    for (Transfer &transfer : ring.transfers)
      if (transfer.isShared == isShared)
        order.push_back(&transfer);
  for (Transfer *each : order) {
    Transfer &transfer = *each;
    b_.setLoc(transfer.load.getLoc());
    OpBuilder::InsertionGuard guard(b_);
    if (!transfer.sharedIf.empty()) {
      Value isOfAll;
      for (auto [condition, wanted] : transfer.sharedIf) {
        Value is = scalar(condition);
        isOfAll = both(isOfAll, wanted ? is : b_.create<arith::XOrIOp>(is, boolean(true)).getResult());
      }
      auto which = b_.create<scf::IfOp>(isOfAll, /*withElseRegion=*/true);
      b_.setInsertionPointToStart(which.elseBlock());
      startTransfer(ring, transfer, transfer.mapOfAll, slotBegin, {});
      b_.setInsertionPointToStart(which.thenBlock());
    }
    if (transfer.isShared)
      startShare(ring, transfer, slotBegin);
    else
      startTransfer(ring, transfer, transfer.map, slotBegin, {});
  }
}

/// This block's part of a transfer, for all.
void ThreadEmitter::startShare(const Ring &ring, const Transfer &transfer, Value slotBegin) {
  startTransfer(ring, transfer, transfer.map, slotBegin, b_.create<arith::MulIOp>(clusterRank_, i32(transfer.rows)));
  if (transfer.mapOfRest < 0)
    return;
  int64_t equal = transfer.rows * options_.sharers, rest = (transfer.tile.paddedRows - equal) / swizzledRows;
  auto some = b_.create<scf::IfOp>(b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, clusterRank_, i32(rest)));
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(some.thenBlock());
  Value row = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(clusterRank_, i32(swizzledRows)), i32(equal));
  startTransfer(ring, transfer, transfer.mapOfRest, slotBegin, row);
}

/// A box for each panel; `firstRow` (null: 0) of the tile is where they begin, and all blocks of the cluster get them.
void ThreadEmitter::startTransfer(const Ring &ring, const Transfer &transfer, int mapNumber, Value slotBegin,
                                  Value firstRow) {
  startPanels(ring, transfer, mapNumber, slotBegin, firstRow, 0, transfer.tile.panels());
}

void ThreadEmitter::startPanels(const Ring &ring, const Transfer &transfer, int mapNumber, Value slotBegin,
                                Value firstRow, int64_t begin, int64_t end) {
  tile::LoadOp load = transfer.load;
  Value map = b_.create<TensorMapOp>(b_.getI64Type(), static_cast<uint32_t>(mapNumber)), everybody;
  if (firstRow)
    everybody = b_.create<arith::ConstantIntOp>((int64_t(1) << options_.sharers) - 1, 16);
  for (int64_t panel = begin; panel < end; ++panel) {
    SmallVector<Value> coordinates;
    for (unsigned dim : tensorMaps_[mapNumber].dims) {
      Value at = boxCoordinate(load.getOffsets()[dim]);
      if (panel && static_cast<int64_t>(dim) == transfer.columnDim)
        at = b_.create<arith::AddIOp>(at, i32(panel * transfer.tile.panel / transfer.tile.elementBytes));
      if (firstRow && static_cast<int64_t>(dim) == transfer.rowDim)
        at = b_.create<arith::AddIOp>(at, firstRow);
      coordinates.push_back(at);
    }
    if (!slotBegin) {
      b_.create<TmaPrefetchOp>(map, coordinates);
      continue;
    }
    Value shared = b_.create<arith::AddIOp>(slotBegin, i32(transfer.begin + panel * transfer.tile.panelSize()));
    if (firstRow)
      shared = b_.create<arith::AddIOp>(shared, b_.create<arith::MulIOp>(firstRow, i32(transfer.tile.panel)));
    auto loadBox = [&](bool once) {
      b_.create<TmaLoadOp>(shared, map, coordinates, barrierAt(ring.full, ring.slot), everybody, once,
                           b_.getDenseI64ArrayAttr({ring.window.begin, ring.window.end}), IntegerAttr());
    };
    if (!transfer.isReadOnce) {
      loadBox(false);
      continue;
    }
    auto which = b_.create<scf::IfOp>(transfer.isReadOnce, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(which.thenBlock());
    loadBox(true);
    b_.setInsertionPointToStart(which.elseBlock());
    loadBox(false);
  }
}

/// The tiles at hand are those of the next slot.
void ThreadEmitter::takeSlot(Ring &ring) {
  ring.current = ring.slot;
  ring.currentPhase = ring.phase;
  Value begin = b_.create<arith::MulIOp>(ring.slot, i32(ring.slotBytes));
  for (const Transfer &transfer : ring.transfers) {
    StagedOperand operand;
    operand.tile = transfer.tile;
    operand.at = b_.create<arith::AddIOp>(begin, i32(ring.window.begin + transfer.begin));
    operand.window = ring.window;
    operand.group = -1;
    copied_[transfer.load] = operand;
  }
  advance(ring);
}

/// By those that hold tiles. What dots read stays where it is.
void ThreadEmitter::emitBulkLoad(tile::LoadOp op) {
  for (auto &ring : rings_) {
    auto transfer = llvm::find_if(ring->transfers, [&](const Transfer &each) { return each.load == op; });
    if (transfer == ring->transfers.end())
      continue;
    if (!ring->steps.empty()) {
      if (transfer == ring->transfers.begin())
        readLate(*ring);
      continue;
    }
    if (transfer == ring->transfers.begin())
      takeSlot(*ring);
    if (!ring->isRead) {
      async_.insert(op);
      continue;
    }
    if (transfer == ring->transfers.begin())
      waitForFull(*ring);
    readSlot(*transfer);
    if (std::next(transfer) == ring->transfers.end())
      releaseReadSlot(*ring);
  }
}

void ThreadEmitter::waitForFull(Ring &ring) {
  b_.create<MbarrierWaitOp>(barrierAt(ring.full, ring.current), ring.currentPhase);
}

/// One thread of each warpgroup; where the blocks of the cluster fill a slot together, one for each of them.
Value ThreadEmitter::letsGo(const Ring &ring) {
  if (!ring.isShared)
    return warpgroupLeader();
  Value inGroup = b_.create<arith::AndIOp>(threadId_, i32(127));
  return b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, inGroup, i32(options_.sharers));
}

/// Its warps have all waited for the dots that read the slot.
void ThreadEmitter::releaseSlot(Ring &ring, Value slot) {
  Value isHeld = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, slot, i32(0));
  auto only = b_.create<scf::IfOp>(both(letsGo(ring), isHeld));
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(only.thenBlock());
  Value barrier = barrierAt(ring.empty, slot);
  if (ring.isShared)
    barrier = b_.create<MapSharedOp>(b_.getI32Type(), barrier, b_.create<arith::AndIOp>(threadId_, i32(127)));
  b_.create<MbarrierArriveOp>(barrier, /*bytes=*/Value(), /*cluster=*/ring.isShared);
}

SmallVector<ThreadEmitter::Ring *> ThreadEmitter::ringsIn(Operation *op) {
  SmallVector<Ring *> inside;
  for (auto &ring : rings_)
    if (op->isAncestor(ring->block->getParentOp()))
      inside.push_back(ring.get());
  return inside;
}

/// The dots that add to the same accumulators one after the other, the last of which gives this value.
SmallVector<tile::DotOp> ThreadEmitter::addedBy(Value sums) {
  SmallVector<tile::DotOp> dots;
  for (auto dot = sums.getDefiningOp<tile::DotOp>(); dot; dot = dot.getAcc().getDefiningOp<tile::DotOp>())
    dots.push_back(dot);
  std::reverse(dots.begin(), dots.end());
  return dots;
}

/// A dot (or several) whose accumulators only it itself touches in a loop need not be waited for at the end of an
/// iteration. Then its slot is not free either until the next iteration has started its own: that takes a second slot.
/// What is computed has buffers (OperandBuffers.cpp).
ThreadEmitter::CarriedRings ThreadEmitter::carriedBy(scf::ForOp loop) {
  CarriedRings carried;
  carried.rings = ringsIn(loop);
  if (!options_.steps.overlap)
    return carried;
  auto staysThere = [&](tile::DotOp dot, int64_t kDim) {
    Value operand = kDim == 1 ? dot.getA() : dot.getB();
    if (dot->hasAttr(registersAttr)) // which the assembler keeps until a wait in the same iteration, and no longer
      return false;
    std::optional<LoadedOperand> loaded = traceToLoad(operand);
    if (!loaded)
      return options_.bufferOperands && options_.steps.operandsAhead &&
             !keptOperands_.contains(operandKey(operand, planDot(dot, options_.architecture), kDim));
    return llvm::any_of(rings_, [&](auto &ring) {
      return ring->stages > 1 &&
             llvm::any_of(ring->transfers, [&](const Transfer &transfer) { return transfer.load == loaded->load; });
    });
  };
  for (auto [argument, yielded] : llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    SmallVector<tile::DotOp> all = addedBy(yielded);
    bool onlyThey = !all.empty() && all.front().getAcc() == argument && argument.hasOneUse() &&
                    llvm::all_of(all, [&](tile::DotOp dot) {
                      return dot->hasAttr(warpgroupAttr) && dot->getBlock() == loop.getBody() && dot->hasOneUse() &&
                             !planDot(dot, options_.architecture).promotes && staysThere(dot, 1) && staysThere(dot, 0);
                    });
    if (onlyThey) {
      carried.dots.push_back(all.back());
      carriedDots_.insert(all.begin(), all.end());
    }
  }
  // The first product needs no zeros to add to. Where teams take turns the assembler would write them behind the wait
  // for the turn; but there the predicate costs registers that more accumulators do not leave, nor those of three
  // warpgroups.
  constexpr int64_t mostInTurns = 176, mostOfThree = 96;
  for (tile::DotOp last : carried.dots) {
    auto beginsAtZero = [&](tile::DotOp dot) {
      auto argument = llvm::dyn_cast<BlockArgument>(dot.getAcc());
      return argument && carriedDots_.contains(dot) && isZeroTile(loop.getTiedLoopInit(argument)->get());
    };
    tile::DotOp first = addedBy(last).front();
    SmallVector<tile::DotOp> together = startedWith(first);
    int64_t accumulators = 0;
    for (tile::DotOp dot : together)
      accumulators += dot.getType().getNumElements() / options_.threads;
    bool leaveRegisters =
        turns_ ? accumulators <= mostInTurns : !isOfThree(options_.threads / 32) || accumulators <= mostOfThree;
    if (leaveRegisters && isFirstDot(first) && llvm::all_of(together, beginsAtZero))
      carried.fromZero = together;
  }
  for (Ring *ring : carried.rings)
    if (llvm::is_contained(carried.dots, llvm::dyn_cast_or_null<tile::DotOp>(ring->lastUse)))
      carried.held.push_back(ring);
  return carried;
}

void ThreadEmitter::append(const CarriedRings &carried, SmallVectorImpl<Value> &values) {
  for (Ring *ring : carried.rings)
    values.append({ring->slot, ring->phase});
  for (Ring *ring : carried.held)
    values.push_back(ring->held ? ring->held : i32(-1));
}

void ThreadEmitter::take(const CarriedRings &carried, ValueRange &values) {
  auto next = [&] {
    Value value = values.front();
    values = values.drop_front();
    return value;
  };
  for (Ring *ring : carried.rings) {
    ring->slot = next();
    ring->phase = next();
  }
  for (Ring *ring : carried.held)
    ring->held = next();
}

} // namespace tenon::nvidia
