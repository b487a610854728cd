// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/sim/Clock.h"

#include <algorithm>

namespace tenon::sim {
namespace {

bool contains(const Ticks &a, const Ticks &b) {
  bool all = true;
  for (size_t i = 0; i < a.size(); ++i)
    all &= a[i] >= b[i];
  return all;
}

void maximise(Ticks &a, const Ticks &b) {
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = std::max(a[i], b[i]);
}

} // namespace

std::shared_ptr<const Ticks> join(const std::shared_ptr<const Ticks> &a, const std::shared_ptr<const Ticks> &b) {
  if (a == b || !b)
    return a;
  if (!a || contains(*b, *a))
    return b;
  if (contains(*a, *b))
    return a;
  auto sum = std::make_shared<Ticks>(*a);
  maximise(*sum, *b);
  return sum;
}

std::shared_ptr<const Foreign> join(const std::shared_ptr<const Foreign> &a, const std::shared_ptr<const Foreign> &b) {
  if (a == b || !b)
    return a;
  if (!a)
    return b;
  auto sum = std::make_shared<Foreign>(*a);
  for (const auto &[cluster, ticks] : *b) {
    auto &mine = (*sum)[cluster];
    mine = join(mine, ticks);
  }
  return sum;
}

bool ThreadClock::knowsForeign(int64_t cluster, uint32_t thread, uint32_t count) const {
  if (!known.foreign)
    return false;
  auto found = known.foreign->find(cluster);
  return found != known.foreign->end() && (*found->second)[thread] >= count;
}

Knowledge ThreadClock::snapshot() const {
  auto ticks = std::make_shared<Ticks>(*known.ticks);
  (*ticks)[self] = own;
  return {std::move(ticks), known.foreign, known.fenced};
}

void ThreadClock::acquire(const Knowledge &knowledge) {
  known.ticks = join(known.ticks, knowledge.ticks);
  known.foreign = join(known.foreign, knowledge.foreign);
  known.fenced = join(known.fenced, knowledge.fenced);
}

void ThreadClock::fenceProxies() {
  known.fenced = snapshot().ticks;
  ++own;
}

Ticks &Gathering::own() {
  // The sum itself and this object hold one reference each; more mean that somebody was given it.
  if (!mine_ || mine_.use_count() > 2) {
    mine_ = std::make_shared<Ticks>(*sum_.ticks);
    sum_.ticks = mine_;
  }
  return *mine_;
}

void Gathering::add(const Knowledge &knowledge) {
  if (!sum_.ticks)
    sum_.ticks = knowledge.ticks;
  else if (knowledge.ticks != last_ && knowledge.ticks != sum_.ticks)
    maximise(own(), *knowledge.ticks);
  last_ = knowledge.ticks;
  sum_.foreign = join(sum_.foreign, knowledge.foreign);
  sum_.fenced = join(sum_.fenced, knowledge.fenced);
}

void Gathering::add(const ThreadClock &clock) {
  add(clock.known);
  uint32_t &count = own()[clock.self];
  count = std::max(count, clock.own);
}

} // namespace tenon::sim
