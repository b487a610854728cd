// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::zoo {

template <class T> void crossEntropyReference(Arguments &arguments) {
  const Tensor &logits = arguments[0].tensor();
  std::vector<T> values = valuesOf<T>(logits);
  std::vector<int64_t> targets = valuesOf<int64_t>(arguments[1].tensor());
  int64_t vocabulary = logits.size(1);
  std::vector<T> loss(targets.size());
  for (size_t row = 0; row < targets.size(); ++row) {
    if (targets[row] < 0 || targets[row] >= vocabulary)
      continue; // the row does not count
    const T *line = values.data() + row * vocabulary;
    T largest = *std::max_element(line, line + vocabulary), total = 0;
    for (int64_t col = 0; col < vocabulary; ++col)
      total += std::exp(line[col] - largest);
    loss[row] = largest + std::log(total) - line[targets[row]];
  }
  setValues(arguments[2].tensor(), loss);
}

} // namespace tenon::zoo
