// SPDX-License-Identifier: Apache-2.0
//
// Time here is made up: it passes only while a subject runs, by as much as the test says. So every count and every
// figure is known exactly, and no test depends on how busy the machine is.
#include "tenon/base/Error.h"
#include "tenon/measure/Bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace tenon;

namespace {

constexpr int64_t microsecond = 1000, millisecond = 1000 * microsecond, second = 1000 * millisecond;

class FakeTime {
public:
  BenchOptions options() {
    BenchOptions options;
    options.now = [this] { return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(nanoseconds_)); };
    return options;
  }
  /// Call number i (from 0, warm-up included) takes nanoseconds(i).
  Subject subject(char name, std::function<int64_t(size_t)> nanoseconds) {
    return {std::string(1, name), [this, name, nanoseconds, calls = size_t(0)]() mutable {
              calls_ += name;
              last_ = nanoseconds(calls++);
              nanoseconds_ += last_;
            }};
  }
  Subject subject(char name, int64_t nanoseconds) {
    return subject(name, [nanoseconds](size_t) { return nanoseconds; });
  }

  const std::string &calls() const { return calls_; } ///< the names in the order of the calls
  double seconds() const { return static_cast<double>(nanoseconds_) / second; }
  double lastCall() const { return static_cast<double>(last_) / second; }

private:
  std::string calls_;
  int64_t nanoseconds_ = 5 * second, last_ = 0; // no clock starts at zero
};

/// Never within one percent, however many trials. The warm-up is three calls: the second is faster than the first.
int64_t restless(size_t call) { return call % 2 ? 10 * millisecond : 20 * millisecond; }

std::vector<double> upTo(size_t n) {
  std::vector<double> samples(n);
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

void expectEstimate(const Estimate &found, double median, double low, double high) {
  EXPECT_DOUBLE_EQ(found.median, median);
  EXPECT_DOUBLE_EQ(found.low, low);
  EXPECT_DOUBLE_EQ(found.high, high);
}

// --- Statistics.

TEST(Estimate, NoSamplesGiveNothing) {
  expectEstimate(estimate({}), 0, 0, 0);
  EXPECT_EQ(estimate({}).spread(), 0);
}

TEST(Estimate, FewerThanSixSamplesGiveFastestToSlowest) {
  expectEstimate(estimate({4}), 4, 4, 4);
  expectEstimate(estimate({4, 2}), 3, 2, 4);
  expectEstimate(estimate({9, 1, 2}), 2, 1, 9);
  expectEstimate(estimate({9, 4, 1, 2}), 3, 1, 9);
  expectEstimate(estimate({9, 4, 1, 2, 5}), 4, 1, 9);
}

TEST(Estimate, RanksAreThoseOfThePublishedTables) {
  struct Row {
    size_t samples, lowRank; // counted from 1, as the tables do
  };
  for (Row row : {Row{6, 1}, {7, 1}, {8, 1}, {9, 2}, {11, 2}, {12, 3}, {15, 4}, {20, 6}, {25, 8}, {30, 10}, {50, 18},
                  {100, 40}}) {
    SCOPED_TRACE(row.samples);
    auto n = static_cast<double>(row.samples), rank = static_cast<double>(row.lowRank);
    expectEstimate(estimate(upTo(row.samples)), (n - 1) / 2, rank - 1, n - rank);
  }
}

TEST(Estimate, IntervalIsTheNarrowestThatCovers95Percent) {
  // Exactly, in integers: a rank too many on either side leaves 2 * sum_{i <= k} C(n, i) / 2^n outside.
  for (size_t n = 6; n <= 62; ++n) {
    Estimate found = estimate(upTo(n));
    auto rank = static_cast<size_t>(found.low);
    EXPECT_EQ(found.high, static_cast<double>(n - 1 - rank));
    unsigned __int128 choose = 1, tail = 0, all = static_cast<unsigned __int128>(1) << n;
    for (size_t k = 0; k <= rank; ++k, choose = choose * (n - k + 1) / k)
      tail += choose;
    EXPECT_LE(tail * 40, all) << n << " samples: covers less";
    EXPECT_GT((tail + choose) * 40, all) << n << " samples: could be narrower";
  }
}

TEST(Estimate, ManySamples) {
  // Where the normal approximation is good: n/2 -+ 1.96 sqrt(n)/2.
  expectEstimate(estimate(upTo(2000)), 999.5, 955, 1044);
  expectEstimate(estimate(upTo(10001)), 5000, 4901, 5099);
}

TEST(Estimate, CoversTheMedianOfASkewedDistribution) {
  std::mt19937_64 random(1);
  int runs = 4000, covered = 0;
  for (int run = 0; run < runs; ++run) {
    std::vector<double> samples(15);
    for (double &sample : samples) {
      double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
      sample = uniform * uniform * uniform;
    }
    Estimate found = estimate(samples);
    covered += found.low <= 0.125 && 0.125 <= found.high;
  }
  EXPECT_GE(covered, runs * 95 / 100); // 96.5% by the binomial
  EXPECT_LE(covered, runs * 98 / 100);
}

TEST(Estimate, OrderOfTheSamplesDoesNotMatter) {
  std::vector<double> samples = upTo(33);
  Estimate sorted = estimate(samples);
  std::shuffle(samples.begin(), samples.end(), std::mt19937_64(2));
  expectEstimate(estimate(samples), sorted.median, sorted.low, sorted.high);
}

TEST(Estimate, OneOutlierOfNineDoesNotShow) {
  expectEstimate(estimate({3, 3, 3, 3, 3, 3, 3, 3, 3000}), 3, 3, 3);
}

TEST(Estimate, SpreadIsTheLargerSide) {
  EXPECT_DOUBLE_EQ((Estimate{10, 9, 12}).spread(), 0.2);
  EXPECT_DOUBLE_EQ((Estimate{10, 7, 12}).spread(), 0.3);
  EXPECT_EQ((Estimate{10, 10, 10}).spread(), 0);
  EXPECT_EQ((Estimate{0, 0, 0}).spread(), 0); // a clock too coarse to see anything
}

TEST(Estimate, AnswersInWords) {
  EXPECT_EQ(answerOf({1.2, 1.1, 1.3}), "faster");
  EXPECT_EQ(answerOf({1.2, 0.99, 1.3}), "no difference");
  EXPECT_EQ(answerOf({1, 1, 1}), "no difference");
  EXPECT_EQ(answerOf({0.9, 0.8, 1.01}), "no difference");
  EXPECT_EQ(answerOf({0.9, 0.8, 0.99}), "slower");
}

// --- When to stop.

TEST(Bench, SteadySubjectStopsAtMinTrials) {
  FakeTime time;
  Timing timing = compare({time.subject('a', millisecond)}, time.options()).timings.at(0);
  EXPECT_EQ(timing.name, "a");
  EXPECT_EQ(timing.trials, 7u);
  EXPECT_EQ(timing.callsPerTrial, 1u);
  EXPECT_TRUE(timing.steady);
  expectEstimate(timing.seconds, 1e-3, 1e-3, 1e-3);
  EXPECT_DOUBLE_EQ(timing.fastest, 1e-3);
  EXPECT_EQ(time.calls().size(), 2u + 7u); // the first two are the warm-up
}

TEST(Bench, TrialsGoOnUntilTheIntervalIsNarrow) {
  // Three slow trials lie outside the interval from 15 samples on (the 12th is its end), and not before.
  FakeTime time;
  Subject subject =
      time.subject('a', [](size_t call) { return call >= 2 && call < 5 ? 2 * millisecond : millisecond; });
  Timing timing = compare({subject}, time.options()).timings.at(0);
  EXPECT_EQ(timing.trials, 15u);
  EXPECT_TRUE(timing.steady);
  expectEstimate(timing.seconds, 1e-3, 1e-3, 1e-3);
}

TEST(Bench, SpreadAskedForIsTheOneThatEndsIt) {
  FakeTime time;
  BenchOptions options = time.options();
  options.budgetSeconds = 1000;
  options.maxTrials = 100;
  options.spread = 0.5; // `restless` is 1.5 +- 0.5, a third of it
  EXPECT_EQ(compare({time.subject('a', restless)}, options).timings.at(0).trials, 7u + 1u); // an odd number is 1 or 2
  options.spread = 0.3;
  EXPECT_EQ(compare({time.subject('a', restless)}, options).timings.at(0).trials, 100u);
}

TEST(Bench, MaxTrialsEndsIt) {
  FakeTime time;
  BenchOptions options = time.options();
  options.budgetSeconds = 1000;
  options.maxTrials = 40;
  Timing timing = compare({time.subject('a', restless)}, options).timings.at(0);
  EXPECT_EQ(timing.trials, 40u);
  EXPECT_FALSE(timing.steady);
  expectEstimate(timing.seconds, 15e-3, 10e-3, 20e-3);
  EXPECT_DOUBLE_EQ(timing.fastest, 10e-3);
  EXPECT_EQ(time.calls().size(), 3u + 40u);
}

TEST(Bench, BudgetEndsIt) {
  FakeTime time;
  BenchOptions options = time.options();
  options.budgetSeconds = 2;
  double start = time.seconds();
  Timing timing = compare({time.subject('a', restless)}, options).timings.at(0);
  EXPECT_GT(timing.trials, 7u);
  EXPECT_FALSE(timing.steady);
  EXPECT_GT(time.seconds() - start, 2);
  EXPECT_LE(time.seconds() - time.lastCall() - start, 2 + 1e-9); // and not one trial more
}

TEST(Bench, SlowSubjectGetsThreeTrials) {
  FakeTime time;
  Timing timing = compare({time.subject('a', 10 * second)}, time.options()).timings.at(0);
  EXPECT_EQ(timing.trials, 3u);
  EXPECT_FALSE(timing.steady); // three equal figures are no 95% interval
  EXPECT_EQ(time.calls().size(), 2u + 3u);
}

TEST(Bench, SlowSubjectGetsNoMoreThanMinTrials) {
  FakeTime time;
  BenchOptions options = time.options();
  options.minTrials = 2;
  EXPECT_GT(compare({time.subject('a', restless)}, options).timings.at(0).trials, 2u);
  options.budgetSeconds = 1e-3;
  EXPECT_EQ(compare({time.subject('a', restless)}, options).timings.at(0).trials, 2u);
}

TEST(Bench, BudgetMayEndItBeforeMinTrials) {
  FakeTime time;
  Timing timing = compare({time.subject('a', 130 * millisecond)}, time.options()).timings.at(0);
  EXPECT_EQ(timing.trials, 6u); // 2 + 6 calls are 1.04 s
  EXPECT_FALSE(timing.steady);
}

TEST(Bench, OneTrial) {
  FakeTime time;
  BenchOptions options = time.options();
  options.maxTrials = 1;
  Timing timing = compare({time.subject('a', 3 * millisecond)}, options).timings.at(0);
  EXPECT_EQ(timing.trials, 1u);
  EXPECT_FALSE(timing.steady);
  expectEstimate(timing.seconds, 3e-3, 3e-3, 3e-3);
}

TEST(Bench, SteadyIsSaidOfTheLastRoundToo) {
  // The interval is looked at after 16 trials, where the four slow ones are still its end, and next after 18. Of 17
  // they lie outside.
  FakeTime time;
  BenchOptions options = time.options();
  options.minTrials = 16;
  options.maxTrials = 17;
  Subject subject =
      time.subject('a', [](size_t call) { return call >= 2 && call < 6 ? 2 * millisecond : millisecond; });
  Timing timing = compare({subject}, options).timings.at(0);
  EXPECT_EQ(timing.trials, 17u);
  EXPECT_LE(timing.seconds.spread(), options.spread);
  EXPECT_TRUE(timing.steady);
}

// --- Warm-up and calls per trial.

TEST(Bench, WarmUpGoesOnWhileCallsGetFaster) {
  FakeTime time;
  Subject subject = time.subject('a', [](size_t call) { // 100, 50, 20, 10, 10, 10, ... ms
    const int64_t first[] = {100, 50, 20};
    return (call < 3 ? first[call] : 10) * millisecond;
  });
  Timing timing = compare({subject}, time.options()).timings.at(0);
  EXPECT_EQ(timing.trials, 7u);
  EXPECT_EQ(time.calls().size(), 5u + 7u);
  expectEstimate(timing.seconds, 10e-3, 10e-3, 10e-3);
}

TEST(Bench, WarmUpTakesNoMoreThanAQuarterOfTheBudget) {
  // 100 + 90 + 81 ms are a quarter of a second; the fourth call would be faster again by a tenth.
  FakeTime time;
  Subject subject = time.subject('a', [](size_t call) {
    const int64_t first[] = {1000, 900, 810};
    return (call < 3 ? first[call] : 729) * millisecond / 10;
  });
  Timing timing = compare({subject}, time.options()).timings.at(0);
  EXPECT_EQ(timing.trials, 7u);
  EXPECT_EQ(time.calls().size(), 3u + 7u);
}

TEST(Bench, ShortCallsAreRepeated) {
  FakeTime time;
  BenchOptions options = time.options();
  options.budgetSeconds = 1000;
  options.minTrialSeconds = 1;
  Timing timing = compare({time.subject('a', 250 * millisecond)}, options).timings.at(0);
  EXPECT_EQ(timing.callsPerTrial, 4u);
  EXPECT_EQ(timing.trials, 7u);
  EXPECT_EQ(time.calls().size(), 2u + 7u * 4u);
  expectEstimate(timing.seconds, 0.25, 0.25, 0.25); // of one call

  EXPECT_EQ(compare({time.subject('a', 300 * millisecond)}, options).timings.at(0).callsPerTrial, 4u); // rounded up
  EXPECT_EQ(compare({time.subject('a', 2 * second)}, options).timings.at(0).callsPerTrial, 1u);
}

TEST(Bench, ClockThatStandsStill) {
  FakeTime time;
  Comparison comparison = compare({time.subject('a', 0), time.subject('b', 0)}, time.options());
  expectEstimate(comparison.timings.at(1).seconds, 0, 0, 0);
  expectEstimate(comparison.ratios.at(1), 1, 1, 1); // no more is known
  EXPECT_EQ(comparison.timings.at(0).trials, 7u);
  EXPECT_LE(comparison.timings.at(0).callsPerTrial, 1000000u);
}

TEST(Bench, RealClockIsTheDefault) {
  BenchOptions options;
  options.budgetSeconds = 1e-3;
  options.maxTrials = 2;
  size_t calls = 0;
  Timing timing = compare({{"a", [&] { ++calls; }}}, options).timings.at(0);
  EXPECT_EQ(timing.trials, 2u);
  EXPECT_GE(calls, 2 + timing.trials * timing.callsPerTrial);
}

// --- Side by side.

TEST(Compare, SubjectsTakeTurns) {
  FakeTime time;
  BenchOptions options = time.options();
  options.maxTrials = 4;
  compare({time.subject('a', millisecond), time.subject('b', millisecond)}, options);
  EXPECT_EQ(time.calls(), "aabb"
                          "abbaabba");
}

TEST(Compare, ThreeSubjectsTakeTurns) {
  FakeTime time;
  BenchOptions options = time.options();
  options.maxTrials = 3;
  Comparison comparison = compare(
      {time.subject('a', millisecond), time.subject('b', millisecond), time.subject('c', millisecond)}, options);
  EXPECT_EQ(time.calls(), "aabbcc"
                          "abccbaabc");
  EXPECT_EQ(comparison.timings.at(2).name, "c");
  EXPECT_EQ(comparison.ratios.size(), 3u);
}

TEST(Compare, RatioIsOfTheFirstSubject) {
  FakeTime time;
  Comparison comparison = compare(
      {time.subject('a', 8 * millisecond), time.subject('b', 20 * millisecond), time.subject('c', 2 * millisecond)},
      time.options());
  expectEstimate(comparison.ratios.at(0), 1, 1, 1);
  expectEstimate(comparison.ratios.at(1), 2.5, 2.5, 2.5);
  expectEstimate(comparison.ratios.at(2), 0.25, 0.25, 0.25);
  expectEstimate(comparison.timings.at(1).seconds, 20e-3, 20e-3, 20e-3);
}

TEST(Compare, RatioIsTakenWithinEachRound) {
  // Each round is slower than the one before, for both alike: the times are spread wide and the ratio is sharp.
  FakeTime time;
  BenchOptions options = time.options();
  options.maxTrials = 9;
  auto weather = [](int64_t base) {
    return [base](size_t call) { return base * static_cast<int64_t>(1 + call) * millisecond; };
  };
  Comparison comparison = compare({time.subject('a', weather(1)), time.subject('b', weather(3))}, options);
  EXPECT_FALSE(comparison.timings.at(0).steady);
  EXPECT_GT(comparison.timings.at(1).seconds.spread(), 0.4);
  expectEstimate(comparison.ratios.at(1), 3, 3, 3);
}

TEST(Compare, RatioHasAnIntervalOfItsOwn) {
  // Trials 0 to 8 of b take 101 to 109% of a's: of nine ratios the interval is from the second to the eighth.
  FakeTime time;
  BenchOptions options = time.options();
  options.maxTrials = 9;
  options.budgetSeconds = 1000;
  auto slowing = [](size_t call) { return (call < 2 ? 100 : 99 + static_cast<int64_t>(call)) * millisecond; };
  Comparison comparison = compare({time.subject('a', 100 * millisecond), time.subject('b', slowing)}, options);
  expectEstimate(comparison.ratios.at(1), 1.05, 1.02, 1.08);
}

TEST(Compare, CallsPerTrialAreOfEachSubject) {
  FakeTime time;
  BenchOptions options = time.options();
  options.budgetSeconds = 1000;
  options.minTrialSeconds = 1;
  Comparison comparison = compare({time.subject('a', 500 * millisecond), time.subject('b', 2 * second)}, options);
  EXPECT_EQ(comparison.timings.at(0).callsPerTrial, 2u);
  EXPECT_EQ(comparison.timings.at(1).callsPerTrial, 1u);
  expectEstimate(comparison.ratios.at(1), 4, 4, 4); // of one call, not of one trial
}

TEST(Compare, EverySubjectMustBecomeSteady) {
  FakeTime time;
  BenchOptions options = time.options();
  options.maxTrials = 30;
  Comparison comparison = compare({time.subject('a', millisecond), time.subject('b', restless)}, options);
  for (const Timing &timing : comparison.timings) {
    EXPECT_EQ(timing.trials, 30u);
    EXPECT_FALSE(timing.steady);
  }
}

TEST(Compare, NothingToMeasureIsRefused) {
  FakeTime time;
  EXPECT_THROW(compare({}, time.options()), Error);
  BenchOptions options = time.options();
  options.maxTrials = 0;
  EXPECT_THROW(compare({time.subject('a', millisecond)}, options), Error);
  EXPECT_EQ(time.calls(), "");
}

TEST(Compare, FailureOfASubjectIsTheCallersToSee) {
  FakeTime time;
  EXPECT_THROW(compare({{"a", [] { throw Error("no"); }}}, time.options()), Error);
}

} // namespace
