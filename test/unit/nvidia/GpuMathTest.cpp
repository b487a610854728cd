// SPDX-License-Identifier: Apache-2.0
//
// The accuracy of the GPU's functions on the host: the special function unit is replaced by the correctly rounded
// function moved by up to two units in the last place, either way, which is all that is promised of it.
#include "tenon/compiler/math/HostArithmetic.h"
#include "tenon/compiler/target/nvidia/ptx/GpuFunctions.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <random>

namespace {

using namespace tenon::nvidia;

/// The spacing of floats at a number.
double ulpAt(double x) {
  int exponent = x == 0 || std::isinf(x) ? -126 : std::min(127, std::max(-126, std::ilogb(x)));
  return std::ldexp(1.0, exponent - 23);
}

struct GpuHost : tenon::math::HostArithmetic {
  int ulps = 0; // what the unit adds to each result

  float moved(double exact) const {
    if (std::isnan(exact) || std::isinf(exact) || exact == 0)
      return float(exact); // exact on the GPU as well
    return float(exact + ulps * ulpAt(exact));
  }
  static float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

  float ex2(float x, bool flush) {
    return flush ? flushed(moved(std::exp2(double(flushed(x))))) : moved(std::exp2(double(x)));
  }
  float rcp(float x, bool flush) { return flush ? flushed(moved(1 / double(flushed(x)))) : moved(1 / double(x)); }
  float rsqrt(float x) { return x == 0 ? std::copysign(INFINITY, x) : moved(1 / std::sqrt(double(x))); }
  float minimum(float x, float y) { return std::isnan(x) || std::isnan(y) ? NAN : std::fmin(x, y); }
  float maximum(float x, float y) { return std::isnan(x) || std::isnan(y) ? NAN : std::fmax(x, y); }
};

/// |got - exact| in units in the last place of the exact result; infinity counts as 2^128.
double errorInUlps(float got, double exact) {
  if (std::isnan(exact) || std::isnan(got))
    return std::isnan(exact) && std::isnan(got) ? 0 : INFINITY;
  if (std::abs(exact) > 0x1p128)
    exact = std::copysign(0x1p128, exact);
  double number = std::isinf(got) ? std::copysign(0x1p128, got) : got;
  return std::abs(number - exact) / ulpAt(exact);
}

using Function = std::function<float(GpuHost &, float)>;

/// The largest error over many floats and every behaviour of the unit.
void measure(const char *name, const Function &ours, double (*exact)(double), double allowed) {
  double worst = 0;
  float where = 0;
  for (int ulps : {-2, -1, 0, 1, 2}) {
    GpuHost host;
    host.ulps = ulps;
    auto one = [&](float x) {
      double error = errorInUlps(ours(host, x), exact(x));
      if (error > worst)
        worst = error, where = x;
    };
    for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += 4099) // every exponent, both signs
      one(std::bit_cast<float>(uint32_t(bits)));
    std::mt19937 random(1);
    std::uniform_real_distribution<float> ordinary(-12, 12), wide(-110, 110);
    for (int i = 0; i < 400000; ++i)
      one(ordinary(random)), one(wide(random));
  }
  std::printf("%-6s %.2f ulp, at %a\n", name, worst, double(where));
  EXPECT_LE(worst, allowed) << name;
}

TEST(GpuMath, ExpStaysWithinThreeUlps) {
  measure("exp", [](GpuHost &a, float x) { return gpu::exp(a, x); }, std::exp, 3);
}
TEST(GpuMath, Exp2IsTheUnitsOwn) {
  measure("exp2", [](GpuHost &a, float x) { return gpu::exp2(a, x); }, std::exp2, 3);
}
TEST(GpuMath, TanhIsAccurateRelativeToTheResult) {
  measure("tanh", [](GpuHost &a, float x) { return gpu::tanh(a, x); }, std::tanh, 4);
}
TEST(GpuMath, ErfIsAccurateRelativeToTheResult) {
  measure("erf", [](GpuHost &a, float x) { return gpu::erf(a, x); }, std::erf, 2);
}
TEST(GpuMath, RsqrtIsTheUnitsOwn) {
  measure("rsqrt", [](GpuHost &a, float x) { return gpu::rsqrt(a, x); },
          [](double x) { return x == 0 ? std::copysign(INFINITY, x) : 1 / std::sqrt(x); }, 2.5);
}

/// The largest error relative to the exact result over one in `step` floats between `from` and `to` (of one sign,
/// `to` the larger magnitude) and every behaviour of the unit.
void measureRelative(const char *name, const Function &ours, double (*exact)(double), float from, float to,
                     uint32_t step, double allowed) {
  double worst = 0;
  float where = 0;
  for (int ulps : {-2, -1, 0, 1, 2}) {
    GpuHost host;
    host.ulps = ulps;
    for (uint32_t bits = std::bit_cast<uint32_t>(from); bits <= std::bit_cast<uint32_t>(to); bits += step) {
      float x = std::bit_cast<float>(bits);
      double right = exact(x), error = std::abs(ours(host, x) - right) / std::abs(right);
      if (std::isnan(error))
        error = INFINITY;
      if (error > worst)
        worst = error, where = x;
    }
  }
  std::printf("%s from %g to %g: 2^%.2f of it, at %a\n", name, double(from), double(to), std::log2(worst),
              double(where));
  EXPECT_LE(worst, allowed) << name;
}

/// -87.3: no normal f32 below, and an error of the smallest one counts.
void measureRelaxedSigmoid(uint32_t step) {
  auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  auto relaxed = [](GpuHost &a, float x) { return gpu::relaxedSigmoid(a, x); };
  measureRelative("sigmoid", relaxed, sigmoid, -0x1p-30f, -87.3f, step, 0x1p-17);
  measureRelative("sigmoid", relaxed, sigmoid, 0x1p-30f, 200, step, 0x1p-18);
}

/// -3: GELU is no normal f16 below; -9.19: erfc is no normal f32 below. Floats below 2^-30 are as 0.
void measureRelaxedErf(uint32_t step) {
  auto onePlusErf = [](double x) { return std::erfc(-x); };
  auto relaxed = [](GpuHost &a, float x) { return gpu::relaxedOnePlusErf(a, x); };
  measureRelative("1 + erf", relaxed, onePlusErf, -0x1p-30f, -3.0f, step, 0x1p-16);
  measureRelative("1 + erf", relaxed, onePlusErf, -3.0f, -9.19f, step, 0x1p-13);
  measureRelative("1 + erf", relaxed, onePlusErf, 0x1p-30f, 20, step, 0x1p-16);
  // As GELU has it: (1 + erf(x / sqrt(2))) / 2.
  static constexpr double scale = 0.70710676908493042;
  auto ofGelu = [](double x) { return std::erfc(-x * scale) / 2; };
  auto scaled = [](GpuHost &a, float x) { return gpu::relaxedOnePlusErf(a, x, scale, /*halved=*/true); };
  measureRelative("(1 + erf) / 2", scaled, ofGelu, -0x1p-30f, -4.2f, step, 0x1p-16);
  measureRelative("(1 + erf) / 2", scaled, ofGelu, -4.2f, -12.9f, step, 0x1p-13);
  measureRelative("(1 + erf) / 2", scaled, ofGelu, 0x1p-30f, 28, step, 0x1p-16);
  measureRelative("erf", [](GpuHost &a, float x) { return gpu::relaxedErf(a, x); }, std::erf, 0x1p-30f, 20, step,
                  0x1p-18);
}

TEST(GpuMath, RelaxedErfIsGoodEnoughForSixteenBits) { measureRelaxedErf(1021); }
TEST(GpuMath, RelaxedSigmoidIsGoodEnoughForSixteenBits) { measureRelaxedSigmoid(1021); }

/// All of them, down to the subnormal results.
TEST(GpuMath, RelaxedSigmoidOfEveryBf16) {
  for (int ulps : {-2, 0, 2}) {
    GpuHost host;
    host.ulps = ulps;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      float x = std::bit_cast<float>(bits << 16), ours = gpu::relaxedSigmoid(host, x);
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(ours));
        continue;
      }
      double right = 1 / (1 + std::exp(-static_cast<double>(x)));
      ASSERT_LE(std::abs(ours - right), std::max(0x1p-17 * right, 0x1p-149)) << x;
    }
  }
}

/// Every float: minutes.
TEST(GpuMath, DISABLED_RelaxedErfIsGoodEnoughForSixteenBits) { measureRelaxedErf(1); }
TEST(GpuMath, DISABLED_RelaxedSigmoidIsGoodEnoughForSixteenBits) { measureRelaxedSigmoid(1); }

TEST(GpuMath, SpecialValues) {
  GpuHost a;
  const float infinity = INFINITY;
  EXPECT_EQ(gpu::exp(a, 0.0f), 1);
  EXPECT_EQ(gpu::exp(a, -0.0f), 1);
  EXPECT_EQ(gpu::exp(a, infinity), infinity);
  EXPECT_EQ(gpu::exp(a, -infinity), 0);
  EXPECT_EQ(gpu::exp(a, 89.0f), infinity);
  EXPECT_EQ(gpu::exp(a, 3e38f), infinity);
  EXPECT_EQ(gpu::exp(a, -104.0f), 0);
  EXPECT_EQ(gpu::exp(a, -3e38f), 0);
  EXPECT_EQ(gpu::exp(a, -103.0f), std::exp(-103.0f)); // the smallest subnormal
  EXPECT_TRUE(std::isnan(gpu::exp(a, NAN)));
  for (auto function : {gpu::tanh<GpuHost>, gpu::erf<GpuHost>, gpu::relaxedErf<GpuHost>}) {
    EXPECT_TRUE(std::isnan(function(a, NAN)));
    EXPECT_EQ(function(a, infinity), 1);
    EXPECT_EQ(function(a, -infinity), -1);
    EXPECT_EQ(function(a, 3e38f), 1);
    EXPECT_EQ(function(a, 0.0f), 0);
    EXPECT_TRUE(std::signbit(function(a, -0.0f)));
  }
  EXPECT_EQ(gpu::tanh(a, 0x1p-149f), 0x1p-149f);
  EXPECT_TRUE(std::isnan(gpu::relaxedOnePlusErf(a, NAN)));
  EXPECT_EQ(gpu::relaxedOnePlusErf(a, 0.0f), 1);
  EXPECT_EQ(gpu::relaxedOnePlusErf(a, -0.0f), 1);
  for (float far : {9.5f, 12.0f, 30.0f, 1e3f, 1e9f, 3e38f, infinity}) {
    EXPECT_EQ(gpu::relaxedOnePlusErf(a, far), 2) << far;
    EXPECT_EQ(gpu::relaxedOnePlusErf(a, -far), 0) << far;
    EXPECT_EQ(gpu::relaxedOnePlusErf(a, far, 2.0, true), 1) << far;
    EXPECT_EQ(gpu::relaxedOnePlusErf(a, -far, 2.0, true), 0) << far;
    EXPECT_EQ(gpu::relaxedErf(a, far), 1) << far;
  }
  EXPECT_EQ(gpu::rsqrt(a, -0.0f), -infinity);
  EXPECT_EQ(gpu::rsqrt(a, infinity), 0);
  EXPECT_TRUE(std::isnan(gpu::rsqrt(a, -1.0f)));
}

} // namespace
