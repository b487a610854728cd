// SPDX-License-Identifier: Apache-2.0
//
// Powers that are but added up, which have a step less: how far each is off, and that 2^0 is 1.
#include "tenon/compiler/math/Exponential.h"
#include "tenon/compiler/math/HostArithmetic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

using namespace tenon::math;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr PowerUse summed{.isSummed = true};

/// Whatever can be a power that is a normal number; all of them where `step` is 1.
template <class Body> void forFloats(uint32_t step, Body body) {
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += step)
    if (auto x = std::bit_cast<float>(static_cast<uint32_t>(bits)); std::abs(x) < 130)
      body(x);
}

void expectClose(uint32_t step) {
  HostArithmetic host;
  double ofTwo = 0, ofE = 0;
  forFloats(step, [&](float x) {
    double two = std::exp2(static_cast<double>(x)), e = std::exp(static_cast<double>(x));
    if (two >= 0x1p-126 && two < 0x1p128)
      ofTwo = std::max(ofTwo, std::abs(exp2OfSummand(host, x) / two - 1));
    if (e >= 0x1p-126 && e < 0x1p128)
      ofE = std::max(ofE, std::abs(exp<float>(host, x, summed) / e - 1));
  });
  EXPECT_LT(ofTwo, std::exp2(-22.6));
  EXPECT_LT(ofE, std::exp2(-22.4));
}

TEST(MathSummands, AreClose) { expectClose(997); }
TEST(MathSummands, DISABLED_Exhaustive) { expectClose(1); }

TEST(MathSummands, SpecialValues) {
  HostArithmetic host;
  for (float x : {0.0f, -0.0f}) {
    EXPECT_EQ(exp2OfSummand(host, x), 1);
    EXPECT_EQ(exp<float>(host, x, summed), 1);
  }
  for (float x : {-infinity, -1e30f, -512.0f, -152.0f}) {
    EXPECT_EQ(exp2OfSummand(host, x), 0) << x;
    EXPECT_EQ(exp<float>(host, x, summed), 0) << x;
  }
  for (float x : {128.0f, 500.0f, 1e30f, infinity}) {
    EXPECT_EQ(exp2OfSummand(host, x), infinity) << x;
    EXPECT_EQ(exp<float>(host, x, summed), infinity) << x;
  }
  for (int n = -149; n < 128; ++n)
    EXPECT_EQ(exp2OfSummand(host, static_cast<float>(n)), std::ldexp(1.0f, n)) << n;
  EXPECT_NEAR(exp2OfSummand(host, -1e-12f), 1, 0x1p-23); // what is left of it beside -1 is rounded to 1
  EXPECT_TRUE(std::isnan(exp2OfSummand(host, NAN)));
  EXPECT_TRUE(std::isnan(exp<float>(host, NAN, summed)));
}

} // namespace
