// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/tune/Features.h"
#include "tenon/tune/TableFile.h"

#include <vector>

/// Strategies judged against the exhaustive optimum, by replaying a table: what a strategy asks for is looked up
/// instead of measured.
namespace tenon::tuning {

/// A table with what the strategy may know of each row beforehand.
struct ReplayCase {
  TuneTable table;
  std::vector<Candidate> candidates; ///< in the order of the rows
};

struct ReplayResult {
  double fraction = 0;  ///< the optimum's time over the chosen one's: 1 is the optimum
  size_t measured = 0;  ///< configurations
  double cost = 0;      ///< seconds that measuring these took when the table was made
  /// How many configurations random search measures on the average until it has one as good.
  double randomNeeds = 0;
};

/// What the strategy would have chosen. Policy off: its first guess, nothing measured.
ReplayResult replay(const ReplayCase &one, const StrategyOptions &options,
                    const std::vector<Experience> &experience = {});

/// The other tables of the same kernel as experience for this one.
std::vector<Experience> experienceOf(const std::vector<ReplayCase> &all, size_t except);

/// The geometric mean of the fractions, and the means of the others.
ReplayResult meanOf(const std::vector<ReplayResult> &results);

} // namespace tenon::tuning
