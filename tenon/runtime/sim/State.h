// SPDX-License-Identifier: Apache-2.0
//
// What a launch consists of while it runs: threads in warps in blocks in clusters, and what they wait for.
#pragma once

#include "tenon/base/SimThread.h"
#include "tenon/runtime/sim/Clock.h"
#include "tenon/runtime/sim/Fiber.h"
#include "tenon/runtime/sim/Shadow.h"
#include "tenon/runtime/sim/Simulator.h"

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace tenon::sim {

class Launch;
struct Block;
struct Cluster;
struct Thread;
struct Warp;

/// The bytes of shared memory that the compiler said an instruction touches; none when end < 0.
struct Window {
  int32_t begin = 0, end = -1;
};

/// One cp.async.
struct Copy {
  int64_t sequence; ///< number among its thread's
  uint32_t shared;
  int64_t global;
  uint32_t bytes, sourceBytes, place;
  bool moved = false; ///< its bytes are there already, though nobody may rely on it
};

/// A cp_async_arrive whose copies are not complete.
struct DeferredArrival {
  int64_t sequence; ///< the first copy that it does not wait for
  uint32_t mbarrier;
  Knowledge released;
  uint32_t count; ///< of its thread's clock when it was issued
};

/// One box on its way from global memory into the shared memory of one block.
struct Transfer {
  Block *block; ///< where it goes
  const TensorMap *map;
  int32_t coordinates[5];
  uint32_t shared, mbarrier, thread, place;
};

/// One box on its way from shared to global memory.
struct BulkStore {
  int64_t sequence; ///< number among its thread's
  const TensorMap *map;
  int32_t coordinates[5];
  uint32_t shared, place;
  bool read = false;          ///< `bytes` hold what was in shared memory
  std::vector<uint8_t> bytes; ///< of the box
};

/// One wgmma that is not complete.
struct Multiplication {
  int64_t sequence; ///< number among its warpgroup's
  OperandType a, b;
  int n;
  bool transA, transB, accumulates, valid;
  int32_t fromRegisters; ///< the number of those that a is in; 0: shared memory
  uint64_t descriptorA, descriptorB;
  std::vector<uint32_t> registers; ///< of a, four of each thread
  uint32_t accumulators;           ///< key in Warpgroup::accumulators
  uint32_t place;
  Knowledge known; ///< to all threads when it started
};

/// Accumulators that no thread may read: what their registers hold instead names this object.
struct Accumulators {
  int n;
  int64_t sequence; ///< of the last multiplication into them
  uint32_t place;
  std::vector<uint32_t> values; ///< 64 x n
};

struct Warpgroup {
  Thread *threads[128];
  int arrived = 0;
  uint32_t instruction = 0; ///< that those are at
  bool fenced = false;      ///< registers may be used by a wgmma
  std::deque<Multiplication> multiplications;
  std::deque<int64_t> groups; ///< for each committed group the first multiplication after it
  int64_t next = 0;
  std::map<uint32_t, Accumulators> accumulators;
  std::map<uint32_t, uint32_t> given; ///< by key: the place of accumulators that a wait has given back
  uint32_t nextAccumulators = 0;
  uint32_t unit = 0, count = 1; ///< the matrix unit as a thread: see Clock.h
  int registers = 0;            ///< of each thread
  int wanted = 0;               ///< registers that it waits for
  Thread *waiting = nullptr;    ///< for them
};

struct Thread : ThreadHeader {
  Launch *launch = nullptr;
  Cluster *cluster = nullptr;
  Block *block = nullptr;
  Warp *warp = nullptr;
  int lane = 0;
  ThreadClock clock;
  uint32_t countOfReads = 0; ///< of its clock, since it has read shared memory of its block; other than now: it has not
  Fiber fiber;
  void *stack = nullptr;

  bool exited = false;
  bool startedEarly = false; ///< and has not waited for the kernels before this one yet
  const char *waitsAt = nullptr; ///< "a shuffle": what it waits for, if it does
  uint32_t waitsPlace = 0;
  int64_t operations = 0, slice = 0;

  /// Of the warp-wide instruction it has arrived at.
  uint32_t arguments[2] = {};
  Window window;

  std::deque<Copy> copies;
  std::deque<int64_t> groups; ///< for each committed group the first copy after it
  std::deque<DeferredArrival> arrivals;
  int64_t nextCopy = 0;

  std::deque<BulkStore> stores;
  std::deque<int64_t> storeGroups; ///< for each committed group the first store after it
  int64_t nextStore = 0;

  bool clusterArrived = false;   ///< at the cluster's barrier, and has not waited yet
  bool arrivedThisPhase = false; ///< the phase that is still open
  int64_t clusterPhase = 0;      ///< of its last arrival

  std::vector<uint32_t> madeMbarriers; ///< in its block, since its last relaxed arrival;
  size_t releasedMbarriers = 0;        ///< those of them that a fence for the purpose covers

  Knowledge fenced;                        ///< what its last fence released; atomics hand it on
  std::shared_ptr<const Foreign> observed; ///< what atomics found; the next fence acquires it

  std::string name() const; ///< "thread 3 of block 0"
};

struct Warp {
  Thread *lanes[32];
  int arrived = 0, exited = 0;
  uint32_t instruction = 0; ///< that the arrived lanes are at
};

struct NamedBarrier {
  int expected = 0;
  std::vector<Thread *> waiting;
  std::vector<uint32_t> instructions; ///< of each
};

struct Mbarrier {
  int64_t expected = 0, pending = 0; ///< arrivals of a phase, and those still to come
  int64_t bytes = 0;                 ///< of asynchronous copies still to come
  int64_t phase = 0;
  uint32_t unit = 0, count = 1; ///< the copies that complete here as a thread: see Clock.h
  Gathering collected;
  Knowledge completed;
  std::vector<Thread *> waiting;
};

struct Block {
  Block(int64_t sharedBytes, int threads)
      : memory(sharedBytes, 0xff), written(sharedBytes), pending((sharedBytes + 3) / 4),
        pendingReads((sharedBytes + 15) / 16), shadow(sharedBytes, threads), remote(threads) {}

  Cluster *cluster = nullptr;
  int64_t id = 0;
  int rank = 0;
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups; ///< the whole ones
  int freeRegisters = 0;
  int live = 0;

  std::vector<uint8_t> memory;  ///< starts as NaN of every format
  std::vector<uint8_t> written; ///< by byte
  struct Pending {
    uint32_t thread = 0, place = 0; ///< thread + 1; 0: none
  };
  std::vector<Pending> pending; ///< by word of 4 bytes: the copy that will write it
  int64_t pendingCopies = 0;
  struct PendingReads {
    uint32_t count = 0, thread = 0, place = 0; ///< thread and place of the last one
  };
  std::vector<PendingReads> pendingReads; ///< by 16 bytes: asynchronous reads that may still happen
  SharedShadow shadow;
  NamedBarrier barriers[16];
  std::map<uint32_t, Mbarrier> mbarriers;
  uint32_t firstMbarrierUnit = 0, madeMbarriers = 0;
  /// More mbarriers share units: a copy to one then counts as known to who waits for another.
  static constexpr uint32_t mbarrierUnits = 32;

  // Accesses of other blocks of the cluster: of each of its threads the count and place of the last one.
  struct Remote {
    uint32_t count = 0, place = 0;
  };
  std::vector<Remote> remote;
  bool touchedRemotely = false;
  Gathering exits; ///< what its threads knew when they exited
};

struct Cluster {
  int64_t id = 0;
  std::vector<std::unique_ptr<Block>> blocks;
  int live = 0;

  int notArrived = 0; ///< at the cluster's barrier, of those that live
  int64_t phase = 0;
  Gathering collected;
  Knowledge completed;
  std::vector<Thread *> waiting;
  std::vector<std::pair<Block *, uint32_t>> published; ///< mbarriers, by relaxed arrivals at the phase that is open

  std::deque<Transfer> transfers; ///< that are not complete
  uint32_t ticks = 0;             ///< threads and units

  Thread &thread(uint32_t number) const {
    const auto &threads = blocks.front()->threads;
    return *blocks[number / threads.size()]->threads[number % threads.size()];
  }
};

/// Everything of one launch. Functions that take a thread are called from its fiber.
class Launch {
public:
  explicit Launch(const SimLaunch &launch);
  SimReport run();

  //===--- For the instructions -----------------------------------------------------------------------------------===//

  /// Counts an instruction of the thread, and does what may happen at any time.
  void step(Thread &thread, uint32_t place) {
    if (++thread.operations > launch_.options.maxOperations) [[unlikely]]
      endless(thread, place);
    if (seeded() && !(thread.copies.empty() && thread.cluster->transfers.empty())) [[unlikely]]
      hurrySomeCopy(thread);
  }
  /// At an instruction in which a thread may wait for what another does, without the hardware's help.
  void maySpin(Thread &thread) {
    if (++thread.slice > spinSlice) [[unlikely]]
      yieldThread(thread);
  }
  /// Suspends the thread until wake().
  void wait(Thread &thread, const char *what, uint32_t place);
  void wake(Thread &thread);
  /// Ends the launch after a finding that nothing can follow.
  [[noreturn]] void stop(Thread &thread);
  void threadExits(Thread &thread);

  bool checks() const { return launch_.options.checks; }
  bool seeded() const { return launch_.options.seed != 0; }
  uint64_t random();

  //===--- Findings -----------------------------------------------------------------------------------------------===//

  using Kind = SimFinding::Kind;
  /// Keeps the finding unless the same kind is known at these two lines.
  void find(Kind kind, uint32_t place, uint32_t otherPlace, const std::function<std::string()> &text);
  std::string at(uint32_t place) const; ///< " at file:line"
  std::string threadName(int64_t cluster, uint32_t thread) const;

  /// Global memory may belong to the kernels before this one.
  void checkAwaited(Thread &thread, uint32_t place, const char *what);
  /// False after a finding.
  bool checkGlobal(Thread &thread, uint32_t place, int64_t address, uint32_t bytes, bool writes, const char *what);

  GlobalShadow globalShadow;
  /// What atomics of an address have handed on.
  std::map<int64_t, std::shared_ptr<const Foreign>> atomics;

  const SimLaunch &request() const { return launch_; }

private:
  static constexpr int64_t spinSlice = 1 << 12;

  bool admitCluster();
  void retire(Cluster &cluster);
  void endless(Thread &thread, uint32_t place);
  void yieldThread(Thread &thread);
  void hurrySomeCopy(Thread &thread);
  bool completeSomeArrival();
  void reportDeadlock();
  static void runThread(void *thread);

  const SimLaunch &launch_;
  std::vector<MemoryRange> ranges_; ///< by address
  size_t lastRange_ = 0;
  std::map<int64_t, std::unique_ptr<Cluster>> clusters_; ///< that run
  int64_t nextCluster_ = 0;
  std::deque<Thread *> ready_;
  bool stopped_ = false, spun_ = false;
  StackPool stacks_;
  uint64_t randomState_;
  SimReport report_;
  std::map<std::tuple<Kind, uint32_t, uint32_t>, size_t> known_;
  std::set<std::tuple<Kind, uint32_t, uint32_t>> omitted_;
};

//===--- Copies (Copies.cpp) --------------------------------------------------------------------------------------===//

/// Moves the bytes of a copy.
void moveCopy(Thread &thread, Copy &copy);
/// Completes the copies before `sequence`, as ordered at the thread's count `count`; then the arrivals that waited.
void completeCopies(Thread &thread, int64_t sequence, uint32_t count);

//===--- Order (Order.cpp) ----------------------------------------------------------------------------------------===//

/// One arrival at an mbarrier that exists.
void arrive(Block &block, Mbarrier &mbarrier);
/// Ends the phase of an mbarrier if nothing is missing.
void completePhase(Launch &launch, Mbarrier &mbarrier);
/// The mbarrier at an address of a block; what is not one ends the launch.
Mbarrier &mbarrierAt(Thread &thread, uint32_t place, Block &block, uint32_t address);
void afterExit(Thread &thread);

//===--- Memory (Memory.cpp) --------------------------------------------------------------------------------------===//

/// Judges a read of global memory. False when the bytes must not be touched.
bool readGlobal(Thread &thread, uint32_t place, int64_t address, uint32_t bytes, const char *what);
/// Judges a write of global memory, and does it.
void writeGlobal(Thread &thread, uint32_t place, int64_t address, uint32_t bytes, const void *value, const char *what);

/// unitRead, unitWrite: of an asynchronous unit, 16 bytes each, that starts now and is remembered when it is complete.
enum class Touch { read, write, asyncWrite, object, unitRead, unitWrite };

/// The block that an address of shared memory belongs to and the address there, or null after a finding.
Block *resolve(Thread &thread, uint32_t place, Space space, uint32_t &address);
/// Judges an access and remembers it. False after a finding that forbids to touch the bytes. `clock`: what is known to
/// those who make it, if not what is to the thread.
bool touchShared(Thread &thread, uint32_t place, Block &block, uint32_t address, uint32_t bytes, Touch touch,
                 Window window, const ThreadClock *clock = nullptr);

//===--- Bulk copies (Bulk.cpp) -----------------------------------------------------------------------------------===//

void completeTransfer(Launch &launch, Cluster &cluster, size_t index);
/// What an exit leaves undone: copies to its block, if it was the last thread there, and from it.
void endBulkCopies(Thread &thread);

} // namespace tenon::sim
