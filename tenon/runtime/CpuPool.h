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

  /// What was seen of some work, by whoever does the same again and again: whether other threads are worth waking for
  /// it. That takes 5 us where they are awake still, and 50 to 500 where they sleep, so that of work of a few
  /// microseconds only trying both tells. What lost is tried again, but ever more rarely.
  class Pace {
  public:
    /// Whether the next `count` items are for all threads; also while nothing is known.
    bool isShared(int64_t count) const;
    /// After a run by the caller alone.
    void ranAlone(int64_t count, float seconds);
    /// After a run by all threads, of which the first piece took so long for each item.
    void ranShared(int64_t count, float seconds, float firstSecondsEach);

  private:
    std::atomic<float> secondsEach_ = 0; ///< on one thread; 0: not known yet
    std::atomic<float> debt_ = 0;        ///< what sharing lost, in runs alone; positive: the next is alone
    std::atomic<float> mostDebt_ = 8;    ///< doubles with each try that loses
    std::atomic<int> sharedInARow_ = 0;  ///< since a run alone
    std::atomic<int> untilAlone_ = 16;   ///< so many of them: then one is alone
  };

  /// Calls `body` on contiguous pieces of [0, count) that together cover it once, and returns when all are done. Pieces
  /// start in increasing order, a few per thread so that a slow one does not hold up the rest. When a body throws, no
  /// further piece starts and the first exception is rethrown here. May be called from several threads at once, and
  /// from inside a body. With a pace, work that will be over in a few microseconds is done by the caller alone.
  ///
  /// With notes, the last `noteBytes` of a thread's scratch are zeros when it begins with its first piece, and what a
  /// piece leaves in scratch is there for the thread's next. Pieces of a thread then follow each other in a part of
  /// [0, count) that is its own, until it helps another with the end of its part.
  void run(int64_t count, size_t scratchBytes, void *context, Body body, Pace *pace = nullptr, size_t noteBytes = 0);

private:
  struct Impl;
  int threads_;
  std::unique_ptr<Impl> impl_; ///< null for one thread
};

} // namespace tenon
#pragma GCC visibility pop
