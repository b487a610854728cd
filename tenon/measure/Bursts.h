// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace tenon {

/// Calls in a row that take about as long as a burst should, timed as one.
///
/// How many they are follows from the fastest of some single calls. One call would not do: where it is held up for
/// milliseconds (its thread waits for a processor), bursts of a few calls would be measured ever after, and what these
/// take is waking up, with everything cold.
class Bursts {
public:
  using Clock = std::chrono::steady_clock;
  /// `now` tells the time: a parameter for tests, as BenchOptions::now is.
  Bursts(std::function<void()> run, double seconds, std::function<Clock::time_point()> now = Clock::now);
  /// Seconds per call. Where others disturb so much that it takes several times as long, fewer calls do.
  double operator()();
  size_t calls() const { return calls_; }
  double seconds() const { return one_ * static_cast<double>(calls_); } ///< of a burst

private:
  double time();
  double secondsSince(Clock::time_point start) const;

  std::function<void()> run_;
  std::function<Clock::time_point()> now_;
  double most_, one_ = 0;
  size_t calls_ = 1;
  bool short_ = false;
};

} // namespace tenon
