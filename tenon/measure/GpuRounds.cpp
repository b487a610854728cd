// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/GpuRounds.h"

#include "tenon/base/Error.h"

#include <algorithm>
#include <thread>

namespace tenon {
namespace {

class Measurement {
public:
  Measurement(const std::vector<GpuSubject> &subjects, const Regime &regime) : subjects_(subjects), regime_(regime) {
    for (const GpuSubject &subject : subjects)
      rounds_.subjects.push_back({subject.name, {}, {}});
  }

  Rounds run(const std::function<void()> &afterHeating) {
    if (regime_.maxHeatSeconds > 0)
      heat();
    else
      pause();
    if (afterHeating)
      afterHeating();
    double begin = seconds();
    for (int round = 0; round < regime_.maxRounds; ++round) {
      runRound(round, /*timed=*/true);
      if (round + 1 < regime_.minRounds)
        continue;
      rounds_.steady = isSteady();
      if (rounds_.steady || seconds() - begin > regime_.budgetSeconds)
        break;
    }
    return std::move(rounds_);
  }

private:
  double seconds() const { return std::chrono::duration<double>(regime_.now().time_since_epoch()).count(); }

  void pause() const {
    if (regime_.pauseSeconds <= 0)
      return;
    if (regime_.wait)
      regime_.wait(regime_.pauseSeconds);
    else
      std::this_thread::sleep_for(std::chrono::duration<double>(regime_.pauseSeconds));
  }

  /// One burst of each that still takes part; how long they took together, per launch.
  double runRound(int round, bool timed) {
    size_t count = subjects_.size(), first = static_cast<size_t>(round) % count;
    double total = 0;
    for (size_t step = 0; step < count; ++step) {
      size_t i = (first + (round % 2 ? count - step : step)) % count;
      Rounds::One &one = rounds_.subjects[i];
      if (!one.failure.empty())
        continue;
      try {
        double took = subjects_[i].burst(regime_.length);
        total += took;
        if (timed)
          one.seconds.push_back(took);
      } catch (const Error &error) {
        if (i == 0)
          throw;
        one.failure = error.what();
        one.seconds.clear();
      }
      pause();
    }
    return total;
  }

  /// Until rounds get no slower: the median of four is within half a per cent of the four's before.
  void heat() {
    double begin = seconds(), now = begin;
    std::vector<double> totals;
    for (int round = 0; now - begin < regime_.maxHeatSeconds; ++round) {
      totals.push_back(runRound(round, /*timed=*/false));
      now = seconds();
      size_t count = totals.size();
      if (now - begin < regime_.heatSeconds || count < 8)
        continue;
      double before = estimate({totals.begin() + count - 8, totals.begin() + count - 4}).median;
      double lately = estimate({totals.begin() + count - 4, totals.end()}).median;
      if (lately <= before * 1.005)
        break;
    }
    rounds_.heatedSeconds = now - begin;
  }

  bool isSteady() const {
    for (size_t i = 1; i < subjects_.size(); ++i)
      if (rounds_.subjects[i].failure.empty() && rounds_.ratio(i).spread() > regime_.spread)
        return false;
    return subjects_.size() > 1 || rounds_.time(0).spread() <= regime_.spread;
  }

  const std::vector<GpuSubject> &subjects_;
  const Regime &regime_;
  Rounds rounds_;
};

} // namespace

// Long enough that the time between two bursts, when the other process is told to begin, does not let the card cool.
Regime Regime::sustained() {
  Regime regime;
  regime.name = "sustained";
  regime.length = {15e-3, 1};
  regime.heatSeconds = 0.5;
  regime.maxHeatSeconds = 1.2;
  regime.maxRounds = 21;
  regime.budgetSeconds = 1;
  return regime;
}

Regime Regime::bursts() {
  Regime regime;
  regime.name = "bursts";
  regime.length = {1.5e-3, 1};
  regime.pauseSeconds = 20e-3;
  regime.maxRounds = 15;
  regime.budgetSeconds = 1;
  return regime;
}

Estimate Rounds::ratio(size_t subject) const {
  const std::vector<double> &ours = subjects[0].seconds, &theirs = subjects[subject].seconds;
  if (ours.size() != theirs.size())
    throw InternalError("rounds of " + std::to_string(ours.size()) + " and " + std::to_string(theirs.size()) +
                        " figures");
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i)
    ratios.push_back(ours[i] > 0 ? theirs[i] / ours[i] : 1); // both below the clock's grain
  return estimate(std::move(ratios));
}

Rounds measureRounds(const std::vector<GpuSubject> &subjects, const Regime &regime,
                     const std::function<void()> &afterHeating) {
  if (subjects.empty() || regime.minRounds < 1 || regime.maxRounds < regime.minRounds)
    throw Error("rounds need a subject, and at most no fewer than at least one");
  return Measurement(subjects, regime).run(afterHeating);
}

} // namespace tenon
