// SPDX-License-Identifier: Apache-2.0
//
// Loads, stores and atomics, and the judgement of every access of shared memory.
#include "tenon/runtime/sim/Calls.h"
#include "tenon/runtime/sim/State.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tenon::sim {

using Kind = SimFinding::Kind;

namespace {

const char *verb(Touch touch) {
  switch (touch) {
  case Touch::read: return "reads";
  case Touch::write: return "writes";
  case Touch::asyncWrite:
  case Touch::unitWrite: return "starts a copy to";
  case Touch::object: return "uses an mbarrier in";
  case Touch::unitRead: return "starts an asynchronous read of";
  }
  return "";
}

std::string bytesText(uint32_t address, uint32_t bytes) {
  return bytes == 1 ? "byte " + std::to_string(address)
                    : "bytes " + std::to_string(address) + " to " + std::to_string(address + bytes - 1);
}

std::string memoryOf(const Thread &thread, const Block &block) {
  return thread.block == &block ? " of shared memory" : " of block " + std::to_string(block.id) + "'s shared memory";
}

/// An access of another block's memory, which must have started and must not have ended.
void touchRemotely(Thread &thread, uint32_t place, Block &block) {
  block.touchedRemotely = true;
  if (!thread.launch->checks())
    return;
  const Ticks &ticks = *thread.clock.known.ticks;
  size_t first = block.threads.front()->clock.self;
  if (std::all_of(ticks.begin() + first, ticks.begin() + first + block.threads.size(), [](auto n) { return n == 0; }))
    thread.launch->find(Kind::race, place, place, [&] {
      return "race: " + thread.name() + " touches the shared memory of block " + std::to_string(block.id) +
             thread.launch->at(place) + ", which may not have started: the cluster's barrier has to come first";
    });
  block.remote[thread.clock.self] = {thread.clock.own, place};
}

} // namespace

Block *resolve(Thread &thread, uint32_t place, Space space, uint32_t &address) {
  if (space == Space::shared)
    return thread.block;
  uint32_t rank = address >> 24;
  address &= (1 << 24) - 1;
  if (rank >= thread.cluster->blocks.size()) {
    thread.launch->find(Kind::outOfBounds, place, place, [&] {
      return "out of bounds: " + thread.name() + " names block " + std::to_string(rank) + " of a cluster of " +
             std::to_string(thread.cluster->blocks.size()) + thread.launch->at(place);
    });
    return nullptr;
  }
  Block &block = *thread.cluster->blocks[rank];
  if (&block == thread.block)
    return &block;
  if (block.live == 0) {
    thread.launch->find(Kind::race, place, place, [&] {
      return "race: " + thread.name() + " touches the shared memory of block " + std::to_string(block.id) +
             thread.launch->at(place) + ", which has exited";
    });
    return nullptr;
  }
  touchRemotely(thread, place, block);
  return &block;
}

namespace {

bool writes(Touch touch) { return touch == Touch::write || touch == Touch::asyncWrite || touch == Touch::unitWrite; }

/// What an access meets of accesses before it, and remembers it if it is one of a thread.
Conflict judge(Block &block, uint32_t address, uint32_t bytes, Touch touch, const ThreadClock &clock, uint32_t place) {
  switch (touch) {
  case Touch::write: return block.shadow.write(address, bytes, clock, place);
  case Touch::asyncWrite: return block.shadow.probeWrite(address, bytes, clock);
  case Touch::unitRead: return block.shadow.probeAsync(address, bytes, clock, /*writes=*/false);
  case Touch::unitWrite: return block.shadow.probeAsync(address, bytes, clock, /*writes=*/true);
  default: return block.shadow.read(address, bytes, clock, place);
  }
}

} // namespace

bool touchShared(Thread &thread, uint32_t place, Block &block, uint32_t address, uint32_t bytes, Touch touch,
                 Window window, const ThreadClock *clock) {
  Launch &launch = *thread.launch;
  int64_t size = block.memory.size();
  auto subject = [&] { return thread.name() + " " + verb(touch) + " " + bytesText(address, bytes); };
  if (int64_t(address) + bytes > size) {
    launch.find(Kind::outOfBounds, place, place, [&] {
      return "out of bounds: " + subject() + memoryOf(thread, block) + launch.at(place) + ", and a block has " +
             std::to_string(size);
    });
    return false;
  }
  if (address % bytes) {
    launch.find(Kind::misaligned, place, place, [&] {
      return "misaligned access: " + subject() + memoryOf(thread, block) + launch.at(place) +
             ": the address is no multiple of " + std::to_string(bytes);
    });
    return false;
  }
  if (!launch.checks())
    return true;
  if (window.end >= 0 && (int64_t(address) < window.begin || int64_t(address) + bytes > window.end))
    launch.find(Kind::outOfBounds, place, place, [&] {
      return "out of bounds: " + subject() + memoryOf(thread, block) + launch.at(place) +
             ", outside the window [" + std::to_string(window.begin) + ", " + std::to_string(window.end) +
             ") that the instruction declares";
    });
  if (touch != Touch::object && !block.mbarriers.empty()) {
    auto above = block.mbarriers.lower_bound(address + bytes);
    if (above != block.mbarriers.begin() && std::prev(above)->first + 8 > address)
      launch.find(Kind::misuse, place, place, [&] {
        return "misuse: " + subject() + memoryOf(thread, block) + launch.at(place) +
               ", where an mbarrier is: only its own instructions may touch it";
      });
  }
  if (block.pendingCopies)
    for (uint32_t word = address / 4; word <= (address + bytes - 1) / 4; ++word)
      if (const Block::Pending &pending = block.pending[word]; pending.thread) {
        launch.find(Kind::race, place, pending.place, [&] {
          return "race: " + subject() + memoryOf(thread, block) + launch.at(place) +
                 ", which the asynchronous copy of " + launch.threadName(thread.cluster->id, pending.thread - 1) +
                 launch.at(pending.place) + " writes, with no wait for it in between";
        });
        break;
      }
  if (writes(touch) && block.pendingReads[address / 16].count) {
    const Block::PendingReads &pending = block.pendingReads[address / 16];
    launch.find(Kind::race, place, pending.place, [&] {
      return "race: " + subject() + memoryOf(thread, block) + launch.at(place) + ", which " +
             launch.threadName(thread.cluster->id, pending.thread) + launch.at(pending.place) +
             " has an asynchronous unit read, with no wait for it in between";
    });
  }
  if (!writes(touch)) {
    if (const void *hole = std::memchr(block.written.data() + address, 0, bytes)) {
      auto where = static_cast<const uint8_t *>(hole) - block.written.data();
      launch.find(Kind::uninitialised, place, place, [&] {
        return "uninitialised read: " + subject() + memoryOf(thread, block) + launch.at(place) + ", and byte " +
               std::to_string(where) + " was never written";
      });
    }
  } else if (touch == Touch::write) {
    std::memset(block.written.data() + address, 1, bytes);
  }
  if (touch == Touch::read && &block == thread.block && !clock && thread.clock.own != thread.countOfReads)
    thread.countOfReads = ++thread.clock.own; // to tell it from what came before
  Conflict conflict = judge(block, address, bytes, touch, clock ? *clock : thread.clock, place);
  if (conflict.found)
    launch.find(Kind::race, place, conflict.place, [&] {
      return "race: " + subject() + memoryOf(thread, block) + launch.at(place) + ", which " +
             launch.threadName(thread.cluster->id, conflict.thread) + (conflict.wrote ? " writes" : " reads") +
             launch.at(conflict.place) +
             (conflict.unfenced ? ", and no proxy fence lies between the two" : ", and no barrier orders the two");
    });
  return true;
}

namespace {

void reportGlobalRace(Thread &thread, uint32_t place, const Conflict &conflict, int64_t address, uint32_t bytes,
                      const char *what, const char *tail) {
  Launch &launch = *thread.launch;
  launch.find(Kind::race, place, conflict.place, [&] {
    std::string where;
    for (const MemoryRange &range : launch.request().memory)
      if (address >= range.address && address < range.address + range.bytes)
        where = "byte " + std::to_string(address - range.address) + " of " + range.name;
    return "race: " + thread.name() + " " + what + " " + std::to_string(bytes) + " bytes of global memory from " +
           where + launch.at(place) + ", which " + launch.threadName(conflict.cluster, conflict.thread) + " writes" +
           launch.at(conflict.place) + tail;
  });
}

} // namespace

bool readGlobal(Thread &thread, uint32_t place, int64_t address, uint32_t bytes, const char *what) {
  Launch &launch = *thread.launch;
  if (!launch.checkGlobal(thread, place, address, bytes, false, what))
    return false;
  if (launch.checks())
    if (Conflict conflict = launch.globalShadow.read(address, bytes, thread.clock, thread.cluster->id); conflict.found)
      reportGlobalRace(thread, place, conflict, address, bytes, what, ", and nothing orders the two");
  return true;
}

namespace {

/// Before the bytes change. Two threads that write the same there do no harm.
void noteGlobalWrite(Thread &thread, uint32_t place, int64_t address, uint32_t bytes, const void *value) {
  auto earlier =
      thread.launch->globalShadow.write(address, bytes, thread.clock, thread.cluster->id, place, /*atomic=*/false);
  if (earlier.conflict.found && std::memcmp(reinterpret_cast<const void *>(address), value, bytes) != 0)
    reportGlobalRace(thread, place, earlier.conflict, address, bytes, "writes",
                     " too, with another value, and nothing orders the two");
}

} // namespace

void writeGlobal(Thread &thread, uint32_t place, int64_t address, uint32_t bytes, const void *value, const char *what) {
  Launch &launch = *thread.launch;
  if (!launch.checkGlobal(thread, place, address, bytes, true, what))
    return;
  if (launch.checks())
    noteGlobalWrite(thread, place, address, bytes, value);
  std::memcpy(reinterpret_cast<void *>(address), value, bytes);
}

namespace {

/// Fences and atomics order threads of any blocks: an atomic hands on what the last fence before it released, and what
/// it finds is acquired by the next fence after it.
void synchronizeByAtomic(Thread &thread, int64_t address) {
  auto &handedOn = thread.launch->atomics;
  auto found = handedOn.find(address);
  if (found == handedOn.end() && !thread.fenced.ticks)
    return;
  if (found == handedOn.end())
    found = handedOn.emplace(address, nullptr).first;
  thread.observed = join(thread.observed, found->second);
  if (thread.fenced.ticks) {
    auto released = std::make_shared<Foreign>();
    (*released)[thread.cluster->id] = thread.fenced.ticks;
    found->second = join(join(found->second, std::shared_ptr<const Foreign>(released)), thread.fenced.foreign);
  }
}

template <class T> T update(AtomicKind kind, T old, T value) {
  using Signed = std::make_signed_t<T>;
  auto signedOf = [](T bits) { return static_cast<Signed>(bits); };
  switch (kind) {
  case AtomicKind::add: return old + value;
  case AtomicKind::smax: return signedOf(old) > signedOf(value) ? old : value;
  case AtomicKind::smin: return signedOf(old) < signedOf(value) ? old : value;
  case AtomicKind::umax: return std::max(old, value);
  case AtomicKind::umin: return std::min(old, value);
  case AtomicKind::exchange: return value;
  case AtomicKind::fadd: break;
  }
  if constexpr (sizeof(T) == 4) { // atom.add.f32 of global memory takes subnormals, and gives them, as zero
    auto flush = [](float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; };
    float sum = flush(flush(std::bit_cast<float>(old)) + flush(std::bit_cast<float>(value)));
    return std::isnan(sum) ? 0x7fffffff : std::bit_cast<uint32_t>(sum);
  } else {
    double sum = std::bit_cast<double>(old) + std::bit_cast<double>(value);
    return std::isnan(sum) ? 0x7fffffffffffffff : std::bit_cast<uint64_t>(sum);
  }
}

/// Judges an atomic; false when the memory must not be touched.
bool beginAtomic(Thread &thread, uint32_t place, int64_t address, uint32_t bytes) {
  Launch &launch = *thread.launch;
  if (!launch.checkGlobal(thread, place, address, bytes, true, "updates"))
    return false;
  launch.maySpin(thread);
  if (!launch.checks())
    return true;
  auto earlier = launch.globalShadow.write(address, bytes, thread.clock, thread.cluster->id, place, /*atomic=*/true);
  if (earlier.conflict.found && !earlier.atomic)
    reportGlobalRace(thread, place, earlier.conflict, address, bytes, "updates",
                     " without an atomic, and nothing orders the two");
  synchronizeByAtomic(thread, address);
  return true;
}

template <class T> T *operand(Thread &thread, int at = 0) { return reinterpret_cast<T *>(thread.operands + at); }

} // namespace

//===--- What compiled code calls ---------------------------------------------------------------------------------===//

void load(Thread *thread, uint32_t place, int32_t space, int64_t address, int32_t bytes, int32_t mask, int32_t begin,
          int32_t end) {
  if (!mask)
    return;
  Launch &launch = *thread->launch;
  launch.step(*thread, place);
  if (Space(space) == Space::global) {
    if (!readGlobal(*thread, place, address, bytes, "reads"))
      return void(std::memset(thread->operands, 0, bytes));
    launch.maySpin(*thread);
    std::memcpy(thread->operands, reinterpret_cast<const void *>(address), bytes);
    return;
  }
  auto at = static_cast<uint32_t>(address);
  Block *block = resolve(*thread, place, Space(space), at);
  if (!block || !touchShared(*thread, place, *block, at, bytes, Touch::read, {begin, end}))
    return void(std::memset(thread->operands, 0, bytes));
  std::memcpy(thread->operands, block->memory.data() + at, bytes);
}

void store(Thread *thread, uint32_t place, int32_t space, int64_t address, int32_t bytes, int32_t mask, int32_t begin,
           int32_t end) {
  if (!mask)
    return;
  Launch &launch = *thread->launch;
  launch.step(*thread, place);
  if (Space(space) == Space::global)
    return writeGlobal(*thread, place, address, bytes, thread->operands, "writes");
  auto at = static_cast<uint32_t>(address);
  Block *block = resolve(*thread, place, Space(space), at);
  if (block && touchShared(*thread, place, *block, at, bytes, Touch::write, {begin, end}))
    std::memcpy(block->memory.data() + at, thread->operands, bytes);
}

void atomic(Thread *thread, uint32_t place, int32_t kind, int64_t address, int32_t bytes, int32_t mask) {
  thread->launch->step(*thread, place);
  auto apply = [&](auto *value) {
    auto *memory = reinterpret_cast<std::remove_reference_t<decltype(value)>>(address);
    auto old = *memory;
    *memory = update(AtomicKind(kind), old, *value);
    *value = old;
  };
  if (!mask || !beginAtomic(*thread, place, address, bytes))
    std::memset(thread->operands, 0, bytes);
  else if (bytes == 4)
    apply(operand<uint32_t>(*thread));
  else
    apply(operand<uint64_t>(*thread));
}

void atomicCas(Thread *thread, uint32_t place, int64_t address, int32_t bytes, int32_t mask) {
  thread->launch->step(*thread, place);
  if (!mask || !beginAtomic(*thread, place, address, bytes))
    return void(std::memset(thread->operands, 0, bytes));
  auto *memory = reinterpret_cast<unsigned char *>(address);
  unsigned char old[8];
  std::memcpy(old, memory, bytes);
  if (std::memcmp(old, thread->operands, bytes) == 0)
    std::memcpy(memory, thread->operands + 8, bytes);
  std::memcpy(thread->operands, old, bytes);
}

int32_t mapShared(Thread *, uint32_t, uint32_t address, uint32_t rank) {
  // Harmless in itself: a block that does not exist, or an address no block has, is found out where it is used.
  return static_cast<int32_t>(std::min(rank, 255u) << 24 | std::min(address, (1u << 24) - 1));
}

} // namespace tenon::sim
