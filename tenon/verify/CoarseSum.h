// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace tenon {

/// A sum of products of 8-bit floats as a dot with `fast_accum` may have it, which is as Hopper's matrix unit adds
/// (equal to it bit for bit): 32 products and the sum before them at once, each without what lies below 13 bits after
/// the place of the largest exponent, and the sum cut to as many. What a check allows follows from its distance to the
/// exact sum.
class CoarseSum {
public:
  void add(float a, float b) {
    products_[count_] = double(a) * b;
    int exponent = exponentOf(a) + exponentOf(b);
    largest_ = a != 0 && b != 0 ? std::max(largest_, exponent) : largest_;
    if (++count_ == 32)
      addProducts();
  }
  float value() {
    addProducts();
    return sum_;
  }

private:
  static int exponentOf(float value) { return static_cast<int>(std::bit_cast<uint32_t>(value) >> 23 & 255) - 127; }

  void addProducts() {
    if (sum_ != 0)
      largest_ = std::max(largest_, exponentOf(sum_));
    double sum = 0, unit = std::ldexp(1.0, 13 - std::max(largest_, -200));
    for (double product : std::span(products_, count_))
      sum += std::isfinite(product) ? std::trunc(product * unit) : product;
    sum += std::isfinite(sum_) ? std::trunc(sum_ * unit) : sum_;
    // Of the 24 significant bits of a whole number below 2^24, the upper 14.
    sum_ = static_cast<float>(sum);
    if (std::isfinite(sum_))
      sum_ = static_cast<float>(std::bit_cast<float>(std::bit_cast<uint32_t>(sum_) & ~0x3ffu) / unit);
    count_ = 0;
    largest_ = -1000;
  }

  double products_[32] = {};
  size_t count_ = 0;
  int largest_ = -1000;
  float sum_ = 0;
};

} // namespace tenon
