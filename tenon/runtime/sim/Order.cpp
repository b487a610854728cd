// SPDX-License-Identifier: Apache-2.0
//
// Barriers of blocks and clusters, mbarriers and fences.
#include "tenon/runtime/sim/Calls.h"
#include "tenon/runtime/sim/State.h"

#include <algorithm>

namespace tenon::sim {

using Kind = SimFinding::Kind;

//===--- bar.sync -------------------------------------------------------------------------------------------------===//

namespace {

void completeBarrier(Thread &last, uint32_t place, int id, NamedBarrier &named) {
  Launch &launch = *last.launch;
  Block &block = *last.block;
  int lanes[32] = {}; // no vector: after a finding this stack is abandoned
  for (Thread *thread : named.waiting)
    ++lanes[thread->threadId / 32];
  for (size_t warp = 0; warp < block.warps.size(); ++warp)
    if (lanes[warp] && lanes[warp] < 32) {
      launch.find(Kind::divergence, place, place, [&] {
        return "divergence: only " + std::to_string(lanes[warp]) + " threads of warp " + std::to_string(warp) +
               " of block " + std::to_string(block.id) + " are among the " + std::to_string(named.expected) +
               " at barrier " + std::to_string(id) + launch.at(place) + ", which counts whole warps";
      });
      launch.stop(last);
    }
  Gathering gathering;
  for (Thread *thread : named.waiting)
    gathering.add(thread->clock);
  Knowledge knowledge = gathering.knowledge();
  for (Thread *thread : named.waiting) {
    thread->clock.known = knowledge;
    ++thread->clock.own;
    if (thread != &last)
      launch.wake(*thread);
  }
  // Once all threads have met, what lies behind them can race with nothing.
  // (Units may still be at work, and want their fences.)
  if (named.waiting.size() == block.threads.size() && !block.touchedRemotely && !launch.request().program.asynchronous)
    block.shadow.forget();
  named.waiting.clear();
  named.instructions.clear();
}

} // namespace

void barrier(Thread *thread, uint32_t place, uint32_t instruction, int32_t id, int32_t threads) {
  Launch &launch = *thread->launch;
  launch.step(*thread, place);
  Block &block = *thread->block;
  if (id < 0 || id > 15 || threads <= 0 || threads % 32 || threads > static_cast<int>(block.threads.size())) {
    launch.find(Kind::misuse, place, place, [&] {
      return "misuse: " + thread->name() + " waits for " + std::to_string(threads) + " threads at barrier " +
             std::to_string(id) + launch.at(place) + ": there are barriers 0 to 15 and " +
             std::to_string(block.threads.size()) + " threads in whole warps";
    });
    launch.stop(*thread);
  }
  NamedBarrier &named = block.barriers[id];
  for (size_t i = 0; i < named.waiting.size(); ++i) {
    const Thread *other = named.waiting[i];
    if (named.expected != threads || (other->warp == thread->warp && named.instructions[i] != instruction)) {
      bool sameWarp = named.expected == threads;
      launch.find(sameWarp ? Kind::divergence : Kind::misuse, place, other->waitsPlace, [&] {
        return (sameWarp ? "divergence: " : "misuse: ") + thread->name() + " waits at barrier " + std::to_string(id) +
               " for " + std::to_string(threads) + " threads" + launch.at(place) + ", while " + other->name() +
               " does for " + std::to_string(named.expected) + launch.at(other->waitsPlace) +
               (sameWarp ? ": lanes of one warp have to be at the same instruction" : "");
      });
      launch.stop(*thread);
    }
  }
  named.expected = threads;
  named.waiting.push_back(thread);
  named.instructions.push_back(instruction);
  if (static_cast<int>(named.waiting.size()) == threads)
    completeBarrier(*thread, place, id, named);
  else
    launch.wait(*thread, "a barrier", place);
}

//===--- barrier.cluster ------------------------------------------------------------------------------------------===//

namespace {

void completeClusterPhase(Launch &launch, Cluster &cluster) {
  if (cluster.notArrived > 0 || cluster.live == 0)
    return;
  ++cluster.phase;
  cluster.completed = cluster.collected.knowledge();
  Ticks started(cluster.ticks);
  std::fill_n(started.begin(), cluster.blocks.size() * cluster.blocks.front()->threads.size(), 1);
  cluster.completed.ticks = join(cluster.completed.ticks, std::make_shared<const Ticks>(std::move(started)));
  for (auto [block, address] : cluster.published) // as if they had been there from the start
    block->shadow.setWrite(address, 8, /*thread=*/0, /*count=*/0, /*place=*/0);
  cluster.published.clear();
  cluster.notArrived = 0;
  for (auto &block : cluster.blocks)
    for (auto &thread : block->threads)
      if (!thread->exited) {
        thread->arrivedThisPhase = false;
        ++cluster.notArrived;
      }
  for (Thread *thread : cluster.waiting)
    launch.wake(*thread);
  cluster.waiting.clear();
}

void clusterMisuse(Thread &thread, uint32_t place, const char *what) {
  thread.launch->find(Kind::misuse, place, place, [&] {
    return "misuse: " + thread.name() + " " + what + thread.launch->at(place);
  });
  thread.launch->stop(thread);
}

} // namespace

void clusterArrive(Thread *thread, uint32_t place, int32_t relaxed) {
  Launch &launch = *thread->launch;
  launch.step(*thread, place);
  Cluster &cluster = *thread->cluster;
  if (thread->clusterArrived)
    clusterMisuse(*thread, place, "arrives at the cluster's barrier twice without a wait in between,");
  if (relaxed) { // releases nothing but the mbarriers of a fence before it, and that the thread has started
    auto end = thread->madeMbarriers.begin() + static_cast<ptrdiff_t>(thread->releasedMbarriers);
    for (auto made = thread->madeMbarriers.begin(); made != end; ++made)
      cluster.published.emplace_back(thread->block, *made);
    thread->madeMbarriers.erase(thread->madeMbarriers.begin(), end);
    thread->releasedMbarriers = 0;
  } else {
    cluster.collected.add(thread->clock);
    ++thread->clock.own;
  }
  thread->clusterArrived = thread->arrivedThisPhase = true;
  thread->clusterPhase = cluster.phase;
  --cluster.notArrived;
  completeClusterPhase(launch, cluster);
}

void clusterWait(Thread *thread, uint32_t place) {
  Launch &launch = *thread->launch;
  launch.step(*thread, place);
  Cluster &cluster = *thread->cluster;
  if (!thread->clusterArrived)
    clusterMisuse(*thread, place, "waits at the cluster's barrier without having arrived,");
  if (cluster.phase == thread->clusterPhase) {
    cluster.waiting.push_back(thread);
    launch.wait(*thread, "the cluster's barrier", place);
  }
  thread->clusterArrived = false;
  thread->clock.acquire(cluster.completed);
}

void afterExit(Thread &thread) {
  Launch &launch = *thread.launch;
  Cluster &cluster = *thread.cluster;
  Block &block = *thread.block;
  if (!thread.arrivedThisPhase)
    --cluster.notArrived; // those that have exited are not waited for
  completeClusterPhase(launch, cluster);
  endBulkCopies(thread);
  if (!block.touchedRemotely || !launch.checks())
    return;
  block.exits.add(thread.clock);
  if (block.live)
    return;
  const Ticks known = *block.exits.knowledge().ticks;
  for (size_t other = 0; other < block.remote.size(); ++other)
    if (block.remote[other].count > known[other]) {
      launch.find(Kind::race, block.remote[other].place, block.remote[other].place, [&] {
        return "race: " + launch.threadName(cluster.id, other) + " touches the shared memory of block " +
               std::to_string(block.id) + launch.at(block.remote[other].place) +
               ", and nothing keeps that block from exiting before";
      });
      return;
    }
}

//===--- mbarriers ------------------------------------------------------------------------------------------------===//

Mbarrier &mbarrierAt(Thread &thread, uint32_t place, Block &block, uint32_t address) {
  Launch &launch = *thread.launch;
  auto found = block.mbarriers.find(address);
  if (found == block.mbarriers.end()) {
    launch.find(Kind::misuse, place, place, [&] {
      return "misuse: " + thread.name() + " uses an mbarrier at byte " + std::to_string(address) +
             (&block == thread.block ? " of shared memory"
                                     : " of block " + std::to_string(block.id) + "'s shared memory") +
             launch.at(place) + ", where none has been made yet";
    });
    launch.stop(thread);
  }
  touchShared(thread, place, block, address, 8, Touch::object, {});
  return found->second;
}

void completePhase(Launch &launch, Mbarrier &mbarrier) {
  if (mbarrier.pending > 0 || mbarrier.bytes != 0)
    return;
  ++mbarrier.phase;
  mbarrier.pending = mbarrier.expected;
  mbarrier.completed = mbarrier.collected.knowledge();
  for (Thread *thread : mbarrier.waiting)
    launch.wake(*thread);
  mbarrier.waiting.clear();
}

namespace {

void checkArrival(Thread &thread, uint32_t place, uint32_t address, const Mbarrier &mbarrier) {
  if (mbarrier.pending > 0)
    return;
  thread.launch->find(Kind::misuse, place, place, [&] {
    return "misuse: " + thread.name() + " arrives at the mbarrier at byte " + std::to_string(address) +
           thread.launch->at(place) + " after all " + std::to_string(mbarrier.expected) + " arrivals of its phase";
  });
  thread.launch->stop(thread);
}

} // namespace

void arrive(Block &block, Mbarrier &mbarrier) {
  --mbarrier.pending;
  completePhase(*block.threads.front()->launch, mbarrier);
}

void mbarrierInit(Thread *thread, uint32_t place, uint32_t address, int32_t count) {
  Launch &launch = *thread->launch;
  launch.step(*thread, place);
  Block &block = *thread->block;
  bool busy = block.mbarriers.count(address) && !block.mbarriers[address].waiting.empty();
  if (count < 1 || count >= 1 << 20 || busy) {
    launch.find(Kind::misuse, place, place, [&] {
      return "misuse: " + thread->name() + " makes an mbarrier for " + std::to_string(count) + " arrivals" +
             launch.at(place) + (busy ? ", where threads wait at another" : ": 1 to 1048575 are possible");
    });
    launch.stop(*thread);
  }
  block.mbarriers.erase(address);
  if (!touchShared(*thread, place, block, address, 8, Touch::write, {}))
    return;
  Mbarrier &mbarrier = block.mbarriers[address];
  mbarrier.expected = mbarrier.pending = count;
  thread->madeMbarriers.push_back(address);
  mbarrier.unit = block.firstMbarrierUnit + block.madeMbarriers++ % Block::mbarrierUnits;
}

void mbarrierArrive(Thread *thread, uint32_t place, uint32_t address, int64_t bytes, int32_t space,
                    int32_t isBehindReads) {
  Launch &launch = *thread->launch;
  launch.step(*thread, place);
  // In another block, it is an arrival of before the reads that it may overtake.
  bool overtakes = Space(space) == Space::cluster && !isBehindReads && thread->clock.own == thread->countOfReads;
  thread->clock.own -= overtakes;
  Block *block = resolve(*thread, place, Space(space), address);
  if (!block)
    launch.stop(*thread);
  Mbarrier &mbarrier = mbarrierAt(*thread, place, *block, address);
  checkArrival(*thread, place, address, mbarrier);
  if (bytes > 0)
    mbarrier.bytes += bytes;
  mbarrier.collected.add(thread->clock);
  ++thread->clock.own;
  arrive(*block, mbarrier);
}

void mbarrierWait(Thread *thread, uint32_t place, uint32_t address, int32_t parity) {
  Launch &launch = *thread->launch;
  launch.step(*thread, place);
  Mbarrier &mbarrier = mbarrierAt(*thread, place, *thread->block, address);
  if (parity != 0 && parity != 1)
    launch.find(Kind::misuse, place, place, [&] {
      return "misuse: " + thread->name() + " waits for phase parity " + std::to_string(parity) + launch.at(place) +
             ", which is neither 0 nor 1";
    });
  while ((mbarrier.phase & 1) == (parity & 1)) {
    mbarrier.waiting.push_back(thread);
    launch.wait(*thread, "an mbarrier", place);
  }
  if (mbarrier.completed.ticks)
    thread->clock.acquire(mbarrier.completed);
}

void cpAsyncArrive(Thread *thread, uint32_t place, uint32_t address) {
  thread->launch->step(*thread, place);
  Mbarrier &mbarrier = mbarrierAt(*thread, place, *thread->block, address);
  if (thread->copies.empty())
    checkArrival(*thread, place, address, mbarrier);
  thread->arrivals.push_back({thread->nextCopy, address, thread->clock.snapshot(), thread->clock.own});
  ++thread->clock.own;
  if (thread->copies.empty())
    completeCopies(*thread, thread->nextCopy, thread->clock.own);
}

//===--- Fences ---------------------------------------------------------------------------------------------------===//

void fence(Thread *thread, uint32_t place, int32_t kind) {
  thread->launch->step(*thread, place);
  if (FenceKind(kind) == FenceKind::proxyAsync && thread->launch->checks())
    thread->clock.fenceProxies();
  if (FenceKind(kind) == FenceKind::mbarrierInit)
    thread->releasedMbarriers = thread->madeMbarriers.size();
  // Order within a block comes from its barriers alone; between blocks, from fences of the device around atomics.
  if (FenceKind(kind) != FenceKind::device || !thread->launch->checks())
    return;
  if (thread->observed) {
    auto mine = thread->observed->find(thread->cluster->id);
    Knowledge observed{mine == thread->observed->end() ? nullptr : mine->second, thread->observed};
    thread->clock.acquire(observed);
    thread->observed = nullptr;
  }
  thread->fenced = thread->clock.snapshot();
  ++thread->clock.own;
}

void startEarly(Thread *thread, uint32_t) { thread->startedEarly = true; }

void awaitEarlierLaunches(Thread *thread, uint32_t place) {
  thread->launch->step(*thread, place);
  thread->startedEarly = false;
}

} // namespace tenon::sim
