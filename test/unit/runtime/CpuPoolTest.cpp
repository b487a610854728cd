// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/CpuPool.h"

#include "tenon/base/Error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

using namespace tenon;

// What the sanitizers need to know. A test asks for more memory than there is. libtbb is not instrumented, so that its
// hand-over of tasks looks like races: in its own code (the functions named here never call a body), and where the
// caller's lambda is run by another thread. Races in bodies are still found, by the annotations in CpuPool.cpp.
extern "C" const char *__asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char *__tsan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char *__tsan_default_suppressions() {
  return "race_top:tbb::detail\n"
         "race:offer_work\n"
         "race:fold_tree\n"
         "race:tbb::detail::d1::task::task\n"
         "called_from_lib:libtbb.so\n"
         "race_top:tenon::CpuPool::run\n";
}

namespace {

/// run() with a lambda.
template <typename Function>
void run(CpuPool &pool, int64_t count, size_t scratchBytes, Function function, size_t noteBytes = 0) {
  pool.run(
      count, scratchBytes, &function,
      [](void *context, int64_t begin, int64_t end, void *scratch) {
        (*static_cast<Function *>(context))(begin, end, scratch);
      },
      nullptr, noteBytes);
}

TEST(CpuPool, CoversTheRangeOnce) {
  for (int threads : {1, 2, 3, 8}) {
    CpuPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t count : {0, 1, 2, 3, 7, 31, 32, 33, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
      run(pool, count, 0, [&](int64_t begin, int64_t end, void *scratch) {
        EXPECT_LT(begin, end);
        EXPECT_EQ(scratch, nullptr);
        for (int64_t i = begin; i < end; ++i)
          hits[static_cast<size_t>(i)].fetch_add(1);
      });
      for (auto &hit : hits)
        ASSERT_EQ(hit.load(), 1) << threads << " threads, count " << count;
    }
  }
}

TEST(CpuPool, NothingToDoIsNothingDone) {
  CpuPool pool(2);
  run(pool, 0, 64, [](int64_t, int64_t, void *) { FAIL(); });
  run(pool, -5, 64, [](int64_t, int64_t, void *) { FAIL(); });
}

TEST(CpuPool, PiecesOfHugeCountsDoNotOverflow) {
  CpuPool pool(3);
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> pieces;
  int64_t count = std::numeric_limits<int64_t>::max();
  run(pool, count, 0, [&](int64_t begin, int64_t end, void *) {
    std::lock_guard lock(mutex);
    pieces.insert({begin, end});
  });
  int64_t at = 0;
  for (auto [begin, end] : pieces) {
    EXPECT_EQ(begin, at);
    at = end;
  }
  EXPECT_EQ(at, count);
}

// However slow one of the threads is, the others wait for one item at the end.
TEST(CpuPool, PiecesGetShorter) {
  CpuPool pool(2);
  for (int64_t count : {5, 100, 1000}) {
    std::mutex mutex;
    std::map<int64_t, int64_t> lengths; // by where they begin
    run(pool, count, 0, [&](int64_t begin, int64_t end, void *) {
      std::lock_guard lock(mutex);
      lengths[begin] = end - begin;
    });
    int64_t last = lengths.begin()->second, longest = count / (2 * 4);
    EXPECT_EQ(last, std::max<int64_t>(longest, 1));
    for (auto [begin, length] : lengths) {
      EXPECT_LE(length, last);
      last = length;
    }
    EXPECT_EQ(last, 1);
  }
}

TEST(CpuPool, OneThreadRunsInlineInOnePiece) {
  CpuPool pool(1);
  int calls = 0;
  auto self = std::this_thread::get_id();
  run(pool, 100, 0, [&](int64_t begin, int64_t end, void *) {
    ++calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
    EXPECT_EQ(std::this_thread::get_id(), self);
  });
  EXPECT_EQ(calls, 1);
}

TEST(CpuPool, GlobalAndRefusals) {
  EXPECT_GE(CpuPool::global().threads(), 1);
  EXPECT_EQ(&CpuPool::global(), &CpuPool::global());
  EXPECT_EQ(CpuPool(0).threads(), CpuPool::global().threads());
  EXPECT_THROW(CpuPool(-1), Error);
  EXPECT_THROW(CpuPool(1000000), Error);
}

TEST(CpuPool, ReallyUsesItsThreads) {
  // Two bodies that wait for each other: only two threads can finish this, also on a machine of one processor.
  CpuPool pool(2);
  std::atomic<int> arrived = 0;
  run(pool, 2, 0, [&](int64_t, int64_t, void *) {
    arrived.fetch_add(1);
    while (arrived.load() < 2)
      std::this_thread::yield();
  });
  EXPECT_EQ(arrived.load(), 2);
}

TEST(CpuPool, ScratchIsAlignedPrivateAndGrows) {
  CpuPool pool(4);
  for (size_t bytes : {size_t(1), size_t(100), size_t(65536), size_t(64)}) {
    run(pool, 64, bytes, [&](int64_t begin, int64_t, void *scratch) {
      ASSERT_NE(scratch, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(scratch) % 64, 0u);
      auto *memory = static_cast<unsigned char *>(scratch);
      auto mark = static_cast<unsigned char>(begin);
      std::memset(memory, mark, bytes);
      std::this_thread::yield();
      for (size_t i = 0; i < bytes; ++i)
        ASSERT_EQ(memory[i], mark);
    });
  }
}

TEST(CpuPool, ScratchIsReusedBetweenRuns) {
  CpuPool pool(1);
  void *first = nullptr;
  run(pool, 1, 4096, [&](int64_t, int64_t, void *scratch) { first = scratch; });
  run(pool, 1, 1024, [&](int64_t, int64_t, void *scratch) { EXPECT_EQ(scratch, first); });
}

// What a thread has noted is there for its next piece, which mostly begins where the last one ended; and a run begins
// with nothing noted, whatever an earlier one left.
TEST(CpuPool, NotesStayWithTheirThreadForOneRun) {
  for (int threads : {1, 2, 5}) {
    CpuPool pool(threads);
    for (int64_t count : {1, 2, 7, 64, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
      std::atomic<int> elsewhere = 0, begun = 0;
      run(
          pool, count, 128,
          [&](int64_t begin, int64_t end, void *scratch) {
            EXPECT_LT(begin, end);
            auto *note = reinterpret_cast<int64_t *>(static_cast<std::byte *>(scratch) + 112);
            EXPECT_EQ(note[0], note[1]);
            begun += note[0] == 0;
            elsewhere += note[0] != 0 && note[0] != begin;
            note[0] = note[1] = end;
            for (int64_t i = begin; i < end; ++i)
              hits[static_cast<size_t>(i)].fetch_add(1);
            std::this_thread::yield();
          },
          /*noteBytes=*/16);
      for (auto &hit : hits)
        ASSERT_EQ(hit.load(), 1) << threads << " threads, count " << count;
      EXPECT_GE(begun, 1);
      EXPECT_LE(begun, threads);
      // A thread helps with half of what is left to another: 500 items can be halved ten times. Among more than two,
      // one that is held up between taking its half and having it is helped afresh, and there is no such limit.
      if (threads <= 2)
        EXPECT_LE(elsewhere, 10);
      run(pool, count, 128, [](int64_t, int64_t, void *scratch) { std::memset(scratch, 0x7f, 128); });
    }
  }
}

TEST(CpuPool, WithNotesTheSlowOneIsHelped) {
  // The first item ends when all others are done.
  CpuPool pool(2);
  std::atomic<int> done = 0;
  run(
      pool, 64, 64,
      [&](int64_t begin, int64_t end, void *) {
        ASSERT_LE(end - begin, 8);
        if (begin == 0)
          while (done < 64 - static_cast<int>(end))
            std::this_thread::yield();
        done += static_cast<int>(end - begin);
      },
      /*noteBytes=*/8);
  EXPECT_EQ(done, 64);
}

TEST(CpuPool, WithNotesAnExceptionEndsTheRun) {
  CpuPool pool(2);
  std::atomic<int> pieces = 0;
  EXPECT_THROW(run(
                   pool, 1000, 64,
                   [&](int64_t, int64_t, void *) {
                     ++pieces;
                     throw std::out_of_range("");
                   },
                   /*noteBytes=*/8),
               std::out_of_range);
  EXPECT_LE(pieces, 2);
}

TEST(CpuPool, ScratchThatCannotBeHadIsAnError) {
  for (int threads : {1, 2}) {
    CpuPool pool(threads);
    EXPECT_THROW(run(pool, 8, size_t(1) << 62, [](int64_t, int64_t, void *) { FAIL(); }), Error);
    run(pool, 8, 64, [](int64_t, int64_t, void *scratch) { EXPECT_NE(scratch, nullptr); });
  }
}

TEST(CpuPool, AnExceptionReachesTheCallerOnce) {
  for (int threads : {1, 4}) {
    CpuPool pool(threads);
    int caught = 0;
    try {
      run(pool, 1000, 16, [](int64_t begin, int64_t, void *) { throw std::out_of_range(std::to_string(begin)); });
    } catch (const std::out_of_range &) {
      ++caught;
    }
    EXPECT_EQ(caught, 1);
    // And the pool still works.
    std::atomic<int64_t> sum = 0;
    run(pool, 1000, 16, [&](int64_t begin, int64_t end, void *) { sum += end - begin; });
    EXPECT_EQ(sum.load(), 1000);
  }
}

TEST(CpuPool, NestedRunsKeepTheirScratch) {
  CpuPool pool(3);
  std::atomic<int64_t> total = 0;
  run(pool, 16, 256, [&](int64_t begin, int64_t end, void *outer) {
    std::memset(outer, 0x11, 256);
    run(pool, 8, 512, [&](int64_t innerBegin, int64_t innerEnd, void *inner) {
      EXPECT_NE(inner, outer);
      std::memset(inner, 0x22, 512);
      run(pool, 1, 128, [&](int64_t, int64_t, void *innermost) { std::memset(innermost, 0x33, 128); });
      for (int i = 0; i < 512; ++i)
        ASSERT_EQ(static_cast<unsigned char *>(inner)[i], 0x22);
      total += (innerEnd - innerBegin) * (end - begin);
    });
    for (int i = 0; i < 256; ++i)
      ASSERT_EQ(static_cast<unsigned char *>(outer)[i], 0x11);
  });
  EXPECT_EQ(total.load(), 16 * 8);
}

TEST(CpuPool, AnExceptionOfANestedRunPassesThrough) {
  CpuPool pool(3);
  EXPECT_THROW(run(pool, 16, 32,
                   [&](int64_t, int64_t, void *) {
                     run(pool, 16, 32, [](int64_t begin, int64_t, void *) {
                       if (begin == 0)
                         throw Error("inner");
                     });
                   }),
               Error);
}

TEST(CpuPool, SeveralCallersAtOnce) {
  CpuPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int64_t> total = 0;
  std::atomic<int> failures = 0;
  for (int caller = 0; caller < 8; ++caller)
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 20; ++round) {
        bool fails = caller % 4 == 3;
        try {
          run(pool, 50, 128, [&](int64_t begin, int64_t end, void *scratch) {
            std::memset(scratch, caller, 128);
            if (fails && begin == 0)
              throw Error("caller " + std::to_string(caller));
            if (!fails)
              total += end - begin;
            ASSERT_EQ(static_cast<unsigned char *>(scratch)[127], caller);
          });
          EXPECT_FALSE(fails);
        } catch (const Error &error) {
          EXPECT_EQ(error.what(), "caller " + std::to_string(caller)); // nobody gets another's error
          ++failures;
        }
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(total.load(), 6 * 20 * 50);
  EXPECT_EQ(failures.load(), 2 * 20);
}

#if defined(__SANITIZE_THREAD__)
#define TENON_SIGNALS_ARE_LATE
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TENON_SIGNALS_ARE_LATE
#endif
#endif
#ifndef TENON_SIGNALS_ARE_LATE
std::atomic<bool> isHeld = false, mayGoOn = false;

/// Whether the thread of this process comes to wait for something; it has minutes for that.
bool fallsAsleep(pid_t thread) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (std::chrono::steady_clock::now() < deadline) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string text;
    std::getline(file, text);
    // "4711 (name) S ...", where the name may be anything.
    if (size_t name = text.rfind(") "); name != std::string::npos && text[name + 2] == 'S')
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// A thread that does not come (on a busy machine it may take milliseconds) is not waited for.
TEST(CpuPool, NobodyWaitsForAThreadThatHasNotBegun) {
  isHeld = mayGoOn = false;
  CpuPool pool(2);
  std::atomic<int> arrived = 0;
  pthread_t other = pthread_self();
  pid_t otherNumber = 0;
  run(pool, 2, 0, [&, caller = pthread_self()](int64_t, int64_t, void *) {
    if (!pthread_equal(pthread_self(), caller)) {
      other = pthread_self();
      otherNumber = ::gettid();
    }
    arrived.fetch_add(1);
    while (arrived.load() < 2)
      std::this_thread::yield();
  });
  ASSERT_FALSE(pthread_equal(other, pthread_self()));
  struct sigaction hold{}, before{};
  hold.sa_handler = [](int) {
    isHeld = true;
    while (!mayGoOn) {
    }
  };
  ASSERT_EQ(sigaction(SIGUSR1, &hold, &before), 0);
  ASSERT_TRUE(fallsAsleep(otherNumber)); // so that it holds no lock
  ASSERT_EQ(pthread_kill(other, SIGUSR1), 0);
  while (!isHeld)
    std::this_thread::yield();
  for (int round = 0; round < 100; ++round) {
    std::atomic<int64_t> items = 0;
    run(pool, 50, 64, [&](int64_t begin, int64_t end, void *) { items += end - begin; });
    EXPECT_EQ(items, 50);
  }
  mayGoOn = true;
  sigaction(SIGUSR1, &before, nullptr);
}
#endif

/// Work known to be over at once is not handed out; work that has become longer is, the next time.
TEST(CpuPool, PaceKeepsShortWorkWithTheCaller) {
  CpuPool pool(2);
  CpuPool::Pace pace;
  struct Work {
    std::atomic<int64_t> items = 0;
    std::atomic<int> calls = 0;
    std::chrono::microseconds each{0};
  } work;
  auto runAll = [&](int64_t count) {
    work.items = 0;
    work.calls = 0;
    pool.run(
        count, 0, &work,
        [](void *context, int64_t begin, int64_t end, void *) {
          auto &w = *static_cast<Work *>(context);
          auto until = std::chrono::steady_clock::now() + w.each * (end - begin);
          while (std::chrono::steady_clock::now() < until) {
          }
          w.items += end - begin;
          ++w.calls;
        },
        &pace);
    EXPECT_EQ(work.items, count);
    return work.calls.load();
  };
  EXPECT_GT(runAll(64), 1); // nothing is known yet
  pace.ranAlone(64, 1e-6f); // whatever disturbed this one
  EXPECT_EQ(runAll(64), 1);
  pace.ranAlone(64, 1e-6f);
  EXPECT_GT(runAll(1'000'000'000), 1); // short each, long together
  work.each = std::chrono::microseconds(50);
  pace.ranAlone(64, 1e-6f);
  EXPECT_EQ(runAll(64), 1);
  for (int again = 0; again < 8 && runAll(64) == 1; ++again) { // it might have been held up
  }
  EXPECT_GT(runAll(64), 1); // seen
}

//===--- Whether to share, with given times -----------------------------------------------------------------------===//

/// Runs as the pool would, if `alone` and `shared` were the times of 25 items; how many of `runs` were shared.
int sharedRuns(CpuPool::Pace &pace, int runs, float alone, float shared, float firstTakes = 1) {
  int count = 0;
  for (int i = 0; i < runs; ++i)
    if (pace.isShared(25)) {
      pace.ranShared(25, shared, firstTakes * alone / 25);
      ++count;
    } else {
      pace.ranAlone(25, alone);
    }
  return count;
}

TEST(CpuPoolPace, ShortWorkIsNotSharedAndLongWorkIs) {
  CpuPool::Pace tiny, longer;
  EXPECT_LE(sharedRuns(tiny, 1000, 5e-6f, 3e-6f), 1);          // the first: nothing is known
  EXPECT_EQ(sharedRuns(longer, 1000, 500e-6f, 700e-6f), 1000); // whatever else held it up
}

// Work at the limit, whose first items take longer than the others: it seemed long enough in every run that was shared,
// and all of them were, five times as long as alone; with first items of four times, so it seemed long enough for
// anything. Nor does one run alone that is held up make all others shared.
TEST(CpuPoolPace, SharingThatLosesIsRarelyTriedAgain) {
  for (float alone : {9.5e-6f, 10.5e-6f, 20e-6f})
    for (float waking : {45e-6f, 300e-6f})
      for (float firstTakes : {1.0f, 1.4f, 4.0f, 9.0f}) {
        CpuPool::Pace pace;
        sharedRuns(pace, 1000, alone, alone + waking, firstTakes);
        for (float heldUp : {15e-6f, 29e-6f, 5e-3f}) {
          pace.ranAlone(25, heldUp);
          int again = sharedRuns(pace, 10000, alone, alone + waking, firstTakes);
          EXPECT_LE(static_cast<float>(again) * waking, 0.02f * 10000 * alone) << alone << " " << waking;
        }
      }
}

// On a processor that others use too, every few runs alone take up to twice as long. Beside one of those a shared run
// looked good, or the work long enough for anything, and the next thousand were shared.
TEST(CpuPoolPace, RunsThatAreHeldUpDoNotMakeSharingLookGood) {
  for (float alone : {10.5e-6f, 20e-6f})
    for (int every : {3, 9, 50}) {
      CpuPool::Pace pace;
      int shared = 0;
      for (int i = 0; i < 20000; ++i)
        if (pace.isShared(25)) {
          pace.ranShared(25, 1.6f * alone, alone / 25);
          ++shared;
        } else {
          pace.ranAlone(25, i % every ? alone : 1.9f * alone);
        }
      EXPECT_LE(shared, 20000 / 20) << alone << " " << every;
    }
}

// After a pause everything is cold, and the first two runs alone take three times as long as the others. Beside those
// sharing looked good, and the next thousand runs were shared: a third of all.
TEST(CpuPoolPace, FirstRunsAfterAPauseDoNotMakeSharingLookGood) {
  for (float alone : {9e-6f, 10.5e-6f, 15e-6f})
    for (float losing : {1.5f, 2.4f}) {
      CpuPool::Pace pace;
      sharedRuns(pace, 1000, alone, losing * alone);
      int shared = 0, runs = 0;
      for (int pause = 0; pause < 20; ++pause)
        for (int i = 0, first = 0; i < 3000; ++i, ++runs)
          if (pace.isShared(25)) {
            pace.ranShared(25, losing * alone, alone / 25);
            ++shared;
          } else {
            pace.ranAlone(25, first++ < 2 ? 2.8f * alone : alone);
          }
      EXPECT_LE(shared, runs / 10) << alone << " " << losing;
    }
}

TEST(CpuPoolPace, SharingThatGainsIsKept) {
  CpuPool::Pace pace;
  EXPECT_GE(sharedRuns(pace, 1000, 20e-6f, 14e-6f), 990);
  sharedRuns(pace, 1, 20e-6f, 10e-3f); // held up once
  EXPECT_GE(sharedRuns(pace, 1000, 20e-6f, 14e-6f), 990);
}

// Long enough for anything, but not beyond doubt: a run alone is rare, and what first items take is no reason for one.
TEST(CpuPoolPace, WorkOfManyMicrosecondsIsShared) {
  for (float alone : {40e-6f, 100e-6f, 250e-6f})
    for (float firstTakes : {1.0f, 1.8f, 9.0f}) {
      CpuPool::Pace pace;
      EXPECT_GE(sharedRuns(pace, 1000, alone, alone / 8, firstTakes), 994) << alone << " " << firstTakes;
      EXPECT_GE(sharedRuns(pace, 1000, alone, 2 * alone, firstTakes), 994) << alone << " " << firstTakes;
    }
}

TEST(CpuPoolPace, ChangesAreSeen) {
  CpuPool::Pace pace;
  sharedRuns(pace, 1000, 20e-6f, 14e-6f);
  EXPECT_LE(sharedRuns(pace, 1000, 20e-6f, 200e-6f), 20); // the others sleep
  sharedRuns(pace, 5000, 20e-6f, 14e-6f);
  EXPECT_GE(sharedRuns(pace, 100, 20e-6f, 14e-6f), 99); // and are awake again
  sharedRuns(pace, 300, 2e-6f, 40e-6f);
  EXPECT_EQ(sharedRuns(pace, 100, 2e-6f, 40e-6f), 0); // there is less to do
  sharedRuns(pace, 8, 2e-3f, 1e-3f);
  EXPECT_EQ(sharedRuns(pace, 100, 2e-3f, 1e-3f), 100); // and more
}

} // namespace
