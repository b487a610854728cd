// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::zoo {

template <class T> void rotaryReference(Arguments &arguments) {
  const Tensor &x = arguments[0].tensor();
  std::vector<T> values = valuesOf<T>(x);
  std::vector<T> cosine = valuesOf<T>(arguments[1].tensor()), sine = valuesOf<T>(arguments[2].tensor());
  int64_t tokens = x.size(0), heads = x.size(1), half = x.size(2) / 2;
  for (int64_t token = 0; token < tokens; ++token)
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t d = 0; d < half; ++d) {
        T &first = values[(token * heads + head) * 2 * half + d], &second = (&first)[half];
        T c = cosine[token * half + d], s = sine[token * half + d];
        T turned = first * c - second * s;
        second = second * c + first * s;
        first = turned;
      }
  setValues(arguments[3].tensor(), values);
}

} // namespace tenon::zoo
