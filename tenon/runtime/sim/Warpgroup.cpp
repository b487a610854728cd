// SPDX-License-Identifier: Apache-2.0
//
// Instructions that the four warps of a warpgroup execute together. The last thread to arrive does it for all.
//
// wgmma: from its start to the wait that covers it, the matrix unit may read its operands in shared memory and write
// its accumulators at any moment. It does so at the wait. Until then what the program has in place of each accumulator
// is a number that names it: a wgmma recognises by them which accumulators it continues, the wait exchanges them for
// values, and any other use is found out. An operand in registers is read from the start to the wait as well; whoever
// writes them in between is found out, although what is multiplied is what they held at the start.
#include "tenon/runtime/sim/Calls.h"
#include "tenon/runtime/sim/Mma.h"
#include "tenon/runtime/sim/State.h"

#include <algorithm>
#include <cstring>

namespace tenon::sim {

using Kind = SimFinding::Kind;

namespace {

/// The thread's warpgroup, if all of it is there and at the same instruction.
template <class Perform>
void together(Thread &thread, uint32_t place, uint32_t instruction, const char *what, Perform perform) {
  Launch &launch = *thread.launch;
  launch.step(thread, place);
  Block &block = *thread.block;
  size_t number = thread.threadId / 128;
  if (number >= block.warpgroups.size()) {
    launch.find(Kind::misuse, place, place, [&] {
      return "misuse: " + thread.name() + " is at " + what + launch.at(place) +
             ", which needs four whole warps, from one whose number is a multiple of four";
    });
    launch.stop(thread);
  }
  Warpgroup &group = block.warpgroups[number];
  auto others = group.threads;
  const Thread *const *apart = std::find_if(others, others + 128, [](Thread *other) { return other->exited; });
  if (apart == others + 128 && group.arrived && group.instruction != instruction)
    apart = std::find_if(others, others + 128, [&](Thread *t) { return t != &thread && t->waitsAt; });
  if (apart != others + 128) {
    const Thread &other = **apart;
    uint32_t otherPlace = other.exited ? place : other.waitsPlace;
    launch.find(Kind::divergence, place, otherPlace, [&] {
      return "divergence: " + thread.name() + " is at " + what + launch.at(place) +
             ", which needs all warps of the warpgroup, while " + other.name() +
             (other.exited ? " has exited" : " is at " + std::string(other.waitsAt) + launch.at(otherPlace));
    });
    launch.stop(thread);
  }
  group.instruction = instruction;
  if (++group.arrived < 128)
    return launch.wait(thread, what, place);
  group.arrived = 0;
  perform(group);
  for (Thread *other : group.threads)
    if (other != &thread)
      launch.wake(*other);
}

uint32_t *accumulatorsOf(Thread *thread) { return reinterpret_cast<uint32_t *>(thread->operands); }

//===--- Operands in shared memory --------------------------------------------------------------------------------===//

/// The descriptor of an operand with `rows` rows (of a) or columns (of b) and 32 bytes along k.
struct Operand {
  Operand(uint64_t bits, int rows, bool transposed) : rows(rows), transposed(transposed) {
    address = static_cast<uint32_t>(bits & 0x3fff) << 4;
    leading = static_cast<uint32_t>(bits >> 16 & 0x3fff) << 4;
    stride = static_cast<uint32_t>(bits >> 32 & 0x3fff) << 4;
    baseOffset = bits >> 49 & 7;
    const uint32_t bytes[] = {16, 128, 64, 32};
    width = bytes[bits >> 62];
  }

  uint32_t swizzled(uint32_t place) const { return place ^ (place >> 7 & (width / 16 - 1)) << 4; }

  /// Calls visit(address of 16 bytes, row, byte along k), of the first of their elements. K-major, all are in one row;
  /// MN-major, all are at one k.
  template <class Visit> void forEach(Visit visit) const {
    bool plain = width == 16;
    if (!transposed) {
      for (int row = 0; row < rows; ++row)
        for (int half = 0; half < 2; ++half)
          visit(swizzled(address + row / 8 * stride + row % 8 * width + half * (plain ? leading : 16)), row, 16 * half);
      return;
    }
    int across = width / 16; // units of 8 elements side by side
    for (int unit = 0; unit < rows / 8; ++unit)
      for (int k = 0; k < 16; ++k) {
        uint32_t next = plain ? unit * stride + k / 8 * leading
                              : unit / across * leading + unit % across * 16 + k / 8 * stride;
        visit(swizzled(address + next + k % 8 * width), 8 * unit, 2 * k);
      }
  }

  /// The elements, 32 bytes of each row.
  std::vector<uint8_t> read(const Block &block) const {
    std::vector<uint8_t> result(32 * rows);
    forEach([&](uint32_t from, int row, int byte) {
      if (!transposed)
        std::memcpy(&result[32 * row + byte], &block.memory[from], 16);
      else
        for (int i = 0; i < 8; ++i)
          std::memcpy(&result[32 * (row + i) + byte], &block.memory[from + 2 * i], 2);
    });
    return result;
  }

  uint32_t address, leading, stride, baseOffset, width;
  int rows;
  bool transposed;
};

/// Judges the reading of an operand that starts now. False when it must not be read.
bool beginRead(Thread &thread, uint32_t place, const Operand &operand, Window window, const ThreadClock &clock) {
  Launch &launch = *thread.launch;
  bool swizzles = operand.width > 16;
  if (operand.baseOffset || (swizzles && operand.address % (8 * operand.width) >= operand.width)) {
    launch.find(Kind::misuse, place, place, [&] {
      return "misuse: " + thread.name() + " starts a wgmma" + launch.at(place) + " of an operand at byte " +
             std::to_string(operand.address) + " of shared memory with base offset " +
             std::to_string(operand.baseOffset) + ": a swizzle over " + std::to_string(operand.width) +
             " bytes starts at a multiple of " + std::to_string(8 * operand.width) + " with base offset 0";
    });
    return false;
  }
  bool allowed = true;
  operand.forEach([&](uint32_t address, int, int) {
    allowed = allowed && touchShared(thread, place, *thread.block, address, 16, Touch::unitRead, window, &clock);
  });
  if (allowed && launch.checks())
    operand.forEach([&](uint32_t address, int, int) {
      Block::PendingReads &pending = thread.block->pendingReads[address / 16];
      pending = {pending.count + 1, thread.clock.self, place};
    });
  return allowed;
}

void endRead(Block &block, const Operand &operand, const ThreadClock &unit, uint32_t place) {
  operand.forEach([&](uint32_t address, int, int) {
    --block.pendingReads[address / 16].count;
    block.shadow.setRead(address, 16, unit, place);
  });
}

/// What all threads of the warpgroup know.
Knowledge commonKnowledge(const Warpgroup &group) {
  auto ticks = std::make_shared<Ticks>();
  std::shared_ptr<Ticks> fenced;
  bool allFenced = true;
  const Ticks *last = nullptr, *lastFenced = nullptr;
  auto meet = [](Ticks &sum, const Ticks &other) {
    if (sum.empty())
      sum = other;
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] = std::min(sum[i], other[i]);
  };
  for (Thread *thread : group.threads) {
    const Knowledge &known = thread->clock.known;
    allFenced &= known.fenced != nullptr;
    if (known.ticks.get() != last)
      meet(*ticks, *(last = known.ticks.get()));
    if (known.fenced && known.fenced.get() != lastFenced) {
      if (!fenced)
        fenced = std::make_shared<Ticks>();
      meet(*fenced, *(lastFenced = known.fenced.get()));
    }
  }
  // A thread's own count is not in what it knows: of each, what the others do.
  for (Thread *thread : group.threads) {
    uint32_t self = thread->clock.self, least = thread->clock.own;
    for (Thread *other : group.threads)
      if (other != thread)
        least = std::min(least, (*other->clock.known.ticks)[self]);
    (*ticks)[self] = least;
  }
  return {std::move(ticks), nullptr, allFenced ? std::shared_ptr<const Ticks>(fenced) : nullptr};
}

//===--- Accumulators ---------------------------------------------------------------------------------------------===//

constexpr uint32_t nameBits = 0x7fa00000, nameMask = 0xffe00000, keyCount = 1 << 14;

/// What stands for accumulator `index` of the object `key` in a register: a signalling NaN.
uint32_t standIn(uint32_t key, int index) { return nameBits | key << 7 | static_cast<uint32_t>(index); }

/// The object that a value names, or null.
Accumulators *named(Warpgroup &group, uint32_t value) {
  if ((value & nameMask) != nameBits)
    return nullptr;
  auto found = group.accumulators.find(value >> 7 & (keyCount - 1));
  return found == group.accumulators.end() || (value & 127) >= static_cast<uint32_t>(found->second.n / 2)
             ? nullptr
             : &found->second;
}

/// Which of 64 x n accumulators is number `index` of a thread.
int placeOf(int member, int index, int n) {
  int lane = member % 32, row = member / 32 * 16 + lane / 4 + (index >> 1 & 1) * 8;
  return row * n + index / 4 * 8 + lane % 4 * 2 + (index & 1);
}

void reportUse(Thread &thread, uint32_t place, uint32_t wgmmaPlace, const char *what) {
  thread.launch->find(Kind::race, place, wgmmaPlace, [&] {
    return "race: " + thread.name() + " " + what + thread.launch->at(place) + " of the wgmma" +
           thread.launch->at(wgmmaPlace) + ", and not what a wait for it has given back";
  });
}

/// The object that a wgmma adds to: the one its operands name, or a new one with their values.
uint32_t takeAccumulators(Warpgroup &group, uint32_t place, int n, bool accumulates) {
  uint32_t first = *accumulatorsOf(group.threads[0]);
  if (Accumulators *found = named(group, first); found && found->n == n) {
    uint32_t key = first >> 7 & (keyCount - 1);
    auto continues = [&](Thread *thread) {
      for (int i = 0; i < n / 2; ++i)
        if (accumulatorsOf(thread)[i] != standIn(key, i))
          return false;
      return true;
    };
    if (std::all_of(group.threads, group.threads + 128, continues))
      return key;
  }
  uint32_t key = group.nextAccumulators;
  while (group.accumulators.count(key))
    key = (key + 1) % keyCount;
  group.nextAccumulators = (key + 1) % keyCount;
  group.given.erase(key);
  Accumulators fresh{n, 0, place, std::vector<uint32_t>(64 * n)};
  for (int member = 0; accumulates && member < 128; ++member)
    for (int i = 0; i < n / 2; ++i) {
      uint32_t value = accumulatorsOf(group.threads[member])[i];
      if (Accumulators *flying = named(group, value))
        reportUse(*group.threads[member], place, flying->place, "starts a wgmma with accumulators in another place");
      fresh.values[placeOf(member, i, n)] = value;
    }
  group.accumulators.emplace(key, std::move(fresh));
  return key;
}

void complete(Block &block, Warpgroup &group, const Multiplication &work) {
  if (!work.valid)
    return;
  Operand b(work.descriptorB, work.n, work.transB), a(work.descriptorA, 64, work.transA);
  std::vector<uint8_t> left(64 * 32);
  if (!work.fromRegisters)
    left = a.read(block);
  for (int member = 0; work.fromRegisters && member < 128; ++member)
    for (int i = 0; i < 4; ++i) {
      int row = member / 32 * 16 + member % 32 / 4 + i % 2 * 8, byte = member % 4 * 4 + i / 2 * 16;
      std::memcpy(&left[32 * row + byte], &work.registers[4 * member + i], 4);
    }
  multiplyWarpgroup(work.a, work.b, work.n, left.data(), b.read(block).data(), work.accumulates,
                    group.accumulators.at(work.accumulators).values.data());
  if (!block.threads.front()->launch->checks())
    return;
  ThreadClock unit{group.unit, group.count, work.known};
  if (!work.fromRegisters)
    endRead(block, a, unit, work.place);
  endRead(block, b, unit, work.place);
}

/// From here on all threads know what the unit has done.
void learnOfUnit(Warpgroup &group) {
  std::shared_ptr<const Ticks> before, after;
  for (Thread *thread : group.threads) {
    if (thread->clock.known.ticks != before) {
      before = thread->clock.known.ticks;
      auto ticks = std::make_shared<Ticks>(*before);
      (*ticks)[group.unit] = group.count;
      after = std::move(ticks);
    }
    thread->clock.known.ticks = after;
  }
  ++group.count;
}

} // namespace

//===--- What compiled code calls ---------------------------------------------------------------------------------===//

void wgmmaFence(Thread *thread, uint32_t place, uint32_t instruction) {
  together(*thread, place, instruction, "a wgmma_fence", [](Warpgroup &group) { group.fenced = true; });
}

void wgmma(Thread *thread, uint32_t place, uint32_t instruction, int32_t a, int32_t b, int32_t n, int32_t majors,
           int32_t fromRegisters, int64_t descriptorA, int64_t descriptorB, int32_t scaleD, int32_t beginA,
           int32_t endA, int32_t beginB, int32_t endB) {
  uint64_t operands = static_cast<uint64_t>(descriptorA) * 31 + static_cast<uint64_t>(descriptorB);
  auto same = static_cast<uint32_t>((operands ^ operands >> 31) * 2 + (scaleD != 0));
  thread->arguments[0] = same;
  together(*thread, place, instruction, "a wgmma", [&](Warpgroup &group) {
    Launch &launch = *thread->launch;
    Thread &first = *group.threads[0];
    for (Thread *other : group.threads)
      if (other->arguments[0] != same) {
        launch.find(Kind::misuse, place, place, [&] {
          return "misuse: " + other->name() + " and " + thread->name() + " start a wgmma" + launch.at(place) +
                 " with different descriptors or scale_d";
        });
        launch.stop(*thread);
      }
    if (!group.fenced)
      launch.find(Kind::misuse, place, place, [&] {
        return "misuse: " + first.name() + " starts a wgmma" + launch.at(place) +
               " without a wgmma_fence since its registers may have been written";
      });
    Multiplication work{group.next++,
                        OperandType(a),
                        OperandType(b),
                        n,
                        (majors & 1) != 0,
                        (majors & 2) != 0,
                        scaleD != 0,
                        true,
                        fromRegisters,
                        static_cast<uint64_t>(descriptorA),
                        static_cast<uint64_t>(descriptorB),
                        {},
                        0,
                        place,
                        {}};
    if (launch.checks())
      work.known = commonKnowledge(group);
    ThreadClock clock{group.unit, group.count, work.known};
    if (fromRegisters)
      for (Thread *other : group.threads)
        for (int i = 0; i < 4; ++i)
          work.registers.push_back(reinterpret_cast<uint32_t *>(other->operands + wideOperands)[i]);
    else
      work.valid = beginRead(first, place, Operand(work.descriptorA, 64, work.transA), {beginA, endA}, clock);
    Operand right(work.descriptorB, n, work.transB);
    work.valid = beginRead(first, place, right, {beginB, endB}, clock) && work.valid;
    work.accumulators = takeAccumulators(group, place, n, work.accumulates);
    Accumulators &accumulators = group.accumulators.at(work.accumulators);
    accumulators.sequence = work.sequence;
    accumulators.place = place;
    for (Thread *other : group.threads)
      for (int i = 0; i < n / 2; ++i)
        accumulatorsOf(other)[i] = standIn(work.accumulators, i);
    group.multiplications.push_back(std::move(work));
  });
}

void wgmmaCommit(Thread *thread, uint32_t place, uint32_t instruction) {
  together(*thread, place, instruction, "a wgmma_commit",
           [](Warpgroup &group) { group.groups.push_back(group.next); });
}

void wgmmaWait(Thread *thread, uint32_t place, uint32_t instruction, int32_t pending, int32_t count) {
  together(*thread, place, instruction, "a wgmma_wait", [&](Warpgroup &group) {
    int64_t sequence = 0;
    for (; group.groups.size() > static_cast<size_t>(pending); group.groups.pop_front())
      sequence = group.groups.front();
    bool some = false;
    for (auto &works = group.multiplications; !works.empty() && works.front().sequence < sequence; works.pop_front()) {
      complete(*thread->block, group, works.front());
      some = true;
    }
    if (some && thread->launch->checks())
      learnOfUnit(group);
    int64_t incomplete = group.multiplications.empty() ? group.next : group.multiplications.front().sequence;
    std::map<uint32_t, int> given; // how many of each object
    for (int member = 0; member < 128; ++member)
      for (int i = 0; i < count; ++i) {
        uint32_t &value = accumulatorsOf(group.threads[member])[i];
        Accumulators *accumulators = named(group, value);
        if (!accumulators || accumulators->sequence >= incomplete)
          continue;
        ++given[value >> 7 & (keyCount - 1)];
        value = accumulators->values[placeOf(member, static_cast<int>(value & 127), accumulators->n)];
      }
    for (auto [key, number] : given) {
      const Accumulators &accumulators = group.accumulators.at(key);
      group.fenced = false;
      if (number < 64 * accumulators.n)
        continue;
      group.given[key] = accumulators.place;
      group.accumulators.erase(key);
    }
  });
}

void wgmmaRead(Thread *thread, uint32_t place, int32_t value) {
  size_t number = thread->threadId / 128;
  auto bits = static_cast<uint32_t>(value);
  if (number >= thread->block->warpgroups.size() || (bits & nameMask) != nameBits)
    return;
  Warpgroup &group = thread->block->warpgroups[number];
  if (Accumulators *flying = named(group, bits))
    reportUse(*thread, place, flying->place, "uses an accumulator");
  else if (auto given = group.given.find(bits >> 7 & (keyCount - 1)); given != group.given.end())
    reportUse(*thread, place, given->second, "uses an accumulator");
}

void wgmmaWrite(Thread *thread, uint32_t place, int32_t number) {
  size_t warpgroup = thread->threadId / 128;
  if (warpgroup >= thread->block->warpgroups.size())
    return;
  for (const Multiplication &work : thread->block->warpgroups[warpgroup].multiplications)
    if (work.fromRegisters == number)
      thread->launch->find(Kind::race, place, work.place, [&] {
        return "race: " + thread->name() + " writes registers" + thread->launch->at(place) + " that the wgmma" +
               thread->launch->at(work.place) + " may still read: it has not been waited for";
      });
}

void setMaxRegisters(Thread *thread, uint32_t place, uint32_t instruction, int32_t count, int32_t increase) {
  together(*thread, place, instruction, "a set_max_registers", [&](Warpgroup &group) {
    Launch &launch = *thread->launch;
    Block &block = *thread->block;
    if (count < 24 || count > 256 || count % 8 || (increase ? count < group.registers : count > group.registers))
      launch.find(Kind::misuse, place, place, [&] {
        return "misuse: " + group.threads[0]->name() + (increase ? " wants " : " goes down to ") +
               std::to_string(count) + " registers" + launch.at(place) + " and has " +
               std::to_string(group.registers) + ": a thread has 24, 32, ... 256";
      });
    if (!increase) {
      block.freeRegisters += std::max(0, group.registers - count) * 128;
      group.registers = std::min(group.registers, count);
      for (Warpgroup &other : block.warpgroups)
        if (other.waiting && other.wanted <= block.freeRegisters) {
          block.freeRegisters -= other.wanted;
          launch.wake(*other.waiting);
          other.waiting = nullptr;
        }
      return;
    }
    group.wanted = std::max(0, count - group.registers) * 128;
    group.registers = std::max(group.registers, count);
    if (group.wanted <= block.freeRegisters) {
      block.freeRegisters -= group.wanted;
      return;
    }
    group.waiting = thread;
    launch.wait(*thread, "a set_max_registers, for registers that others give back,", place);
  });
}

} // namespace tenon::sim
