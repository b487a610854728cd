// SPDX-License-Identifier: Apache-2.0
//
// tenon-nvidia-insert-barriers: puts a block-wide barrier between two accesses of shared memory that may touch the same
// bytes, one of them a write, in different threads.
//
// Every access says which bytes all threads' executions of it may touch (its window) and which exchange it belongs to (its
// group: accesses of one group do not conflict with each other). Walking the program in order with the accesses since the
// last barrier in hand, an access that conflicts with one of them gets a barrier in front and the list starts anew. A loop
// is walked twice, the second time with what its own end leaves behind.
//
//     nvidia.store shared %x, %p {group = 0, window = 0..512}          nvidia.store ...
//     %y = nvidia.load shared %q {group = 1, window = 0..512}    ->    nvidia.barrier 128
//                                                                      %y = nvidia.load ...
#include "tenon/compiler/target/nvidia/threads/Passes.h"

#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

struct SharedAccess {
  int64_t begin, end;
  int32_t group;
  bool isWrite;

  bool conflictsWith(const SharedAccess &other) const {
    return (isWrite || other.isWrite) && group != other.group && begin < other.end && other.begin < end;
  }
  bool operator==(const SharedAccess &) const = default;
};

/// The accesses since the last barrier, on any path. The cluster's barrier orders what came before the arrival at it, and
/// not what lies between that and the wait.
class Pending {
public:
  void add(const SharedAccess &access) {
    addTo(accesses_, access);
    addTo(sinceArrival_, access);
  }
  void join(const Pending &other) {
    llvm::for_each(other.accesses_, [&](const SharedAccess &access) { addTo(accesses_, access); });
    llvm::for_each(other.sinceArrival_, [&](const SharedAccess &access) { addTo(sinceArrival_, access); });
  }
  bool conflicts(const SharedAccess &access) const {
    return llvm::any_of(accesses_, [&](const SharedAccess &other) { return access.conflictsWith(other); });
  }
  void clear() {
    accesses_.clear();
    sinceArrival_.clear();
  }
  void arrive() { sinceArrival_.clear(); }
  void wait() { accesses_ = sinceArrival_; }

private:
  static void addTo(SmallVector<SharedAccess> &list, const SharedAccess &access) {
    if (!llvm::is_contained(list, access))
      list.push_back(access);
  }

  SmallVector<SharedAccess> accesses_, sinceArrival_;
};

template <class Op> std::optional<SharedAccess> describe(Op op, bool isWrite) {
  std::optional<ArrayRef<int64_t>> window = op.getWindow();
  if (!window) // not known: all of it, and in no group
    return SharedAccess{0, std::numeric_limits<int64_t>::max(), -1 - static_cast<int32_t>(isWrite), isWrite};
  return SharedAccess{(*window)[0], (*window)[1], static_cast<int32_t>(op.getGroup().value_or(-1)), isWrite};
}

/// An operand of wgmma that threads wrote; the ones of bulk copies are ordered by barriers of their own.
std::optional<SharedAccess> describe(WgmmaOp op) {
  SmallVector<int64_t> ends;
  for (std::optional<ArrayRef<int64_t>> window : {op.getWindowA(), op.getWindowB()})
    if (window)
      ends.append(window->begin(), window->end());
  if (ends.empty())
    return std::nullopt;
  return SharedAccess{*llvm::min_element(ends), *llvm::max_element(ends),
                      static_cast<int32_t>(op.getGroup().value_or(-1)), false};
}

std::optional<SharedAccess> accessOf(Operation *op) {
  if (auto multiply = llvm::dyn_cast<WgmmaOp>(op))
    return describe(multiply);
  if (auto load = llvm::dyn_cast<LoadOp>(op))
    return load.getSpace() == Space::shared ? describe(load, false) : std::nullopt;
  if (auto store = llvm::dyn_cast<StoreOp>(op))
    return store.getSpace() == Space::shared ? describe(store, true) : std::nullopt;
  if (auto load = llvm::dyn_cast<LdMatrixOp>(op))
    return describe(load, false);
  if (auto store = llvm::dyn_cast<StMatrixOp>(op))
    return describe(store, true);
  if (auto copy = llvm::dyn_cast<CpAsyncOp>(op))
    return describe(copy, true);
  return std::nullopt;
}

struct InsertBarriers : PassWrapper<InsertBarriers, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InsertBarriers)
  StringRef getArgument() const override { return "tenon-nvidia-insert-barriers"; }
  StringRef getDescription() const override { return "Order conflicting accesses of shared memory by barriers"; }

  void runOnOperation() override {
    if (auto threads = getOperation()->getAttrOfType<IntegerAttr>(threadsAttr)) {
      auto workers = getOperation()->getAttrOfType<IntegerAttr>(workersAttr);
      threads_ = (workers ? workers : threads).getInt();
      barrier_ = workers ? workerBarrier : allBarrier;
      Pending pending;
      visit(getOperation().getBody().front(), pending);
    }
  }

  void visit(Block &block, Pending &pending) {
    for (Operation &op : block) {
      auto barrier = llvm::dyn_cast<BarrierOp>(op);
      if ((barrier && barrier.getThreads() >= threads_) || (threads_ == 32 && llvm::isa<WarpBarrierOp>(op))) {
        pending.clear();
      } else if (auto arrival = llvm::dyn_cast<ClusterArriveOp>(op)) {
        if (!arrival.getRelaxed()) // such a one releases nothing
          pending.arrive();
      } else if (llvm::isa<ClusterWaitOp>(op)) {
        pending.wait();
      } else if (llvm::isa<scf::ForOp, scf::WhileOp>(op)) {
        auto visitOnce = [&](Pending &around) {
          for (Region &region : op.getRegions()) // a condition and what it guards
            visit(region.front(), around);
        };
        Pending around = pending;
        visitOnce(around);
        around.join(pending);
        visitOnce(around);
        around.join(pending); // the loop may run not at all
        if (llvm::isa<scf::WhileOp>(op)) // and its condition is what runs last
          visit(op.getRegion(0).front(), around);
        pending = around;
      } else if (auto branch = llvm::dyn_cast<scf::IfOp>(op)) {
        // Some threads only may take the branch: a barrier against what was before it stands in front.
        bool conflicts = false;
        branch.walk([&](Operation *inside) {
          if (std::optional<SharedAccess> access = accessOf(inside))
            conflicts |= pending.conflicts(*access);
        });
        if (conflicts)
          insertBarrier(&op, pending);
        Pending then = pending;
        visit(*branch.thenBlock(), then);
        if (Block *otherwise = branch.elseBlock())
          visit(*otherwise, pending);
        pending.join(then);
      } else if (std::optional<SharedAccess> access = accessOf(&op)) {
        if (pending.conflicts(*access))
          insertBarrier(&op, pending);
        pending.add(*access);
      }
    }
  }

  void insertBarrier(Operation *before, Pending &pending) {
    OpBuilder b(before);
    if (threads_ == 32)
      b.create<WarpBarrierOp>(before->getLoc());
    else
      b.create<BarrierOp>(before->getLoc(), barrier_, static_cast<int32_t>(threads_));
    pending.clear();
  }

  int64_t threads_ = 0;
  int32_t barrier_ = allBarrier;
};

} // namespace

std::unique_ptr<Pass> createInsertBarriersPass() { return std::make_unique<InsertBarriers>(); }

} // namespace tenon::nvidia
