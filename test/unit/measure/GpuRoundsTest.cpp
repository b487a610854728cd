// SPDX-License-Identifier: Apache-2.0
//
// The rules of rounds, on a clock that does as it is told.
#include "tenon/base/Error.h"
#include "tenon/measure/GpuRounds.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace tenon;

namespace {

/// A card whose clocks sink while it works and recover while it rests.
class Card {
public:
  GpuSubject subject(std::string name, double seconds, int failsAfter = -1) {
    return {name, [this, name, seconds, failsAfter, calls = 0](const BurstLength &length) mutable {
              if (calls++ == failsAfter)
                throw Error("out of everything");
              order += name;
              lengths.push_back(length.seconds);
              time += length.seconds;
              heat = std::min(1.0, heat + length.seconds);
              return seconds * (1 + 0.5 * heat);
            }};
  }
  Regime regime() {
    Regime result;
    result.length.seconds = 0.05;
    result.now = [this] {
      return std::chrono::steady_clock::time_point(
          std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(time)));
    };
    result.wait = [this](double seconds) {
      time += seconds;
      heat = std::max(0.0, heat - seconds);
    };
    return result;
  }

  std::string order;
  std::vector<double> lengths;
  double time = 0, heat = 0;
};

TEST(GpuRounds, BeginWithAnotherSubjectEachTime) {
  Card card;
  Regime regime = card.regime();
  regime.minRounds = regime.maxRounds = 4;
  measureRounds({card.subject("a", 1), card.subject("b", 1), card.subject("c", 1)}, regime);
  EXPECT_EQ(card.order, "abcbaccabacb");
  EXPECT_EQ(card.lengths, std::vector<double>(12, 0.05));
}

TEST(GpuRounds, RatiosAreWithinRounds) {
  Card card;
  Rounds rounds = measureRounds({card.subject("ours", 2), card.subject("theirs", 3)}, card.regime());
  EXPECT_NEAR(rounds.ratio(1).median, 1.5, 0.1); // the card gets warmer, both suffer
  EXPECT_EQ(rounds.ratio(0).median, 1);
  EXPECT_GE(rounds.subjects[1].seconds.size(), 9u);
}

TEST(GpuRounds, SustainedLoadHeatsUntilRoundsGetNoSlower) {
  Card card;
  Regime regime = card.regime();
  regime.heatSeconds = 0.2;
  regime.maxHeatSeconds = 60;
  bool heated = false;
  Rounds rounds = measureRounds({card.subject("ours", 2), card.subject("theirs", 3)}, regime, [&] {
    heated = true;
    EXPECT_EQ(card.heat, 1);
  });
  EXPECT_TRUE(heated && rounds.steady);
  EXPECT_GT(rounds.heatedSeconds, 1);
  EXPECT_LT(rounds.heatedSeconds, 10);
  EXPECT_EQ(rounds.time(0).median, 3);
  EXPECT_EQ(rounds.ratio(1).median, 1.5);
}

TEST(GpuRounds, HeatingEndsEvenIfTheyDo) {
  Card card;
  Regime regime = card.regime();
  regime.heatSeconds = 0.1;
  regime.maxHeatSeconds = 0.5;
  EXPECT_NEAR(measureRounds({card.subject("ours", 2)}, regime).heatedSeconds, 0.5, 0.06);
}

TEST(GpuRounds, PausesLetTheCardCool) {
  Card card;
  Regime regime = card.regime();
  regime.pauseSeconds = 1;
  Rounds rounds = measureRounds({card.subject("ours", 2), card.subject("theirs", 3)}, regime);
  EXPECT_NEAR(rounds.time(0).median, 2 * (1 + 0.5 * 0.05), 1e-9);
  EXPECT_EQ(rounds.heatedSeconds, 0);
}

TEST(GpuRounds, EndWithTheBudget) {
  Card card;
  Regime regime = card.regime();
  regime.minRounds = 2;
  regime.maxRounds = 1000;
  regime.spread = 0;
  regime.budgetSeconds = 1;
  int calls = 0;
  GpuSubject noisy{"noisy", [&](const BurstLength &length) {
                     card.time += length.seconds;
                     return 1 + 0.1 * (++calls % 7);
                   }};
  Rounds rounds = measureRounds({card.subject("ours", 2), noisy}, regime);
  EXPECT_FALSE(rounds.steady);
  EXPECT_NEAR(static_cast<double>(rounds.subjects[0].seconds.size()), 10, 2);
}

TEST(GpuRounds, APeerThatFailsTakesPartNoMore) {
  Card card;
  Rounds rounds = measureRounds({card.subject("ours", 2), card.subject("theirs", 3, 4), card.subject("others", 4)},
                                card.regime());
  EXPECT_EQ(rounds.subjects[1].failure, "out of everything");
  EXPECT_TRUE(rounds.subjects[1].seconds.empty());
  EXPECT_NEAR(rounds.ratio(2).median, 2, 0.1);
  EXPECT_THROW(measureRounds({card.subject("ours", 2, 4), card.subject("theirs", 3)}, card.regime()), Error);
}

TEST(GpuRounds, NeedSomethingToDo) {
  Card card;
  Regime regime = card.regime();
  EXPECT_THROW(measureRounds({}, regime), Error);
  regime.minRounds = 30;
  EXPECT_THROW(measureRounds({card.subject("ours", 2)}, regime), Error);
}

TEST(Regimes, AreWhatTheySay) {
  EXPECT_EQ(Regime::sustained().pauseSeconds, 0);
  EXPECT_GT(Regime::sustained().heatSeconds, 0);
  EXPECT_GT(Regime::bursts().pauseSeconds, 10 * Regime::bursts().length.seconds);
  EXPECT_EQ(Regime::bursts().maxHeatSeconds, 0);
}

} // namespace
