// SPDX-License-Identifier: Apache-2.0
//
// All functions by name: what the expansion pass and the tests share.
#pragma once

#include "tenon/compiler/math/Exponential.h"
#include "tenon/compiler/math/Logarithm.h"
#include "tenon/compiler/math/Trigonometric.h"

namespace tenon::math {

enum class Function { Exp, Exp2, Expm1, Log, Log2, Log1p, Sin, Cos, Tanh, Erf, Rsqrt };

inline constexpr Function allFunctions[] = {Function::Exp,  Function::Exp2,  Function::Expm1, Function::Log,
                                            Function::Log2, Function::Log1p, Function::Sin,   Function::Cos,
                                            Function::Tanh, Function::Erf,   Function::Rsqrt};

inline constexpr const char *name(Function function) {
  switch (function) {
  case Function::Exp:
    return "exp";
  case Function::Exp2:
    return "exp2";
  case Function::Expm1: return "expm1";
  case Function::Log:
    return "log";
  case Function::Log2:
    return "log2";
  case Function::Log1p: return "log1p";
  case Function::Sin:
    return "sin";
  case Function::Cos:
    return "cos";
  case Function::Tanh:
    return "tanh";
  case Function::Erf:
    return "erf";
  case Function::Rsqrt:
    return "rsqrt";
  }
  return "";
}

/// 1 / sqrt(x): two correctly rounded operations, together below 1.5 ulp. rsqrt(+-0) = +-infinity, as IEEE 754 has it.
template <class T, class A> Value<A, T> rsqrt(A &a, Value<A, T> x) { return a.div(a.constant(T(1)), a.sqrt(x)); }

/// function(x); T is float or double.
template <class T, class A> Value<A, T> evaluate(A &a, Function function, Value<A, T> x) {
  switch (function) {
  case Function::Exp:
    return exp<T>(a, x);
  case Function::Exp2:
    return exp2<T>(a, x);
  case Function::Expm1: return expm1<T>(a, x);
  case Function::Log:
    return log<T>(a, x);
  case Function::Log2:
    return log2<T>(a, x);
  case Function::Log1p: return log1p<T>(a, x);
  case Function::Sin:
    return sin<T>(a, x);
  case Function::Cos:
    return cos<T>(a, x);
  case Function::Tanh:
    return tanh<T>(a, x);
  case Function::Erf:
    return erf<T>(a, x);
  case Function::Rsqrt:
    return rsqrt<T>(a, x);
  }
  return x;
}

} // namespace tenon::math
