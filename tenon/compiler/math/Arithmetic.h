// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic that the maths functions are written over.
//
// Every function in this folder is straight-line code over a policy `A`, so that the same source is evaluated on the
// host (HostArithmetic.h: the accuracy tests) and emitted as MLIR on scalars, vectors or tensors
// (MlirArithmetic.h: every target). Since each primitive is either exact or rounded once, to nearest, as IEEE 754
// demands, all of them return the same bits (NaN payloads excepted). Two rules follow for whoever compiles the result:
// no contraction of mul + add (fma is always written out) and no reassociation (rounding by a magic constant,
// (x + m) - m, must survive).
//
// A policy provides, with T one of float, double (floats) and std::uint32_t, std::uint64_t (bits):
//
//   A::Value<T>, A::Mask                  the run-time values
//   constant(T)                           -> Value<T>
//   add sub mul                           floats and bits (bits wrap around)
//   div fma sqrt neg abs floor            floats
//   lessThan equal                        floats (false when either is NaN) or bits (equal only) -> Mask
//   select(Mask, Value<T>, Value<T>)      both sides are always evaluated
//   bitAnd bitOr bitXor                   bits
//   shiftLeft shiftRight                  bits, logical, by a value below the width
//   toBits fromBits                       reinterpretation at equal width
//   extend truncate                       float <-> double; truncateBits: low 32 of 64 bits
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace tenon::math {

template <class A, class T> using Value = typename A::template Value<T>;

/// What the functions need to know of a float format.
template <class T> struct Format;

template <> struct Format<float> {
  using Bits = std::uint32_t;
  static constexpr Bits mantissaBits = 23;
  static constexpr Bits bias = 127;
  static constexpr Bits signMask = 0x80000000u;
  /// 1.5 * 2^23: adding it to |x| < 2^22 rounds x to an integer, which is then found in the low bits of the sum.
  static constexpr float roundMagic = 0x1.8p23f;
  /// ln 2 in two parts; the first has trailing zeros enough for an exact product with any exponent.
  static constexpr float ln2High = 0x1.62e4p-1f;
  static constexpr float ln2Low = 0x1.7f7d1cp-20f;
  static constexpr float log2E = 0x1.715476p+0f;
};

template <> struct Format<double> {
  using Bits = std::uint64_t;
  static constexpr Bits mantissaBits = 52;
  static constexpr Bits bias = 1023;
  static constexpr Bits signMask = 0x8000000000000000u;
  static constexpr double roundMagic = 0x1.8p52;
  static constexpr double ln2High = 0x1.62e42fefa4p-1;
  static constexpr double ln2Low = -0x1.8432a1b0e2634p-43;
  static constexpr double log2E = 0x1.71547652b82fep+0;
};

/// c[0] + c[1] x + c[2] x^2 + ..., one fma per coefficient after the last.
template <class T, class A> Value<A, T> horner(A &a, Value<A, T> x, std::initializer_list<T> coefficients) {
  const T *c = coefficients.end();
  Value<A, T> sum = a.constant(*--c);
  while (c != coefficients.begin())
    sum = a.fma(sum, x, a.constant(*--c));
  return sum;
}

/// min(x, limit), max(x, limit) that hand a NaN x through; one instruction on x86.
template <class T, class A> Value<A, T> clampAbove(A &a, Value<A, T> x, T limit) {
  Value<A, T> bound = a.constant(limit);
  return a.select(a.lessThan(bound, x), bound, x);
}

template <class T, class A> Value<A, T> clampBelow(A &a, Value<A, T> x, T limit) {
  Value<A, T> bound = a.constant(limit);
  return a.select(a.lessThan(x, bound), bound, x);
}

/// `magnitude` (not negative) with the sign of x.
template <class T, class A> Value<A, T> withSignOf(A &a, Value<A, T> magnitude, Value<A, T> x) {
  auto sign = a.bitAnd(a.toBits(x), a.constant(Format<T>::signMask));
  return a.fromBits(a.bitOr(a.toBits(magnitude), sign));
}

} // namespace tenon::math
