// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/verify/Verify.h"

/// The kernel that `tenon bench cpu` measures and the zoo does not have, with its problem.
namespace tenon::tool {

extern const Kernel biasGeluDropout;

/// y = dropout(gelu(x + bias)), the tanh form.
Problem biasGeluDropoutProblem(int64_t rows, int64_t cols, DType dtype, uint64_t seed);

} // namespace tenon::tool
