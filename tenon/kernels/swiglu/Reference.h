// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::zoo {

template <class T> void swigluReference(Arguments &arguments) {
  std::vector<T> gate = valuesOf<T>(arguments[0].tensor()), up = valuesOf<T>(arguments[1].tensor());
  for (size_t i = 0; i < gate.size(); ++i)
    gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  setValues(arguments[2].tensor(), gate);
}

} // namespace tenon::zoo
