// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/measure/Bench.h"

#include <functional>
#include <vector>

/// Two subjects that time themselves (a GPU by its own clock, another process by its own), compared in pairs.
///
/// A pair is one burst of each, A B, then B A, then A B ...: what slows the machine down for longer than a burst slows
/// both of a pair down. The ratio is taken within each pair; its median and 95% interval are those of Bench.h (order
/// statistics, no normality assumed).
namespace tenon {

struct PairOptions {
  int minPairs = 15, maxPairs = 45;
  double spread = 0.005; ///< more than the least pairs are measured until the interval of the ratio lies within this
};

struct Pairs {
  std::vector<double> ours, theirs; ///< of each pair
  Estimate oursEstimate() const { return estimate(ours); }
  Estimate theirsEstimate() const { return estimate(theirs); }
  /// theirs / ours: where these are times, above 1 is a win of ours.
  Estimate ratio() const;
};

/// Each function runs one burst and returns its figure.
Pairs comparePairs(const std::function<double()> &ours, const std::function<double()> &theirs,
                   const PairOptions &options = {});

} // namespace tenon
