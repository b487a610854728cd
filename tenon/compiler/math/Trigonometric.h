// SPDX-License-Identifier: Apache-2.0
//
// sin, cos, over the whole range of the type.
//
// Both reduce |x| = q pi/2 + r, |r| <= pi/4, and choose between the polynomials of sin and cos by the parity of q and
// the sign by its second bit. q is needed modulo 4 only, so of 2/pi only those bits matter whose product with x lies
// between 2 and the last bit of r that is kept; the rest contributes multiples of 4, or nothing (Payne and Hanek).
// Which bits these are depends on the exponent of x, and is found with selects instead of a table.
// Coefficients: see Exponential.h for how they were fitted.
#pragma once

#include "tenon/compiler/math/Arithmetic.h"

namespace tenon::math {
namespace detail {

/// r in [-pi/4, pi/4] (plus `low`, in double), and a word whose two low bits are the quadrant.
template <class T, class A> struct TrigReduction;

/// In double, with the significant bits of 2/pi as a sum high + low of two doubles, one such pair for each of five
/// ranges of |x|. A float x >= 2^E is a multiple of 2^(E-23), so bits of 2/pi of weight 2^(25-E) and above are left
/// out; the ranges are short enough (2^21) for the product with `high` to stay below 2^45: adding 1.5 * 2^52 rounds it
/// to an integer, and the part of the product that this does not see, at most 2^-9, takes |r| past pi/4 by 0.4% at
/// most. What lies beyond `low` changes the product by less than 2^-63; the closest that a float comes to a multiple of
/// pi/2 is 2^-29.2 (16367173 * 2^72), so r is good to 2^-33 of itself before it is rounded to float.
template <class A> struct TrigReduction<float, A> {
  Value<A, float> r;
  Value<A, std::uint32_t> quadrant;

  TrigReduction(A &a, Value<A, float> magnitude) {
    Value<A, double> high = a.constant(0x1.45f306dc9c883p-1), low = a.constant(-0x1.6b01ec5417056p-55);
    auto fromThreshold = [&](float threshold, double thisHigh, double thisLow) {
      auto below = a.lessThan(magnitude, a.constant(threshold));
      high = a.select(below, high, a.constant(thisHigh));
      low = a.select(below, low, a.constant(thisLow));
    };
    fromThreshold(0x1p44f, 0x1.b727220a94fe1p-23, 0x1.d5f47d4d37703p-78);
    fromThreshold(0x1p65f, 0x1.1054a7f09d5f4p-42, 0x1.f534ddc0db629p-96);
    fromThreshold(0x1p86f, 0x1.fc2757d1f534ep-64, -0x1.1f924eb53361ep-119);
    fromThreshold(0x1p107f, 0x1.7d1f534ddc0dbp-84, 0x1.8a5664f10e410p-138);

    Value<A, double> x = a.extend(magnitude), magic = a.constant(Format<double>::roundMagic);
    Value<A, double> product = a.mul(x, high);
    Value<A, double> productError = a.fma(x, high, a.neg(product));
    Value<A, double> sum = a.add(product, magic);
    Value<A, double> fraction = a.add(a.sub(product, a.sub(sum, magic)), productError);
    fraction = a.fma(x, low, fraction);
    quadrant = a.truncateBits(a.toBits(sum));
    r = a.truncate(a.mul(fraction, a.constant(0x1.921fb54442d18p+0)));
  }

  /// r + r^3 S(r^2), fit error 2^-27.9.
  Value<A, float> sin(A &a) {
    Value<A, float> z = a.mul(r, r);
    Value<A, float> s = horner<float>(a, z, {-0x1.555546p-3f, 0x1.110778p-7f, -0x1.995400p-13f});
    return a.fma(a.mul(r, z), s, r);
  }

  /// 1 + r^2 (-1/2 + r^2 C(r^2)), fit error 2^-33.
  Value<A, float> cos(A &a) {
    Value<A, float> z = a.mul(r, r);
    Value<A, float> c = horner<float>(a, z, {-0.5f, 0x1.55554ap-5f, -0x1.6c0c2ap-10f, 0x1.99e910p-16f});
    return a.fma(z, c, a.constant(1.0f));
  }
};

/// In integers. With x = M 2^(E-53), M of 54 bits (E >= 0), the bits of 2/pi of weight 2^(54-E) and below are
/// multiplied with M modulo 2^180, in limbs of 30 bits, so that a 64-bit word holds a column of products with its
/// carries and all factors fit 32 bits. The product's two top bits are the quadrant, the rest the fraction.
///
/// Dropped are the bits of 2/pi beyond the window (2^-124 in the product) and the lowest limb product (2^-118). No
/// double is closer to a multiple of pi/2 than 2^-60.9 (6381956970095103 * 2^797), so r + low is good to 2^-56 of
/// itself.
template <class A> struct TrigReduction<double, A> {
  using Word = Value<A, std::uint64_t>;

  Value<A, double> r, low;
  Value<A, std::uint64_t> quadrant;

  TrigReduction(A &a, Value<A, double> magnitude) {
    Word bits = a.toBits(magnitude);
    // In [pi/4, 1) the exponent is -1: treated as 0 with half the significand. (Below pi/4 nothing of this is used.)
    auto belowOne = a.lessThan(magnitude, a.constant(1.0));
    Word exponent = a.sub(right(a, bits, 52), word(a, 1023));
    exponent = a.select(belowOne, word(a, 0), exponent);
    Word m = a.bitOr(a.bitAnd(bits, word(a, 0x000fffffffffffff)), word(a, 0x0010000000000000));
    m = a.select(belowOne, m, a.add(m, m));

    Word v2, v1, v0;
    window(a, exponent, v2, v1, v0);
    Word l5 = right(a, v2, 34);
    Word l4 = limb(a, right(a, v2, 4));
    Word l3 = limb(a, a.bitOr(left(a, v2, 26), right(a, v1, 38)));
    Word l2 = limb(a, right(a, v1, 8));
    Word l1 = limb(a, a.bitOr(left(a, v1, 22), right(a, v0, 42)));
    Word l0 = limb(a, right(a, v0, 12));
    Word m0 = limb(a, m), m1 = right(a, m, 30);

    auto column = [&](Word lower, Word l, Word lBelow) {
      return a.add(a.add(a.mul(m0, l), a.mul(m1, lBelow)), right(a, lower, 30));
    };
    Word t1 = a.add(a.mul(m0, l1), a.mul(m1, l0));
    Word t2 = column(t1, l2, l1);
    Word t3 = column(t2, l3, l2);
    Word t4 = column(t3, l4, l3);
    Word t5 = column(t4, l5, l4);

    // Rounding to the nearest quadrant leaves a signed fraction: d5 2^-28 + d4 2^-58 + d3 2^-88 + d2 2^-118.
    t5 = a.add(t5, word(a, 1u << 27));
    quadrant = right(a, t5, 28);
    Value<A, double> d5 = integer(a, a.bitAnd(t5, word(a, (1u << 28) - 1)), 0x1p52 + 0x1p27);
    Value<A, double> d4 = integer(a, limb(a, t4), 0x1p52);
    Value<A, double> d3 = integer(a, limb(a, t3), 0x1p52);
    Value<A, double> d2 = integer(a, limb(a, t2), 0x1p52);

    // Summed from the top with the rounding errors kept (exact: each digit is below the last place of what is above
    // it, or that is zero), so that leading digits that are zero or cancel cost no accuracy. Unit: 2^-28.
    Value<A, double> s = a.fma(d4, a.constant(0x1p-30), d5);
    Value<A, double> sError = a.fma(d4, a.constant(0x1p-30), a.sub(d5, s));
    Value<A, double> high = a.fma(d3, a.constant(0x1p-60), s);
    Value<A, double> highError = a.fma(d3, a.constant(0x1p-60), a.sub(s, high));
    Value<A, double> rest = a.fma(d2, a.constant(0x1p-90), a.add(highError, sError));

    // Times pi/2, as a sum of two doubles. An infinite x is made NaN on the way.
    high = a.fma(magnitude, a.constant(0.0), high);
    Value<A, double> halfPi = a.constant(0x1.921fb54442d18p-28);
    r = a.mul(high, halfPi);
    low = a.fma(high, halfPi, a.neg(r));
    low = a.fma(rest, halfPi, a.fma(high, a.constant(0x1.1a62633145c07p-82), low));

    auto reduced = a.lessThan(magnitude, a.constant(0x1.921fb54442d18p-1));
    r = a.select(reduced, magnitude, r);
    low = a.select(reduced, a.constant(0.0), low);
    quadrant = a.select(reduced, word(a, 0), quadrant);
  }

  /// sin(r + low) = r + (r^3 S(r^2) + low), fit error 2^-57.9.
  Value<A, double> sin(A &a) {
    Value<A, double> z = a.mul(r, r);
    Value<A, double> s = horner<double>(a, z,
                                        {-0x1.5555555555548p-3, 0x1.111111110f759p-7, -0x1.a01a019bf185ap-13,
                                         0x1.71de355e7b385p-19, -0x1.ae5e540aaaf36p-26, 0x1.5d8e19a88cdf4p-33});
    return a.add(r, a.fma(a.mul(r, z), s, low));
  }

  /// cos(r + low) = 1 + (r^2 (-1/2 + r^2 C(r^2)) - r low), fit error 2^-63.9.
  Value<A, double> cos(A &a) {
    Value<A, double> z = a.mul(r, r);
    Value<A, double> c = horner<double>(a, z,
                                        {-0.5, 0x1.555555555554bp-5, -0x1.6c16c16c15015p-10, 0x1.a01a019c8f209p-16,
                                         -0x1.27e4f7f1888d4p-22, 0x1.1ee9dbc4c1694p-29, -0x1.8fa67cdf3bc89p-37});
    return a.add(a.constant(1.0), a.fma(z, c, a.neg(a.mul(r, low))));
  }

private:
  static Word word(A &a, std::uint64_t value) { return a.constant(value); }
  static Word left(A &a, Word x, unsigned by) { return a.shiftLeft(x, word(a, by)); }
  static Word right(A &a, Word x, unsigned by) { return a.shiftRight(x, word(a, by)); }
  static Word limb(A &a, Word x) { return a.bitAnd(x, word(a, (1u << 30) - 1)); }

  /// A digit (below 2^52) as a double, less offset - 2^52.
  static Value<A, double> integer(A &a, Word digit, double offset) {
    return a.sub(a.fromBits(a.bitOr(digit, word(a, 0x4330000000000000))), a.constant(offset));
  }

  /// The 192 bits of 2/pi that begin `exponent` bits into the words below: the first bit has weight 2^54. A logarithmic
  /// shifter: words by 8, 4, 2, 1 with 27 selects (a select chain per word would take 60), then bits.
  static void window(A &a, Word exponent, Word &v2, Word &v1, Word &v0) {
    static constexpr std::uint64_t twoOverPi[19] = {
        0x0000000000000145, 0xF306DC9C882A53F8, 0x4EAFA3EA69BB81B6, 0xC52B3278872083FC, 0xA2C757BD778AC36E,
        0x48DC74849BA5C00C, 0x925DD413A32439FC, 0x3BD63962534E7DD1, 0x046BEA5D768909D3, 0x38E04D68BEFC8273,
        0x23AC7306A673E939, 0x08BF177BF250763F, 0xF12FFFBC0B301FDE, 0x5E2316B414DA3EDA, 0x6CFD9E4F96136E9E,
        0x8C7ECD3CBFD45AEA, 0x4F758FD7CBE2F67A, 0x0E73EF14A525D4D7, 0xF6BF623F1ABA10AC};
    Word words[11];
    auto stays = [&](unsigned by) { return a.equal(a.bitAnd(exponent, word(a, 64 * by)), word(a, 0)); };
    auto stays8 = stays(8);
    for (unsigned i = 0; i < 11; ++i)
      words[i] = a.select(stays8, word(a, twoOverPi[i]), word(a, twoOverPi[i + 8]));
    for (unsigned by = 4; by != 0; by /= 2) {
      auto staysHere = stays(by);
      for (unsigned i = 0; i < 3 + by; ++i)
        words[i] = a.select(staysHere, words[i], words[i + by]);
    }
    Word shift = a.bitAnd(exponent, word(a, 63));
    Word complement = a.bitXor(shift, word(a, 63));
    auto funnel = [&](Word upper, Word lower) {
      return a.bitOr(a.shiftLeft(upper, shift), a.shiftRight(right(a, lower, 1), complement));
    };
    v2 = funnel(words[0], words[1]);
    v1 = funnel(words[1], words[2]);
    v0 = funnel(words[2], words[3]);
  }
};

/// sin(quadrant pi/2 + r), as bits: the polynomial by the quadrant's first bit, the sign by its second.
template <class T, class A>
Value<A, typename Format<T>::Bits> sinBits(A &a, TrigReduction<T, A> &reduced,
                                           Value<A, typename Format<T>::Bits> quadrant) {
  using Bits = typename Format<T>::Bits;
  Value<A, Bits> one = a.constant(Bits(1));
  auto even = a.equal(a.bitAnd(quadrant, one), a.constant(Bits(0)));
  Value<A, T> y = a.select(even, reduced.sin(a), reduced.cos(a));
  Value<A, Bits> toSign = a.constant(Bits(8 * sizeof(T) - 2));
  Value<A, Bits> sign = a.bitAnd(a.shiftLeft(quadrant, toSign), a.constant(Format<T>::signMask));
  return a.bitXor(a.toBits(y), sign);
}

} // namespace detail

/// sin x = sign(x) sin|x|, which keeps sin(-0) = -0.
template <class T, class A> Value<A, T> sin(A &a, Value<A, T> x) {
  detail::TrigReduction<T, A> reduced(a, a.abs(x));
  auto bits = detail::sinBits<T>(a, reduced, reduced.quadrant);
  return a.fromBits(a.bitXor(bits, a.bitAnd(a.toBits(x), a.constant(Format<T>::signMask))));
}

/// cos x = sin(|x| + pi/2): one quadrant on.
template <class T, class A> Value<A, T> cos(A &a, Value<A, T> x) {
  using Bits = typename Format<T>::Bits;
  detail::TrigReduction<T, A> reduced(a, a.abs(x));
  return a.fromBits(detail::sinBits<T>(a, reduced, a.add(reduced.quadrant, a.constant(Bits(1)))));
}

} // namespace tenon::math
