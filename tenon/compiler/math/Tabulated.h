// SPDX-License-Identifier: Apache-2.0
//
// Functions that rise from 0 to 1 with F(-x) = 1 - F(x), such as half of 1 + erf(x), and their products with x, where
// bf16 is the longest that sees the result: cubics for 32 ranges of t = |x|, whose coefficients a processor finds in
// two registers by one instruction (vpermt2ps). With the complement c(t) = F(-t):
//
//     i = round(t^2 / step)                      t^2 + 1.5 2^23 step: the index is in the low bits of the sum
//     c = ((k3[i] t + k2[i]) t + k1[i]) t + k0[i]
//     x F(x) = max(x, 0) - t c                   as in Gelu.h
//
// Ranges of t^2 and not of t, because what such functions share is how they fall: c is about e^(-t^2 / 2), and a cubic
// is as good, relative to it, wherever t times the range's length is the same. The polynomials are in t itself and not
// in its distance from the middle, which would cost one operation; what their terms lose by cancelling grows with t.
// Where c is below `vanishing` it is 0.
//
// The arithmetic (Arithmetic.h) has these besides:
//
//   lookUp(table, Value<uint32_t>)        the entry that the low five bits name
//   boundedMagnitude(x, float bound)      the smaller of |x| and the bound; the bound for a NaN
//   positivePart(x)                       x, but -0 where x is negative, and NaN for minus infinity
//   isPositive(x)                         0 where x is negative, 1 where it is not; NaN for a NaN
#pragma once

#include "tenon/compiler/math/Arithmetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace tenon::math {

inline constexpr size_t tableEntries = 32;
using Table = std::array<float, tableEntries>;

struct ComplementTable {
  static constexpr double vanishing = 0x1p-24;
  static constexpr double tail = 0x1p-12, small = 0x1p-22;

  /// How far from c it may be: 2^-12 of it, in the tail 2^-10, until that is small.
  static double allowedError(double c) { return c >= tail ? 0x1p-12 * c : 0x1p-10 * std::max(c, small); }

  std::array<Table, 4> coefficients{}; ///< by degree; the last entries are 0
  float magic = 0;                     ///< what is added to t^2
  float bound = 0;                     ///< t beyond has the last entry
};

namespace detail {

inline constexpr size_t lastEntry = tableEntries - 1;

inline double evaluateEntry(const ComplementTable &table, size_t i, float t) {
  float sum = table.coefficients.back()[i];
  for (size_t degree = table.coefficients.size() - 1; degree-- > 0;)
    sum = std::fma(sum, t, table.coefficients[degree][i]);
  return sum;
}

/// The coefficients from the highest down, each rounded and taken away before the next: that of the expansion in
/// Chebyshev's polynomials, whose leading coefficients are 1, 1, 2, 4.
template <class F> void fitEntry(ComplementTable &table, size_t i, double low, double high, F complement) {
  constexpr size_t count = 8;
  double middle = (low + high) / 2, radius = (high - low) / 2;
  std::array<double, count> cosines{}, left{};
  for (size_t k = 0; k < count; ++k) {
    cosines[k] = std::cos(3.14159265358979323846 * (static_cast<double>(k) + 0.5) / count);
    left[k] = complement(middle + radius * cosines[k]);
  }
  double leading = 8 / (radius * radius * radius); // 2 / radius to the power of the degree
  for (size_t degree = table.coefficients.size(); degree-- > 0; leading *= radius / 2) {
    double sum = 0;
    for (size_t k = 0; k < count; ++k) {
      double z = cosines[k], of[] = {1, z, 2 * z * z - 1, (4 * z * z - 3) * z}; // Chebyshev's
      sum += left[k] * of[degree];
    }
    float coefficient = table.coefficients[degree][i] = static_cast<float>(sum / count * leading);
    for (size_t k = 0; k < count; ++k) {
      double t = middle + radius * cosines[k], powers[] = {1, t, t * t, t * t * t};
      left[k] -= coefficient * powers[degree];
    }
  }
}

template <class F> bool isGood(const ComplementTable &table, size_t i, double low, double high, F complement) {
  constexpr int samples = 8;
  for (int k = 0; k <= samples; ++k) {
    float t = static_cast<float>(low + (high - low) * k / samples);
    double exact = complement(static_cast<double>(t));
    if (!(std::abs(evaluateEntry(table, i, t) - exact) <= ComplementTable::allowedError(exact)))
      return false;
  }
  return true;
}

} // namespace detail

/// A table for c, a function of double that falls from t = 0 on; none where cubics in so few ranges are not good
/// enough, because c falls too slowly.
template <class F> std::optional<ComplementTable> tabulate(F complement) {
  constexpr int largestStep = 20;
  double step = std::ldexp(1, -largestStep);
  auto start = [&](size_t i) { return i == 0 ? 0 : std::sqrt((static_cast<double>(i) - 0.5) * step); };
  while (!(complement(start(detail::lastEntry)) < ComplementTable::vanishing))
    if ((step *= 2) > std::ldexp(1, largestStep))
      return std::nullopt;
  ComplementTable table;
  table.magic = Format<float>::roundMagic * static_cast<float>(step);
  table.bound = static_cast<float>(std::sqrt(detail::lastEntry * step));
  for (size_t i = 0; i < detail::lastEntry && complement(start(i)) >= ComplementTable::vanishing; ++i) {
    detail::fitEntry(table, i, start(i), start(i + 1), complement);
    if (!detail::isGood(table, i, start(i), start(i + 1), complement))
      return std::nullopt;
  }
  return table;
}

namespace detail {

template <class A> Value<A, float> lookUpComplement(A &a, Value<A, float> t, const ComplementTable &table) {
  auto index = a.toBits(a.fma(t, t, a.constant(table.magic)));
  Value<A, float> sum = a.lookUp(table.coefficients.back(), index);
  for (size_t degree = table.coefficients.size() - 1; degree-- > 0;)
    sum = a.fma(sum, t, a.lookUp(table.coefficients[degree], index));
  return sum;
}

} // namespace detail

/// F(x).
template <class A> Value<A, float> tabulated(A &a, Value<A, float> x, const ComplementTable &table) {
  Value<A, float> complement = detail::lookUpComplement(a, a.boundedMagnitude(x, table.bound), table);
  return a.abs(a.sub(a.isPositive(x), complement));
}

/// x F(x).
template <class A> Value<A, float> tabulatedProduct(A &a, Value<A, float> x, const ComplementTable &table) {
  Value<A, float> t = a.boundedMagnitude(x, table.bound);
  return a.fma(a.neg(t), detail::lookUpComplement(a, t, table), a.positivePart(x));
}

/// c for half of 1 + erf(scale x).
inline auto complementOfErf(double scale) {
  return [scale](double t) { return std::erfc(scale * t) / 2; };
}

/// c for half of 1 + tanh(first x + third x^3).
inline auto complementOfTanh(double first, double third) {
  return [first, third](double t) { return 1 / (1 + std::exp(2 * t * (first + third * t * t))); };
}

} // namespace tenon::math
