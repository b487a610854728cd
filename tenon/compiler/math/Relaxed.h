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

/// log2(erfc(x)) / x for x in [0, 9.19], from the highest degree down. As erfc, relative to it: 2^-16.7 up to 3 and
/// 2^-13.4 above, where GELU, whose x is sqrt(2) times this one, is no normal number of f16.
inline constexpr float relaxedLog2ErfcSlope[] = {-0x1.92d502p-25f, 0x1.42cbf4p-19f, -0x1.c54a84p-15f,
                                                 0x1.716f1ep-11f,  -0x1.87f22cp-8f, 0x1.21a5fap-5f,
                                                 -0x1.3b2f10p-3f,  -0x1.d53092p-1f, -0x1.a0cfe0p+0f};

} // namespace detail

/// 2^x = 2^n 2^r with r = x - n exact: 2^-18.5, for bf16 2^-13.7.
template <class A> Value<A, float> relaxedExp2(A &a, Value<A, float> x, Grain grain = Grain::f16) {
  x = clampBelow<float>(a, x, detail::ExponentialLimits<float>::exp2Lowest);
  x = clampAbove<float>(a, x, detail::ExponentialLimits<float>::exp2Highest);
  Value<A, float> magic = a.constant(Format<float>::roundMagic + 2 * Format<float>::bias);
  Value<A, float> sum = a.add(x, magic);
  return detail::scale<float>(a, detail::relaxedPower(a, a.sub(x, a.sub(sum, magic)), grain), a.toBits(sum));
}

/// e^x = 2^(x log2(e)). The product is rounded once, which costs 2^-18.5 where it is largest, and the constant in it |x| 2^-25.6.
template <class A> Value<A, float> relaxedExp(A &a, Value<A, float> x, Grain grain = Grain::f16) {
  return relaxedExp2(a, a.mul(x, a.constant(Format<float>::log2E)), grain);
}

/// 1 + erf(x), or half of it, in the way of onePlusErf. 2^-16.4 relative to it for x above -3, then 2^-13.4;
/// below -9.19 it is 0, or nearly so. For bf16: 2^-13.5, then 2^-12.6. With a `scale` above 0, of scale times x: a
/// matter of the coefficients.
template <class A>
Value<A, float> relaxedOnePlusErf(A &a, Value<A, float> x, bool halved = false, Grain grain = Grain::f16,
                                  float scale = 1) {
  Value<A, float> magnitude = a.abs(x), slope;
  constexpr size_t count = std::size(detail::relaxedLog2ErfcSlope);
  for (size_t i = 0; i < count; ++i) {
    double factor = 1;
    for (size_t power = i; power < count; ++power) // of x, counting the product with the slope
      factor *= scale;
    Value<A, float> coefficient = a.constant(static_cast<float>(detail::relaxedLog2ErfcSlope[i] * factor));
    slope = i == 0 ? coefficient : a.fma(slope, magnitude, coefficient);
  }
  Value<A, float> logarithm = a.mul(magnitude, slope);
  return detail::fromComplement<float>(a, x, logarithm, halved, [&](Value<A, float> r, float factor) {
    return detail::relaxedPower(a, r, grain, factor);
  });
}

/// 1 + tanh(x) in the way of onePlusTanh; log2(e) times -2 has the digits of log2(e).
template <class A>
Value<A, float> relaxedOnePlusTanh(A &a, Value<A, float> x, bool halved = false, Grain grain = Grain::f16) {
  Value<A, float> power = relaxedExp2(a, a.mul(x, a.constant(-2 * Format<float>::log2E)), grain);
  return a.div(a.constant(halved ? 1.0f : 2.0f), a.add(power, a.constant(1.0f)));
}

} // namespace tenon::math
