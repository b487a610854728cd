// SPDX-License-Identifier: Apache-2.0
//
// cp.async. From its start to the wait that covers it, a copy may write its bytes at any moment: until then they belong
// to nobody else. After the wait they count as written by the thread that waited, at the wait.
#include "tenon/runtime/sim/Calls.h"
#include "tenon/runtime/sim/State.h"

#include <cstring>

namespace tenon::sim {

using Kind = SimFinding::Kind;

void moveCopy(Thread &thread, Copy &copy) {
  if (copy.moved)
    return;
  copy.moved = true;
  uint8_t *to = thread.block->memory.data() + copy.shared;
  if (copy.sourceBytes)
    std::memcpy(to, reinterpret_cast<const void *>(copy.global), copy.sourceBytes);
  std::memset(to + copy.sourceBytes, 0, copy.bytes - copy.sourceBytes);
}

void completeCopies(Thread &thread, int64_t sequence, uint32_t count) {
  Block &block = *thread.block;
  for (; !thread.copies.empty() && thread.copies.front().sequence < sequence; thread.copies.pop_front()) {
    Copy &copy = thread.copies.front();
    moveCopy(thread, copy);
    if (!thread.launch->checks())
      continue;
    std::memset(block.written.data() + copy.shared, 1, copy.bytes);
    block.shadow.setWrite(copy.shared, copy.bytes, thread.clock.self, count, copy.place);
    for (uint32_t word = copy.shared / 4; word < (copy.shared + copy.bytes) / 4; ++word)
      block.pending[word] = {};
    --block.pendingCopies;
  }
  int64_t incomplete = thread.copies.empty() ? thread.nextCopy : thread.copies.front().sequence;
  while (!thread.arrivals.empty() && thread.arrivals.front().sequence <= incomplete) {
    DeferredArrival arrival = std::move(thread.arrivals.front());
    thread.arrivals.pop_front();
    if (auto found = block.mbarriers.find(arrival.mbarrier); found != block.mbarriers.end()) {
      found->second.collected.add(arrival.released);
      arrive(block, found->second);
    }
  }
}

void cpAsync(Thread *thread, uint32_t place, int32_t bytes, uint32_t shared, int64_t global, int32_t sourceBytes,
             int32_t begin, int32_t end) {
  Launch &launch = *thread->launch;
  launch.step(*thread, place);
  if (sourceBytes < 0 || sourceBytes > bytes) {
    launch.find(Kind::misuse, place, place, [&] {
      return "misuse: " + thread->name() + " asks for " + std::to_string(sourceBytes) + " of the " +
             std::to_string(bytes) + " bytes of an asynchronous copy" + launch.at(place);
    });
    return;
  }
  // What is not read need not be there; the addresses are multiples of the whole all the same.
  if (global % bytes) {
    launch.find(Kind::misaligned, place, place, [&] {
      return "misaligned access: " + thread->name() + " starts a copy of " + std::to_string(bytes) +
             " bytes of global memory" + launch.at(place) + ", and the address is no multiple of " +
             std::to_string(bytes);
    });
    return;
  }
  int32_t step = sourceBytes == bytes ? bytes : 1; // any number of bytes may be asked for
  for (int32_t at = 0; at < sourceBytes; at += step)
    if (!readGlobal(*thread, place, global + at, step, "starts a copy from"))
      return;
  if (!touchShared(*thread, place, *thread->block, shared, bytes, Touch::asyncWrite, {begin, end}))
    return;
  if (launch.checks()) {
    for (uint32_t word = shared / 4; word < (shared + bytes) / 4; ++word)
      thread->block->pending[word] = {thread->clock.self + 1, place};
    ++thread->block->pendingCopies;
  }
  thread->copies.push_back({thread->nextCopy++, shared, global, static_cast<uint32_t>(bytes),
                            static_cast<uint32_t>(sourceBytes), place});
}

void cpAsyncCommit(Thread *thread, uint32_t place) {
  thread->launch->step(*thread, place);
  thread->groups.push_back(thread->nextCopy);
}

void cpAsyncWait(Thread *thread, uint32_t place, int32_t pending) {
  thread->launch->step(*thread, place);
  int64_t sequence = 0;
  for (; thread->groups.size() > static_cast<size_t>(pending); thread->groups.pop_front())
    sequence = thread->groups.front();
  completeCopies(*thread, sequence, thread->clock.own);
}

} // namespace tenon::sim
