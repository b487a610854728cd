// SPDX-License-Identifier: Apache-2.0
//
// Program order in global memory. The threads of a block act as one program instance, whose loads and stores appear in
// program order; where an element may be written by one thread and read or written by another, a barrier stands between.
// No barrier is needed where every element stays with one thread: the same window of the same view in the same layout,
// unless several threads hold the element and all of them load what one of them stores.
//
// Program instances speak to each other by atomics, whatever memory they speak about: all that an instance did before an
// atomic is done for whoever sees the atomic's, and what others did before theirs is there for all of its threads.
// One thread makes the update, between fences of the device; a barrier in front of it orders what the other threads did,
// and one behind it what they do.
//
// And the order of kernels. From sm_90 on a kernel may start while the one before it in the stream still runs
// (runtime/cuda/Launch.h): all its threads wait for that one before the first access. Its own successor may start as
// early as it likes, since it waits as well.
#include "tenon/compiler/dialect/Overlaps.h"
#include "tenon/compiler/target/nvidia/threads/Rings.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// Load and store of one window, each thread its own elements.
bool touchOneWindow(Operation *a, Operation *b) {
  auto describe = [](Operation *op) -> std::tuple<Value, Type, SmallVector<Value>> {
    if (auto load = llvm::dyn_cast<tile::LoadOp>(op))
      return {load.getView(), load.getType(), SmallVector<Value>(load.getOffsets())};
    if (auto store = llvm::dyn_cast<tile::StoreOp>(op))
      return {store.getView(), store.getValue().getType(), SmallVector<Value>(store.getOffsets())};
    return {};
  };
  auto [view, type, offsets] = describe(a);
  auto argument = llvm::dyn_cast_or_null<BlockArgument>(view);
  if (!argument)
    return false;
  auto kernel = llvm::cast<func::FuncOp>(argument.getOwner()->getParentOp());
  bool distinct = bool(kernel.getArgAttr(argument.getArgNumber(), tile::distinctAttr));
  return distinct && describe(a) == describe(b);
}

bool isAtomic(Operation *op) { return llvm::isa<tile::AtomicRMWOp, tile::AtomicCASOp>(op); }

/// Atomics whose order does not show.
bool commute(Operation *a, Operation *b) {
  auto first = llvm::dyn_cast<tile::AtomicRMWOp>(a), second = llvm::dyn_cast<tile::AtomicRMWOp>(b);
  return first && second && first.getKind() == second.getKind() && first.getIsUnsigned() == second.getIsUnsigned() &&
         first.getKind() != tile::AtomicKind::exchange && first.getOld().use_empty() && second.getOld().use_empty();
}

} // namespace

bool mayOverlap(func::FuncOp kernel, Value a, Value b) {
  if (a == b)
    return true;
  bool noOverlap = kernel->hasAttr(tile::noOverlapAttr) || kernel->hasAttr(tile::promisesNoOverlapAttr);
  auto one = llvm::dyn_cast<BlockArgument>(a), other = llvm::dyn_cast<BlockArgument>(b);
  if (noOverlap || !one || !other) // a workspace overlaps nothing else
    return false;
  auto known = kernel.getArgAttrOfType<DenseI64ArrayAttr>(one.getArgNumber(), tile::overlapsAttr);
  return !known || llvm::is_contained(known.asArrayRef(), static_cast<int64_t>(other.getArgNumber()));
}

std::optional<ThreadEmitter::GlobalAccess> ThreadEmitter::globalAccess(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<GlobalAccess>>(op)
      .Case<tile::LoadOp, tile::GatherOp>([&](auto o) { return GlobalAccess{op, o.getView(), false}; })
      .Case<tile::StoreOp, tile::ScatterOp, tile::AtomicRMWOp, tile::AtomicCASOp>(
          [&](auto o) { return GlobalAccess{op, o.getView(), true}; })
      .Default([](Operation *) { return std::nullopt; });
}

bool ThreadEmitter::isWritten(Value view) {
  auto [found, isNew] = written_.try_emplace(view, false);
  if (isNew)
    kernel_.walk([&](Operation *op) {
      std::optional<GlobalAccess> access = globalAccess(op);
      found->second |= access && access->isWrite && mayOverlap(kernel_, view, access->view);
    });
  return found->second;
}

bool ThreadEmitter::conflict(const GlobalAccess &a, const GlobalAccess &b) {
  if (!a.isWrite && !b.isWrite)
    return false;
  if (commute(a.op, b.op))
    return false;
  if ((isAtomic(a.op) && isWritten(b.view)) || (isAtomic(b.op) && isWritten(a.view)))
    return true;
  if (!mayOverlap(kernel_, a.view, b.view))
    return false;
  if (a.op != b.op && a.isWrite && b.isWrite && (bulkStaging_.contains(a.op) || bulkStaging_.contains(b.op)))
    return true; // the accelerator stores whenever it gets to it
  return !(touchOneWindow(a.op, b.op) && ((a.isWrite && b.isWrite) || !isHeldTwice(a.op)));
}

/// Whether several threads hold the elements of a load or store.
bool ThreadEmitter::isHeldTwice(Operation *access) {
  auto store = llvm::dyn_cast<tile::StoreOp>(access);
  const Distribution &tile = distribution(store ? Value(store.getValue()) : access->getResult(0));
  return llvm::any_of(tile.threadBits(), [](const Distribution::ThreadBit &bit) { return bit.dim < 0; });
}

/// Called for every op before its code: stands a barrier in front when it conflicts with an access since the last one.
void ThreadEmitter::orderGlobal(Operation *op) {
  std::optional<GlobalAccess> access = globalAccess(op);
  if (!access || op->hasAttr(lateAttr)) // nothing is written before it, and what replaces it waits for it
    return;
  if (llvm::any_of(pendingGlobal_, [&](const GlobalAccess &other) { return conflict(*access, other); }))
    globalBarrier();
  pendingGlobal_.push_back(*access);
}

/// One barrier in front of a loop instead of one in each of its iterations.
void ThreadEmitter::orderLoop(Block &body) {
  bool conflicts = false;
  body.walk([&](Operation *op) {
    if (std::optional<GlobalAccess> access = globalAccess(op))
      conflicts |= llvm::any_of(pendingGlobal_, [&](const GlobalAccess &other) { return conflict(*access, other); });
  });
  if (conflicts)
    globalBarrier();
}

/// An iteration comes after the one before: a barrier in front of a body whose accesses conflict with each other.
void ThreadEmitter::orderIterations(Block &body) {
  SmallVector<GlobalAccess> accesses;
  body.walk([&](Operation *op) {
    if (std::optional<GlobalAccess> access = globalAccess(op))
      accesses.push_back(*access);
  });
  for (const GlobalAccess &a : accesses)
    for (const GlobalAccess &b : accesses)
      if ((a.isWrite || b.isWrite) && ((a.op == b.op && !commute(a.op, b.op)) || conflict(a, b)))
        return globalBarrier();
}

/// What was written before it is in memory for all threads; of bulk stores, too, whose writes are made whenever the
/// accelerator comes to them.
void ThreadEmitter::globalBarrier() {
  if (!bulkStaging_.empty()) {
    auto leader = b_.create<scf::IfOp>(warpgroupLeader());
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(leader.thenBlock());
    b_.create<BulkWaitOp>(0, /*read=*/false);
  }
  blockBarrier();
}

void ThreadEmitter::blockBarrier() {
  if (options_.cluster > 1) {
    joinCluster();
    b_.create<ClusterArriveOp>();
    b_.create<ClusterWaitOp>();
  } else if (options_.threads == 32) {
    b_.create<WarpBarrierOp>();
  } else {
    b_.create<BarrierOp>(rings_.empty() ? allBarrier : workerBarrier, static_cast<int32_t>(options_.threads));
  }
  pendingGlobal_.clear();
}

/// Reports of asserts and prints lie there, too.
bool ThreadEmitter::touchesGlobal(Operation &op) {
  return op
      .walk([](Operation *inside) {
        bool touches = globalAccess(inside) || llvm::isa<tile::AssertOp, tile::PrintOp>(inside);
        return touches ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The next launch may start behind this one's own wait, not before it: then launches would pile up, and the blocks of one
/// would be put wherever those of others leave room, several to a multiprocessor while others have none. For the same
/// reason only where blocks are done soon.
void ThreadEmitter::awaitEarlierLaunches() {
  if (options_.architecture < 90)
    return;
  b_.create<AwaitEarlierLaunchesOp>(Value(), Value());
  bool hasLoop = kernel_.walk([](scf::ForOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (!hasLoop)
    b_.create<AllowNextLaunchOp>();
}

/// What the first access of global memory needs is computed before the wait, its address so that the assembler has no
/// choice: the words for reports are zero in launches of a kernel that makes none.
void ThreadEmitter::delayWait() {
  for (AwaitEarlierLaunchesOp wait : llvm::make_early_inc_range(function_.front().getOps<AwaitEarlierLaunchesOp>())) {
    auto allow = llvm::dyn_cast<AllowNextLaunchOp>(wait->getNextNode());
    Operation *next = allow ? allow->getNextNode() : wait->getNextNode();
    while (isPure(next) && next->getNumRegions() == 0 && !next->hasTrait<OpTrait::IsTerminator>())
      next = next->getNextNode();
    wait->moveBefore(next);
    if (allow)
      allow->moveBefore(next);
    Value address;
    if (auto load = llvm::dyn_cast<LoadOp>(next); load && load.getSpace() == Space::global)
      address = load.getAddress();
    else if (auto store = llvm::dyn_cast<StoreOp>(next); store && store.getSpace() == Space::global)
      address = store.getAddress();
    if (!address || !status_.use_empty() || !printBuffer_.use_empty())
      continue;
    wait.getAddressMutable().assign(address);
    wait.getZeroMutable().assign(status_);
  }
}

} // namespace tenon::nvidia
