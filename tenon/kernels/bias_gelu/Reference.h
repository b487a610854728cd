// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <cmath>

namespace tenon::zoo {

template <class T> void biasGeluReference(Arguments &arguments) {
  std::vector<T> values = valuesOf<T>(arguments[0].tensor()), bias = valuesOf<T>(arguments[1].tensor());
  for (size_t i = 0; i < values.size(); ++i) {
    T x = values[i] + bias[i % bias.size()];
    values[i] = T(0.5) * x * (1 + std::tanh(std::sqrt(2 / std::acos(T(-1))) * (x + T(0.044715L) * x * x * x)));
  }
  setValues(arguments[2].tensor(), values);
}

} // namespace tenon::zoo
