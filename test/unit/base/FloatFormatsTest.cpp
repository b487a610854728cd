// SPDX-License-Identifier: Apache-2.0
// The conversions against an oracle that shares nothing with them: the values of a format are computed from the
// definition of its bits, and narrowing is a search for the nearest of them in a sorted table.
#include "tenon/base/FloatFormats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace tenon;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Format {
  const char *name;
  int exponentBits, mantissaBits;
  bool saturates;
  double largest;
  double (*widen)(uint32_t bits);
  uint32_t (*narrow)(double value);

  int bits() const { return 1 + exponentBits + mantissaBits; }
  uint32_t patterns() const { return 1u << bits(); }
  uint32_t signBit() const { return patterns() / 2; }
};

const Format formats[] = {
    {"f16", 5, 10, false, 65504, [](uint32_t b) -> double { return f16ToF32(static_cast<uint16_t>(b)); },
     [](double v) -> uint32_t { return f64ToF16(v); }},
    {"bf16", 8, 7, false, 0x1.fep127, [](uint32_t b) -> double { return bf16ToF32(static_cast<uint16_t>(b)); },
     [](double v) -> uint32_t { return f64ToBF16(v); }},
    {"f8e4m3", 4, 3, true, 448, [](uint32_t b) -> double { return f8e4m3ToF32(static_cast<uint8_t>(b)); },
     [](double v) -> uint32_t { return f64ToF8e4m3(v); }},
    {"f8e5m2", 5, 2, true, 57344, [](uint32_t b) -> double { return f8e5m2ToF32(static_cast<uint8_t>(b)); },
     [](double v) -> uint32_t { return f64ToF8e5m2(v); }},
};

/// What a bit pattern means, by definition. f8e4m3 has no infinities: its last exponent is an ordinary one but for NaN.
double valueOf(const Format &format, uint32_t bits) {
  uint32_t mantissaMask = (1u << format.mantissaBits) - 1;
  auto exponent = static_cast<int>((bits & (format.signBit() - 1)) >> format.mantissaBits);
  double mantissa = bits & mantissaMask;
  int last = (1 << format.exponentBits) - 1, bias = last / 2;
  double magnitude;
  bool e4m3 = format.exponentBits == 4;
  if (exponent == last && (!e4m3 || (bits & mantissaMask) == mantissaMask))
    magnitude = !e4m3 && mantissa == 0 ? infinity : std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    magnitude = mantissa * std::pow(2.0, 1 - bias - format.mantissaBits);
  else
    magnitude = (1 + mantissa / (1 << format.mantissaBits)) * std::pow(2.0, exponent - bias);
  return std::copysign(magnitude, bits & format.signBit() ? -1.0 : 1.0);
}

/// The non-negative finite values in order; index i has the bits i, because the formats are ordered like their bits.
std::vector<double> magnitudes(const Format &format) {
  std::vector<double> values;
  for (uint32_t bits = 0; bits < format.signBit() && std::isfinite(valueOf(format, bits)); ++bits)
    values.push_back(valueOf(format, bits));
  return values;
}

/// The nearest value, the one of even bits where two are equally near.
uint32_t nearest(const Format &format, const std::vector<double> &values, double value) {
  uint32_t sign = std::signbit(value) ? format.signBit() : 0;
  double magnitude = std::fabs(value);
  auto top = static_cast<uint32_t>(values.size() - 1);
  if (magnitude > values[top]) {
    // As if the values went on: the next one would have even bits, so that the middle rounds up to it.
    double next = values[top] + (values[top] - values[top - 1]);
    bool beyond = magnitude >= values[top] + (next - values[top]) / 2;
    return sign | (beyond && !format.saturates ? top + 1 : top);
  }
  auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  auto high = static_cast<uint32_t>(above - values.begin());
  if (*above == magnitude)
    return sign | high;
  // Both differences are exact or far from equal: the neighbours of a double in a format this narrow share its scale.
  double down = magnitude - values[high - 1], up = *above - magnitude;
  if (down != up)
    return sign | (down < up ? high - 1 : high);
  return sign | (high % 2 == 0 ? high : high - 1);
}

TEST(FloatFormats, WideningIsTheDefinition) {
  for (const Format &format : formats)
    for (uint32_t bits = 0; bits < format.patterns(); ++bits) {
      double expected = valueOf(format, bits), got = format.widen(bits);
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(got)) << format.name << " " << bits;
      else
        ASSERT_EQ(std::bit_cast<uint64_t>(got), std::bit_cast<uint64_t>(expected)) << format.name << " " << bits;
    }
}

TEST(FloatFormats, EveryPatternMakesTheRoundTrip) {
  for (const Format &format : formats)
    for (uint32_t bits = 0; bits < format.patterns(); ++bits) {
      double value = format.widen(bits);
      uint32_t back = format.narrow(value);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(format.widen(back))) << format.name << " " << bits;
        ASSERT_EQ(format.narrow(format.widen(back)), back) << "the canonical NaN is stable";
      } else if (std::isinf(value) && format.saturates) {
        ASSERT_EQ(format.widen(back), std::copysign(format.largest, value)); // f8e5m2 reads infinities, but makes none
      } else {
        ASSERT_EQ(back, bits) << format.name;
      }
    }
}

TEST(FloatFormats, LimitsAreTheWrittenOnes) {
  for (const Format &format : formats) {
    SCOPED_TRACE(format.name);
    EXPECT_EQ(magnitudes(format).back(), format.largest);
    double beyond = format.saturates ? format.largest : infinity;
    for (double huge : {infinity, std::numeric_limits<double>::max(), format.largest * 2}) {
      EXPECT_EQ(format.widen(format.narrow(huge)), beyond);
      EXPECT_EQ(format.widen(format.narrow(-huge)), -beyond);
    }
    for (double sign : {1.0, -1.0}) {
      double nan = std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
      EXPECT_TRUE(std::isnan(format.widen(format.narrow(nan))));
      EXPECT_EQ(format.narrow(0 * sign), sign < 0 ? format.signBit() : 0u); // zero keeps its sign
      double tiny = std::numeric_limits<double>::denorm_min() * sign;
      EXPECT_EQ(format.narrow(tiny), sign < 0 ? format.signBit() : 0u);
    }
  }
}

TEST(FloatFormats, TiesGoToEvenAndNeighboursToTheNearest) {
  for (const Format &format : formats) {
    std::vector<double> values = magnitudes(format);
    for (uint32_t i = 0; i + 1 < values.size(); ++i) {
      double middle = values[i] + (values[i + 1] - values[i]) / 2; // exact
      uint32_t even = i % 2 == 0 ? i : i + 1;
      ASSERT_EQ(format.narrow(middle), even) << format.name << " " << i;
      ASSERT_EQ(format.narrow(-middle), even | format.signBit()) << format.name << " " << i;
      // One step of a double beside the tie: a conversion through f32 would land on the tie.
      ASSERT_EQ(format.narrow(std::nextafter(middle, 0)), i) << format.name << " " << i;
      ASSERT_EQ(format.narrow(std::nextafter(middle, infinity)), i + 1) << format.name << " " << i;
    }
    uint32_t top = static_cast<uint32_t>(values.size() - 1);
    double edge = values[top] + (values[top] - values[top - 1]) / 2;
    ASSERT_EQ(format.narrow(std::nextafter(edge, 0)), top) << format.name;
    ASSERT_EQ(format.narrow(edge), format.saturates ? top : top + 1) << format.name;
  }
}

TEST(FloatFormats, NarrowingIsTheNearest) {
  for (const Format &format : formats) {
    std::vector<double> values = magnitudes(format);
    std::mt19937_64 random(42);
    auto check = [&](double value) {
      ASSERT_EQ(format.narrow(value), nearest(format, values, value)) << format.name << " " << std::hexfloat << value;
    };
    int low = std::ilogb(values[1]) - 3, high = std::ilogb(values.back()) + 2;
    for (int i = 0; i < 200000; ++i) {
      // Any mantissa, an exponent about the format's range.
      double mantissa = 1 + static_cast<double>(random() >> 12) * 0x1p-52;
      double value = std::ldexp(mantissa, low + static_cast<int>(random() % static_cast<uint64_t>(high - low + 1)));
      check(random() & 1 ? value : -value);
    }
    for (int i = 0; i < 20000; ++i) { // any double at all
      double value = std::bit_cast<double>(random());
      if (!std::isnan(value))
        check(value);
    }
    for (int i = 0; i < 20000; ++i) // what most conversions start from
      check(std::ldexp(static_cast<float>(random() >> 40), static_cast<int>(random() % 30) - 40));
  }
}

} // namespace
