// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

namespace tenon::zoo {

template <class T> void batchedMatmulReference(Arguments &arguments) {
  const Tensor &a = arguments[0].tensor(), &b = arguments[1].tensor();
  std::vector<T> left = valuesOf<T>(a), right = valuesOf<T>(b);
  int64_t batch = a.size(0), m = a.size(1), n = b.size(2), k = a.size(2);
  std::vector<T> result(static_cast<size_t>(batch * m * n));
  for (int64_t row = 0; row < batch * m; ++row)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        result[row * n + j] += left[row * k + p] * right[(row / m * k + p) * n + j];
  setValues(arguments[2].tensor(), result);
}

} // namespace tenon::zoo
