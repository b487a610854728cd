// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/verify/Verify.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

/// Matrix products of any size on a device: inputs made there, and a check that never computes the whole product.
///
/// The check takes one row and one column at random of every 64 (and the first and the last ones; with experts, those
/// of each expert) and computes every element where they cross on the host, over the whole shared dimension, in f64. So
/// every block of 64 x 64 elements is looked at, however a kernel cuts its tiles, and the places within a block differ
/// from block to block. For 8192 cubed that is 1/4000 of the work. The sampled rows are read whole: nothing in them may
/// be left unwritten. (Another library's product would cost as little, but the data would have to be the same in two
/// processes, and where both round alike an error of both would pass.)
namespace tenon {

/// Normal numbers, of mean 0 and variance 1 (integers: 32 times that), made where the tensor is. It must be contiguous.
void fillNormal(const Tensor &tensor, uint64_t seed, const LaunchOptions &options);

/// c = epilogue(a * b[0], a * b[1], ...)
struct Product {
  Tensor a;              ///< [m, k]
  std::vector<Tensor> b; ///< each [k, n], or [experts, k, n]
  Tensor c;              ///< [m, n]
  std::vector<int64_t> offsets; ///< the first row of each expert, and behind the last; empty: there are none
  bool fastAccum = false;       ///< sums of f8 may be as coarse as the matrix unit's
  /// From one sum for each b, and the column; none: the sum.
  std::function<double(std::span<const double> sums, int64_t column)> epilogue;
};

/// Ascending; all of them where there are few.
std::vector<int64_t> sampledIndices(int64_t size, uint64_t seed);

/// Judges what c holds by the rule of Verify.h. Before the launch, c was filled with bytes 0xff.
Verdict judgeProduct(const Product &product, uint64_t seed);

} // namespace tenon
