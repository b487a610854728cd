// SPDX-License-Identifier: Apache-2.0
//
// The sigmoid that only 16 bits see: one function, as good as the power in it, down to the smallest number.
#include "tenon/compiler/math/HostArithmetic.h"
#include "tenon/compiler/math/Relaxed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace tenon::math;

namespace {

double errorOf(float x, Grain grain) {
  HostArithmetic host;
  double exact = x < 0 ? std::exp(static_cast<double>(x)) / (1 + std::exp(static_cast<double>(x)))
                       : 1 / (1 + std::exp(-static_cast<double>(x)));
  double got = relaxedSigmoid(host, x, grain);
  if (exact < 0x1p-126) // rounded to a multiple of the smallest number besides
    return std::abs(got - exact) <= 0x1p-149 + 0x1p-139 ? 0 : 1e9;
  return std::isnan(got) ? 1e9 : std::abs(got - exact) / exact;
}

TEST(MathSigmoid, IsAsGoodAsItsPower) {
  double f16 = 0, bf16 = 0;
  auto measure = [&](float x) {
    f16 = std::max(f16, errorOf(x, Grain::f16));
    bf16 = std::max(bf16, errorOf(x, Grain::bf16));
  };
  for (std::uint64_t bits = 0; bits < (std::uint64_t(1) << 32); bits += 0x1000) // all of bf16 among them
    if (float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits)); std::isfinite(x))
      measure(x);
  for (double x = -90; x < 90; x += 0x1p-12)
    measure(static_cast<float>(x));
  std::printf("2^%.2f, for bf16 2^%.2f\n", std::log2(f16), std::log2(bf16));
  EXPECT_LE(f16, 0x1p-16);
  EXPECT_LE(bf16, 0x1p-13);
}

TEST(MathSigmoid, SpecialValues) {
  HostArithmetic host;
  const float infinity = std::numeric_limits<float>::infinity();
  for (Grain grain : {Grain::f16, Grain::bf16}) {
    EXPECT_EQ(relaxedSigmoid(host, infinity, grain), 1);
    EXPECT_EQ(relaxedSigmoid(host, -infinity, grain), 0);
    EXPECT_EQ(relaxedSigmoid(host, -1e30f, grain), 0);
    EXPECT_TRUE(std::isnan(relaxedSigmoid(host, std::nanf(""), grain)));
  }
}

} // namespace
