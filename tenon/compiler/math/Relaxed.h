// SPDX-License-Identifier: Apache-2.0
//
// Functions whose result is only ever seen rounded to 16 bits or fewer (transform/Relaxable.h): a relative error of
// 2^-16 is at most a sixteenth of half a unit in the last place of f16, and of bf16 a hundredth. Fewer steps, the same
// bits on every CPU. Where bf16 is the longest that anybody sees, 2^-13 is a sixteenth as well, and there is one step
// fewer.
#pragma once

#include "tenon/compiler/math/Exponential.h"

#include <iterator>

namespace tenon::math {

enum class Grain { f16, bf16 }; ///< the longest significand that sees the result

namespace detail {

/// 2^r on |r| <= 1/2, times a power of two. Fit error relative to it: 2^-18.5, for bf16 2^-13.7.
template <class A> Value<A, float> relaxedPower(A &a, Value<A, float> r, Grain grain, float factor = 1) {
  if (grain == Grain::bf16)
    return horner<float>(
        a, r, {factor * 0x1.fff692p-1f, factor * 0x1.62f31ap-1f, factor * 0x1.f0de26p-3f, factor * 0x1.c3f712p-5f});
  return horner<float>(a, r, {factor * 0x1.ffffe8p-1f, factor * 0x1.62e0dap-1f, factor * 0x1.ec06e6p-3f,
                              factor * 0x1.ca15fap-5f, factor * 0x1.399706p-7f});
}

/// The same on [0, 1), as good.
template <class A> Value<A, float> relaxedPowerFromZero(A &a, Value<A, float> r, Grain grain, float factor) {
  if (grain == Grain::bf16)
    return horner<float>(
        a, r, {factor * 0x1.fff632p-1f, factor * 0x1.644432p-1f, factor * 0x1.cefd82p-3f, factor * 0x1.3f94fcp-4f});
  return horner<float>(a, r,
                       {factor * 0x1.00002cp+0f, factor * 0x1.62d13ap-1f, factor * 0x1.ee7dfap-3f,
                        factor * 0x1.a9f15ep-5f, factor * 0x1.bbcd80p-7f});
}

/// log2(erfc(x)) / x for x in [0, 9.19], from the highest degree down. As erfc, relative to it: 2^-16.7 up to 3 and
/// 2^-13.4 above, where GELU, whose x is sqrt(2) times this one, is no normal number of f16.
inline constexpr float relaxedLog2ErfcSlope[] = {-0x1.92d502p-25f, 0x1.42cbf4p-19f, -0x1.c54a84p-15f,
                                                 0x1.716f1ep-11f,  -0x1.87f22cp-8f, 0x1.21a5fap-5f,
                                                 -0x1.3b2f10p-3f,  -0x1.d53092p-1f, -0x1.a0cfe0p+0f};

/// log2(erfc(scale x)) / x: the scale is a matter of the coefficients.
template <class A> Value<A, float> relaxedLog2ErfcSlopeOf(A &a, Value<A, float> x, float scale) {
  constexpr size_t count = std::size(relaxedLog2ErfcSlope);
  Value<A, float> slope;
  for (size_t i = 0; i < count; ++i) {
    double factor = 1;
    for (size_t power = i; power < count; ++power) // of x, counting the product with the slope
      factor *= scale;
    Value<A, float> coefficient = a.constant(static_cast<float>(relaxedLog2ErfcSlope[i] * factor));
    slope = i == 0 ? coefficient : a.fma(slope, x, coefficient);
  }
  return slope;
}

} // namespace detail

/// 2^x = 2^n 2^r with r = x - n exact: 2^-18.5, for bf16 2^-13.7.
template <class A> Value<A, float> relaxedExp2(A &a, Value<A, float> x, Grain grain = Grain::f16, PowerUse use = {}) {
  using Limits = detail::ExponentialLimits<float>;
  if (use.isLost)
    x = clampBelow<float>(a, x, Limits::exp2Lost);
  Value<A, float> bounded = clampAbove<float>(a, x, Limits::exp2Highest);
  Value<A, float> magic = a.constant(Format<float>::roundMagic + 2 * Format<float>::bias);
  Value<A, float> sum = a.add(bounded, magic), r = a.sub(bounded, a.sub(sum, magic));
  Value<A, float> power = detail::scale<float>(a, detail::relaxedPower(a, r, grain), a.toBits(sum));
  return use.isLost ? power : detail::zeroBelow<float>(a, x, Limits::exp2Lowest, power);
}

/// e^x = 2^(x log2(e)). The product is rounded once, which costs 2^-18.5 where it is largest, and the constant in it |x| 2^-25.6.
template <class A> Value<A, float> relaxedExp(A &a, Value<A, float> x, Grain grain = Grain::f16, PowerUse use = {}) {
  return relaxedExp2(a, a.mul(x, a.constant(Format<float>::log2E)), grain, use);
}

/// e^x for x that is not positive: a half of it, times 2, so that what is split is at most -1.
template <class A> Value<A, float> relaxedExpOfNonPositive(A &a, Value<A, float> x, Grain grain) {
  Value<A, float> y = a.fma(x, a.constant(Format<float>::log2E), a.constant(-1.0f));
  Value<A, float> power =
      detail::powerByFloor(a, y, [&](Value<A, float> r) { return detail::relaxedPowerFromZero(a, r, grain, 2); });
  return detail::zeroBelow<float>(a, y, detail::ExponentialLimits<float>::exp2Lowest - 1, power);
}

/// 1 + erf(x), or half of it, in the way of onePlusErf. 2^-16.4 relative to it for x above -3, then 2^-13.4;
/// below -9.15 it is 0, or nearly so. For bf16: 2^-13.5, then 2^-12.6. With a `scale` above 0, of scale times x: a
/// matter of the coefficients.
template <class A>
Value<A, float> relaxedOnePlusErf(A &a, Value<A, float> x, bool halved = false, Grain grain = Grain::f16,
                                  float scale = 1) {
  Value<A, float> magnitude = a.abs(x);
  Value<A, float> logarithm = a.mul(magnitude, detail::relaxedLog2ErfcSlopeOf(a, magnitude, scale));
  return detail::fromComplement(a, x, logarithm, halved, [&](Value<A, float> r, float factor) {
    return detail::relaxedPower(a, r, grain, factor);
  });
}

/// 1 + tanh(x) in the way of onePlusTanh, given x times -2 log2(e).
template <class A> Value<A, float> relaxedOnePlusTanhOf(A &a, Value<A, float> exponent, bool halved, Grain grain) {
  Value<A, float> power = relaxedExp2(a, exponent, grain, {.isLost = true});
  return a.div(a.constant(halved ? 1.0f : 2.0f), a.add(power, a.constant(1.0f)));
}

/// The sigmoid as one function, 1 / (1 + 2^t) with t = -log2(e) x: no choice between 1 and e^x, and no magnitude. It is
/// 2^-32 / (2^-32 + 2^(t - 32)), so that the power is a number wherever the result is one, subnormal ones included.
template <class A> Value<A, float> relaxedSigmoid(A &a, Value<A, float> x, Grain grain) {
  Value<A, float> exponent = a.fma(x, a.constant(-Format<float>::log2E), a.constant(-32.0f));
  Value<A, float> power = relaxedExp2(a, exponent, grain, {.isLost = true}), shift = a.constant(0x1p-32f);
  return a.div(shift, a.add(power, shift));
}

/// log2(e) times -2 has the digits of log2(e).
template <class A>
Value<A, float> relaxedOnePlusTanh(A &a, Value<A, float> x, bool halved = false, Grain grain = Grain::f16) {
  return relaxedOnePlusTanhOf(a, a.mul(x, a.constant(-2 * Format<float>::log2E)), halved, grain);
}

/// 1 + tanh(first x + third x^3), where both have one sign, so that nothing cancels: the product and the sum are
/// rounded as often as the program's, and what is lost of the exponent, at most three roundings of a number below 128,
/// is 2^-15.8 of the result.
template <class A>
Value<A, float> relaxedOnePlusTanhOfCubic(A &a, Value<A, float> x, double first, double third, bool halved,
                                          Grain grain) {
  return relaxedOnePlusTanhOf(a, cubicExponent(a, x, first, third), halved, grain);
}

} // namespace tenon::math
