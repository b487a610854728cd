// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// How long something takes, with an honest interval.
///
/// The rule, for one subject or several measured side by side:
/// 1. Warm-up. Each subject runs at least twice, and on until a call is no longer 5% faster than every one before it,
///    or a quarter of the budget is gone. This is where code is compiled, pages are touched and clocks rise.
/// 2. A trial is one call, or as many calls in a row as take `minTrialSeconds`, so that the clock's grain does not
///    show; its figure is the time of one call.
/// 3. Trials go in rounds, A B A B ...: every subject meets the same weather, and the ratio is taken within each round.
///    The order alternates (A B, B A), so that none always runs in the other's wake.
/// 4. Rounds stop when there are at least `minTrials` and the interval of every median lies within `spread` of it, or
///    when the budget is spent (after at least three, or `minTrials` if that is less), or at `maxTrials`.
/// 5. The figure is the median; its 95% interval is the pair of order statistics that covers the median of any
///    distribution with that probability (exact binomial, no normality assumed). Fewer than six trials cannot give 95%:
///    the interval is then from the fastest to the slowest.
/// 6. What reading the clock costs is taken off every trial.
/// 7. Nothing is thrown away: the median does not mind outliers, and how many there are is told (further from the
///    middle half than three times its width), as is the drift from the first third of the trials to the last: a
///    machine that gets hot, or a neighbour that came, shows there. What else went on is Weather.h's to say.
namespace tenon {

struct BenchOptions {
  double budgetSeconds = 1; ///< for all subjects of one comparison together
  double spread = 0.01;
  double minTrialSeconds = 50e-6;
  int minTrials = 7, maxTrials = 2000;
  /// What tells the time: a parameter so that the rule can be tested on a clock that does as it is told.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// A median with its 95% interval.
struct Estimate {
  double median = 0, low = 0, high = 0;
  /// The larger distance from the median to an end of the interval, relative to the median.
  double spread() const;
};
Estimate estimate(std::vector<double> samples);
/// Of another's time over ours, taken within rounds: "faster" or "slower" where the whole interval says so of ours,
/// otherwise "no difference".
std::string_view answerOf(const Estimate &ratio);
/// Samples that lie further from the middle half than three times its width (Tukey's "far out").
size_t countOutliers(std::vector<double> samples);
/// The median of the last third over that of the first; 1 for fewer than nine.
double driftOf(const std::vector<double> &samples);

struct Timing {
  std::string name;
  Estimate seconds; ///< of one call
  double fastest = 0;
  size_t trials = 0, callsPerTrial = 1;
  bool steady = false; ///< the intervals of all subjects became as small as asked
  size_t outliers = 0; ///< trials far from the others
  double drift = 1;    ///< median of the last third of the trials over that of the first; 1 when there are few
};

/// What is measured: one call of `run` is the unit.
struct Subject {
  std::string name;
  std::function<void()> run;
};

struct Comparison {
  std::vector<Timing> timings;   ///< in the order of the subjects
  std::vector<Estimate> ratios;  ///< time of subject i over time of subject 0; the first is 1
};

Comparison compare(const std::vector<Subject> &subjects, const BenchOptions &options = {});

} // namespace tenon
