// SPDX-License-Identifier: Apache-2.0
//
// x times half of 1 + erf(s x) as one function: as good as half of the sum times x, and special values are the
// product's.
#include "tenon/compiler/math/Gelu.h"
#include "tenon/compiler/math/HostArithmetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

using namespace tenon::math;

namespace {

constexpr double wrong = 1e9;
constexpr float scales[] = {0.70710678f, 1, 3};

struct Errors {
  double factor = 0;                                               ///< exact form: of what x is multiplied by
  double relaxed = 0, relaxedTail = 0, coarse = 0, coarseTail = 0; ///< relative to the result

  void measure(float x, float scale) {
    HostArithmetic host;
    double z = static_cast<double>(x) * scale, exact = x * (std::erfc(-z) / 2);
    auto relative = [&](double got) { return std::isnan(got) ? wrong : std::abs(got - exact) / std::abs(exact); };
    if (std::abs(x) > 0x1p-100f) {                                       // and so the result is no subnormal number
      double off = std::abs(gelu(host, x, scale) - exact) / std::abs(x); // a result is rounded once besides
      factor = std::max(factor, std::isnan(off) ? wrong : off - 0x1p-24);
    }
    if (z <= -9.15) { // half of erfc leaves the normal numbers
      if (!(std::abs(relaxedGelu(host, x, scale, Grain::bf16)) <= 0x1p-114 / scale))
        coarseTail = wrong;
      return;
    }
    if (std::abs(exact) < 0x1p-126)
      return;
    double &relaxedError = z > -3 ? relaxed : relaxedTail, &coarseError = z > -3 ? coarse : coarseTail;
    relaxedError = std::max(relaxedError, relative(relaxedGelu(host, x, scale, Grain::f16)));
    coarseError = std::max(coarseError, relative(relaxedGelu(host, x, scale, Grain::bf16)));
  }
  void join(const Errors &other) {
    factor = std::max(factor, other.factor);
    relaxed = std::max(relaxed, other.relaxed), relaxedTail = std::max(relaxedTail, other.relaxedTail);
    coarse = std::max(coarse, other.coarse), coarseTail = std::max(coarseTail, other.coarseTail);
  }
  void judge() const {
    std::printf("factor %.2f times 2^-24; relaxed 2^%.2f (2^%.2f in the tail), for bf16 2^%.2f (2^%.2f)\n",
                factor * 0x1p24, std::log2(relaxed), std::log2(relaxedTail), std::log2(coarse), std::log2(coarseTail));
    EXPECT_LE(factor, 2 * 0x1p-24);
    EXPECT_LE(relaxed, 0x1p-16);
    EXPECT_LE(relaxedTail, 0x1p-13);
    EXPECT_LE(coarse, 0x1p-13);
    EXPECT_LE(coarseTail, 0x1p-12);
  }
};

TEST(MathGelu, IsAsGoodAsTheProduct) {
  Errors errors;
  for (float scale : scales) {
    for (std::uint64_t bits = 0; bits < (std::uint64_t(1) << 32); bits += 4093)
      if (float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits)); std::isfinite(x))
        errors.measure(x, scale);
    for (double x = -20; x < 20; x += 0x1p-13)
      errors.measure(static_cast<float>(x), scale);
  }
  errors.judge();
}

/// Every float, for GELU's own scale.
TEST(MathGelu, DISABLED_Exhaustive) {
  unsigned count = std::max(1u, std::thread::hardware_concurrency());
  std::vector<Errors> errors(count);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t bits = t; bits < (std::uint64_t(1) << 32); bits += count)
        if (float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits)); std::isfinite(x))
          errors[t].measure(x, scales[0]);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (unsigned t = 1; t < count; ++t)
    errors[0].join(errors[t]);
  errors[0].judge();
}

TEST(MathGelu, SpecialValues) {
  HostArithmetic host;
  const float infinity = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  for (float scale : scales)
    for (int form = 0; form < 3; ++form) {
      auto of = [&](float x) {
        return form == 0 ? gelu(host, x, scale) : relaxedGelu(host, x, scale, form == 1 ? Grain::f16 : Grain::bf16);
      };
      EXPECT_EQ(of(infinity), infinity);
      EXPECT_TRUE(std::isnan(of(-infinity))); // infinity times 0
      EXPECT_TRUE(std::isnan(of(std::numeric_limits<float>::quiet_NaN())));
      EXPECT_EQ(of(most), most);
      for (float x : {-most, -1e10f, -100.0f, -0.0f}) {
        EXPECT_EQ(of(x), 0) << x;
        EXPECT_TRUE(std::signbit(of(x))) << x;
      }
      EXPECT_FALSE(std::signbit(of(0.0f)));
      EXPECT_EQ(of(100), 100);
    }
}

} // namespace
