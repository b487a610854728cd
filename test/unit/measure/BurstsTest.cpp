// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Bursts.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

using namespace tenon;

namespace {

void spin(std::chrono::microseconds length) {
  auto until = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < until) {
  }
}

TEST(Bursts, AsManyCallsAsFill) {
  int calls = 0;
  Bursts bursts(
      [&] {
        ++calls;
        spin(std::chrono::microseconds(100));
      },
      0.01);
  EXPECT_LE(bursts.calls(), 100u);
  EXPECT_GE(bursts.calls(), 10u); // whoever else is at work
  EXPECT_NEAR(bursts.seconds(), 0.01, 0.001);
  calls = 0;
  EXPECT_GE(bursts(), 100e-6);
  EXPECT_LE(calls, static_cast<int>(bursts.calls()) + 1);
}

// A call that was held up once is not what all are like.
TEST(Bursts, OneSlowCallDoesNotShortenThem) {
  for (int slow : {1, 2, 3}) {
    int call = 0;
    Bursts bursts(
        [&] {
          if (++call == slow)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        },
        0.01);
    EXPECT_GT(bursts.calls(), 100u) << "call " << slow;
  }
}

TEST(Bursts, LongCallsAreMadeOnce) {
  int calls = 0;
  Bursts bursts(
      [&] {
        ++calls;
        std::this_thread::sleep_for(std::chrono::milliseconds(120));
      },
      0.01);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(bursts.calls(), 1u);
  bursts();
  EXPECT_EQ(calls, 2);
}

} // namespace
