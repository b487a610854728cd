// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/Spaces.h"

#include <algorithm>

namespace tenon::zoo {

/// A product; a step lies in one group of rows.
Space dequantMatmulSpace(const Problem &problem, Target target) {
  if (!isGpu(target))
    return tileSpace(problem, target);
  const Tensor &a = problem.arguments[0].tensor(), &b = problem.arguments[1].tensor();
  auto bytes = static_cast<int64_t>(sizeOf(a.dtype()));
  auto group = problem.params.find("group");
  Space space = productSpace({std::max<int64_t>(a.size(0), 1), std::max<int64_t>(b.size(1), 1),
                              std::max<int64_t>(a.size(1), 1), bytes, bytes, /*products=*/1, /*mayShare=*/true,
                              /*mayTakeTurns=*/false, group == problem.params.end() ? 0 : group->second});
  // As columns, each warpgroup takes 64 of its own from registers.
  space.require("weights that two warpgroups compute each for itself",
                [](const Configuration &c) { return c["bm"] >= 64 || c["bn"] % (16 * c["warps"]) == 0; });
  return space;
}

} // namespace tenon::zoo
