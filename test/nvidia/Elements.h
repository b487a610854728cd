// SPDX-License-Identifier: Apache-2.0
//
// Random elements for the matrix units.
#pragma once

#include "test/nvidia/KernelText.h"

namespace tenon::test {

/// A float format of up to 32 bits.
struct Format {
  const char *name;
  int bits, exponentBits, mantissaBits;
  int architecture;
};
inline const Format f16{"f16", 16, 5, 10, 80}, bf16{"bf16", 16, 8, 7, 80}, tf32{"tf32", 32, 8, 23, 80},
    e4m3{"e4m3", 8, 4, 3, 89}, e5m2{"e5m2", 8, 5, 2, 89}, f32{"f32", 32, 8, 23, 80};

inline int bias(const Format &format) { return (1 << (format.exponentBits - 1)) - 1; }

/// A small integer.
inline uint32_t encode(int value, const Format &format) {
  if (value == 0)
    return 0;
  uint32_t magnitude = value < 0 ? -value : value;
  int exponent = 31 - __builtin_clz(magnitude);
  uint32_t mantissa = (magnitude ^ (1u << exponent)) << (format.mantissaBits - exponent);
  uint32_t sign = value < 0 ? 1u << (format.bits - 1) : 0;
  return sign | uint32_t(bias(format) + exponent) << format.mantissaBits | mantissa;
}

/// What the elements of a test are like.
enum class Inputs {
  Integers, // sums are exact whatever the order
  Near,     // of one magnitude: shows how sums round
  Far,      // of many magnitudes: shows how many bits a sum keeps
  Special,  // infinities, NaN, zeros of both signs, subnormals among the others
};
inline const char *nameOf(Inputs inputs) {
  const char *names[] = {"integers", "near", "far", "special"};
  return names[int(inputs)];
}

inline uint32_t randomElement(Random &random, const Format &format, Inputs inputs) {
  if (inputs == Inputs::Integers)
    return encode(random.between(-4, 4), format);
  uint32_t everything = format.bits == 32 ? ~0u : (1u << format.bits) - 1;
  if (inputs == Inputs::Special && random.between(0, 15) == 0) {
    // Any bits at all, or those at the ends of the format.
    uint32_t infinity = ((1u << format.exponentBits) - 1) << format.mantissaBits;
    const uint32_t special[] = {0, infinity, infinity | 1, infinity - 1, 1, (1u << format.mantissaBits) - 1,
                                uint32_t(random.bits())};
    return (special[random.between(0, 6)] ^ (random.bits() & 1 ? 1u << (format.bits - 1) : 0)) & everything;
  }
  int reach = inputs == Inputs::Far ? std::min(12, bias(format) - 1) : 1;
  uint32_t exponent = bias(format) + random.between(-reach, reach);
  uint32_t mantissa = random.bits() & ((1u << format.mantissaBits) - 1);
  return (random.bits() & 1 ? 1u << (format.bits - 1) : 0) | exponent << format.mantissaBits | mantissa;
}

} // namespace tenon::test
