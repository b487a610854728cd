// SPDX-License-Identifier: Apache-2.0
//
// Functions that rise from 0 to 1 with F(-x) = 1 - F(x), such as half of 1 + erf(x), and their products with x, by
// polynomials for 32 ranges of t = |x|, whose coefficients a processor finds in two registers by one instruction
// (vpermt2ps). Where bf16 is the longest that sees the result they are cubics. With the complement c(t) = F(-t):
//
//     i = round(t^2 / step)                      t^2 + 1.5 2^23 step: the index is in the low bits of the sum
//     c = ((k3[i] t + k2[i]) t + k1[i]) t + k0[i]
//
// c has ranges of t^2 and not of t, because what such functions share is how they fall: c is about e^(-t^2 / 2), and a
// cubic is as good, relative to it, wherever t times the range's length is the same.
//
// Products have ranges of one length, of x where they are short enough so (two operations less), else of t:
//
//     i = round(x perUnit), x within the bound   negative for a negative x: the index is i modulo 32
//     x F(x) = ((k3[i] x + k2[i]) x + k1[i]) x + k0[i]    the last x without the bound: beyond, F is 1 or 0
//
//     x F(x) = max(x, 0) - w                     as in Gelu.h; w = t c has cubics of its own
//
// For one s and many x, s is in the coefficients of s x F(x), or of s w. The product begins with 0, which is left to
// three coefficients of the range that has it. The polynomials are in x or t itself and not in its distance from the
// middle, which would cost one operation; what their terms lose by cancelling grows with t. Where c is below `vanishing`
// it is 0.
//
// Where somebody sees the product as f32, w has polynomials of degree 4 in the distance from the middle of its range,
// counted in ranges, which is one rounding of an exact product:
//
//     i = round(t perUnit),  r = t perUnit - i,  w = k4[i] r^4 + ... + k0[i]
//
// The factor of x is then within what half of 1 + erf(x) is rounded by, in absolute terms.
//
// The arithmetic (Arithmetic.h) has these besides:
//
//   lookUp(table, Value<uint32_t>, const Value<float> *factor)  the entry that the low five bits name, times the factor
//   bounded(x, float bound)               x, or the bound with its sign where |x| is larger; anything finite for a NaN
//   boundedMagnitude(x, float bound)      the smaller of |x| and the bound; the bound for a NaN
//   positivePart(x)                       x, but -0 where x is negative, and NaN for minus infinity
//   isPositive(x)                         0 where x is negative, 1 where it is not; NaN for a NaN
#pragma once

#include "tenon/compiler/math/Arithmetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

namespace tenon::math {

inline constexpr size_t tableEntries = 32;
using Table = std::array<float, tableEntries>;

/// The longest type that sees the result.
enum class SeenAs { Bf16, F32 };

struct RangeTable {
  static constexpr double tail = 0x1p-12, small = 0x1p-22;
  static constexpr double smallOfBothSides = 0x1p-16;

  /// A smaller c is 0.
  static constexpr double vanishing(SeenAs seen) { return seen == SeenAs::Bf16 ? 0x1p-24 : 0x1p-25; }

  /// How far from c it may be: for bf16 2^-12 of it, in the tail 2^-10, until that is small. t times as far from w.
  static double allowedError(double c, SeenAs seen) {
    if (seen == SeenAs::F32)
      return 0x1.6p-24;
    return c >= tail ? 0x1p-12 * c : 0x1p-10 * std::max(c, small);
  }

  /// The same for F, in ranges of x, which are twice as long: a program that adds 1 to erf(x) loses more in the tail.
  static double allowedErrorOfBothSides(double f) {
    return f >= tail ? 0x1.6p-11 * f : 0x1p-9 * std::max(f, smallOfBothSides);
  }

  std::vector<Table> coefficients; ///< by degree; the last entries are 0, or those in the middle
  float perUnit = 0;               ///< ranges of t or x; 0: they are ranges of t^2
  float magic = 0;                 ///< what is added to t or x times that, or to t^2
  float bound = 0;                 ///< t beyond has the last entry
  bool bothSides = false;          ///< the ranges are of x, those of negative ones at the end
  bool fromMiddle = false;         ///< the polynomials are in t perUnit less the number of the range, else in t
};

namespace detail {

inline constexpr size_t lastEntry = tableEntries - 1;

inline double evaluateEntry(const RangeTable &table, size_t i, float t) {
  float at = table.fromMiddle ? std::fma(t, table.perUnit, -static_cast<float>(i)) : t;
  float sum = table.coefficients.back()[i];
  for (size_t degree = table.coefficients.size() - 1; degree-- > 0;)
    sum = std::fma(sum, at, table.coefficients[degree][i]);
  return sum;
}

using Polynomial = std::vector<float>; ///< by degree

/// The coefficients from the highest down, each rounded and taken away before the next: that of the expansion in
/// Chebyshev's polynomials, whose leading coefficients are 1, 1, 2, 4, 8.
template <class F> Polynomial fit(size_t highest, double low, double high, F function) {
  constexpr size_t count = 8;
  double middle = (low + high) / 2, radius = (high - low) / 2;
  std::array<double, count> cosines{}, left{};
  for (size_t k = 0; k < count; ++k) {
    cosines[k] = std::cos(3.14159265358979323846 * (static_cast<double>(k) + 0.5) / count);
    left[k] = function(middle + radius * cosines[k]);
  }
  Polynomial coefficients(highest + 1);
  double leading = std::pow(2 / radius, highest);
  for (size_t degree = highest + 1; degree-- > 0; leading *= radius / 2) {
    double sum = 0;
    for (size_t k = 0; k < count; ++k) {
      double z = cosines[k], y = z * z, of[] = {1, z, 2 * y - 1, (4 * y - 3) * z, 8 * (y - 1) * y + 1}; // Chebyshev's
      sum += left[k] * of[degree];
    }
    coefficients[degree] = static_cast<float>(sum / count * leading);
    for (size_t k = 0; k < count; ++k) {
      left[k] -= coefficients[degree] * std::pow(middle + radius * cosines[k], degree);
    }
  }
  return coefficients;
}

inline bool isGood(const RangeTable &table, size_t i, double low, double high,
                   const std::function<double(double)> &function, const std::function<double(double)> &allowedError) {
  constexpr int samples = 8;
  for (int k = 0; k <= samples; ++k) {
    float t = static_cast<float>(low + (high - low) * k / samples);
    if (!(std::abs(evaluateEntry(table, i, t) - function(t)) <= allowedError(t)))
      return false;
  }
  return true;
}

inline void setEntry(RangeTable &table, size_t i, const Polynomial &coefficients) {
  for (size_t degree = 0; degree < coefficients.size(); ++degree)
    table.coefficients[degree][i] = coefficients[degree];
}

/// The first t, to 2^-30 of it, where a function that falls is below a limit; none where that is far from 1.
template <class F> std::optional<double> firstBelow(double limit, F function) {
  constexpr int farthest = 20;
  double high = std::ldexp(1, -farthest);
  while (!(function(high) < limit))
    if ((high *= 2) > std::ldexp(1, farthest))
      return std::nullopt;
  double low = high / 2;
  for (int halving = 0; halving < 30; ++halving) {
    double middle = (low + high) / 2;
    (function(middle) < limit ? high : low) = middle;
  }
  return high;
}

} // namespace detail

/// A table for c, a function of double that falls from t = 0 on, for bf16; none where cubics in so few ranges are not
/// good enough, because c falls too slowly.
template <class F> std::optional<RangeTable> tabulate(F complement) {
  constexpr int largestStep = 20;
  constexpr size_t degree = 3;
  constexpr double vanishing = RangeTable::vanishing(SeenAs::Bf16);
  double step = std::ldexp(1, -largestStep);
  auto start = [&](size_t i) { return i == 0 ? 0 : std::sqrt((static_cast<double>(i) - 0.5) * step); };
  while (!(complement(start(detail::lastEntry)) < vanishing))
    if ((step *= 2) > std::ldexp(1, largestStep))
      return std::nullopt;
  RangeTable table;
  table.coefficients.resize(degree + 1);
  table.magic = Format<float>::roundMagic * static_cast<float>(step);
  table.bound = static_cast<float>(std::sqrt(detail::lastEntry * step));
  std::function<double(double)> exact = complement, allowed = [&](double t) {
    return RangeTable::allowedError(complement(t), SeenAs::Bf16);
  };
  for (size_t i = 0; i < detail::lastEntry && complement(start(i)) >= vanishing; ++i) {
    detail::setEntry(table, i, detail::fit(degree, start(i), start(i + 1), complement));
    if (!detail::isGood(table, i, start(i), start(i + 1), exact, allowed))
      return std::nullopt;
  }
  return table;
}

namespace detail {

/// A table of x F(x) for bf16 in ranges of x.
template <class F> std::optional<RangeTable> tabulateBothSides(F complement, double end) {
  constexpr size_t degree = 3;
  constexpr int most = static_cast<int>(tableEntries) / 2 - 1; // the range beyond the end
  RangeTable table;
  table.bothSides = true;
  table.coefficients.resize(degree + 1);
  table.perUnit = static_cast<float>((most - 0.5) / end);
  table.magic = Format<float>::roundMagic;
  table.bound = static_cast<float>(most) / table.perUnit;
  auto entryOf = [](int i) { return static_cast<size_t>(i) % tableEntries; };
  std::function<double(double)> function = [&](double x) { return x < 0 ? complement(-x) : 1 - complement(x); };
  std::function<double(double)> exact = [&](double x) { return x * function(x); }, allowed = [&](double x) {
    return std::abs(x) * RangeTable::allowedErrorOfBothSides(function(x));
  };
  for (int i = 1 - most; i < most; ++i) {
    double low = (i - 0.5) / table.perUnit, high = (i + 0.5) / table.perUnit;
    Polynomial polynomial = i == 0 ? fit(degree - 1, low, high, function) : fit(degree, low, high, exact);
    if (i == 0)
      polynomial.insert(polynomial.begin(), -0.0f); // so that 0 keeps its sign
    setEntry(table, entryOf(i), polynomial);
    if (!isGood(table, entryOf(i), low, high, exact, allowed))
      return std::nullopt;
  }
  table.coefficients[1][entryOf(most)] = 1;
  table.coefficients[0][entryOf(-most)] = -0.0f;
  return table;
}

} // namespace detail

/// A table for x F(x): of both sides where that is good enough, else of w.
template <class F> std::optional<RangeTable> tabulateProduct(F complement, SeenAs seen) {
  std::optional<double> end = detail::firstBelow(RangeTable::vanishing(seen), complement);
  if (!end)
    return std::nullopt;
  if (seen == SeenAs::Bf16)
    if (std::optional<RangeTable> table = detail::tabulateBothSides(complement, *end))
      return table;
  const size_t degree = seen == SeenAs::Bf16 ? 3 : 4;
  RangeTable table;
  table.coefficients.resize(degree + 1);
  table.fromMiddle = seen == SeenAs::F32;
  table.perUnit = static_cast<float>((detail::lastEntry - 0.5) / *end);
  table.magic = Format<float>::roundMagic;
  table.bound = static_cast<float>(detail::lastEntry) / table.perUnit;
  auto start = [&](size_t i) { return i == 0 ? 0 : (static_cast<double>(i) - 0.5) / table.perUnit; };
  std::function<double(double)> exact = [&](double t) { return t * complement(t); }, allowed = [&](double t) {
    return t * RangeTable::allowedError(complement(t), seen);
  };
  for (size_t i = 0; i < detail::lastEntry; ++i) {
    double unit = table.fromMiddle ? 1 / static_cast<double>(table.perUnit) : 1; // of what the polynomials are in
    double middle = table.fromMiddle ? static_cast<double>(i) * unit : 0;
    double low = (start(i) - middle) / unit, high = (start(i + 1) - middle) / unit;
    detail::Polynomial polynomial;
    if (i == 0) { // t times a polynomial for c, so that it is as good relative to t
      polynomial = detail::fit(degree - 1, low, high, [&](double at) { return unit * complement(at * unit); });
      polynomial.insert(polynomial.begin(), 0);
    } else {
      double off = 0; // of c, such that w is a float in the middle: rounded there alone, it would be off by more times t
      if (table.fromMiddle)
        off = static_cast<double>(static_cast<float>(exact(middle))) / middle - complement(middle);
      polynomial = detail::fit(degree, low, high, [&](double at) {
        double t = middle + at * unit;
        return exact(t) + off * t;
      });
    }
    detail::setEntry(table, i, polynomial);
    if (!detail::isGood(table, i, start(i), start(i + 1), exact, allowed))
      return std::nullopt;
  }
  return table;
}

namespace detail {

template <class A>
Value<A, float> evaluate(A &a, Value<A, float> t, const RangeTable &table, const Value<A, float> *factor = nullptr) {
  Value<A, float> perUnit = table.perUnit == 0 ? t : a.constant(table.perUnit), magic = a.constant(table.magic);
  Value<A, float> rounded = a.fma(t, perUnit, magic);
  auto index = a.toBits(rounded);
  Value<A, float> at = table.fromMiddle ? a.fma(t, perUnit, a.neg(a.sub(rounded, magic))) : t;
  Value<A, float> sum = a.lookUp(table.coefficients.back(), index, factor);
  for (size_t degree = table.coefficients.size() - 1; degree-- > 0;)
    sum = a.fma(sum, at, a.lookUp(table.coefficients[degree], index, factor));
  return sum;
}

} // namespace detail

/// F(x).
template <class A> Value<A, float> tabulated(A &a, Value<A, float> x, const RangeTable &table) {
  Value<A, float> complement = detail::evaluate(a, a.boundedMagnitude(x, table.bound), table);
  return a.abs(a.sub(a.isPositive(x), complement));
}

/// x F(x), or that times the factor, which is finite and not next to infinity.
template <class A>
Value<A, float> tabulatedProduct(A &a, Value<A, float> x, const RangeTable &table,
                                 const Value<A, float> *factor = nullptr) {
  if (table.bothSides) {
    Value<A, float> at = a.bounded(x, table.bound);
    auto index = a.toBits(a.fma(at, a.constant(table.perUnit), a.constant(table.magic)));
    Value<A, float> sum = a.lookUp(table.coefficients.back(), index, factor);
    for (size_t degree = table.coefficients.size() - 1; degree-- > 0;)
      sum = a.fma(sum, degree == 0 ? x : at, a.lookUp(table.coefficients[degree], index, factor));
    return sum;
  }
  Value<A, float> less = detail::evaluate(a, a.boundedMagnitude(x, table.bound), table, factor);
  return factor ? a.fma(*factor, a.positivePart(x), a.neg(less)) : a.sub(a.positivePart(x), less);
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
