// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/measure/Bench.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

/// Several subjects that time themselves (kernels of ours, peers in other processes), measured in rounds of one burst
/// of each, in one of two regimes:
///
/// sustained  Burst upon burst without a pause, first untimed until the device is as hot as it gets. Large matrix
///            products draw more power than the card may: its clocks sink within a fraction of a second and stay there,
///            and what is measured is work per joule. The untimed part ends when rounds no longer get slower.
/// bursts     A few launches, then a pause many times as long, in which the clocks recover: the power drawn on average
///            stays far below the limit, and what is measured is work per cycle at full clocks.
///
/// Ratios are taken within rounds; every round begins with another subject and every second one runs backwards, so that
/// none is always in the same other's wake. Medians and intervals are those of Bench.h.
namespace tenon {

/// How long one burst of a subject is to be.
struct BurstLength {
  double seconds = 3e-3; ///< timed; as many launches as take about that, at least one
  size_t untimed = 2;    ///< launches before, so that the device is busy while the host queues the rest
};

struct GpuSubject {
  std::string name;
  std::function<double(const BurstLength &)> burst; ///< runs it; seconds per launch
};

struct Regime {
  std::string name;
  BurstLength length;
  double pauseSeconds = 0; ///< after each burst
  double heatSeconds = 0, maxHeatSeconds = 0; ///< of untimed rounds: at least, and at most
  int minRounds = 9, maxRounds = 25;
  double spread = 0.005;      ///< more than the least rounds are measured until every ratio's interval lies within this
  double budgetSeconds = 3;   ///< ... or so much time is gone
  /// What tells the time and what waits: parameters so that the rules can be tested without waiting.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  std::function<void(double seconds)> wait; ///< none: sleeps

  static Regime sustained();
  static Regime bursts();
};

struct Rounds {
  struct One {
    std::string name;
    std::vector<double> seconds; ///< per launch, of each round that it took part in
    std::string failure;         ///< it threw: why, and it takes part no more
  };
  std::vector<One> subjects; ///< in the order given
  double heatedSeconds = 0;
  bool steady = false; ///< every ratio's interval became as small as asked

  Estimate time(size_t subject) const { return estimate(subjects[subject].seconds); }
  /// Its time over that of subject 0, within rounds.
  Estimate ratio(size_t subject) const;
};

/// `afterHeating` is called once, when the timed rounds begin. An error of subject 0 is thrown; another subject's ends
/// its part.
Rounds measureRounds(const std::vector<GpuSubject> &subjects, const Regime &regime,
                     const std::function<void()> &afterHeating = {});

} // namespace tenon
