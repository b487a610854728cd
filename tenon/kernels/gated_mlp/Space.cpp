// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/Spaces.h"

#include <algorithm>

namespace tenon::zoo {

/// Two products that share x: twice the sums, and twice the columns of weights in shared memory.
Space gatedMlpSpace(const Problem &problem, Target target) {
  if (!isGpu(target))
    return tileSpace(problem, target);
  const Tensor &x = problem.arguments[0].tensor(), &gate = problem.arguments[1].tensor();
  auto bytes = static_cast<int64_t>(sizeOf(x.dtype()));
  return productSpace({std::max<int64_t>(x.size(0), 1), std::max<int64_t>(gate.size(1), 1),
                       std::max<int64_t>(x.size(1), 1), bytes, bytes, /*products=*/2, /*mayShare=*/false});
}

} // namespace tenon::zoo
