// SPDX-License-Identifier: Apache-2.0
//
// Internal to tune/ and its command: the numbers of the model.
#pragma once

#include "tenon/model/GpuCost.h"
#include "tenon/tune/Ranker.h"

#include <vector>

namespace tenon {

/// What the formulas of Ranker.h leave open: properties of processors and of the code that is generated for them, not
/// of kernels. Chosen with the tables of bench/tables in view; `tenon tune --held-out` says how much that matters.
struct ModelFactors : model::GpuFactors {
  // Of the CPU.
  double instance = 1e-7;        ///< seconds that beginning an instance takes
  double serial = 0.3;           ///< the part of the shorter of memory and work that is not hidden behind the longer
  double again = 1;              ///< how often requested bytes go through L2
  double mixed = 0.25;           ///< more that memory takes where a core reads and writes by turns
  double carried = 2;            ///< how often a carried tile goes through its cache in a step
  double half = 0.6, quarter = 0.3; ///< of the vector rate, with vectors of 256 and 128 bits
  double masked = 0.4;           ///< of that, where a tile hangs over an edge
  double specialHalf = 0.75, specialQuarter = 0.035; ///< of the rate of exp and its like
  double specialMasked = 0.33;   ///< of specialHalf, where a tile hangs over an edge

  struct Named {
    const char *name;
    double ModelFactors::*value;
  };
  /// Those that are fitted. What part of the datasheet's rates a GPU reaches is measured, not fitted.
  static std::vector<Named> cpu();
  static std::vector<Named> gpu();
};

/// Predicts with other factors from now on; a ranker of modelRanker's.
void setFactors(Ranker &ranker, const ModelFactors &factors);

} // namespace tenon
