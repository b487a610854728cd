// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/kernels/Kernels.h"
#include "tenon/verify/CoarseSum.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tenon::zoo {

/// An f32 cut to the ten bits of fraction that tf32 has: the least a matrix unit may keep.
inline float cutToTf32(float value) {
  return std::isfinite(value) ? std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffffe000u) : value;
}

/// What a kernel may do less exactly than it is written.
struct Roundings {
  bool tf32 = false;      ///< operands are cut to it first
  bool fastAccum = false; ///< sums of f8 are the matrix unit's
};

template <class T>
void matmulReference(Arguments &arguments, bool useBias, Activation activation, const Roundings &roundings) {
  const Tensor &a = arguments[0].tensor(), &b = arguments[1].tensor();
  std::vector<T> left = valuesOf<T>(a), right = valuesOf<T>(b), bias = valuesOf<T>(arguments[2].tensor());
  for (std::vector<T> *operand : {&left, &right})
    for (T &value : *operand)
      value = roundings.tf32 ? static_cast<T>(cutToTf32(static_cast<float>(value))) : value;
  int64_t m = a.size(0), n = b.size(1), k = a.size(1);
  std::vector<T> result(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    T *line = result.data() + i * n;
    for (int64_t j = 0; roundings.fastAccum && j < n; ++j) {
      CoarseSum sum;
      for (int64_t p = 0; p < k; ++p)
        sum.add(static_cast<float>(left[i * k + p]), static_cast<float>(right[p * n + j]));
      line[j] = sum.value();
    }
    for (int64_t p = 0; !roundings.fastAccum && p < k; ++p) // the middle loop, so that memory is walked in order
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
