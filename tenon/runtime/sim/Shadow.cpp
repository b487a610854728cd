// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/sim/Shadow.h"

#include <bit>

namespace tenon::sim {
namespace {

/// Cells of `shift` become cells of `finer`.
template <class Cell> void refine(std::vector<Cell> &cells, unsigned &shift, unsigned finer) {
  std::vector<Cell> result(cells.size() << (shift - finer));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = cells[i >> (shift - finer)];
  cells = std::move(result);
  shift = finer;
}

} // namespace

//===--- Sets of reads --------------------------------------------------------------------------------------------===//

uint32_t ReadSets::add(uint32_t set, const ThreadClock &clock, uint32_t place) {
  size_t hash = (set * 0x9e3779b1u ^ clock.self * 0x85ebca6bu ^ clock.own * 0xc2b2ae35u) % memoSize;
  Memo &memo = memo_[hash];
  if (memo.result && memo.set == set && memo.thread == clock.self && memo.count == clock.own)
    return memo.result;
  bool ordered = true;
  uint32_t result = 0;
  for (uint32_t at = set; at != empty; at = nodes_[at].parent) {
    const Node &node = nodes_[at];
    if (node.thread == clock.self && node.count == clock.own) {
      result = set;
      break;
    }
    ordered &= clock.knows(node.thread, node.count);
  }
  if (!result) {
    result = nodes_.size();
    nodes_.push_back({ordered ? empty : set, clock.own, place, static_cast<uint16_t>(clock.self)});
  }
  memo = {set, clock.own, clock.self, result};
  return result;
}

const ReadSets::Node *ReadSets::unordered(uint32_t set, const ThreadClock &clock) const {
  for (uint32_t at = set; at != empty; at = nodes_[at].parent)
    if (!clock.knows(nodes_[at].thread, nodes_[at].count))
      return &nodes_[at];
  return nullptr;
}

void ReadSets::clear() {
  if (nodes_.size() == 1)
    return;
  nodes_.resize(1);
  memo_.assign(memoSize, {});
}

template <class ForEach> void ReadSets::compact(ForEach forEach) {
  std::vector<uint32_t> renamed(nodes_.size(), 0);
  forEach([&](uint32_t &set) { renamed[set] = 1; });
  for (size_t i = nodes_.size() - 1; i > 0; --i) // a parent stands before its children
    if (renamed[i])
      renamed[nodes_[i].parent] = 1;
  std::vector<Node> kept(1);
  renamed[empty] = empty;
  for (size_t i = 1; i < nodes_.size(); ++i)
    if (renamed[i]) {
      renamed[i] = kept.size();
      Node node = nodes_[i];
      node.parent = renamed[node.parent];
      kept.push_back(node);
    }
  forEach([&](uint32_t &set) { set = renamed[set]; });
  nodes_ = std::move(kept);
  memo_.assign(memoSize, {});
}

//===--- Shared memory --------------------------------------------------------------------------------------------===//

template <class Visit> void SharedShadow::visit(uint32_t address, uint32_t bytes, Visit visit) {
  Page &page = pages_[address / pageBytes];
  if (page.generation != generation_) {
    page.generation = generation_;
    page.cells.assign(pageBytes >> page.shift, Cell());
  }
  unsigned shift = std::countr_zero(bytes);
  if (shift < page.shift)
    refine(page.cells, page.shift, shift);
  uint32_t first = address % pageBytes >> page.shift, last = (address % pageBytes + bytes - 1) >> page.shift;
  for (uint32_t i = first; i <= last; ++i)
    visit(page.cells[i]);
}

Conflict SharedShadow::judgeWrite(const Cell &cell, const ThreadClock &clock) const {
  if (cell.count && !clock.knows(cell.writer, cell.count))
    return {true, true, false, 0, cell.writer, cell.place};
  if (cell.reads != ReadSets::empty)
    if (const ReadSets::Node *read = reads_.unordered(cell.reads, clock))
      return {true, false, false, 0, read->thread, read->place};
  return {};
}

Conflict SharedShadow::probeAsync(uint32_t address, uint32_t bytes, const ThreadClock &clock, bool writes) {
  Conflict conflict;
  visit(address, bytes, [&](Cell &cell) {
    if (conflict.found)
      return;
    if (writes)
      conflict = judgeWrite(cell, clock);
    else if (cell.count && !clock.knows(cell.writer, cell.count))
      conflict = {true, true, false, 0, cell.writer, cell.place};
    if (!conflict.found && cell.count && cell.writer < threads_ && !clock.knowsFenced(cell.writer, cell.count))
      conflict = {true, true, true, 0, cell.writer, cell.place};
  });
  return conflict;
}

void SharedShadow::setRead(uint32_t address, uint32_t bytes, const ThreadClock &clock, uint32_t place) {
  visit(address, bytes, [&](Cell &cell) { cell.reads = reads_.add(cell.reads, clock, place); });
  if (reads_.size() > (1 << 20))
    compactReads();
}

Conflict SharedShadow::read(uint32_t address, uint32_t bytes, const ThreadClock &clock, uint32_t place) {
  Conflict conflict;
  visit(address, bytes, [&](Cell &cell) {
    if (cell.count && !clock.knows(cell.writer, cell.count))
      conflict = {true, true, false, 0, cell.writer, cell.place};
    cell.reads = reads_.add(cell.reads, clock, place);
  });
  if (reads_.size() > (1 << 20))
    compactReads();
  return conflict;
}

Conflict SharedShadow::probeWrite(uint32_t address, uint32_t bytes, const ThreadClock &clock) {
  Conflict conflict;
  visit(address, bytes, [&](Cell &cell) {
    if (!conflict.found)
      conflict = judgeWrite(cell, clock);
  });
  return conflict;
}

Conflict SharedShadow::write(uint32_t address, uint32_t bytes, const ThreadClock &clock, uint32_t place) {
  Conflict conflict = probeWrite(address, bytes, clock);
  setWrite(address, bytes, clock.self, clock.own, place);
  return conflict;
}

void SharedShadow::setWrite(uint32_t address, uint32_t bytes, uint32_t thread, uint32_t count, uint32_t place) {
  visit(address, bytes, [&](Cell &cell) { cell = {count, place, static_cast<uint16_t>(thread), ReadSets::empty}; });
}

void SharedShadow::forget() {
  ++generation_;
  reads_.clear();
}

void SharedShadow::compactReads() {
  reads_.compact([&](auto &&visit) {
    for (Page &page : pages_)
      if (page.generation == generation_)
        for (Cell &cell : page.cells)
          visit(cell.reads);
  });
}

//===--- Global memory --------------------------------------------------------------------------------------------===//

template <class Visit> void GlobalShadow::visit(Page &page, int64_t address, uint32_t bytes, Visit visit) {
  unsigned shift = std::countr_zero(bytes);
  if (shift < page.shift)
    refine(page.cells, page.shift, shift);
  int64_t offset = address & (pageBytes - 1);
  for (int64_t i = offset >> page.shift; i <= (offset + bytes - 1) >> page.shift; ++i)
    visit(page.cells[i]);
}

namespace {

template <class Cell> bool isOrdered(const Cell &cell, const ThreadClock &clock, int64_t cluster) {
  return cell.count == 0 || (cell.cluster == cluster ? clock.knows(cell.writer, cell.count)
                                                     : clock.knowsForeign(cell.cluster, cell.writer, cell.count));
}

} // namespace

Conflict GlobalShadow::read(int64_t address, uint32_t bytes, const ThreadClock &clock, int64_t cluster) {
  auto found = pages_.find(address / pageBytes);
  if (found == pages_.end())
    return {};
  Conflict conflict;
  visit(found->second, address, bytes, [&](Cell &cell) {
    if (!isOrdered(cell, clock, cluster))
      conflict = {true, true, false, cell.cluster, cell.writer, cell.place};
  });
  return conflict;
}

GlobalShadow::Earlier GlobalShadow::write(int64_t address, uint32_t bytes, const ThreadClock &clock, int64_t cluster,
                                          uint32_t place, bool atomic) {
  Page &page = pages_[address / pageBytes];
  if (page.cells.empty())
    page.cells.resize(pageBytes >> page.shift);
  Earlier earlier;
  visit(page, address, bytes, [&](Cell &cell) {
    if (!isOrdered(cell, clock, cluster))
      earlier = {{true, true, false, cell.cluster, cell.writer, cell.place}, cell.atomic};
    cell = {clock.own, place, static_cast<uint32_t>(cluster), static_cast<uint16_t>(clock.self), atomic};
  });
  return earlier;
}

} // namespace tenon::sim
