// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

namespace tenon::zoo {

template <class T> void groupedMatmulReference(Arguments &arguments) {
  const Tensor &a = arguments[0].tensor(), &b = arguments[1].tensor();
  std::vector<T> left = valuesOf<T>(a), right = valuesOf<T>(b);
  std::vector<int64_t> offsets = valuesOf<int64_t>(arguments[2].tensor());
  int64_t rows = a.size(0), n = b.size(2), k = a.size(1);
  std::vector<T> result(static_cast<size_t>(rows * n));
  for (int64_t expert = 0; expert < b.size(0); ++expert)
    for (int64_t i = offsets[expert]; i < offsets[expert + 1]; ++i)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < n; ++j)
          result[i * n + j] += left[i * k + p] * right[(expert * k + p) * n + j];
  setValues(arguments[3].tensor(), result);
}

} // namespace tenon::zoo
