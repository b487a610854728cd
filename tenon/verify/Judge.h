// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/Tensor.h"

#include <cstddef>
#include <optional>
#include <string>

namespace tenon {

/// How one output compares with what is wanted of it.
struct OutputComparison {
  double error = 0, plainError = 0, allowed = 0;
  std::optional<std::string> complaint; ///< "at [3, 4] is 2 where the reference has 1", if it is wrong
};

/// Applies the rule of Verify.h to one output. `reference` and `plain` have its shape and type. `poison` is the byte that
/// the output was filled with before the run, if it was.
OutputComparison judge(const Tensor &output, const Tensor &reference, const Tensor &plain,
                       std::optional<std::byte> poison);

/// The position of the first element whose bits differ between two tensors of one shape and type.
std::optional<std::string> firstDifference(const Tensor &a, const Tensor &b);

} // namespace tenon
