// SPDX-License-Identifier: Apache-2.0
//
// exp, exp2, expm1, tanh, erf.
//
// Coefficients were fitted by iteratively reweighted least squares on Chebyshev nodes (Lawson; close to minimax) with
// 60 digits, then rounded to the format one by one from the lowest degree up, refitting the rest after each. "Fit
// error" below is the largest error of the rounded polynomial in exact arithmetic, relative to the function named.
#pragma once

#include "tenon/compiler/math/Arithmetic.h"

namespace tenon::math {
namespace detail {

/// (e^r - 1 - r) / r^2 on |r| <= ln2/2. Fit error relative to e^r - 1: 2^-26.1 (float), 2^-55.5 (double).
template <class A> Value<A, float> expTail(A &a, Value<A, float> r) {
  return horner<float>(a, r, {0x1.fffffep-2f, 0x1.5554b0p-3f, 0x1.55572ep-5f, 0x1.1227ccp-7f, 0x1.6b5928p-10f});
}

/// One step shorter. Fit error relative to e^r: 2^-23.2.
template <class A> Value<A, float> expTailOfSummand(A &a, Value<A, float> r) {
  return horner<float>(a, r, {0x1.fffdfcp-2f, 0x1.5557aap-3f, 0x1.572a0cp-5f, 0x1.1064c0p-7f});
}

template <class A> Value<A, double> expTail(A &a, Value<A, double> r) {
  return horner<double>(a, r,
                        {0x1.0000000000005p-1, 0x1.555555555553ep-3, 0x1.55555555520c3p-5, 0x1.1111111117deap-7,
                         0x1.6c16c17f4be57p-10, 0x1.a01a017b18138p-13, 0x1.a019a63591a1dp-16, 0x1.71de7a4b1ff6fp-19,
                         0x1.28a30af748a16p-22, 0x1.ae823c3612245p-26});
}

template <class A> Value<A, double> expTailOfSummand(A &a, Value<A, double> r) { return expTail(a, r); }

/// (2^r - 1) / r on |r| <= 1/2, times a power of two. Fit error relative to 2^r: 2^-28.3 (float), 2^-57.7 (double).
template <class A> Value<A, float> exp2Slope(A &a, Value<A, float> r, float factor = 1) {
  return horner<float>(a, r, {factor * 0x1.62e430p-1f, factor * 0x1.ebfbdcp-3f, factor * 0x1.c6af7ap-5f,
                              factor * 0x1.3b2dd2p-7f, factor * 0x1.5f0948p-10f, factor * 0x1.417b14p-13f});
}

/// The same on [0, 1), one step shorter. Fit error relative to 2^r: 2^-23.5.
template <class A> Value<A, float> exp2SlopeOfSummand(A &a, Value<A, float> r) {
  return horner<float>(a, r, {0x1.62e4bap-1f, 0x1.ebdb6ap-3f, 0x1.c91c10p-5f, 0x1.277c1cp-7f, 0x1.e96910p-10f});
}

template <class A> Value<A, double> exp2Slope(A &a, Value<A, double> r) {
  return horner<double>(a, r,
                        {0x1.62e42fefa39efp-1, 0x1.ebfbdff82c59cp-3, 0x1.c6b08d704a0d3p-5, 0x1.3b2ab6fba11e2p-7,
                         0x1.5d87fe78b3ebfp-10, 0x1.4309130c06e95p-13, 0x1.ffcbfbf806e81p-17, 0x1.62bfcdce53b7fp-20,
                         0x1.b5260ed4e1856p-24, 0x1.e611bb58a76f4p-28, 0x1.e80d62096fabbp-32});
}

/// x = n ln2 + r with n an integer and |r| <= ln2/2 (a hair more where x log2(e) rounds across a half). The low bits
/// of `rounded` are n + offset. n * ln2High and the first subtraction are exact, so r carries one rounding.
template <class T, class A> struct ExpReduction {
  Value<A, T> n, beforeLow, r; // beforeLow: of the two subtractions the first
  Value<A, typename Format<T>::Bits> rounded;

  ExpReduction(A &a, Value<A, T> x, typename Format<T>::Bits offset) {
    Value<A, T> magic = a.constant(Format<T>::roundMagic + T(offset));
    Value<A, T> sum = a.fma(x, a.constant(Format<T>::log2E), magic);
    n = a.sub(sum, magic);
    beforeLow = a.fma(n, a.constant(-Format<T>::ln2High), x);
    r = a.fma(n, a.constant(-Format<T>::ln2Low), beforeLow);
    rounded = a.toBits(sum);
  }
};

/// The float whose exponent field (and sign, above it) is the low bits of `field`; what lies higher is shifted out.
template <class T, class A> Value<A, T> fromExponentField(A &a, Value<A, typename Format<T>::Bits> field) {
  return a.fromBits(a.shiftLeft(field, a.constant(Format<T>::mantissaBits)));
}

/// p * 2^n where the low bits of `rounded` are n + 2 * bias. One power of two cannot span the range from the smallest
/// subnormal to the largest p * 2^n, so it is applied as 2^floor(n/2) * 2^ceil(n/2): the first product is exact and
/// the second rounds once, into the subnormals or to infinity.
template <class T, class A> Value<A, T> scale(A &a, Value<A, T> p, Value<A, typename Format<T>::Bits> rounded) {
  using Bits = typename Format<T>::Bits;
  Value<A, Bits> half = a.shiftRight(rounded, a.constant(Bits(1)));
  Value<A, Bits> otherHalf = a.sub(rounded, half);
  return a.mul(a.mul(p, fromExponentField<T>(a, half)), fromExponentField<T>(a, otherHalf));
}

/// 2^y by floor(y) and what is left, which a processor that scales by floors has no need to subtract again. What is
/// left is exact where y is at most -1/2 or at least 0, because it has no finer digits than y. `power` computes 2^r on
/// [0, 1).
template <class A, class Power> Value<A, float> powerByFloor(A &a, Value<A, float> y, Power power) {
  Value<A, float> whole = a.floor(y);
  Value<A, float> sum = a.add(whole, a.constant(Format<float>::roundMagic + 2 * Format<float>::bias));
  return scale<float>(a, power(a.sub(y, whole)), a.toBits(sum));
}

/// 1 - exp(q) for q in [-40, 0]. The power of two is made negative (a one above its exponent field), so that the
/// subtraction is the fma and rounds once.
template <class T, class A> Value<A, T> oneMinusExp(A &a, Value<A, T> q) {
  constexpr typename Format<T>::Bits bias = Format<T>::bias;
  ExpReduction<T, A> e(a, q, bias + 2 * (bias + 1));
  Value<A, T> one = a.constant(T(1));
  Value<A, T> p = a.fma(e.r, a.fma(e.r, expTail(a, e.r), one), one);
  return a.fma(fromExponentField<T>(a, e.rounded), p, one);
}

/// (tanh(x) / x - 1) / x^2 as a polynomial in z = x^2, x in [0, 0.625]. Fit error relative to tanh: 2^-27.7 (float),
/// 2^-56.4 (double).
template <class A> Value<A, float> tanhTail(A &a, Value<A, float> z) {
  return horner<float>(a, z, {-0x1.555532p-2f, 0x1.1106fep-3f, -0x1.b83792p-5f, 0x1.520a3ap-6f, -0x1.756d14p-8f});
}

template <class A> Value<A, double> tanhTail(A &a, Value<A, double> z) {
  return horner<double>(a, z,
                        {-0x1.55555555554ffp-2, 0x1.111111110aca4p-3, -0x1.ba1ba1b504cfap-5, 0x1.664f477aa28c3p-6,
                         -0x1.226e1626f673ep-7, 0x1.d6cf277c1d08dp-9, -0x1.7d689da7d9e82p-10, 0x1.3365effd5d37ap-11,
                         -0x1.df54655642b93p-13, 0x1.438eb3e581f24p-14, -0x1.0da26ebead9cap-16});
}

/// erf(x) / x - 1 as a polynomial in z = x^2 on [0, 1]. Fit error relative to erf: 2^-29.4 (float), 2^-56.0 (double).
template <class A> Value<A, float> erfSlope(A &a, Value<A, float> z) {
  return horner<float>(a, z, {0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2ceap-4f, -0x1.b7f7bcp-6f, 0x1.53fa0cp-8f,
                              -0x1.a39f20p-11f, 0x1.487984p-14f});
}

template <class A> Value<A, double> erfSlope(A &a, Value<A, double> z) {
  return horner<double>(a, z,
                        {0x1.06eba8214db68p-3, -0x1.812746b0379a3p-2, 0x1.ce2f21a03ffb7p-4, -0x1.b82ce311cd1dap-6,
                         0x1.565bccf3ff5bbp-8, -0x1.c02daf8907143p-11, 0x1.f9a2aaf9334c6p-14, -0x1.f4c96ae92a36bp-17,
                         0x1.b9778ce5121b7p-20, -0x1.5bd6cb5a332bap-23, 0x1.d5da6a1f48001p-27,
                         -0x1.a81560353afbdp-31});
}

/// log(1 - erf(x)) on [1, 3.95] (float), [1, 6] (double); beyond, erf rounds to 1. An error d here changes erf by
/// erfc * d, so the fit is weighted by erfc / erf. Fit error relative to erf: 2^-29.8 (float), 2^-56.8 (double).
template <class A> Value<A, float> logErfc(A &a, Value<A, float> x) {
  return horner<float>(a, x, {-0x1.661dacp-12f, -0x1.2088ecp+0f, -0x1.46bae2p-1f, -0x1.a653b2p-4f, 0x1.65ccb0p-6f,
                              -0x1.825e5cp-9f, 0x1.86e4f4p-13f});
}

template <class A> Value<A, double> logErfc(A &a, Value<A, double> x) {
  return horner<double>(a, x,
                        {-0x1.0dfb0ced68315p-21, -0x1.20dd1fd33e6edp+0, -0x1.45f62755ea7c3p-1, -0x1.a4ac5cc7b691ep-4,
                         0x1.37229925d1fdep-6, 0x1.ae90d6a2144a5p-12, -0x1.f63ff4b12fb9bp-10, 0x1.9408447e0d142p-11,
                         -0x1.1b33532fde489p-13, -0x1.541d8acf43288p-16, 0x1.7ef12e901ac9bp-16, -0x1.22da3d474fda7p-17,
                         0x1.1eadadbc78fcep-19, -0x1.90e1fdb405e52p-22, 0x1.8ed43fcff75a5p-25, -0x1.0e682e7291773p-28,
                         0x1.c1c813955087cp-33, -0x1.5ae662714aabep-38});
}

/// log2(erfc(x)) / x for x >= 0. What is wanted is erfc, so an error d counts erfc * d: fit error of that 2^-25.8,
/// absolute, on all x. The last coefficient is negative, so that beyond x = 4.2, where erfc is below 2^-28, the product
/// with x keeps falling, down to minus infinity.
template <class A> Value<A, float> log2ErfcSlope(A &a, Value<A, float> x) {
  return horner<float>(a, x, {-0x1.a0bea0p+0f, -0x1.d63a82p-1f, -0x1.301b0ap-3f, 0x1.cf3bb4p-6f, -0x1.a44734p-11f,
                              -0x1.815e06p-10f, 0x1.cbdc1ep-12f, -0x1.744fccp-15f});
}

template <class T> struct ExponentialLimits;
template <> struct ExponentialLimits<float> {
  static constexpr float expLowest = -104.5f, expHighest = 89;  // exp is 0 and infinity here, and at all beyond
  static constexpr float exp2Lowest = -151, exp2Highest = 129;
  static constexpr float expm1Lowest = -20, tanhIsOne = 9.25f, erfIsOne = 3.95f;
  static constexpr float erfcLowest = -124.99f; // half of 2^y is a normal number here even if it falls a little short
  static constexpr float expLost = -44, exp2Lost = -64; // exp is below 2^-63
};
template <> struct ExponentialLimits<double> {
  static constexpr double expLowest = -746, expHighest = 710;
  static constexpr double exp2Lowest = -1076, exp2Highest = 1025;
  static constexpr double expLost = -44, exp2Lost = -64;
  static constexpr double expm1Lowest = -40, tanhIsOne = 20, erfIsOne = 6;
};

/// `power`, and 0 where x is below `lowest`: whatever the power is there, a processor with masks does not compute it. x
/// is best the argument without its upper bound, of which such a processor has no need either (ScalePowers.cpp).
template <class T, class A> Value<A, T> zeroBelow(A &a, Value<A, T> x, T lowest, Value<A, T> power) {
  return a.select(a.lessThan(x, a.constant(lowest)), a.constant(T(0)), power);
}

/// 2^y as `power` computes it where y is at least `lowest`, and 0 below, so that no power is subnormal: that would cost
/// a processor 170 cycles where others take one. One with masks has no need of the bound.
template <class A, class Power> Value<A, float> powerOrZero(A &a, Value<A, float> y, float lowest, Power power) {
  return zeroBelow<float>(a, y, lowest, power(clampBelow<float>(a, y, lowest)));
}

/// 1 + erf(x), or half of it, given log2(erfc|x|), by erfc|x| for negative x and 2 less it else. `power` computes 2^r
/// times a factor on |r| <= 1/2: halving is a matter of its coefficients. An erfc that would be subnormal is 0.
template <class A, class Power>
Value<A, float> fromComplement(A &a, Value<A, float> x, Value<A, float> logarithm, bool halved, Power power) {
  using T = float;
  Value<A, T> complement = powerOrZero(a, logarithm, ExponentialLimits<T>::erfcLowest, [&](Value<A, T> y) {
    Value<A, T> magic = a.constant(Format<T>::roundMagic + T(2 * Format<T>::bias));
    Value<A, T> sum = a.add(y, magic), r = a.sub(y, a.sub(sum, magic));
    return scale<T>(a, power(r, T(halved ? 0.5 : 1)), a.toBits(sum));
  });
  Value<A, T> rest = a.sub(a.constant(T(halved ? 1 : 2)), complement);
  return a.select(a.lessThan(a.constant(T(0)), x), rest, complement); // one instruction together with the difference
}

} // namespace detail

/// What is known of a power's argument, and of what becomes of the power.
struct PowerUse {
  bool isNonPositive = false; ///< the argument
  bool isLost = false;        ///< the power, wherever it is below 2^-63, in sums: it need not be smaller than that
  bool isSummed = false;      ///< all that becomes of the power is a summand of many; of f32
};

/// e^x = 2^n e^r. The last steps are 1 + r (1 + r q): the two roundings inside the outer fma count for |r| < 0.35 of
/// half an ulp each, so the total stays below one ulp.
template <class T, class A> Value<A, T> exp(A &a, Value<A, T> x, PowerUse use = {}) {
  using Limits = detail::ExponentialLimits<T>;
  if (use.isLost)
    x = clampBelow<T>(a, x, Limits::expLost);
  Value<A, T> bounded = use.isNonPositive ? x : clampAbove<T>(a, x, Limits::expHighest);
  detail::ExpReduction<T, A> e(a, bounded, 2 * Format<T>::bias);
  Value<A, T> one = a.constant(T(1));
  Value<A, T> tail = use.isSummed ? detail::expTailOfSummand(a, e.r) : detail::expTail(a, e.r);
  Value<A, T> p = a.fma(e.r, a.fma(e.r, tail, one), one);
  Value<A, T> power = detail::scale<T>(a, p, e.rounded);
  return use.isLost ? power : detail::zeroBelow<T>(a, x, Limits::expLowest, power);
}

/// 1 + erf(x), one function where a program has the sum (GELU), or half the sum: erfc(|x|) for x below 0, 2 - erfc(|x|)
/// above, where erfc = 2^Q. Nothing cancels, so neither half of erf is needed: half of the work. The error is that of
/// the sum, in absolute terms: below 2.5 * 2^-24, where 1 + erf(x) rounded twice has 2.1.
template <class A> Value<A, float> onePlusErf(A &a, Value<A, float> x, bool halved = false) {
  Value<A, float> magnitude = a.abs(x);
  Value<A, float> logarithm = a.mul(magnitude, detail::log2ErfcSlope(a, magnitude));
  return detail::fromComplement(a, x, logarithm, halved, [&](Value<A, float> r, float factor) {
    return a.fma(r, detail::exp2Slope(a, r, factor), a.constant(factor));
  });
}

/// 2^x, a summand of many (PowerUse::isSummed), in two steps less than exp2: within 2^-22.6, and 1 at 0, so that a sum
/// of powers of differences from the largest number is at least 1. That is as much as three roundings of the sum, which
/// has many. For x in (-1/2, 0), r is rounded: down by a processor that has an instruction for it.
template <class A> Value<A, float> exp2OfSummand(A &a, Value<A, float> x) {
  using Limits = detail::ExponentialLimits<float>;
  Value<A, float> power = detail::powerByFloor(a, clampAbove<float>(a, x, Limits::exp2Highest), [&](Value<A, float> r) {
    return a.fma(r, detail::exp2SlopeOfSummand(a, r), a.constant(1.0f));
  });
  return detail::zeroBelow<float>(a, x, Limits::exp2Lowest, power);
}

/// 2^x = 2^n 2^r with r = x - n exact.
template <class T, class A> Value<A, T> exp2(A &a, Value<A, T> x, PowerUse use = {}) {
  using Limits = detail::ExponentialLimits<T>;
  if (use.isLost)
    x = clampBelow<T>(a, x, Limits::exp2Lost);
  Value<A, T> bounded = clampAbove<T>(a, x, Limits::exp2Highest);
  Value<A, T> magic = a.constant(Format<T>::roundMagic + T(2 * Format<T>::bias));
  Value<A, T> sum = a.add(bounded, magic);
  Value<A, T> r = a.sub(bounded, a.sub(sum, magic));
  Value<A, T> power = detail::scale<T>(a, a.fma(r, detail::exp2Slope(a, r), a.constant(T(1))), a.toBits(sum));
  return use.isLost ? power : detail::zeroBelow<T>(a, x, Limits::exp2Lowest, power);
}

/// (first x + third x^3) times -2 log2(e).
template <class A> Value<A, float> cubicExponent(A &a, Value<A, float> x, double first, double third) {
  constexpr double factor = -2 * 1.4426950408889634;
  return a.mul(x, a.fma(a.mul(x, x), a.constant(static_cast<float>(factor * third)),
                        a.constant(static_cast<float>(factor * first))));
}

/// 1 + tanh, or half of it, given its argument times -2 log2(e): 2 / (1 + 2^exponent). What the exponent was rounded by
/// counts only where neither 1 nor the power is all of the sum, so that one product is enough for it: the error is that
/// of the sum, in absolute terms, below 3.5 * 2^-24. For large negative arguments, relative to the result, it grows
/// with them.
template <class A> Value<A, float> onePlusTanhOf(A &a, Value<A, float> exponent, bool halved) {
  return a.div(a.constant(halved ? 1.0f : 2.0f), a.add(exp2<float>(a, exponent, {.isLost = true}), a.constant(1.0f)));
}

/// log2(e) times -2 has the digits of log2(e).
template <class A> Value<A, float> onePlusTanh(A &a, Value<A, float> x, bool halved = false) {
  return onePlusTanhOf(a, a.mul(x, a.constant(-2 * Format<float>::log2E)), halved);
}

/// 1 + tanh(first x + third x^3), where both have one sign, so that nothing cancels: three roundings, where a program
/// that writes it out has five, and with the product above six.
template <class A>
Value<A, float> onePlusTanhOfCubic(A &a, Value<A, float> x, double first, double third, bool halved = false) {
  return onePlusTanhOf(a, cubicExponent(a, x, first, third), halved);
}

/// e^x - 1 = 2^n (e^r - 1) + (2^n - 1), of which the second term is exact where the first counts; twice the value for n
/// - 1, since there is no 2^128 (2^1024). For small x, n is 0 and nothing is subtracted; where e^x - 1 rounds to x it
/// is x, of which a half may not be a number. Above ln2/2, e^r - 1 is negative and counts twice: what r was rounded by
/// is added.
template <class T, class A> Value<A, T> expm1(A &a, Value<A, T> x) {
  using Limits = detail::ExponentialLimits<T>;
  Value<A, T> clamped = clampAbove<T>(a, clampBelow<T>(a, x, Limits::expm1Lowest), Limits::expHighest);
  detail::ExpReduction<T, A> e(a, clamped, Format<T>::bias - 1);
  Value<A, T> power = detail::fromExponentField<T>(a, e.rounded);
  Value<A, T> lost = a.fma(e.n, a.constant(-Format<T>::ln2Low), a.sub(e.beforeLow, e.r));
  Value<A, T> p = a.add(e.r, a.fma(a.mul(e.r, e.r), detail::expTail(a, e.r), lost));
  Value<A, T> half = a.fma(power, p, a.sub(power, a.constant(T(0.5))));
  constexpr T tiny = std::numeric_limits<T>::epsilon() / 4;
  return a.select(a.lessThan(a.abs(x), a.constant(tiny)), x, a.add(half, half));
}

/// tanh|x| = |x| + |x|^3 P(x^2) below 0.625; above, 1 - 2 / (e^(2|x|) + 1), where the quotient is below 0.45 and so
/// are its errors.
template <class T, class A> Value<A, T> tanh(A &a, Value<A, T> x) {
  Value<A, T> magnitude = a.abs(x), z = a.mul(magnitude, magnitude), one = a.constant(T(1));
  Value<A, T> small = a.fma(a.mul(magnitude, z), detail::tanhTail(a, z), magnitude);
  Value<A, T> clamped = clampAbove<T>(a, magnitude, detail::ExponentialLimits<T>::tanhIsOne);
  detail::ExpReduction<T, A> e(a, a.add(clamped, clamped), Format<T>::bias);
  Value<A, T> p = a.fma(e.r, a.fma(e.r, detail::expTail(a, e.r), one), one);
  Value<A, T> expPlusOne = a.fma(detail::fromExponentField<T>(a, e.rounded), p, one);
  Value<A, T> large = a.sub(one, a.div(a.constant(T(2)), expPlusOne));
  return withSignOf<T>(a, a.select(a.lessThan(magnitude, a.constant(T(0.625))), small, large), x);
}

/// erf|x| = |x| + |x| P(x^2) below 1, 1 - exp(Q(|x|)) above, where erfc <= 0.16 damps the errors of Q and exp.
template <class T, class A> Value<A, T> erf(A &a, Value<A, T> x) {
  Value<A, T> magnitude = a.abs(x);
  Value<A, T> small = a.fma(magnitude, detail::erfSlope(a, a.mul(magnitude, magnitude)), magnitude);
  Value<A, T> clamped = clampAbove<T>(a, magnitude, detail::ExponentialLimits<T>::erfIsOne);
  Value<A, T> large = detail::oneMinusExp<T>(a, detail::logErfc(a, clamped));
  return withSignOf<T>(a, a.select(a.lessThan(magnitude, a.constant(T(1))), small, large), x);
}

} // namespace tenon::math
