// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/kernels/Kernels.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::zoo {

template <class T> void matmulReference(Arguments &arguments, bool useBias, Activation activation) {
  const Tensor &a = arguments[0].tensor(), &b = arguments[1].tensor();
  std::vector<T> left = valuesOf<T>(a), right = valuesOf<T>(b), bias = valuesOf<T>(arguments[2].tensor());
  int64_t m = a.size(0), n = b.size(1), k = a.size(1);
  std::vector<T> result(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    T *line = result.data() + i * n;
    for (int64_t p = 0; p < k; ++p) // the middle loop, so that memory is walked in order
      for (int64_t j = 0; j < n; ++j)
        line[j] += left[i * k + p] * right[p * n + j];
    for (int64_t j = 0; j < n; ++j) {
      T value = line[j] + (useBias ? bias[j] : T(0));
      switch (activation) {
      case Activation::none: break;
      case Activation::relu: value = value < 0 ? T(0) : value; break;
      case Activation::geluExact: value = value / 2 * (1 + std::erf(value / std::sqrt(T(2)))); break;
      case Activation::silu: value = value / (1 + std::exp(-value)); break;
      }
      line[j] = value;
    }
  }
  setValues(arguments[3].tensor(), result);
}

} // namespace tenon::zoo
