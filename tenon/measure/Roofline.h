// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/CpuPool.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

/// What the processor could do at best, measured here and now: the two roofs under which a kernel's time lies.
namespace tenon {

/// Multiplications and additions a second of one kind of number, by the best instructions that the machine has for it.
struct Peak {
  double operationsPerSecond = 0;
  std::string instructions; ///< "avx512 fma", "amx int8", ...
};

/// Of f32, of bf16 with f32 sums, of int8 with i32 sums. What has no instructions of its own counts as f32.
struct Peaks {
  Peak f32, bf16, int8;
};
/// `threads` of them at once, nothing but registers touched; the best of a few runs of `seconds` each.
Peaks measurePeaks(int threads, double seconds = 0.02);

/// Bytes from one place to another, by threads: the yardstick for kernels that wait for memory. The ways a copy can be
/// made are tried, and the fastest is kept, so that the yardstick is what the machine gives and not what one loop does:
/// memcpy, or stores past the cache; on all threads, or on this one (for which a few thousand bytes are not worth the
/// wait).
class HostCopy {
public:
  /// A copy has `bytes` bytes; the pairs of places (from, to) are taken in turn.
  HostCopy(std::vector<std::pair<const void *, void *>> places, size_t bytes, int threads);

  void operator()();
  const std::string &way() const { return way_; } ///< "memcpy", "streaming stores, one thread"

private:
  enum class Stores : unsigned char { memcpy, streaming };
  void copy(Stores stores, bool alone);

  std::vector<std::pair<const void *, void *>> places_;
  size_t bytes_, turn_ = 0;
  CpuPool pool_;
  Stores stores_ = Stores::memcpy;
  bool alone_ = false;
  std::string way_;
};

} // namespace tenon
