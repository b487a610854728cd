// SPDX-License-Identifier: Apache-2.0
//
// exp, exp2, tanh, erf and rsqrt of f32 around the special function unit, as straight-line code over an arithmetic
// policy (compiler/math/Arithmetic.h) with these besides:
//
//   ex2(x, flush), rcp(x, flush), rsqrt(x)   nvidia.approx: within 2 ulp; flush: subnormals may become zero
//   minimum, maximum                         of two floats; NaN if either is
//
// u is one ulp below: of a result in [1, 2) that is 2^-23, relative to it between 2^-24 and 2^-23. Errors measured with
// every result of the unit off by the same -2 to 2 ulp (test/unit/nvidia/GpuMathTest.cpp): exp 3.0, exp2 3.0, tanh 1.7,
// erf 1.6, rsqrt 2.5. The relaxed functions are for results that are rounded to 16 bits or fewer.
#pragma once

#include "tenon/compiler/math/Relaxed.h"

#include <iterator>

namespace tenon::nvidia::gpu {

using math::Format;
using math::Value;

inline constexpr double log2EExact = 0x1.71547652b82fep+0; // to 2^-54
inline constexpr float log2ELow = 0x1.4ae0cp-26f; // log2(e) - Format<float>::log2E, to 2^-50

/// e^x = 2^n 2^r with n = round(x log2(e)), kept in [-126, 127], so that 2^n is a normal number; what x exceeds that by
/// stays in r. x = +-infinity gives r = +-infinity and n at its limit, x = NaN a NaN r.
///
/// Error: r is rounded twice (the product with the high part of log2(e) is exact inside the fma), by at most 2^-25 each
/// where |r| < 1, which is all of x log2(e) in [-127, 128): relative to 2^r that is 2 ln2 2^-25, at most 0.7 u. ex2
/// adds 2 u, the product with 2^n nothing where the result is normal: 2.7 u. Below 2^-126, |r| grows to 24 and its
/// roundings with it, but each halving of the result doubles its ulp; the product rounds once more, by 0.5 u. Flushing
/// in ex2 happens only where r < -126, and then the product is 0 with or without it.
///
/// 9 instructions: fma, two of min and max, add, fma, fma, ex2, shift, mul.
template <class A> Value<A, float> exp(A &a, Value<A, float> x) {
  constexpr float magic = Format<float>::roundMagic + 127;
  Value<A, float> high = a.constant(Format<float>::log2E);
  Value<A, float> sum = a.fma(x, high, a.constant(magic));
  sum = a.minimum(a.maximum(sum, a.constant(magic - 126)), a.constant(magic + 127));
  Value<A, float> minusN = a.sub(a.constant(magic), sum);
  Value<A, float> r = a.fma(x, a.constant(log2ELow), a.fma(x, high, minusN));
  return a.mul(a.ex2(r, true), math::detail::fromExponentField<float>(a, a.toBits(sum)));
}

/// e^x by one multiplication and the unit: an error of 2^-24 |x| log2(e) ln2 relative to it, 2^-17 at most.
template <class A> Value<A, float> relaxedExp(A &a, Value<A, float> x) {
  return a.ex2(a.mul(x, a.constant(Format<float>::log2E)), true);
}

/// 1 / y as `reciprocal` times `scale`: y below 2^-100 is scaled up first, so that the reciprocal is finite; the largest
/// y have a subnormal one, of 21 bits at least.
template <class A> struct SharedReciprocal {
  Value<A, float> reciprocal, scale;
  SharedReciprocal(A &a, Value<A, float> y) {
    scale = a.select(a.lessThan(a.abs(y), a.constant(0x1p-100f)), a.constant(0x1p100f), a.constant(1.0f));
    reciprocal = a.rcp(a.mul(y, scale), false);
  }
};

/// 2^x: the unit's own, which keeps subnormals in four instructions. 2 u.
template <class A> Value<A, float> exp2(A &a, Value<A, float> x) { return a.ex2(x, false); }

/// tanh|x| = |x| + |x|^3 P(x^2) below 0.625, else 1 - 2 / (2^(2 log2(e) |x|) + 1).
///
/// Error of the second, with e = 2^(...) and q = 1 / (e + 1): an error d of e relative to it changes the result by
/// d * 2 e / (e + 1)^2 = d (1 - tanh^2) / 2. For |x| >= 0.625 (tanh >= 0.55, u = 2^-24) that is at most 0.35 d. d has
/// 2^-22 from ex2, and 2^-24 |x| 2 log2(e) ln2 = 2^-23 |x| from rounding its operand (no second term is needed: what a
/// large operand adds, 1 - tanh^2 takes away): at most 1.4 + 0.45 u. Rounding e + 1 adds 0.45 * 0.5 u, rcp (2 ulp of
/// q < 0.25, doubled) 1 u, the last fma 0.5 u. Together 3.6 u at most, if all are at their worst at once. Near 0 the
/// polynomial is accurate relative to x.
///
/// 15 instructions: mul, ex2, add, rcp, fma; mul, mul, 4 fma, fma; compare, select, sign.
template <class A> Value<A, float> tanh(A &a, Value<A, float> x) {
  Value<A, float> magnitude = a.abs(x), one = a.constant(1.0f), z = a.mul(x, x);
  Value<A, float> small = a.fma(a.mul(magnitude, z), math::detail::tanhTail(a, z), magnitude);
  Value<A, float> e = a.ex2(a.mul(magnitude, a.constant(2 * Format<float>::log2E)), true);
  Value<A, float> large = a.fma(a.rcp(a.add(e, one), true), a.constant(-2.0f), one);
  return math::withSignOf<float>(a, a.select(a.lessThan(magnitude, a.constant(0.625f)), small, large), x);
}

/// 1 + tanh x = 1 / (1/2 + 2^(-2 log2(e) x) / 2): what is left of the sum where tanh is close to -1 is not lost, as it
/// would be in tanh and an addition. An error d of the power relative to it, 2^-22 + 2^-23 |x|, changes the result by at
/// most d relative to it, and for positive x by d 2^(-2 log2(e) x); the fma and rcp add 2.5 u. Never worse than the sum
/// in absolute terms.
///
/// Of a constant multiple of x the constant goes into that of the power: as many roundings as without it.
///
/// 4 instructions: mul, ex2, fma, rcp.
template <class A> Value<A, float> onePlusTanh(A &a, Value<A, float> x, double factor = 1) {
  Value<A, float> e = a.ex2(a.mul(x, a.constant(static_cast<float>(-2 * log2EExact * factor))), true);
  return a.rcp(a.fma(e, a.constant(0.5f), a.constant(0.5f)), true);
}

/// Half of that: 1 / (1 + 2^(-2 log2(e) x)).
template <class A> Value<A, float> halfOnePlusTanh(A &a, Value<A, float> x, double factor = 1) {
  Value<A, float> e = a.ex2(a.mul(x, a.constant(static_cast<float>(-2 * log2EExact * factor))), true);
  return a.rcp(a.add(e, a.constant(1.0f)), true);
}

/// The sigmoid, 1 / (1 + 2^t) with t = -log2(e) x, as 2^-32 / (2^-32 + 2^(t - 32)): what the unit is asked for is a
/// normal number wherever the result is a number, and the last product, which the unit does not make, keeps subnormals.
/// Rounding the power's operand is an error of 2^-24 |t - 32| ln2 relative to the power, 2^-17.9 at most where the
/// power matters.
///
/// 5 instructions: fma, ex2, add, rcp, mul.
template <class A> Value<A, float> relaxedSigmoid(A &a, Value<A, float> x) {
  Value<A, float> shift = a.constant(0x1p-32f);
  Value<A, float> power = a.ex2(a.fma(x, a.constant(-Format<float>::log2E), a.constant(-32.0f)), true);
  return a.mul(a.rcp(a.add(power, shift), true), shift);
}

/// erf|x| = |x| + |x| P(x^2) below 1, 1 - 2^(log2(e) Q(|x|)) above, where erfc <= 0.16 damps the errors: those of Q
/// (below 2^-21 of at most 18, but erfc is 2^-26 there) and the 2 u of ex2. Below 1.5 u.
///
/// 21 instructions: mul, 6 fma, fma; min, 6 fma, mul, ex2, sub; compare, select, sign.
template <class A> Value<A, float> erf(A &a, Value<A, float> x) {
  Value<A, float> magnitude = a.abs(x);
  Value<A, float> small = a.fma(magnitude, math::detail::erfSlope(a, a.mul(x, x)), magnitude);
  Value<A, float> clamped = a.minimum(magnitude, a.constant(math::detail::ExponentialLimits<float>::erfIsOne));
  Value<A, float> q = math::detail::logErfc(a, clamped);
  Value<A, float> large = a.sub(a.constant(1.0f), a.ex2(a.mul(q, a.constant(Format<float>::log2E)), true));
  return math::withSignOf<float>(a, a.select(a.lessThan(magnitude, a.constant(1.0f)), small, large), x);
}

/// 1 + erf(x) for results that are rounded to 16 bits: erfc|x| = 2^(|x| P(|x|)) for x below 0, 2 - erfc|x| above. What
/// is left of the sum where erf is close to -1 is not lost, as it would be in erf and an addition.
///
/// Error relative to the result, as ln2 times that of the exponent: the fit's is 2^-17.0 down to -3, below which GELU
/// is no normal number of f16, and 2^-13.9 down to -9.19, below which erfc is no normal number of f32 and becomes 0.
/// The roundings of P and its product add at most 2^-19.0 and 2^-14.3, ex2 2^-22. Together 2^-16.6 and 2^-13.1,
/// measured 2^-16.7 and 2^-13.4. For positive x all of it counts erfc / (2 - erfc). The last coefficient is negative,
/// so that beyond 9.2 the exponent falls on, down to minus infinity.
///
/// `scale`, above 0: 1 + erf(scale x), at no cost since P's coefficients take it. Its powers are rounded with them, which
/// is less than what rounding the product would do. `halved`: half of it, exactly, as the exponent can be one less.
///
/// 12 instructions: 8 fma, mul (halved: fma), ex2; compare, and under it sub. One is the unit's, which takes as long as
/// eight others; a polynomial in 1 / (1 + p |x|) times 2^(-log2(e) x^2) would need it twice.
template <class A>
Value<A, float> relaxedOnePlusErf(A &a, Value<A, float> x, double scale = 1, bool halved = false) {
  constexpr auto &coefficients = math::detail::relaxedLog2ErfcSlope;
  Value<A, float> magnitude = a.abs(x), slope;
  double power = 1;
  for (size_t i = 0; i < std::size(coefficients); ++i)
    power *= scale;
  for (size_t i = 0; i < std::size(coefficients); ++i, power /= scale) {
    Value<A, float> coefficient = a.constant(static_cast<float>(coefficients[i] * power));
    slope = i ? a.fma(slope, magnitude, coefficient) : coefficient;
  }
  Value<A, float> exponent =
      halved ? a.fma(magnitude, slope, a.constant(-1.0f)) : a.mul(magnitude, slope);
  Value<A, float> complement = a.ex2(exponent, true);
  return a.select(a.lessThan(x, a.constant(0.0f)), complement, a.sub(a.constant(halved ? 1.0f : 2.0f), complement));
}

/// erf(x) for results that are rounded to 16 bits: 1 - 2^(|x| P(|x|)) as above, where the fit need only be good
/// relative to erf (2^-20.4), so that half of P is enough. Near 0 the difference loses digits: from 1/16 on, where erf
/// is 0.07, the 2^-23 of ex2 are at most 2^-19.2 of it. Together 2^-18.6; measured 2^-18.4, the unit's result being
/// rounded on top. Below, it is the first two terms of the series; the next is less than 2^-19.3 of them.
///
/// 13 instructions: 4 fma, mul, ex2, sub, sign; mul, fma, mul; compare, select.
template <class A> Value<A, float> relaxedErf(A &a, Value<A, float> x) {
  constexpr float slopeAtZero = 0x1.20dd76p+0f; // 2 / sqrt(pi)
  Value<A, float> magnitude = a.abs(x);
  Value<A, float> slope = math::horner<float>(
      a, magnitude, {-0x1.a0be98p+0f, -0x1.d63574p-1f, -0x1.3105c2p-3f, 0x1.e831f2p-6f, -0x1.88b238p-9f});
  Value<A, float> large = a.sub(a.constant(1.0f), a.ex2(a.mul(magnitude, slope), true));
  Value<A, float> small = a.mul(x, a.fma(a.mul(x, x), a.constant(-slopeAtZero / 3), a.constant(slopeAtZero)));
  return a.select(a.lessThan(magnitude, a.constant(0x1p-4f)), small, math::withSignOf<float>(a, large, x));
}

/// 1 / sqrt(x): the unit's own. rsqrt(+-0) = +-infinity, of a negative number NaN. 2 u.
template <class A> Value<A, float> rsqrt(A &a, Value<A, float> x) { return a.rsqrt(x); }

} // namespace tenon::nvidia::gpu
