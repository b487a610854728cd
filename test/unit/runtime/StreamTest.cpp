// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/Stream.h"
#include "tenon/runtime/Workspace.h"

#include "tenon/base/Error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace tenon;

// What the sanitizers need to know: a test asks for more memory than there is.
extern "C" const char *__asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char *__tsan_default_options() { return "allocator_may_return_null=1"; }

namespace {

/// Holds work up until opened, so that the order of things does not depend on time.
class Gate {
public:
  void open() { promise_.set_value(); }
  std::function<void()> waiter() {
    return [future = future_] { future.wait(); };
  }

private:
  std::promise<void> promise_;
  std::shared_future<void> future_ = promise_.get_future().share();
};

std::string errorOf(auto function) {
  try {
    function();
    return "";
  } catch (const std::exception &error) {
    return error.what();
  }
}

TEST(Stream, RunsInOrderOnItsOwnThread) {
  Stream stream;
  std::vector<int> order;
  auto self = std::this_thread::get_id();
  for (int i = 0; i < 100; ++i)
    stream.enqueue([&, i] {
      EXPECT_NE(std::this_thread::get_id(), self);
      order.push_back(i);
    });
  stream.synchronize();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(Stream, AnUnusedStreamNeedsNothing) {
  Stream stream;
  EXPECT_TRUE(stream.idle());
  stream.synchronize();
  EXPECT_THROW(stream.enqueue(nullptr), Error);
}

TEST(Stream, IdleTellsTheTruth) {
  Stream stream;
  Gate gate;
  stream.enqueue(gate.waiter());
  EXPECT_FALSE(stream.idle());
  gate.open();
  stream.synchronize();
  EXPECT_TRUE(stream.idle());
}

TEST(Stream, WorkIsLetGoBeforeSynchronizeReturns) {
  Stream stream;
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> watch = held;
  stream.enqueue([held = std::move(held)] { EXPECT_EQ(*held, 1); });
  stream.synchronize();
  EXPECT_TRUE(watch.expired());
}

TEST(Stream, AnErrorIsReportedOnceAndSkipsWhatFollows) {
  Stream stream;
  int after = 0;
  stream.enqueue([] { throw Error("first"); });
  stream.enqueue([&] { ++after; });
  stream.enqueue([] { throw Error("second"); });
  EXPECT_EQ(errorOf([&] { stream.synchronize(); }), "first");
  EXPECT_EQ(after, 0);
  stream.synchronize(); // cleared
  stream.enqueue([&] { ++after; });
  stream.synchronize();
  EXPECT_EQ(after, 1);
}

TEST(Stream, AnyExceptionIsCarried) {
  Stream stream;
  stream.enqueue([] { throw 42; });
  EXPECT_THROW(stream.synchronize(), int);
}

TEST(Stream, StreamsFailIndependently) {
  Stream bad, good;
  int done = 0;
  bad.enqueue([] { throw Error("bad"); });
  good.enqueue([&] { ++done; });
  good.synchronize();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(errorOf([&] { bad.synchronize(); }), "bad");
}

TEST(Stream, TheDestructorDrains) {
  std::atomic<int> done = 0;
  {
    Stream stream;
    for (int i = 0; i < 50; ++i)
      stream.enqueue([&] { ++done; });
  }
  EXPECT_EQ(done.load(), 50);
  { // an error nobody asked for is dropped
    Stream stream;
    stream.enqueue([] { throw Error("lost"); });
  }
}

TEST(Stream, Moves) {
  std::atomic<int> done = 0;
  Stream a;
  Gate gate;
  a.enqueue(gate.waiter());
  a.enqueue([&] { ++done; });
  Stream b = std::move(a);
  EXPECT_NE(errorOf([&] { a.synchronize(); }).find("moved from"), std::string::npos);
  gate.open();
  b.synchronize();
  EXPECT_EQ(done.load(), 1);
  b.enqueue([&] { ++done; });
  b = Stream(); // drains what it held
  EXPECT_EQ(done.load(), 2);
  b.enqueue([&] { ++done; });
  b.synchronize();
  EXPECT_EQ(done.load(), 3);
  static_assert(!std::is_copy_constructible_v<Stream> && std::is_nothrow_move_constructible_v<Stream>);
}

TEST(Stream, SynchronizeFromItsOwnWorkIsRefused) {
  Stream stream;
  stream.enqueue([&] { stream.synchronize(); });
  EXPECT_NE(errorOf([&] { stream.synchronize(); }).find("wait for itself"), std::string::npos);
  int done = 0;
  stream.enqueue([&] { stream.enqueue([&] { ++done; }); }); // queueing more is fine
  stream.synchronize();
  stream.synchronize();
  EXPECT_EQ(done, 1);
}

TEST(Stream, ManyThreadsMayQueue) {
  Stream stream;
  int64_t sum = 0; // touched by the stream only
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i)
        stream.enqueue([&] { ++sum; });
      stream.synchronize();
    });
  for (std::thread &thread : threads)
    thread.join();
  stream.synchronize();
  EXPECT_EQ(sum, 1000);
}

TEST(Event, OrdersTwoStreams) {
  Stream producer, consumer;
  int value = 0, seen = -1;
  Gate gate;
  Event ready;
  producer.enqueue(gate.waiter());
  producer.enqueue([&] { value = 7; });
  producer.record(ready);
  consumer.wait(ready);
  consumer.enqueue([&] { seen = value; });
  EXPECT_FALSE(ready.query());
  EXPECT_FALSE(consumer.idle());
  gate.open();
  consumer.synchronize();
  EXPECT_EQ(seen, 7);
  EXPECT_TRUE(ready.query());
}

TEST(Event, UnrecordedCountsAsReached) {
  Event event;
  EXPECT_TRUE(event.query());
  event.synchronize();
  Stream stream;
  stream.wait(event);
  stream.synchronize();
}

TEST(Event, AWaitIsForTheRecordBeforeIt) {
  Stream a, b;
  Gate first, second;
  Event event;
  a.enqueue(first.waiter());
  a.record(event);
  b.wait(event);
  a.enqueue(second.waiter());
  a.record(event); // does not change what b waits for
  first.open();
  b.synchronize();
  EXPECT_FALSE(event.query());
  second.open();
  event.synchronize();
  EXPECT_TRUE(event.query());
}

TEST(Event, OutlivesItsStream) {
  Event event;
  {
    Stream stream;
    stream.record(event);
  }
  event.synchronize();
  EXPECT_TRUE(event.query());
}

TEST(Event, IsReachedOnAFailedStreamAndPassesTheErrorOn) {
  Stream bad, dependent;
  Event event;
  int done = 0;
  bad.enqueue([] { throw Error("bad"); });
  bad.record(event);
  dependent.wait(event);
  dependent.enqueue([&] { ++done; });
  EXPECT_EQ(errorOf([&] { event.synchronize(); }), "bad");
  EXPECT_EQ(errorOf([&] { dependent.synchronize(); }), "bad");
  EXPECT_EQ(errorOf([&] { bad.synchronize(); }), "bad");
  EXPECT_EQ(done, 0);
  bad.record(event);
  event.synchronize(); // the new moment is after the error was reported
  dependent.wait(event);
  dependent.enqueue([&] { ++done; });
  dependent.synchronize();
  EXPECT_EQ(done, 1);
}

TEST(Event, Elapsed) {
  Stream stream;
  Event start, end, never;
  Gate gate;
  stream.record(start);
  stream.enqueue(gate.waiter());
  stream.record(end);
  start.synchronize();
  EXPECT_NE(errorOf([&] { elapsedMilliseconds(start, end); }).find("not reached"), std::string::npos);
  EXPECT_NE(errorOf([&] { elapsedMilliseconds(never, start); }).find("never recorded"), std::string::npos);
  gate.open();
  end.synchronize();
  EXPECT_GE(elapsedMilliseconds(start, end), 0);
  EXPECT_EQ(elapsedMilliseconds(end, start), -elapsedMilliseconds(start, end));
  EXPECT_EQ(elapsedMilliseconds(end, end), 0);
}

TEST(Workspace, IsZeroedAlignedAndReused) {
  Stream stream;
  void *first = nullptr;
  stream.enqueue([&] {
    first = zeroedWorkspace(1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    auto *bytes = static_cast<unsigned char *>(first);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(bytes[i], 0);
      bytes[i] = 0xee;
    }
  });
  stream.enqueue([&] {
    auto *bytes = static_cast<unsigned char *>(zeroedWorkspace(500));
    EXPECT_EQ(bytes, first);
    for (int i = 0; i < 500; ++i)
      ASSERT_EQ(bytes[i], 0);
    EXPECT_EQ(bytes[500], 0xee); // only what was asked for
  });
  stream.enqueue([&] {
    auto *bytes = static_cast<unsigned char *>(zeroedWorkspace(100000));
    for (int i = 0; i < 100000; ++i)
      ASSERT_EQ(bytes[i], 0);
    EXPECT_EQ(zeroedWorkspace(0), nullptr);
  });
  stream.synchronize();
}

TEST(Workspace, StreamsHaveTheirOwn) {
  Stream stream, other;
  void *mine = nullptr, *theirs = nullptr;
  stream.enqueue([&] { mine = zeroedWorkspace(64); });
  other.enqueue([&] { theirs = zeroedWorkspace(64); });
  stream.synchronize();
  other.synchronize();
  EXPECT_NE(mine, theirs);
  stream.enqueue([&] { zeroedWorkspace(size_t(1) << 62); });
  EXPECT_NE(errorOf([&] { stream.synchronize(); }).find("cannot allocate"), std::string::npos);
  stream.enqueue([&] { EXPECT_NE(zeroedWorkspace(8), nullptr); }); // and it recovers
  stream.synchronize();
}

} // namespace
