// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::zoo {

template <class T> void geluReference(Arguments &arguments, bool tanhForm) {
  std::vector<T> values = valuesOf<T>(arguments[0].tensor());
  for (T &x : values) {
    if (tanhForm)
      x = T(0.5) * x * (1 + std::tanh(std::sqrt(2 / std::acos(T(-1))) * (x + T(0.044715L) * x * x * x)));
    else
      x = T(0.5) * x * (1 + std::erf(x / std::sqrt(T(2))));
  }
  setValues(arguments[1].tensor(), values);
}

} // namespace tenon::zoo
