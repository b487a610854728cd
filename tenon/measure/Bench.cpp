// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Bench.h"

#include "tenon/base/Error.h"

#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

class StopWatch {
public:
  explicit StopWatch(const BenchOptions &options) : now_(options.now), start_(now_()) {}
  double seconds() const { return std::chrono::duration<double>(now_() - start_).count(); }

private:
  const decltype(BenchOptions::now) &now_;
  std::chrono::steady_clock::time_point start_;
};

/// What a stop watch shows when nothing runs.
double timerOverhead(const BenchOptions &options) {
  double least = StopWatch(options).seconds();
  for (int i = 0; i < 64; ++i)
    least = std::min(least, StopWatch(options).seconds());
  return least;
}

/// Seconds per call of `calls` calls in a row.
double trial(const Subject &subject, size_t calls, double overhead, const BenchOptions &options) {
  StopWatch watch(options);
  for (size_t i = 0; i < calls; ++i)
    subject.run();
  return std::max(watch.seconds() - overhead, 0.0) / static_cast<double>(calls);
}

/// Runs until calls stop getting faster; returns the fastest.
double warmUp(const Subject &subject, double budgetSeconds, double overhead, const BenchOptions &options) {
  StopWatch watch(options);
  double fastest = trial(subject, 1, overhead, options);
  for (;;) {
    double next = trial(subject, 1, overhead, options);
    bool steady = next >= fastest * 0.95; // also where the clock is too coarse to see a call: both are zero
    fastest = std::min(fastest, next);
    if (steady || watch.seconds() > budgetSeconds)
      return fastest;
  }
}

/// The k (from 0) for which [sorted[k], sorted[n-1-k]] covers the median with 95%, as large as possible.
size_t intervalRank(size_t n) {
  // P(at most k of n samples lie below the median) is the binomial tail of n fair coins; both tails may take 5%.
  double logAll = static_cast<double>(n) * std::log(2.0), tail = 0;
  size_t rank = 0;
  for (size_t k = 0; 2 * k + 1 < n; ++k) {
    double logChoose = std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0);
    tail += std::exp(logChoose - logAll);
    if (2 * tail > 0.05)
      break;
    rank = k;
  }
  return rank;
}

bool closeEnough(const std::vector<std::vector<double>> &samples, double spread) {
  for (const std::vector<double> &one : samples)
    if (estimate(one).spread() > spread)
      return false;
  return true;
}

} // namespace

double Estimate::spread() const { return median > 0 ? std::max(median - low, high - median) / median : 0; }

Estimate estimate(std::vector<double> samples) {
  if (samples.empty())
    return {};
  std::sort(samples.begin(), samples.end());
  size_t n = samples.size(), rank = intervalRank(n);
  double median = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  return {median, samples[rank], samples[n - 1 - rank]};
}

std::string_view answerOf(const Estimate &ratio) {
  return ratio.low > 1 ? "faster" : ratio.high < 1 ? "slower" : "no difference";
}

size_t countOutliers(std::vector<double> samples) {
  if (samples.size() < 4)
    return 0;
  std::sort(samples.begin(), samples.end());
  double low = samples[samples.size() / 4], high = samples[samples.size() - 1 - samples.size() / 4];
  double reach = 3 * (high - low);
  return static_cast<size_t>(std::count_if(samples.begin(), samples.end(), [&](double sample) {
    return sample < low - reach || sample > high + reach;
  }));
}

double driftOf(const std::vector<double> &samples) {
  size_t third = samples.size() / 3;
  if (third < 3)
    return 1;
  auto part = [&](size_t first) {
    auto begin = samples.begin() + static_cast<std::ptrdiff_t>(first);
    return estimate(std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(third))).median;
  };
  double first = part(0), last = part(samples.size() - third);
  return first > 0 ? last / first : 1;
}

Comparison compare(const std::vector<Subject> &subjects, const BenchOptions &options) {
  if (subjects.empty())
    throw Error("a comparison needs at least one subject");
  if (options.maxTrials < 1)
    throw Error("a comparison needs at least one trial; maxTrials is " + std::to_string(options.maxTrials));
  StopWatch watch(options);
  size_t count = subjects.size();
  double overhead = timerOverhead(options);
  std::vector<size_t> calls(count);
  for (size_t i = 0; i < count; ++i) {
    double one = warmUp(subjects[i], options.budgetSeconds / 4 / static_cast<double>(count), overhead, options);
    calls[i] = static_cast<size_t>(std::clamp(std::ceil(options.minTrialSeconds / std::max(one, 1e-9)), 1.0, 1e6));
  }

  std::vector<std::vector<double>> samples(count);
  int nextCheck = options.minTrials;
  for (int round = 1; round <= options.maxTrials; ++round) {
    for (size_t i = 0; i < count; ++i) {
      size_t subject = round % 2 ? i : count - 1 - i;
      samples[subject].push_back(trial(subjects[subject], calls[subject], overhead, options));
    }
    // Sorting the samples of every round anew would cost more than short trials do: look again after some more.
    if (round >= nextCheck) {
      nextCheck += std::max(1, nextCheck / 8);
      if (closeEnough(samples, options.spread))
        break;
    }
    if (watch.seconds() > options.budgetSeconds && round >= std::min(3, options.minTrials))
      break;
  }

  // Asked anew: the last round may have been one that was not looked at.
  bool steady = static_cast<int>(samples[0].size()) >= options.minTrials && closeEnough(samples, options.spread);
  Comparison comparison;
  for (size_t i = 0; i < count; ++i) {
    Timing timing{subjects[i].name, estimate(samples[i]), 0, samples[i].size(), calls[i], steady, 0, 1};
    timing.fastest = *std::min_element(samples[i].begin(), samples[i].end());
    timing.outliers = countOutliers(samples[i]);
    timing.drift = driftOf(samples[i]);
    comparison.timings.push_back(timing);
    std::vector<double> ratios(samples[i].size());
    for (size_t round = 0; round < ratios.size(); ++round)
      ratios[round] = samples[0][round] > 0 ? samples[i][round] / samples[0][round] : 1;
    comparison.ratios.push_back(estimate(ratios));
  }
  return comparison;
}

} // namespace tenon
