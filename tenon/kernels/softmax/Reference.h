// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::zoo {

template <class T> void softmaxReference(Arguments &arguments) {
  const Tensor &x = arguments[0].tensor();
  std::vector<T> values = valuesOf<T>(x);
  for (int64_t row = 0; row < x.size(0); ++row) {
    T *line = values.data() + row * x.size(1);
    T largest = -std::numeric_limits<T>::infinity(), total = 0;
    for (int64_t col = 0; col < x.size(1); ++col)
      largest = std::max(largest, line[col]); // a NaN is passed over here and spoils the total below
    for (int64_t col = 0; col < x.size(1); ++col)
      total += std::exp(line[col] - largest);
    for (int64_t col = 0; col < x.size(1); ++col)
      line[col] = std::exp(line[col] - largest) / total;
  }
  setValues(arguments[1].tensor(), values);
}

} // namespace tenon::zoo
