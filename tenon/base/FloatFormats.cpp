// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/FloatFormats.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tenon {
namespace {

/// A binary format of 1 sign bit, `exponentBits` and `mantissaBits`, narrower than f32.
struct Format {
  int exponentBits, mantissaBits;
  bool saturates;     ///< overflow gives maxFiniteBits instead of infinity
  uint32_t maxFinite; ///< magnitude bits of the largest finite value
  uint32_t quietNaN;  ///< magnitude bits of the canonical NaN

  constexpr int bias() const { return (1 << (exponentBits - 1)) - 1; }
  constexpr int bits() const { return 1 + exponentBits + mantissaBits; }
  constexpr uint32_t infinity() const { return ((1u << exponentBits) - 1) << mantissaBits; }
};

constexpr Format half = {5, 10, false, 0x7bff, 0x7e00};
constexpr Format brain = {8, 7, false, 0x7f7f, 0x7fc0};
// e4m3 ("fn"): the all-ones exponent is an ordinary one, only magnitude 0x7f is NaN.
constexpr Format e4m3 = {4, 3, true, 0x7e, 0x7f};
constexpr Format e5m2 = {5, 2, true, 0x7b, 0x7f};

uint32_t narrow(double value, const Format &format) {
  uint32_t sign = std::signbit(value) ? 1u << (format.bits() - 1) : 0;
  if (std::isnan(value))
    return sign | format.quietNaN;
  double magnitude = std::fabs(value);
  constexpr int doubleMantissa = 52, doubleBias = 1023;
  auto bits = std::bit_cast<uint64_t>(magnitude);
  if (bits >= static_cast<uint64_t>(doubleBias + 1 - format.bias()) << doubleMantissa) {
    // A normal of the format: the bits that it has no room for are rounded off, ties to even; a carry into the next
    // binade works out by itself. Random inputs and results of references are millions of these.
    int shift = doubleMantissa - format.mantissaBits;
    bits += (uint64_t(1) << (shift - 1)) - 1 + (bits >> shift & 1);
    uint64_t rounded = (bits >> shift) - (static_cast<uint64_t>(doubleBias - format.bias()) << format.mantissaBits);
    if (rounded > format.maxFinite)
      return sign | (format.saturates ? format.maxFinite : format.infinity());
    return sign | static_cast<uint32_t>(rounded);
  }
  // Below the smallest normal the spacing of values stops shrinking. Exact: a scaling by a power of two, then one
  // rounding to an integer (ties to even is the default mode).
  return sign | static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, format.mantissaBits + format.bias() - 1)));
}

float widen(uint32_t bits, const Format &format) {
  uint32_t magnitude = bits & ((1u << (format.bits() - 1)) - 1);
  float sign = bits >> (format.bits() - 1) ? -1.0f : 1.0f;
  if (magnitude > format.maxFinite)
    return !format.saturates && magnitude == format.infinity()
               ? sign * std::numeric_limits<float>::infinity()
               : std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
  int exponent = static_cast<int>(magnitude >> format.mantissaBits);
  float mantissa = static_cast<float>(magnitude & ((1u << format.mantissaBits) - 1));
  if (exponent == 0)
    return sign * std::ldexp(mantissa, 1 - format.bias() - format.mantissaBits);
  return sign * std::ldexp(mantissa + static_cast<float>(1u << format.mantissaBits),
                           exponent - format.bias() - format.mantissaBits);
}

} // namespace

float f16ToF32(uint16_t bits) { return widen(bits, half); }
float bf16ToF32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
float f8e4m3ToF32(uint8_t bits) { return widen(bits, e4m3); }
float f8e5m2ToF32(uint8_t bits) {
  // Infinities are never produced but may be stored by others; they read as infinities.
  if ((bits & 0x7f) == 0x7c)
    return bits & 0x80 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  return widen(bits, e5m2);
}

uint16_t f64ToF16(double value) { return static_cast<uint16_t>(narrow(value, half)); }
uint16_t f64ToBF16(double value) { return static_cast<uint16_t>(narrow(value, brain)); }
uint8_t f64ToF8e4m3(double value) { return static_cast<uint8_t>(narrow(value, e4m3)); }
uint8_t f64ToF8e5m2(double value) { return static_cast<uint8_t>(narrow(value, e5m2)); }

} // namespace tenon
