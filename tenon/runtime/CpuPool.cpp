// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/CpuPool.h"

#include "tenon/base/Error.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
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
// Of all the work together, on one thread: for less than the first nobody is woken, for more than the second always.
// Up to the third that is only believed of a run alone, since the first items of a shared one can take ten times as
// long.
constexpr float secondsWorthWaking = 10e-6f, secondsWorthAnything = 30e-6f, secondsBeyondDoubt = 300e-6f;
constexpr float paidBack = 1.0f / 64; // of what sharing lost, by each run alone
constexpr float worthIt = 0.1f;       // of a run alone: what sharing has to gain, since the others have better to do
// What sharing can have lost or gained, in runs alone, so that one that was held up neither decides alone nor for long.
constexpr float leastDebt = 8, mostDebt = 64, mostCredit = 8;
constexpr float believedOfMore = 1.0f / 16; // of what a run alone takes longer than those before
// After so many shared runs it is seen again how long a run alone takes: soon at first, since that was perhaps seen
// where the first runs after a pause had everything against them, and half as often with each that takes as long as
// believed; of work that is worth anything a quarter as often.
constexpr int leastUntilAlone = 16, mostUntilAlone = 1024;
constexpr float asLong = 0.8f; // of the time that was believed

using Clock = std::chrono::steady_clock;
float secondsSince(Clock::time_point start) { return std::chrono::duration<float>(Clock::now() - start).count(); }

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
  Scratch(size_t bytes, size_t noteBytes) {
    if (depth_ == arenas_.size())
      arenas_.emplace_back();
    memory_ = bytes ? arenas_[depth_].reserve(bytes) : nullptr;
    if (noteBytes)
      std::memset(static_cast<std::byte *>(memory_) + bytes - noteBytes, 0, noteBytes);
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

/// Items for workers that know something of those before: each has a part to itself, goes through it from the begin,
/// and then takes the later half of what is left to whoever has most. A worker that never comes costs nothing.
class Parts {
public:
  Parts(int64_t count, int64_t workers) : parts_(static_cast<size_t>(workers)) {
    for (int64_t i = 0; i < workers; ++i)
      parts_[static_cast<size_t>(i)].rest = pack(count * i / workers, count * (i + 1) / workers);
  }
  static bool areFor(int64_t count) { return count <= int64_t(most); }

  bool take(int worker, int64_t &begin, int64_t &end) {
    std::atomic<uint64_t> &own = parts_[static_cast<size_t>(worker)].rest;
    for (uint64_t rest = own.load(std::memory_order_relaxed);;) {
      if (!left(rest)) {
        if (!help(own))
          return false;
        rest = own.load(std::memory_order_relaxed);
        continue;
      }
      uint64_t first = rest >> 32, after = first + std::max<uint64_t>(left(rest) / piecesPerThread, 1);
      if (own.compare_exchange_weak(rest, pack(after, rest & most), std::memory_order_relaxed)) {
        begin = static_cast<int64_t>(first);
        end = static_cast<int64_t>(after);
        return true;
      }
    }
  }

private:
  // Begin and end in one word. No word with items in it comes twice, since whoever changes it takes some of them.
  static constexpr uint64_t most = 0xffffffff;
  static uint64_t pack(uint64_t begin, uint64_t end) { return begin << 32 | end; }
  static uint64_t left(uint64_t rest) { return (rest & most) - (rest >> 32); }

  bool help(std::atomic<uint64_t> &own) {
    for (;;) {
      Part *slowest = nullptr;
      uint64_t rest = 0;
      for (Part &part : parts_)
        if (uint64_t its = part.rest.load(std::memory_order_relaxed); left(its) > left(rest)) {
          slowest = &part;
          rest = its;
        }
      if (!slowest)
        return false;
      uint64_t end = rest & most, from = end - (left(rest) + 1) / 2;
      if (slowest->rest.compare_exchange_strong(rest, pack(rest >> 32, from), std::memory_order_relaxed)) {
        own.store(pack(from, end), std::memory_order_relaxed);
        return true;
      }
    }
  }

  struct alignas(64) Part {
    std::atomic<uint64_t> rest;
  };
  std::vector<Part> parts_;
};

/// One run(), shared by the workers on it. Unless they keep notes, they take pieces from a counter instead of splitting
/// ranges: neighbouring pieces then run at the same time and share what they read in the cache, and a worker that never
/// comes costs nothing. A piece is a share of what is left: long ones first, and at the end single items, so that
/// nobody waits long for the last one, however fast or slow (two threads of a core, a processor that others use too)
/// each of the workers is.
///
/// TBB orders what the caller did before the workers, and what they do before the caller goes on; the thread sanitizer
/// cannot look into libtbb, and is told.
class Job {
public:
  Job(int64_t count, int64_t workers, int64_t shares, size_t scratchBytes, size_t noteBytes, void *context,
      CpuPool::Body body)
      : count_(count), shares_(shares), scratchBytes_(scratchBytes), noteBytes_(noteBytes), context_(context),
        body_(body) {
    if (noteBytes && Parts::areFor(count))
      parts_.emplace(count, workers);
    TENON_TSAN(__tsan_release(this));
  }

  /// What a worker does.
  void operator()(int worker) const {
    TENON_TSAN(__tsan_acquire(const_cast<Job *>(this)));
    try {
      Scratch scratch(scratchBytes_, noteBytes_);
      for (int64_t begin, end; take(worker, begin, end);) {
        Clock::time_point start = begin == 0 ? Clock::now() : Clock::time_point();
        body_(context_, begin, end, scratch.get());
        if (begin == 0)
          firstSecondsEach_ = secondsSince(start) / static_cast<float>(end);
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
  /// The time of an item of the first piece, after the last worker.
  float firstSecondsEach() const { return firstSecondsEach_; }

private:
  bool take(int worker, int64_t &begin, int64_t &end) const {
    if (parts_)
      return !failed_.load(std::memory_order_relaxed) && parts_->take(worker, begin, end);
    begin = next_.load(std::memory_order_relaxed);
    do {
      if (begin >= count_)
        return false;
      end = begin + std::max<int64_t>((count_ - begin) / shares_, 1);
    } while (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed));
    return true;
  }

  int64_t count_, shares_;
  size_t scratchBytes_, noteBytes_;
  void *context_;
  CpuPool::Body body_;
  // TBB calls its function as a constant.
  mutable std::optional<Parts> parts_;
  mutable std::atomic<int64_t> next_ = 0;
  mutable std::atomic<bool> failed_ = false;
  mutable std::exception_ptr error_;
  mutable float firstSecondsEach_ = 0; // one worker's to write
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
    throw Error("a pool of " + std::to_string(threads) + " threads is not possible; give 1 to " + std::to_string(most) +
                ", or 0 for all");
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

bool CpuPool::Pace::isShared(int64_t count) const {
  float alone = secondsEach_.load(std::memory_order_relaxed) * static_cast<float>(count);
  if (alone <= 0 || alone >= secondsBeyondDoubt)
    return true;
  bool isWorthAnything = alone >= secondsWorthAnything;
  int until = std::min((isWorthAnything ? 4 : 1) * untilAlone_.load(std::memory_order_relaxed), mostUntilAlone);
  return alone >= secondsWorthWaking && sharedInARow_.load(std::memory_order_relaxed) < until &&
         (isWorthAnything || debt_.load(std::memory_order_relaxed) <= 0);
}

void CpuPool::Pace::ranAlone(int64_t count, float seconds) {
  // A run that was held up would make sharing look good. So more than twice as long as before is believed when it is
  // seen again, alone, and less than that bit by bit; what takes less time than before can do so.
  float items = static_cast<float>(count), known = secondsEach_.load(std::memory_order_relaxed) * items;
  float most = known > 0 ? std::max(2 * known, secondsWorthWaking) : seconds;
  float believed = seconds <= most && known > 0 && seconds > known ? known + believedOfMore * (seconds - known) : seconds;
  secondsEach_.store(std::min(believed, most) / items, std::memory_order_relaxed);
  int until = untilAlone_.load(std::memory_order_relaxed);
  if (known > 0 && seconds <= most && sharedInARow_.load(std::memory_order_relaxed) >= until)
    untilAlone_.store(seconds >= asLong * known ? std::min(2 * until, mostUntilAlone) : leastUntilAlone,
                      std::memory_order_relaxed);
  sharedInARow_.store(seconds > most ? mostUntilAlone : 0, std::memory_order_relaxed);
  if (float debt = debt_.load(std::memory_order_relaxed); debt > 0)
    debt_.store(std::max(debt - paidBack, 0.0f), std::memory_order_relaxed);
}

void CpuPool::Pace::ranShared(int64_t count, float seconds, float firstSecondsEach) {
  float items = static_cast<float>(count);
  float alone = secondsEach_.load(std::memory_order_relaxed) * items;
  bool isKnown = alone > 0 && alone < secondsBeyondDoubt;
  if (isKnown && alone < secondsWorthAnything) {
    float limit = mostDebt_.load(std::memory_order_relaxed);
    float lost = std::min(seconds / alone - 1 + worthIt, limit);
    float debt = std::max(debt_.load(std::memory_order_relaxed) + lost, -mostCredit);
    debt_.store(debt, std::memory_order_relaxed);
    if (debt > 0)
      mostDebt_.store(std::min(2 * limit, mostDebt), std::memory_order_relaxed);
    else if (debt == -mostCredit)
      mostDebt_.store(leastDebt, std::memory_order_relaxed);
  }
  // The first items take longer than the others, and longer still where others have just been woken. That is good
  // enough to see that there is more to do than before, not to compare it with.
  float more = alone < secondsWorthAnything ? secondsWorthAnything : secondsBeyondDoubt;
  if (isKnown && firstSecondsEach * items < more) {
    sharedInARow_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  secondsEach_.store(firstSecondsEach, std::memory_order_relaxed);
  sharedInARow_.store(mostUntilAlone, std::memory_order_relaxed);
}

void CpuPool::run(int64_t count, size_t scratchBytes, void *context, Body body, Pace *pace, size_t noteBytes) {
  if (count <= 0)
    return;
  if (count == 1 || !impl_ || (pace && !pace->isShared(count))) {
    Scratch scratch(scratchBytes, noteBytes);
    bool isTimed = impl_ && pace;
    Clock::time_point start = isTimed ? Clock::now() : Clock::time_point();
    body(context, 0, count, scratch.get());
    if (isTimed)
      pace->ranAlone(count, secondsSince(start));
    return;
  }

  int workers = static_cast<int>(std::min<int64_t>(threads_, count));
  Job job(count, workers, threads_ * piecesPerThread, scratchBytes, noteBytes, context, body);
  Clock::time_point start = Clock::now();
  impl_->arena.execute([&] {
    // Isolated: a body that waits for a nested run must not pick up a piece of someone else's meanwhile, which could
    // take long or want a lock that the body holds.
    tbb::this_task_arena::isolate([&] { tbb::parallel_for(0, workers, 1, job, tbb::simple_partitioner()); });
  });
  job.finish();
  if (pace)
    pace->ranShared(count, secondsSince(start), job.firstSecondsEach());
}

} // namespace tenon
