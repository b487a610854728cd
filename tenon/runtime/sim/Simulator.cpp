// SPDX-License-Identifier: Apache-2.0
//
// The scheduler: which thread runs next, and what is to be said when none can.
#include "tenon/runtime/sim/Simulator.h"

#include "tenon/base/Error.h"
#include "tenon/runtime/sim/State.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tenon::sim {
namespace {

constexpr int registersOfMultiprocessor = 64 << 10;

} // namespace

SimProgram simProgram(void *thread, const void *places, const void *shape) {
  SimProgram program;
  std::memcpy(&program.thread, &thread, sizeof thread);
  const auto *numbers = static_cast<const int64_t *>(shape);
  program.threads = static_cast<int>(numbers[0]);
  program.cluster = static_cast<int>(numbers[1]);
  program.sharedBytes = numbers[2];
  program.asynchronous = numbers[3] != 0;
  program.blocks = static_cast<int>(numbers[4]);
  for (const char *text = static_cast<const char *>(places); *text; text += std::strlen(text) + 1)
    program.places.emplace_back(text);
  return program;
}

const char *nameOf(SimFinding::Kind kind) {
  switch (kind) {
  case SimFinding::Kind::race: return "race";
  case SimFinding::Kind::outOfBounds: return "out of bounds";
  case SimFinding::Kind::misaligned: return "misaligned access";
  case SimFinding::Kind::uninitialised: return "uninitialised read";
  case SimFinding::Kind::divergence: return "divergence";
  case SimFinding::Kind::deadlock: return "deadlock";
  case SimFinding::Kind::misuse: return "misuse";
  }
  return "";
}

std::string SimReport::text() const {
  std::string text;
  for (const SimFinding &finding : findings) {
    text += finding.text;
    if (finding.count > 1)
      text += " (and " + std::to_string(finding.count - 1) + " times more at these lines)";
    text += "\n";
  }
  if (omitted)
    text += "and " + std::to_string(omitted) + " findings more\n";
  return text;
}

SimReport simulate(const SimLaunch &launch) {
  const SimProgram &program = launch.program;
  auto refuse = [](const std::string &reason) { throw Error("cannot simulate this launch: " + reason); };
  if (program.threads < 32 || program.threads > 1024 || program.threads % 32)
    refuse("a block has 32 to 1024 threads in whole warps, not " + std::to_string(program.threads));
  if (program.cluster < 1 || program.cluster > 16 || launch.blocks < 0 || launch.blocks % program.cluster)
    refuse(std::to_string(launch.blocks) + " blocks are not whole clusters of " + std::to_string(program.cluster));
  if (program.sharedBytes < 0 || program.sharedBytes >= 1 << 24)
    refuse(std::to_string(program.sharedBytes) + " bytes of shared memory");
  return Launch(launch).run();
}

std::string Thread::name() const {
  return "thread " + std::to_string(threadId) + " of block " + std::to_string(blockId);
}

Launch::Launch(const SimLaunch &launch)
    : launch_(launch), ranges_(launch.memory), randomState_(launch.options.seed) {
  std::sort(ranges_.begin(), ranges_.end(), [](auto &a, auto &b) { return a.address < b.address; });
}

uint64_t Launch::random() { // splitmix64
  uint64_t z = randomState_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

//===--- Scheduling -----------------------------------------------------------------------------------------------===//

void Launch::runThread(void *argument) {
  auto &thread = *static_cast<Thread *>(argument);
  Launch &launch = *thread.launch;
  launch.launch_.program.thread(&thread, launch.launch_.words.data());
  launch.threadExits(thread);
}

bool Launch::admitCluster() {
  const SimProgram &program = launch_.program;
  if (nextCluster_ * program.cluster >= launch_.blocks)
    return false;
  auto cluster = std::make_unique<Cluster>();
  cluster->id = nextCluster_++;
  int all = program.threads * program.cluster, warpgroups = program.threads / 128;
  // Each block has a unit for each warpgroup and for each mbarrier: see Clock.h.
  uint32_t units = program.asynchronous ? warpgroups + Block::mbarrierUnits : 0;
  cluster->ticks = all + units * program.cluster;
  auto nothing = std::make_shared<const Ticks>(cluster->ticks);
  cluster->live = cluster->notArrived = all;
  for (int rank = 0; rank < program.cluster; ++rank) {
    auto block = std::make_unique<Block>(program.sharedBytes, all);
    block->cluster = cluster.get();
    block->rank = rank;
    block->id = cluster->id * program.cluster + rank;
    block->live = program.threads;
    block->warps.resize(program.threads / 32);
    for (int number = 0; number < program.threads; ++number) {
      auto thread = std::make_unique<Thread>();
      std::memset(thread->operands, 0, sizeof thread->operands);
      thread->threadId = number;
      thread->blockId = static_cast<int32_t>(block->id);
      thread->clusterRank = rank;
      thread->gridSize = static_cast<int32_t>(launch_.blocks);
      thread->launch = this;
      thread->cluster = cluster.get();
      thread->block = block.get();
      thread->warp = &block->warps[number / 32];
      thread->lane = number % 32;
      thread->warp->lanes[thread->lane] = thread.get();
      thread->clock.self = rank * program.threads + number;
      thread->clock.known.ticks = nothing;
      thread->stack = stacks_.take();
      thread->fiber.start(thread->stack, &runThread, thread.get());
      ready_.push_back(thread.get());
      block->threads.push_back(std::move(thread));
    }
    block->firstMbarrierUnit = all + units * rank + warpgroups;
    block->warpgroups.resize(warpgroups);
    for (int group = 0; group < warpgroups; ++group) {
      block->warpgroups[group].unit = all + units * rank + group;
      block->warpgroups[group].registers =
          std::min(256, registersOfMultiprocessor / program.blocks / program.threads / 8 * 8);
      for (int member = 0; member < 128; ++member)
        block->warpgroups[group].threads[member] = block->threads[128 * group + member].get();
    }
    cluster->blocks.push_back(std::move(block));
  }
  clusters_[cluster->id] = std::move(cluster);
  return true;
}

void Launch::retire(Cluster &cluster) {
  for (auto &block : cluster.blocks)
    for (auto &thread : block->threads)
      stacks_.giveBack(thread->stack);
  clusters_.erase(cluster.id);
}

SimReport Launch::run() {
  size_t spins = 0; // threads in a row that gave up their turn
  while (!stopped_) {
    if (ready_.empty()) {
      if (completeSomeArrival())
        continue;
      if (!clusters_.empty()) {
        reportDeadlock();
        break;
      }
      if (!admitCluster())
        break;
      continue;
    }
    if (spins > ready_.size()) { // they may be waiting for a block that has not started
      admitCluster();
      spins = 0;
    }
    if (seeded())
      std::swap(ready_.front(), ready_[random() % ready_.size()]);
    Thread *thread = ready_.front();
    ready_.pop_front();
    spun_ = false;
    thread->fiber.resume();
    spins = spun_ ? spins + 1 : 0;
    if (thread->fiber.done() && thread->cluster->live == 0)
      retire(*thread->cluster);
  }
  report_.completed = !stopped_;
  return std::move(report_);
}

void Launch::wait(Thread &thread, const char *what, uint32_t place) {
  thread.waitsAt = what;
  thread.waitsPlace = place;
  thread.slice = 0;
  thread.fiber.suspend();
}

void Launch::wake(Thread &thread) {
  thread.waitsAt = nullptr;
  ready_.push_back(&thread);
}

void Launch::yieldThread(Thread &thread) {
  thread.slice = 0;
  spun_ = true;
  ready_.push_back(&thread);
  thread.fiber.suspend();
}

void Launch::stop(Thread &thread) {
  stopped_ = true;
  thread.fiber.suspend();
  __builtin_unreachable(); // the scheduler resumes nobody after this
}

void Launch::endless(Thread &thread, uint32_t place) {
  find(Kind::deadlock, place, place, [&] {
    return "deadlock: " + thread.name() + " has not ended after " + std::to_string(launch_.options.maxOperations) +
           " instructions, and is" + at(place);
  });
  stop(thread);
}

void Launch::threadExits(Thread &thread) {
  if (thread.warp->arrived) {
    Thread *other = *std::find_if(std::begin(thread.warp->lanes), std::end(thread.warp->lanes),
                                  [](Thread *lane) { return lane->waitsAt; });
    find(Kind::divergence, other->waitsPlace, other->waitsPlace, [&] {
      return "divergence: " + thread.name() + " has exited while " + other->name() + " is at " + other->waitsAt +
             at(other->waitsPlace) + ", which needs all lanes of the warp";
    });
    stop(thread);
  }
  completeCopies(thread, thread.nextCopy, thread.clock.own);
  thread.exited = true;
  ++thread.warp->exited;
  --thread.block->live;
  --thread.cluster->live;
  afterExit(thread);
}

void Launch::hurrySomeCopy(Thread &thread) {
  if (auto &transfers = thread.cluster->transfers; !transfers.empty() && random() % 64 == 0)
    completeTransfer(*this, *thread.cluster, random() % transfers.size());
  if (thread.copies.empty())
    return;
  if (random() % 8 == 0)
    moveCopy(thread, thread.copies[random() % thread.copies.size()]);
  if (!thread.arrivals.empty() && random() % 8 == 0)
    completeCopies(thread, thread.arrivals.front().sequence, thread.arrivals.front().count);
}

bool Launch::completeSomeArrival() {
  for (auto &[id, cluster] : clusters_)
    if (auto &transfers = cluster->transfers; !transfers.empty()) {
      completeTransfer(*this, *cluster, seeded() ? random() % transfers.size() : 0);
      return true;
    }
  for (auto &[id, cluster] : clusters_)
    for (auto &block : cluster->blocks)
      for (auto &thread : block->threads)
        if (!thread->arrivals.empty()) {
          const DeferredArrival &arrival = thread->arrivals.front();
          completeCopies(*thread, arrival.sequence, arrival.count);
          return true;
        }
  return false;
}

//===--- Findings -------------------------------------------------------------------------------------------------===//

std::string Launch::at(uint32_t place) const {
  const auto &places = launch_.program.places;
  return " at " + (place < places.size() ? places[place] : std::string("an unknown line"));
}

std::string Launch::threadName(int64_t cluster, uint32_t thread) const {
  int threads = launch_.program.threads, all = threads * launch_.program.cluster;
  if (thread >= static_cast<uint32_t>(all)) { // a unit: see admitCluster
    uint32_t units = threads / 128 + Block::mbarrierUnits, unit = (thread - all) % units;
    std::string block = " of block " + std::to_string(cluster * launch_.program.cluster + (thread - all) / units);
    if (unit >= static_cast<uint32_t>(threads / 128))
      return "an asynchronous copy" + block;
    return "the matrix unit of threads " + std::to_string(128 * unit) + " to " + std::to_string(128 * unit + 127) +
           block;
  }
  return "thread " + std::to_string(thread % threads) + " of block " +
         std::to_string(cluster * launch_.program.cluster + thread / threads);
}

void Launch::find(Kind kind, uint32_t place, uint32_t otherPlace, const std::function<std::string()> &text) {
  auto key = std::tuple(kind, place, otherPlace);
  if (auto found = known_.find(key); found != known_.end()) {
    ++report_.findings[found->second].count;
  } else if (report_.findings.size() < static_cast<size_t>(launch_.options.maxFindings)) {
    known_[key] = report_.findings.size();
    report_.findings.push_back({kind, text()});
  } else if (omitted_.insert(key).second) {
    ++report_.omitted;
  }
}

void Launch::checkAwaited(Thread &thread, uint32_t place, const char *what) {
  if (thread.startedEarly && checks()) [[unlikely]]
    find(Kind::misuse, place, place, [&] {
      return "misuse: " + thread.name() + " " + what + " global memory" + at(place) +
             ", and has not waited for the kernels before this one";
    });
}

bool Launch::checkGlobal(Thread &thread, uint32_t place, int64_t address, uint32_t bytes, bool writes,
                         const char *what) {
  checkAwaited(thread, place, what);
  auto fits = [&](const MemoryRange &range) {
    return address >= range.address && address - range.address <= range.bytes - static_cast<int64_t>(bytes);
  };
  if (lastRange_ >= ranges_.size() || !fits(ranges_[lastRange_])) {
    auto above = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                  [](int64_t value, const MemoryRange &range) { return value < range.address; });
    size_t near = above == ranges_.begin() ? 0 : above - ranges_.begin() - 1;
    if (near >= ranges_.size() || !fits(ranges_[near])) {
      find(Kind::outOfBounds, place, place, [&] {
        char hex[32];
        std::snprintf(hex, sizeof hex, "0x%llx", static_cast<unsigned long long>(address));
        std::string text = "out of bounds: " + thread.name() + " " + what + " " + std::to_string(bytes) +
                           " bytes of global memory at address " + hex + at(place);
        if (ranges_.empty() || std::abs(address - ranges_[near].address) > ranges_[near].bytes + (1 << 24))
          return text + ", which is far from all memory of the launch";
        return text + ", which is byte " + std::to_string(address - ranges_[near].address) + " of " +
               ranges_[near].name + " (" + std::to_string(ranges_[near].bytes) + " bytes long)";
      });
      return false;
    }
    lastRange_ = near;
  }
  if (address % bytes) {
    find(Kind::misaligned, place, place, [&] {
      return "misaligned access: " + thread.name() + " " + what + " " + std::to_string(bytes) +
             " bytes of global memory" + at(place) + ", from byte " +
             std::to_string(address - ranges_[lastRange_].address) + " of " + ranges_[lastRange_].name +
             ": the address is no multiple of " + std::to_string(bytes);
    });
    return false;
  }
  if (writes && !ranges_[lastRange_].writable) {
    find(Kind::outOfBounds, place, place, [&] {
      return "out of bounds: " + thread.name() + " " + what + " " + std::to_string(bytes) + " bytes of " +
             ranges_[lastRange_].name + at(place) + ", which is only to be read";
    });
    return false;
  }
  return true;
}

namespace {

/// "0 to 31, 40"
std::string intervals(const std::vector<int> &numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1)
      ++end;
    text += (i ? ", " : "") + std::to_string(numbers[i]);
    if (end > i)
      text += (end == i + 1 ? ", " : " to ") + std::to_string(numbers[end]);
    i = end + 1;
  }
  return text;
}

} // namespace

void Launch::reportDeadlock() {
  stopped_ = true;
  bool divergent = false;
  std::string who;
  uint32_t first = ~0u, second = ~0u;
  for (auto &[id, cluster] : clusters_)
    for (auto &block : cluster->blocks) {
      std::map<std::pair<uint32_t, std::string>, std::vector<int>> groups; // by place and what they wait at
      std::vector<int> exited;
      for (auto &thread : block->threads)
        if (thread->exited)
          exited.push_back(thread->threadId);
        else
          groups[{thread->waitsPlace, thread->waitsAt ? thread->waitsAt : "nothing"}].push_back(thread->threadId);
      for (Warp &warp : block->warps) {
        bool same = true;
        for (Thread *lane : warp.lanes)
          same &= lane->exited == warp.lanes[0]->exited && lane->waitsAt == warp.lanes[0]->waitsAt &&
                  (lane->exited || lane->waitsPlace == warp.lanes[0]->waitsPlace);
        divergent |= !same && warp.arrived;
      }
      for (auto &[where, threads] : groups) {
        (first == ~0u ? first : second) = where.first;
        who += (who.empty() ? "" : "; ") + ("threads " + intervals(threads)) + " of block " +
               std::to_string(block->id) + " wait at " + where.second + at(where.first);
      }
      for (auto &[address, mbarrier] : block->mbarriers)
        if (mbarrier.bytes && !mbarrier.waiting.empty())
          who += "; the mbarrier at byte " + std::to_string(address) + " of block " + std::to_string(block->id) +
                 (mbarrier.bytes > 0 ? " expects " + std::to_string(mbarrier.bytes) + " bytes more"
                                     : " has got " + std::to_string(-mbarrier.bytes) + " bytes too many");
      if (!exited.empty())
        who += "; threads " + intervals(exited) + " of block " + std::to_string(block->id) + " have exited";
    }
  Kind kind = divergent ? Kind::divergence : Kind::deadlock;
  find(kind, first, second, [&] { return std::string(nameOf(kind)) + ": no thread can go on: " + who; });
}

} // namespace tenon::sim
