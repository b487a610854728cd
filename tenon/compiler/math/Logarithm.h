// SPDX-License-Identifier: Apache-2.0
//
// log, log2, log1p. Coefficients: see Exponential.h for how they were fitted.
#pragma once

#include "tenon/compiler/math/Arithmetic.h"

namespace tenon::math {
namespace detail {

template <class T> struct LogConstants;
template <> struct LogConstants<float> {
  static constexpr std::uint32_t sqrtHalf = 0x3f3504f3u;
  static constexpr std::uint32_t one = 0x3f800000u;
  static constexpr float mantissaScale = 0x1p23f;
};
template <> struct LogConstants<double> {
  static constexpr std::uint64_t sqrtHalf = 0x3fe6a09e667f3bcdu;
  static constexpr std::uint64_t one = 0x3ff0000000000000u;
  static constexpr double mantissaScale = 0x1p52;
};

/// x = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), for positive finite x. Around x = 1 the exponent is 0 on both
/// sides, so that nothing cancels where the logarithm is small; f is exact.
template <class T, class A> struct LogReduction {
  Value<A, T> e, f;

  LogReduction(A &a, Value<A, T> x) {
    using Bits = typename Format<T>::Bits;
    using C = LogConstants<T>;
    constexpr Bits mantissaMask = (Bits(1) << Format<T>::mantissaBits) - 1;
    // Subnormals are scaled to normal numbers (exactly); the exponent is corrected below.
    auto subnormal = a.lessThan(x, a.constant(std::numeric_limits<T>::min()));
    Value<A, T> normal = a.select(subnormal, a.mul(x, a.constant(C::mantissaScale)), x);
    // Moving sqrt(1/2) to 1 makes the exponent field e + bias, and what is left the distance from sqrt(1/2).
    Value<A, Bits> moved = a.add(a.toBits(normal), a.constant(Bits(C::one - C::sqrtHalf)));
    Value<A, Bits> field = a.shiftRight(moved, a.constant(Format<T>::mantissaBits));
    Value<A, Bits> m = a.add(a.bitAnd(moved, a.constant(mantissaMask)), a.constant(C::sqrtHalf));
    f = a.sub(a.fromBits(m), a.constant(T(1)));
    // An integer in the mantissa of 2^mantissaBits is that integer as a float, once the power is subtracted.
    constexpr Bits powerBits = (Format<T>::bias + Format<T>::mantissaBits) << Format<T>::mantissaBits;
    constexpr T bias = C::mantissaScale + T(Format<T>::bias);
    Value<A, T> offset = a.select(subnormal, a.constant(bias + T(Format<T>::mantissaBits)), a.constant(bias));
    e = a.sub(a.fromBits(a.bitOr(field, a.constant(powerBits))), offset);
  }
};

/// `y` where x is positive and finite; infinity at infinity, -infinity at +-0, NaN at negative x and NaN.
template <class T, class A> Value<A, T> logSpecialCases(A &a, Value<A, T> x, Value<A, T> y) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  Value<A, T> zero = a.constant(T(0));
  Value<A, T> notPositive =
      a.select(a.equal(x, zero), a.constant(-infinity), a.constant(std::numeric_limits<T>::quiet_NaN()));
  y = a.select(a.lessThan(x, a.constant(infinity)), y, x);
  return a.select(a.lessThan(zero, x), y, notPositive);
}

/// The pieces of log(1 + f) = f - (halfSquare - u) in double, u = s (halfSquare + R), where s = f / (2 + f) and
/// log(1 + f) = 2 atanh(s) = 2 s + s R(s^2); since 2 s = f - s f and s f = halfSquare (1 - s), the leading term f is
/// exact. |s| <= 0.172; fit error relative to the logarithm: 2^-59.5.
template <class A> struct AtanhForm {
  Value<A, double> halfSquare, s, halfSquarePlusR;

  AtanhForm(A &a, Value<A, double> f) {
    s = a.div(f, a.add(f, a.constant(2.0)));
    Value<A, double> z = a.mul(s, s);
    halfSquare = a.mul(a.mul(f, f), a.constant(0.5));
    Value<A, double> r =
        horner<double>(a, z,
                       {0x1.5555555555592p-1, 0x1.999999997ff9dp-2, 0x1.24924941d7392p-2, 0x1.c71c521d85128p-3,
                        0x1.74663af47a43dp-3, 0x1.39a21c4f11dfcp-3, 0x1.2f01b5460ce37p-3});
    halfSquarePlusR = a.fma(z, r, halfSquare);
  }
};

/// e ln2 + log(1 + f) = e ln2 + (f + f^2 Q(f)). Fit error relative to log(1 + f): 2^-27.8.
template <class A> Value<A, float> logOfReduced(A &a, Value<A, float> e, Value<A, float> f) {
  Value<A, float> q =
      horner<float>(a, f, {-0x1.fffff8p-2f, 0x1.555550p-2f, -0x1.000430p-2f, 0x1.99a3dap-3f, -0x1.5425f8p-3f,
                           0x1.22760ep-3f, -0x1.0f47fep-3f, 0x1.08243ep-3f, -0x1.37732ep-4f});
  Value<A, float> low = a.fma(a.mul(f, f), q, a.mul(e, a.constant(Format<float>::ln2Low)));
  return a.fma(e, a.constant(Format<float>::ln2High), a.add(f, low));
}

template <class A> Value<A, double> logOfReduced(A &a, Value<A, double> e, Value<A, double> f) {
  AtanhForm<A> t(a, f);
  Value<A, double> u = a.fma(t.s, t.halfSquarePlusR, a.mul(e, a.constant(Format<double>::ln2Low)));
  return a.fma(e, a.constant(Format<double>::ln2High), a.sub(f, a.sub(t.halfSquare, u)));
}

/// e + log2(1 + f) = e + (f + f Q(f)): splitting 1 off the slope log2(e) halves the weight of the rounding of Q. Fit
/// error relative to log2(1 + f): 2^-27.0.
template <class A> Value<A, float> log2OfReduced(A &a, Value<A, float> e, Value<A, float> f) {
  Value<A, float> q =
      horner<float>(a, f, {0x1.c551dap-2f, -0x1.715476p-1f, 0x1.ec704cp-2f, -0x1.7157aap-2f, 0x1.27855ap-2f,
                           -0x1.eb3018p-3f, 0x1.a2a47ep-3f, -0x1.83e69cp-3f, 0x1.7d4ab4p-3f, -0x1.cf9f98p-4f});
  return a.add(e, a.fma(f, q, f));
}

/// log2(1 + f) = f + (f (log2(e) - 1) - log2(e) (halfSquare - u)), the parenthesis being less than half of f.
template <class A> Value<A, double> log2OfReduced(A &a, Value<A, double> e, Value<A, double> f) {
  AtanhForm<A> t(a, f);
  Value<A, double> minusV = a.fma(t.s, t.halfSquarePlusR, a.neg(t.halfSquare));
  Value<A, double> rest = a.fma(f, a.constant(0x1.c551d94ae0bf8p-2), a.mul(minusV, a.constant(Format<double>::log2E)));
  return a.add(e, a.add(f, rest));
}

} // namespace detail

template <class T, class A> Value<A, T> log(A &a, Value<A, T> x) {
  detail::LogReduction<T, A> reduced(a, x);
  return detail::logSpecialCases<T>(a, x, detail::logOfReduced(a, reduced.e, reduced.f));
}

template <class T, class A> Value<A, T> log2(A &a, Value<A, T> x) {
  detail::LogReduction<T, A> reduced(a, x);
  return detail::logSpecialCases<T>(a, x, detail::log2OfReduced(a, reduced.e, reduced.f));
}

/// log(1 + x) by the reduction of u = 1 + x rounded, with what the rounding left, c = x - (u - 1), put back: the exact
/// 1 + x is u (1 + c / u), so that 1 + f becomes (1 + f)(1 + c / u). c is exact up to 1 / epsilon; beyond, it does not
/// count.
template <class T, class A> Value<A, T> log1p(A &a, Value<A, T> x) {
  Value<A, T> one = a.constant(T(1)), u = a.add(one, x), c = a.sub(x, a.sub(u, one));
  detail::LogReduction<T, A> reduced(a, u);
  Value<A, T> f = a.fma(a.div(c, u), a.add(one, reduced.f), reduced.f);
  Value<A, T> y = detail::logSpecialCases<T>(a, u, detail::logOfReduced(a, reduced.e, f));
  constexpr T tiny = std::numeric_limits<T>::epsilon() / 4; // where log(1 + x) rounds to x, zeros among it
  return a.select(a.lessThan(a.abs(x), a.constant(tiny)), x, y);
}

} // namespace tenon::math
