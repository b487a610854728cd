// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::zoo {

template <class T> void rmsNormReference(Arguments &arguments) {
  const Tensor &x = arguments[0].tensor();
  std::vector<T> values = valuesOf<T>(x), weight = valuesOf<T>(arguments[1].tensor());
  T eps = static_cast<T>(std::get<double>(arguments[3].value()));
  int64_t cols = x.size(1);
  for (int64_t row = 0; row < x.size(0); ++row) {
    T *line = values.data() + row * cols;
    T squares = 0;
    for (int64_t col = 0; col < cols; ++col)
      squares += line[col] * line[col];
    for (int64_t col = 0; col < cols; ++col)
      line[col] = line[col] / std::sqrt(squares / cols + eps) * weight[col];
  }
  setValues(arguments[2].tensor(), values);
}

} // namespace tenon::zoo
