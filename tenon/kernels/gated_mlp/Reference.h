// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <cmath>

namespace tenon::zoo {

template <class T> void gatedMlpReference(Arguments &arguments) {
  const Tensor &x = arguments[0].tensor(), &weights = arguments[1].tensor();
  std::vector<T> rows = valuesOf<T>(x), gate = valuesOf<T>(weights), up = valuesOf<T>(arguments[2].tensor());
  int64_t m = x.size(0), n = weights.size(1), k = x.size(1);
  std::vector<T> result(static_cast<size_t>(m * n)), g(static_cast<size_t>(n)), u(static_cast<size_t>(n));
  for (int64_t i = 0; i < m; ++i) {
    g.assign(g.size(), 0);
    u.assign(u.size(), 0);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j) {
        g[j] += rows[i * k + p] * gate[p * n + j];
        u[j] += rows[i * k + p] * up[p * n + j];
      }
    for (int64_t j = 0; j < n; ++j)
      result[i * n + j] = g[j] / (1 + std::exp(-g[j])) * u[j];
  }
  setValues(arguments[3].tensor(), result);
}

} // namespace tenon::zoo
