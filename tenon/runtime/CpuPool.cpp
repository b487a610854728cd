// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/CpuPool.h"

#include "tenon/base/Error.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define TENON_TSAN(call) call
#endif
#endif
#ifndef TENON_TSAN
#define TENON_TSAN(call)
#endif

namespace tenon {
namespace {

constexpr size_t scratchAlignment = 64;
constexpr int64_t piecesPerThread = 4; // if all were as long as the first
constexpr int mostThreads = 1024; // or as many as there are processors: TBB would start a million, and never end them
constexpr float secondsWorthWaking = 10e-6f; // of all the work together, on one thread

/// Takes the time of some items from here to done().
class PaceMaker {
public:
  explicit PaceMaker(CpuPool::Pace *pace) : pace_(pace) {
    if (pace_)
      start_ = std::chrono::steady_clock::now();
  }
  void done(int64_t items) const {
    if (!pace_)
      return;
    std::chrono::duration<float> taken = std::chrono::steady_clock::now() - start_;
    pace_->secondsEach.store(taken.count() / static_cast<float>(items), std::memory_order_relaxed);
  }

private:
  CpuPool::Pace *pace_;
  std::chrono::steady_clock::time_point start_;
};

/// Memory that only grows, one piece per thread and depth of nesting.
class Arena {
public:
  void *reserve(size_t bytes) {
    if (bytes > capacity_) {
      memory_.reset();
      capacity_ = 0;
      memory_.reset(::operator new(bytes, std::align_val_t(scratchAlignment), std::nothrow));
      if (!memory_)
        throw Error("cannot allocate " + std::to_string(bytes) +
                    " bytes of scratch memory for a CPU thread; use smaller tiles");
      capacity_ = bytes;
    }
    return memory_.get();
  }

private:
  struct Free {
    void operator()(void *memory) const { ::operator delete(memory, std::align_val_t(scratchAlignment)); }
  };
  std::unique_ptr<void, Free> memory_;
  size_t capacity_ = 0;
};

/// The scratch of this thread. A body that calls run() again still uses its own, hence one arena per depth.
class Scratch {
public:
  explicit Scratch(size_t bytes) {
    if (depth_ == arenas_.size())
      arenas_.emplace_back();
    memory_ = bytes ? arenas_[depth_].reserve(bytes) : nullptr;
    ++depth_; // last: the destructor does not run if reserve throws
  }
  ~Scratch() { --depth_; }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  void *get() const { return memory_; }

private:
  static thread_local std::vector<Arena> arenas_;
  static thread_local size_t depth_;
  void *memory_;
};

thread_local std::vector<Arena> Scratch::arenas_;
thread_local size_t Scratch::depth_ = 0;

/// One run(), shared by the workers on it. They take pieces from a counter instead of splitting ranges: neighbouring
/// pieces then run at the same time and share what they read in the cache, and a worker that never comes costs nothing.
/// A piece is a share of what is left: long ones first, and at the end single items, so that nobody waits long for the
/// last one, however fast or slow (two threads of a core, a processor that others use too) each of the workers is.
///
/// TBB orders what the caller did before the workers, and what they do before the caller goes on; the thread sanitizer
/// cannot look into libtbb, and is told.
class Job {
public:
  Job(int64_t count, int64_t shares, size_t scratchBytes, void *context, CpuPool::Body body, CpuPool::Pace *pace)
      : count_(count), shares_(shares), scratchBytes_(scratchBytes), context_(context), body_(body), pace_(pace) {
    TENON_TSAN(__tsan_release(this));
  }

  /// What a worker does.
  void operator()(int) const {
    TENON_TSAN(__tsan_acquire(const_cast<Job *>(this)));
    try {
      Scratch scratch(scratchBytes_);
      for (int64_t begin, end; take(begin, end);) {
        PaceMaker timer(begin == 0 ? pace_ : nullptr);
        body_(context_, begin, end, scratch.get());
        timer.done(end - begin);
      }
    } catch (...) {
      next_.store(count_, std::memory_order_relaxed); // no more pieces
      if (!failed_.exchange(true))
        error_ = std::current_exception();
    }
    TENON_TSAN(__tsan_release(const_cast<Job *>(this)));
  }

  /// After the last worker; rethrows the first error.
  void finish() const {
    TENON_TSAN(__tsan_acquire(const_cast<Job *>(this)));
    if (error_)
      std::rethrow_exception(std::move(error_));
  }

private:
  bool take(int64_t &begin, int64_t &end) const {
    begin = next_.load(std::memory_order_relaxed);
    do {
      if (begin >= count_)
        return false;
      end = begin + std::max<int64_t>((count_ - begin) / shares_, 1);
    } while (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed));
    return true;
  }

  int64_t count_, shares_;
  size_t scratchBytes_;
  void *context_;
  CpuPool::Body body_;
  CpuPool::Pace *pace_;
  // TBB calls its function as a constant.
  mutable std::atomic<int64_t> next_ = 0;
  mutable std::atomic<bool> failed_ = false;
  mutable std::exception_ptr error_;
};

} // namespace

struct CpuPool::Impl {
  // TBB makes no more workers than there are processors unless told so. Only asked for when it matters, because the
  // setting is the whole process's.
  std::optional<tbb::global_control> moreThanVisible;
  tbb::task_arena arena;

  explicit Impl(int threads) : arena(threads) {
    if (threads > tbb::info::default_concurrency())
      moreThanVisible.emplace(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(threads));
  }
};

CpuPool::CpuPool(int threads) : threads_(threads) {
  if (int most = std::max(mostThreads, tbb::info::default_concurrency()); threads < 0 || threads > most)
    throw Error("a pool of " + std::to_string(threads) + " threads is not possible; give 1 to " +
                std::to_string(most) + ", or 0 for all");
  if (threads == 0)
    threads_ = std::max(1, tbb::info::default_concurrency());
  if (threads_ > 1)
    impl_ = std::make_unique<Impl>(threads_);
}

CpuPool::~CpuPool() = default;

CpuPool &CpuPool::global() {
  static CpuPool *pool = new CpuPool(0);
  return *pool;
}

void CpuPool::run(int64_t count, size_t scratchBytes, void *context, Body body, Pace *pace) {
  if (count <= 0)
    return;
  float secondsEach = pace ? pace->secondsEach.load(std::memory_order_relaxed) : 0;
  bool isOverSoon = secondsEach > 0 && secondsEach * static_cast<float>(count) < secondsWorthWaking;
  if (count == 1 || !impl_ || isOverSoon) {
    Scratch scratch(scratchBytes);
    PaceMaker timer(impl_ ? pace : nullptr);
    body(context, 0, count, scratch.get());
    timer.done(count);
    return;
  }

  Job job(count, threads_ * piecesPerThread, scratchBytes, context, body, pace);
  int workers = static_cast<int>(std::min<int64_t>(threads_, count));
  impl_->arena.execute([&] {
    // Isolated: a body that waits for a nested run must not pick up a piece of someone else's meanwhile, which could
    // take long or want a lock that the body holds.
    tbb::this_task_arena::isolate([&] { tbb::parallel_for(0, workers, 1, job, tbb::simple_partitioner()); });
  });
  job.finish();
}

} // namespace tenon
