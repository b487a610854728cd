// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/CpuPool.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

/// What the processor could do at best, measured here and now: the two roofs under which a kernel's time lies.
namespace tenon {

/// Multiplications and additions a second of one kind of number, by the best instructions that the machine has for it.
struct Peak {
  double operationsPerSecond = 0;
  std::string instructions; ///< "avx512 fma", "amx int8", ...
  /// Runs so many rounds of them and returns how many operations a round has.
  double (*loop)(int64_t rounds) = nullptr;
};

/// Of f32, of bf16 with f32 sums, of int8 with i32 sums. What has no instructions of its own counts as f32.
struct Peaks {
  Peak f32, bf16, int8;
  Peak f32Products; ///< of matrices of f32, for each of which AMX makes six products of bf16 (cpu/DotPieces.cpp)
};
/// `threads` of them at once, nothing but registers touched; the best of a few runs of `seconds` each.
Peaks measurePeaks(int threads, double seconds = 0.02);

/// Operations a second of the calling thread and `threads` - 1 more that run a peak's loop for so many seconds: what
/// the processors give at this moment, which on a machine that is shared may be a part of the peak and change from one
/// millisecond to the next.
double rateNow(const Peak &peak, int threads, double seconds = 0.004);

/// Bytes from one place to another, by threads: the yardstick for kernels that wait for memory. The ways a copy can be
/// made are tried, and the fastest is kept, so that the yardstick is what the machine gives and not what one loop does:
/// memcpy, or stores past the cache; on all threads, or on this one (for which a few thousand bytes are not worth the
/// wait).
class HostCopy {
public:
  enum class Stores : unsigned char { memcpy, streaming };
  /// A copy has `bytes` bytes; the pairs of places (from, to) are taken in turn. `among`: which ways there are to
  /// choose from.
  HostCopy(std::vector<std::pair<const void *, void *>> places, size_t bytes, int threads,
           std::initializer_list<Stores> among = {Stores::memcpy, Stores::streaming});

  void operator()();
  const std::string &way() const { return way_; } ///< "memcpy", "streaming stores, one thread"

private:
  void copy(Stores stores, bool alone);

  std::vector<std::pair<const void *, void *>> places_;
  size_t bytes_, turn_ = 0;
  CpuPool pool_;
  Stores stores_ = Stores::memcpy;
  bool alone_ = false;
  std::string way_;
};

/// Bytes that are added up and written nowhere: what a kernel that only reads can have at best. Memory answers after a
/// while and a core asks for so many lines at once, so that reading alone may be slower than a copy of as many bytes in
/// all. As of copies, the fastest way is kept: as the lines lie, or with those of the next page, or of the fourth from
/// here, on their way to L2; on all threads or on this one.
class HostRead {
public:
  /// A call reads `bytes` bytes; the places are taken in turn.
  HostRead(std::vector<const void *> places, size_t bytes, int threads);

  /// The sum of the bytes' words of 32 bits, modulo 2^32; of those at the end that are no whole word, of each one.
  uint32_t operator()() { return read(ahead_, alone_); }
  const std::string &way() const { return way_; } ///< "reading", "reading, 4 KiB ahead, one thread"

private:
  uint32_t read(size_t ahead, bool alone);

  std::vector<const void *> places_;
  size_t bytes_, turn_ = 0;
  CpuPool pool_;
  size_t ahead_ = 0;
  bool alone_ = false;
  std::string way_;
};

} // namespace tenon
