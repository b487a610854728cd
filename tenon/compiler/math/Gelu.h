// SPDX-License-Identifier: Apache-2.0
//
// x times half of 1 + erf(s x), the exact form of GELU, as one function. With t = |x| and the complement
// c = erfc(s t) / 2, which is at most a half and has no cancellation:
//
//     x < 0:  -t c           x > 0:  x - t c           so both are  max(x, 0) - t c
//
// No choice between the two halves, no 1 - c, and the product is part of the multiply-add. c = 2^y with y <= -1, which
// splits into floor(y) and a rest without rounding (Relaxed.h).
#pragma once

#include "tenon/compiler/math/Relaxed.h"

namespace tenon::math {
namespace detail {

/// Beyond it erfc is below the smallest number, so x - t c is x.
inline constexpr float erfcIsZero = 10.06f;

/// `logarithm` computes log2 of erfc(s t) / 2, `power` 2^r on [0, 1). The product has x's magnitude, however large,
/// where x is negative: infinity times 0 is NaN, as the program says, but minus infinity's only.
template <class A, class Logarithm, class Power>
Value<A, float> geluBy(A &a, Value<A, float> x, float scale, Logarithm logarithm, Power power) {
  Value<A, float> most = a.constant(erfcIsZero / scale), negativeZero = a.constant(-0.0f);
  Value<A, float> t = a.abs(a.select(a.lessThan(x, most), x, most)); // a NaN is in what follows
  Value<A, float> complement = powerOrZero(a, logarithm(t), ExponentialLimits<float>::erfcLowest - 1,
                                           [&](Value<A, float> y) { return powerByFloor(a, y, power); });
  Value<A, float> minus = a.neg(t); // part of the multiply-add
  Value<A, float> positive = a.select(a.lessThan(x, negativeZero), negativeZero, x);
  return a.fma(minus, complement, positive);
}

} // namespace detail

/// x (1 + erf(scale x)) / 2. The factor of x is as good as that of onePlusErf. scale is above 0.
template <class A> Value<A, float> gelu(A &a, Value<A, float> x, float scale) {
  return detail::geluBy(
      a, x, scale,
      [&](Value<A, float> t) {
        Value<A, float> z = a.mul(t, a.constant(scale)); // as the program rounds it
        return a.fma(z, detail::log2ErfcSlope(a, z), a.constant(-1.0f));
      },
      // Fit error 2^-28.8.
      [&](Value<A, float> r) {
        return horner<float>(
            a, r,
            {1.0f, 0x1.62e42cp-1f, 0x1.ebfd3ap-3f, 0x1.c68af8p-5f, 0x1.3cfd62p-7f, 0x1.473878p-10f, 0x1.c44182p-13f});
      });
}

/// The same, as good as relaxedOnePlusErf, relative to it.
template <class A> Value<A, float> relaxedGelu(A &a, Value<A, float> x, float scale, Grain grain) {
  return detail::geluBy(
      a, x, scale,
      [&](Value<A, float> t) { return a.fma(t, detail::relaxedLog2ErfcSlopeOf(a, t, scale), a.constant(-1.0f)); },
      [&](Value<A, float> r) { return detail::relaxedPowerFromZero(a, r, grain, 1); });
}

} // namespace tenon::math
