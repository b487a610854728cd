// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

/// The order between threads, as vector clocks.
///
/// Each thread counts its releases (arrivals at barriers, fences). An access is stamped with its thread and that count.
/// A thread knows, of each other thread, the last count whose accesses are ordered before whatever it does from now on:
/// a release hands on what it knows, the matching acquire takes it in. Two accesses are ordered when the later one's
/// thread knows the earlier one's stamp.
///
///     thread 0, count 4: writes byte 8, stamp (0, 4)         knows {0: 4, 1: 2}
///     barrier: both release and acquire                      both know {0: 4, 1: 2}, and count on: 5, 3
///     thread 1, count 3: reads byte 8: it knows 0 up to 4:   ordered
///
/// The tensor memory accelerator and the matrix units take part as threads of their own, numbered after those of the
/// cluster: a unit's access is known to whoever has waited for it. They see ordinary writes only past a proxy fence, so
/// there is a second set of counts: those whose writes lie before such a fence.
///
///     thread 0, count 4: writes byte 8, stamp (0, 4)         knows {0: 4}, of which fenced {}
///     fence proxy_async                                      knows {0: 4}, of which fenced {0: 4}, and counts on: 5
///     barrier, by which thread 1 learns both; its wgmma of byte 8: (0, 4) is among what is fenced
///
/// After a barrier of all threads everyone knows the same, so the counts lie in one shared vector, replaced but never
/// changed.
namespace tenon::sim {

/// By the number of a thread, or of a unit, in its cluster.
using Ticks = std::vector<uint32_t>;
/// By cluster: what is known of threads of several clusters, through fences and atomics of global memory.
using Foreign = std::map<int64_t, std::shared_ptr<const Ticks>>;

struct Knowledge {
  std::shared_ptr<const Ticks> ticks;
  std::shared_ptr<const Foreign> foreign; ///< null: nothing
  std::shared_ptr<const Ticks> fenced;    ///< the part of `ticks` that lies before a proxy fence; null: nothing
};

/// The join of both; shares whichever contains the other.
std::shared_ptr<const Ticks> join(const std::shared_ptr<const Ticks> &a, const std::shared_ptr<const Ticks> &b);
std::shared_ptr<const Foreign> join(const std::shared_ptr<const Foreign> &a, const std::shared_ptr<const Foreign> &b);

/// A thread's count, and what it knows.
struct ThreadClock {
  uint32_t self = 0; ///< number in the cluster
  uint32_t own = 2; ///< who knows it up to 1 knows that it has started, and none of its accesses
  Knowledge known;

  bool knows(uint32_t thread, uint32_t count) const { return thread == self || (*known.ticks)[thread] >= count; }
  bool knowsFenced(uint32_t thread, uint32_t count) const { return known.fenced && (*known.fenced)[thread] >= count; }
  bool knowsForeign(int64_t cluster, uint32_t thread, uint32_t count) const;
  /// What a release hands on: all it knows, and itself up to now.
  Knowledge snapshot() const;
  void acquire(const Knowledge &knowledge);
  /// A proxy fence, which is a release too.
  void fenceProxies();
};

/// What several threads release to one barrier.
class Gathering {
public:
  void add(const ThreadClock &clock);
  void add(const Knowledge &knowledge);
  /// Everything so far; goes on collecting.
  Knowledge knowledge() const { return sum_; }
  void clear() { *this = Gathering(); }

private:
  Ticks &own();

  Knowledge sum_;
  std::shared_ptr<Ticks> mine_;        ///< == sum_.ticks while nobody else has it
  std::shared_ptr<const Ticks> last_;  ///< contained in the sum already: threads mostly know the same
};

} // namespace tenon::sim
