// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/Spaces.h"

#include <algorithm>

namespace tenon::zoo {

/// Tiles of an expert's rows as of any product; an expert has its share of them.
Space groupedMatmulSpace(const Problem &problem, Target target) {
  if (!isGpu(target))
    return tileSpace(problem, target);
  const Tensor &a = problem.arguments[0].tensor(), &b = problem.arguments[1].tensor();
  auto bytes = static_cast<int64_t>(sizeOf(a.dtype()));
  int64_t rows = a.size(0) / std::max<int64_t>(b.size(0), 1);
  Space space = productSpace({std::max<int64_t>(rows, 1), std::max<int64_t>(b.size(2), 1),
                              std::max<int64_t>(a.size(1), 1), bytes, bytes, /*products=*/1, /*mayShare=*/false,
                              /*mayTakeTurns=*/false});
  space.param("pair", {1, 2, 4});
  space.require("a cluster of others than neighbours",
                [](const Configuration &c) { return c["pair"] == c["cluster"]; });
  // Of pairs with 168, 184 or 248 columns threads store the last rows themselves: 168 took 3.00 ms where 176 took 2.94.
  space.require("a cluster whose columns are no multiple of 8 for each block",
                [](const Configuration &c) { return c["cluster"] == 1 || c["bn"] % (8 * c["cluster"]) == 0; });
  return space;
}

} // namespace tenon::zoo
