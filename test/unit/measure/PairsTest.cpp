// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/Error.h"
#include "tenon/measure/Pairs.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

using namespace tenon;

namespace {

TEST(Pairs, RatioIsTakenWithinEachPair) {
  // The machine slows down tenfold half-way: the times say nothing any more, the ratios all.
  Pairs pairs;
  for (int i = 0; i < 20; ++i) {
    double weather = i < 10 ? 1 : 10;
    pairs.ours.push_back(2 * weather);
    pairs.theirs.push_back(3 * weather);
  }
  Estimate ratio = pairs.ratio();
  EXPECT_DOUBLE_EQ(ratio.median, 1.5);
  EXPECT_DOUBLE_EQ(ratio.low, 1.5);
  EXPECT_DOUBLE_EQ(ratio.high, 1.5);
  EXPECT_GT(pairs.oursEstimate().spread(), 0.5);
}

TEST(Pairs, OrderAlternates) {
  std::string order;
  comparePairs(
      [&] {
        order += 'o';
        return 1.0;
      },
      [&] {
        order += 't';
        return 1.0;
      },
      {.minPairs = 4, .maxPairs = 4});
  EXPECT_EQ(order, "ottootto");
}

TEST(Pairs, StopsWhenTheIntervalIsNarrow) {
  int calls = 0;
  auto same = [&] {
    ++calls;
    return 1.0;
  };
  Pairs pairs = comparePairs(same, [] { return 2.0; }, {.minPairs = 7, .maxPairs = 100});
  EXPECT_EQ(calls, 7);
  EXPECT_EQ(pairs.theirs.size(), 7u);
  EXPECT_DOUBLE_EQ(pairs.ratio().median, 2);

  calls = 0;
  auto wild = [&] { return ++calls % 2 ? 1.0 : 5.0; };
  EXPECT_EQ(comparePairs(wild, [] { return 1.0; }, {.minPairs = 7, .maxPairs = 31}).ours.size(), 31u);
}

TEST(Pairs, TheIntervalCoversTheTruth) {
  // Of 400 experiments with a true ratio of 1.1 under noise that both share and noise of their own, about 95% cover it.
  std::mt19937 generator(1);
  std::lognormal_distribution<double> shared(0, 0.3), own(0, 0.02);
  int covered = 0, experiments = 400;
  for (int i = 0; i < experiments; ++i) {
    Pairs pairs;
    for (int pair = 0; pair < 15; ++pair) {
      double weather = shared(generator);
      pairs.ours.push_back(weather * own(generator));
      pairs.theirs.push_back(1.1 * weather * own(generator));
    }
    Estimate ratio = pairs.ratio();
    covered += ratio.low <= 1.1 && 1.1 <= ratio.high;
    EXPECT_LT(ratio.spread(), 0.15); // the times themselves vary by 30%
  }
  EXPECT_GT(covered, experiments * 93 / 100);
}

TEST(Pairs, WrongUse) {
  auto one = [] { return 1.0; };
  EXPECT_THROW(comparePairs(one, one, {.minPairs = 0}), Error);
  EXPECT_THROW(comparePairs(one, one, {.minPairs = 9, .maxPairs = 8}), Error);
  // A clock that sees nothing gives a ratio of one, not a division by zero.
  EXPECT_DOUBLE_EQ(comparePairs([] { return 0.0; }, [] { return 0.0; }, {.minPairs = 3}).ratio().median, 1);
}

} // namespace
