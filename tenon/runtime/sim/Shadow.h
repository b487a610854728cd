// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/sim/Clock.h"

#include <memory>
#include <unordered_map>
#include <vector>

/// Who touched which byte last. Accesses are aligned and of 1, 2, 4, 8 or 16 bytes, so a page of memory is watched in
/// cells of the smallest access it has seen: exact for every byte, and one cell for most accesses.
namespace tenon::sim {

/// An earlier access that nothing orders before the one at hand.
struct Conflict {
  bool found = false;
  bool wrote = false; ///< else it read
  bool unfenced = false; ///< it is ordered, but for the proxy fence that an asynchronous access needs
  int64_t cluster = 0;
  uint32_t thread = 0; ///< in its cluster
  uint32_t place = 0;
};

/// Sets of reads, as chains that share their tails: the bytes that the same threads read have the same set.
class ReadSets {
public:
  struct Node {
    uint32_t parent, count, place;
    uint16_t thread;
  };
  static constexpr uint32_t empty = 0;

  /// The set with one more read in it; reads that are ordered before it are dropped when all are.
  uint32_t add(uint32_t set, const ThreadClock &clock, uint32_t place);
  /// A read in the set that is not ordered before this thread, or null.
  const Node *unordered(uint32_t set, const ThreadClock &clock) const;
  size_t size() const { return nodes_.size(); }
  void clear();
  /// Keeps only the chains of the sets that are visited: `forEach(f)` calls f(uint32_t &) for each of them.
  template <class ForEach> void compact(ForEach forEach);

private:
  struct Memo {
    uint32_t set = 0, count = 0, thread = 0, result = 0; ///< result 0: free
  };
  std::vector<Node> nodes_{1};
  std::vector<Memo> memo_ = std::vector<Memo>(memoSize);
  static constexpr size_t memoSize = 4096;
};

/// One block's shared memory.
class SharedShadow {
public:
  /// Writers from number `threads` on are asynchronous units.
  SharedShadow(int64_t bytes, uint32_t threads) : pages_((bytes + pageBytes - 1) / pageBytes), threads_(threads) {}

  Conflict read(uint32_t address, uint32_t bytes, const ThreadClock &clock, uint32_t place);
  Conflict write(uint32_t address, uint32_t bytes, const ThreadClock &clock, uint32_t place);
  /// What a write would conflict with; changes nothing.
  Conflict probeWrite(uint32_t address, uint32_t bytes, const ThreadClock &clock);
  /// What an access of an asynchronous unit that starts now would conflict with; changes nothing.
  Conflict probeAsync(uint32_t address, uint32_t bytes, const ThreadClock &clock, bool writes);
  /// A read that was judged before.
  void setRead(uint32_t address, uint32_t bytes, const ThreadClock &clock, uint32_t place);
  /// A write that was judged before, by the thread of that number at that count.
  void setWrite(uint32_t address, uint32_t bytes, uint32_t thread, uint32_t count, uint32_t place);
  /// Everything so far is ordered before everything to come.
  void forget();

private:
  static constexpr uint32_t pageBytes = 256;
  struct Cell {
    uint32_t count = 0, place = 0; ///< of the last write; count 0: none
    uint16_t writer = 0;
    uint32_t reads = ReadSets::empty;
  };
  struct Page {
    uint64_t generation = 0;
    unsigned shift = 4; ///< a cell is 1 << shift bytes
    std::vector<Cell> cells;
  };
  template <class Visit> void visit(uint32_t address, uint32_t bytes, Visit visit);
  Conflict judgeWrite(const Cell &cell, const ThreadClock &clock) const;
  void compactReads();

  std::vector<Page> pages_;
  uint32_t threads_;
  ReadSets reads_;
  uint64_t generation_ = 1;
};

/// Global memory: who wrote, of any block of the launch.
class GlobalShadow {
public:
  Conflict read(int64_t address, uint32_t bytes, const ThreadClock &clock, int64_t cluster);
  /// The earlier write, if any, is also returned where both are atomic or both write the same: for the caller to judge.
  struct Earlier {
    Conflict conflict;
    bool atomic = false;
  };
  Earlier write(int64_t address, uint32_t bytes, const ThreadClock &clock, int64_t cluster, uint32_t place,
                bool atomic);

private:
  static constexpr int64_t pageBytes = 4096;
  struct Cell {
    uint32_t count = 0, place = 0, cluster = 0;
    uint16_t writer = 0;
    bool atomic = false;
  };
  struct Page {
    unsigned shift = 4;
    std::vector<Cell> cells;
  };
  template <class Visit> void visit(Page &page, int64_t address, uint32_t bytes, Visit visit);

  std::unordered_map<int64_t, Page> pages_;
};

} // namespace tenon::sim
