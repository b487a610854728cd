// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Pairs.h"

#include "tenon/base/Error.h"

namespace tenon {

Estimate Pairs::ratio() const {
  if (ours.size() != theirs.size())
    throw InternalError("pairs of " + std::to_string(ours.size()) + " and " + std::to_string(theirs.size()) +
                        " figures");
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i)
    ratios.push_back(ours[i] > 0 ? theirs[i] / ours[i] : 1); // both below the clock's grain
  return estimate(std::move(ratios));
}

Pairs comparePairs(const std::function<double()> &ours, const std::function<double()> &theirs,
                   const PairOptions &options) {
  if (options.minPairs < 1 || options.maxPairs < options.minPairs)
    throw Error("a comparison needs at least one pair, and at most no fewer than at least: not " +
                std::to_string(options.minPairs) + " to " + std::to_string(options.maxPairs));
  Pairs pairs;
  for (int pair = 0; pair < options.maxPairs; ++pair) {
    if (pair % 2 == 0) {
      pairs.ours.push_back(ours());
      pairs.theirs.push_back(theirs());
    } else {
      pairs.theirs.push_back(theirs());
      pairs.ours.push_back(ours());
    }
    if (pair + 1 >= options.minPairs && pairs.ratio().spread() <= options.spread)
      break;
  }
  return pairs;
}

} // namespace tenon
