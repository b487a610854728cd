// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic policy (see Arithmetic.h) that evaluates on the host, one number at a time.
//
// Compile with -ffp-contract=off (clang and g++ contract within an expression by default; each primitive here is a
// function of its own, but may be inlined next to another) and without -ffast-math.
#pragma once

#include "tenon/compiler/math/Arithmetic.h"

#include <bit>
#include <cmath>
#include <concepts>

namespace tenon::math {

struct HostArithmetic {
  template <class T> using Value = T;
  using Mask = bool;

  template <class T> T constant(T value) { return value; }

  template <class T> T add(T x, T y) { return x + y; }
  template <class T> T sub(T x, T y) { return x - y; }
  template <class T> T mul(T x, T y) { return x * y; }

  template <std::floating_point T> T div(T x, T y) { return x / y; }
  template <std::floating_point T> T fma(T x, T y, T z) { return std::fma(x, y, z); }
  template <std::floating_point T> T sqrt(T x) { return std::sqrt(x); }
  template <std::floating_point T> T neg(T x) { return -x; }
  template <std::floating_point T> T abs(T x) { return std::fabs(x); }
  template <std::floating_point T> T floor(T x) { return std::floor(x); }

  template <std::floating_point T> Mask lessThan(T x, T y) { return x < y; }
  template <class T> Mask equal(T x, T y) { return x == y; }
  template <class T> T select(Mask mask, T ifTrue, T ifFalse) { return mask ? ifTrue : ifFalse; }

  template <std::unsigned_integral T> T bitAnd(T x, T y) { return x & y; }
  template <std::unsigned_integral T> T bitOr(T x, T y) { return x | y; }
  template <std::unsigned_integral T> T bitXor(T x, T y) { return x ^ y; }
  template <std::unsigned_integral T> T shiftLeft(T x, T by) { return x << by; }
  template <std::unsigned_integral T> T shiftRight(T x, T by) { return x >> by; }

  std::uint32_t toBits(float x) { return std::bit_cast<std::uint32_t>(x); }
  std::uint64_t toBits(double x) { return std::bit_cast<std::uint64_t>(x); }
  float fromBits(std::uint32_t x) { return std::bit_cast<float>(x); }
  double fromBits(std::uint64_t x) { return std::bit_cast<double>(x); }

  double extend(float x) { return x; }
  float truncate(double x) { return static_cast<float>(x); }
  std::uint32_t truncateBits(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
};

} // namespace tenon::math
