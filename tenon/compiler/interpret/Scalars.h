// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/base/FloatFormats.h"

#include "mlir/IR/BuiltinTypes.h"

#include <bit>
#include <cmath>
#include <cstdint>

/// One element is a 64-bit word that holds the element's own bits in its low end and zeros above, exactly as a scalar
/// argument comes and as memory holds it. Movement, bitcast and compare-exchange are then exact by construction; float
/// arithmetic decodes, computes and encodes, which is where the rounding to the type happens.
namespace tenon::interpret {

/// Width in bits of an element or scalar; index is a 64-bit integer.
inline unsigned bitWidth(mlir::Type type) { return type.isIndex() ? 64 : type.getIntOrFloatBitWidth(); }

inline uint64_t lowBits(uint64_t value, unsigned width) {
  return width >= 64 ? value : value & ((uint64_t(1) << width) - 1);
}

inline int64_t signExtend(uint64_t word, unsigned width) {
  return static_cast<int64_t>(word << (64 - width)) >> (64 - width);
}

// Per format: `Compute`, the type that +, -, *, / and sqrt are computed in before rounding (f32 for everything
// narrower, which is the language's rule), and `Wide`, the one that mathematical functions are computed in.

struct F64 {
  using Compute = double;
  using Wide = long double;
  static double decode(uint64_t word) { return std::bit_cast<double>(word); }
  static uint64_t encode(double value) { return std::bit_cast<uint64_t>(value); }
};

struct F32 {
  using Compute = float;
  using Wide = double;
  static float decode(uint64_t word) { return std::bit_cast<float>(static_cast<uint32_t>(word)); }
  static uint64_t encode(double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); }
};

/// The formats of tenon/base/FloatFormats.h.
template <auto toF32, auto fromF64, class Bits> struct SmallFloat {
  using Compute = float;
  using Wide = double;
  static float decode(uint64_t word) { return toF32(static_cast<Bits>(word)); }
  static uint64_t encode(double value) { return fromF64(value); }
};
using F16 = SmallFloat<f16ToF32, f64ToF16, uint16_t>;
using BF16 = SmallFloat<bf16ToF32, f64ToBF16, uint16_t>;
using F8E4M3 = SmallFloat<f8e4m3ToF32, f64ToF8e4m3, uint8_t>;
using F8E5M2 = SmallFloat<f8e5m2ToF32, f64ToF8e5m2, uint8_t>;

/// Calls `function` with the format of a float type; for any other type returns an empty result.
template <class Function> auto withFormat(mlir::Type type, Function function) -> decltype(function(F32())) {
  if (type.isF64())
    return function(F64());
  if (type.isF32())
    return function(F32());
  if (type.isF16())
    return function(F16());
  if (type.isBF16())
    return function(BF16());
  if (type.isFloat8E4M3FN())
    return function(F8E4M3());
  if (type.isFloat8E5M2())
    return function(F8E5M2());
  return {};
}

/// NaN propagates; -0 is less than +0.
template <class Float> Float maximum(Float a, Float b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) ? a : b;
  if (a == b)
    return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class Float> Float minimum(Float a, Float b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) ? a : b;
  if (a == b)
    return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

} // namespace tenon::interpret
