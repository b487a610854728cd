// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

namespace tenon::zoo {

/// `weights` is the type that scaled weights are rounded to before they meet a.
template <class T> void dequantMatmulReference(Arguments &arguments, int64_t group, DType weights) {
  const Tensor &a = arguments[0].tensor(), &b = arguments[1].tensor();
  std::vector<T> left = valuesOf<T>(a), right = valuesOf<T>(b), scale = valuesOf<T>(arguments[2].tensor());
  int64_t m = a.size(0), n = b.size(1), k = a.size(1);
  for (int64_t p = 0; p < k; ++p)
    for (int64_t j = 0; j < n; ++j) {
      T &value = right[p * n + j];
      value *= scale[(group ? p / group : 0) * n + j];
      value = sizeOf(weights) < 4 ? static_cast<T>(roundTo(weights, static_cast<double>(value))) : value;
    }
  std::vector<T> result(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        result[i * n + j] += left[i * k + p] * right[p * n + j];
  setValues(arguments[3].tensor(), result);
}

} // namespace tenon::zoo
