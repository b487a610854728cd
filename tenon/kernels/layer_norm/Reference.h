// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::zoo {

template <class T> void layerNormReference(Arguments &arguments) {
  const Tensor &x = arguments[0].tensor();
  std::vector<T> total = valuesOf<T>(x), residual = valuesOf<T>(arguments[1].tensor());
  std::vector<T> weight = valuesOf<T>(arguments[2].tensor()), bias = valuesOf<T>(arguments[3].tensor());
  T eps = static_cast<T>(std::get<double>(arguments[6].value()));
  for (size_t i = 0; i < total.size(); ++i)
    total[i] += residual[i];
  setValues(arguments[4].tensor(), total);

  int64_t cols = x.size(1);
  for (int64_t row = 0; row < x.size(0); ++row) {
    T *line = total.data() + row * cols;
    T mean = 0, variance = 0;
    for (int64_t col = 0; col < cols; ++col)
      mean += line[col];
    mean /= cols;
    for (int64_t col = 0; col < cols; ++col)
      variance += (line[col] - mean) * (line[col] - mean);
    variance /= cols;
    for (int64_t col = 0; col < cols; ++col)
      line[col] = (line[col] - mean) / std::sqrt(variance + eps) * weight[col] + bias[col];
  }
  setValues(arguments[5].tensor(), total);
}

} // namespace tenon::zoo
