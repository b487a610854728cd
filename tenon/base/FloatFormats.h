// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Conversions between f32 and the small floating-point formats, the rule every target follows:
/// - narrowing rounds to nearest, ties to even, subnormals included; NaN stays NaN (the canonical quiet one);
/// - f16 and bf16 overflow to infinity; the 8-bit formats saturate: anything beyond the largest finite value, infinity
///   included, becomes the largest finite value of that sign (f8e4m3: 448, f8e5m2: 57344);
/// - widening is exact.
/// Converting f64 rounds once, directly to the format.
#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

float f16ToF32(uint16_t bits);
float bf16ToF32(uint16_t bits);
float f8e4m3ToF32(uint8_t bits);
float f8e5m2ToF32(uint8_t bits);

uint16_t f64ToF16(double value);
uint16_t f64ToBF16(double value);
uint8_t f64ToF8e4m3(double value);
uint8_t f64ToF8e5m2(double value);

} // namespace tenon
#pragma GCC visibility pop
