// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/Spaces.h"

namespace tenon::zoo {

/// The sum and its distance from the mean.
Space layerNormSpace(const Problem &problem, Target target) {
  return rowSpace(problem.arguments[0].tensor(), target, /*tilesAlive=*/2);
}

} // namespace tenon::zoo
