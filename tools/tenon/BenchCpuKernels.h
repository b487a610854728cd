// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/verify/Verify.h"

/// The kernels that `tenon bench cpu` measures and the zoo does not have, with their problems.
namespace tenon::tool {

extern const Kernel biasGeluDropout;

/// y = dropout(gelu(x + bias)), the tanh form.
Problem biasGeluDropoutProblem(int64_t rows, int64_t cols, DType dtype, uint64_t seed);

extern const Kernel squaredDistance;

/// d[i][j]: the square of the distance between row i of a and row j of b. A dot with a prologue and an epilogue of its own,
/// which nothing in the compiler was made for; it has the matmul's tiles.
Problem squaredDistanceProblem(int64_t m, int64_t n, int64_t k, DType dtype, uint64_t seed);

} // namespace tenon::tool
