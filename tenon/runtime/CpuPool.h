// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// The threads that run the program instances of a CPU kernel, over oneTBB (which this header does not show).
class CpuPool {
public:
  /// Runs program instances [begin, end). `scratch` is 64-byte aligned, has the size that run() was given (null for 0),
  /// belongs to this call alone, and starts with whatever an earlier call left in it.
  using Body = void (*)(void *context, int64_t begin, int64_t end, void *scratch);

  /// 0 threads means all this process may use; the calling thread counts as one of them.
  explicit CpuPool(int threads = 0);
  ~CpuPool();
  CpuPool(const CpuPool &) = delete;
  CpuPool &operator=(const CpuPool &) = delete;

  /// The pool of all visible threads that everything shares unless told otherwise. Never destroyed, so that streams
  /// which still drain when the program ends can use it.
  static CpuPool &global();

  int threads() const { return threads_; }

  /// How long one item of some work takes, as far as it was seen: whoever does the same work again and again keeps one.
  /// Waking another thread takes a few microseconds, which work that is over sooner does not wait for.
  struct Pace {
    std::atomic<float> secondsEach = 0; ///< 0: not known yet
  };

  /// Calls `body` on contiguous pieces of [0, count) that together cover it once, and returns when all are done. Pieces
  /// start in increasing order, a few per thread so that a slow one does not hold up the rest. When a body throws, no
  /// further piece starts and the first exception is rethrown here. May be called from several threads at once, and
  /// from inside a body. With a pace, work that will be over in a few microseconds is done by the caller alone.
  void run(int64_t count, size_t scratchBytes, void *context, Body body, Pace *pace = nullptr);

private:
  struct Impl;
  int threads_;
  std::unique_ptr<Impl> impl_; ///< null for one thread
};

} // namespace tenon
#pragma GCC visibility pop
