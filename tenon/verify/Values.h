// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/Tensor.h"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

/// Elements of a tensor as C++ numbers, for code that is not in a hurry to be fast: references, comparisons.
namespace tenon {

/// One floating-point element as a double (exact), and a double rounded once to the type.
double readFloat(DType type, const void *from);
void writeFloat(DType type, void *to, double value);
/// What `value` becomes when it is stored in the type.
double roundTo(DType type, double value);
/// The distance from |value| to the next larger number of the type.
double ulp(DType type, double value);

/// All elements in row-major order, whatever the strides. T is float, double or long double for any tensor, int64_t for
/// integers and booleans only.
template <class T> std::vector<T> valuesOf(const Tensor &tensor);
/// Writes all elements from row-major order, rounding each once to the tensor's type.
template <class T> void setValues(const Tensor &tensor, const std::vector<T> &values);

/// A row-major copy of a floating-point tensor in another floating-point type.
Tensor convert(const Tensor &tensor, DType type);

/// Calls function(int64_t rowMajorIndex, std::byte *element) for every element in row-major order.
template <class Function> void forEachElement(const Tensor &tensor, Function function) {
  if (tensor.elements() == 0)
    return;
  auto bytes = static_cast<int64_t>(sizeOf(tensor.dtype()));
  auto sizes = tensor.sizes(), strides = tensor.strides();
  // The stride of a dimension of one element may be anything and is never used.
  int64_t inner = sizes.empty() ? 1 : sizes.back(), innerStride = inner > 1 ? strides.back() * bytes : 0;
  std::array<int64_t, Tensor::maxRank> index{};
  auto *row = static_cast<std::byte *>(tensor.data());
  for (int64_t count = 0; count < tensor.elements();) {
    for (int64_t j = 0; j < inner; ++j)
      function(count++, row + j * innerStride);
    for (size_t d = sizes.size() - 1; sizes.size() > 1 && d-- > 0;) {
      if (index[d] + 1 < sizes[d]) {
        ++index[d];
        row += strides[d] * bytes;
        break;
      }
      row -= index[d] * strides[d] * bytes;
      index[d] = 0;
    }
  }
}

/// The position of a row-major index, as "[3, 4]".
std::string positionText(const Tensor &tensor, int64_t rowMajorIndex);

} // namespace tenon
