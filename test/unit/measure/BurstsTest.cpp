// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Bursts.h"

#include <gtest/gtest.h>

#include <chrono>

using namespace tenon;
using namespace std::chrono_literals;

namespace {

/// A clock on which a call takes as long as it is told to, whatever else the machine does.
class BurstsTest : public testing::Test {
protected:
  /// Bursts of `seconds`; `length` tells how long the n-th call takes, from 1.
  template <class Length> Bursts bursts(double seconds, Length length) {
    return Bursts([this, length] { time_ += length(++calls_); }, seconds, [this] { return time_; });
  }

  Bursts::Clock::time_point time_;
  int calls_ = 0;
};

TEST_F(BurstsTest, AsManyCallsAsFill) {
  Bursts burst = bursts(0.01, [](int) { return 100us; });
  EXPECT_EQ(burst.calls(), 100u);
  EXPECT_DOUBLE_EQ(burst.seconds(), 0.01);
  calls_ = 0;
  EXPECT_DOUBLE_EQ(burst(), 100e-6);
  EXPECT_EQ(calls_, 101); // one of them to wake up
}

// A call that was held up once is not what all are like.
TEST_F(BurstsTest, OneSlowCallDoesNotShortenThem) {
  for (int slow : {1, 2, 3}) {
    calls_ = 0;
    Bursts burst = bursts(0.01, [slow](int call) { return call == slow ? 20ms : 1ms; });
    EXPECT_EQ(burst.calls(), 10u) << "call " << slow;
  }
}

// Where calls take ten times as long as those before them did, three times the length of a burst is enough.
TEST_F(BurstsTest, DisturbedBurstsAreCutShort) {
  bool isDisturbed = false;
  Bursts burst = bursts(0.01, [&](int) { return isDisturbed ? 11ms : 1ms; });
  ASSERT_EQ(burst.calls(), 10u);
  isDisturbed = true;
  calls_ = 0;
  EXPECT_DOUBLE_EQ(burst(), 11e-3);
  EXPECT_EQ(calls_, 4); // one of them to wake up
}

// The first call may compile; the others are not long for that.
TEST_F(BurstsTest, ALongFirstCallDoesNotShortenThem) {
  Bursts burst = bursts(0.01, [](int call) { return call == 1 ? 180ms : 1ms; });
  EXPECT_EQ(burst.calls(), 10u);
}

TEST_F(BurstsTest, LongCallsAreRarelyMade) {
  for (auto [length, most] : {std::pair(120ms, 2), std::pair(3000ms, 1)}) {
    calls_ = 0;
    Bursts burst = bursts(0.01, [length](int) { return length; });
    EXPECT_EQ(calls_, most);
    EXPECT_EQ(burst.calls(), 1u);
    burst();
    EXPECT_EQ(calls_, most + 1);
  }
}

} // namespace
