// SPDX-License-Identifier: Apache-2.0
//
// Powers that nobody sees when they are subnormal are never that.
#include "tenon/compiler/math/Gelu.h"
#include "tenon/compiler/math/HostArithmetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

using namespace tenon::math;

namespace {

/// Counts subnormal numbers among results, each of which takes a processor a hundred cycles and more.
struct Watching : HostArithmetic {
  int subnormals = 0;

  template <class T> T seen(T x) {
    if constexpr (std::floating_point<T>)
      subnormals += std::fpclassify(x) == FP_SUBNORMAL;
    return x;
  }
  template <class T> T add(T x, T y) { return seen(HostArithmetic::add(x, y)); }
  template <class T> T sub(T x, T y) { return seen(HostArithmetic::sub(x, y)); }
  template <class T> T mul(T x, T y) { return seen(HostArithmetic::mul(x, y)); }
  template <class T> T div(T x, T y) { return seen(HostArithmetic::div(x, y)); }
  template <class T> T fma(T x, T y, T z) { return seen(HostArithmetic::fma(x, y, z)); }
};

TEST(MathPowers, AreNoSubnormals) {
  std::vector<float> samples;
  for (double x = -160; x < 160; x += 0x1p-8)
    samples.push_back(static_cast<float>(x));
  for (float x = 0x1p-20f; x < 1e38f; x *= 1.07f)
    samples.insert(samples.end(), {x, -x});
  constexpr float root = 0.70710678f;
  for (float x : samples) {
    auto expectNone = [&](const char *name, auto function) {
      Watching a;
      function(a);
      ASSERT_EQ(a.subnormals, 0) << name << " of " << x;
    };
    for (bool halved : {false, true}) {
      expectNone("1 + erf", [&](Watching &a) { onePlusErf(a, x, halved); });
      if (x > -43) // then the result is one
        expectNone("1 + tanh", [&](Watching &a) { onePlusTanh(a, x, halved); });
    }
    expectNone("gelu", [&](Watching &a) { gelu(a, x, root); });
    PowerUse lost{.isLost = true};
    expectNone("exp in a sum", [&](Watching &a) { exp<float>(a, x, lost); });
    expectNone("exp2 in a sum", [&](Watching &a) { exp2<float>(a, x, lost); });
    for (Grain grain : {Grain::f16, Grain::bf16}) {
      for (bool halved : {false, true}) {
        expectNone("relaxed 1 + erf", [&](Watching &a) { relaxedOnePlusErf(a, x, halved, grain, root); });
        if (x > -43)
          expectNone("relaxed 1 + tanh", [&](Watching &a) { relaxedOnePlusTanh(a, x, halved, grain); });
      }
      expectNone("relaxed gelu", [&](Watching &a) { relaxedGelu(a, x, root, grain); });
      expectNone("relaxed exp in a sum", [&](Watching &a) { relaxedExp(a, x, grain, lost); });
    }
  }
}

/// A power that need not be smaller than 2^-63 is right above, and the sum with 1 is the same everywhere.
TEST(MathPowers, LostInASum) {
  HostArithmetic host;
  PowerUse lost{.isLost = true};
  const float infinity = std::numeric_limits<float>::infinity();
  for (float x :
       {-infinity, -1e30f, -500.0f, -150.0f, -100.0f, -64.5f, -44.5f, -43.0f, -10.0f, 0.0f, 5.0f, 88.0f, infinity}) {
    EXPECT_EQ(exp<float>(host, x, lost) + 1, exp<float>(host, x) + 1) << x;
    EXPECT_EQ(exp2<float>(host, x, lost) + 1, exp2<float>(host, x) + 1) << x;
    EXPECT_EQ(relaxedExp(host, x, Grain::bf16, lost) + 1, relaxedExp(host, x, Grain::bf16) + 1) << x;
    EXPECT_LE(exp<float>(host, x, lost), std::max(0x1p-63f, exp<float>(host, x)));
    EXPECT_LE(exp2<float>(host, x, lost), std::max(0x1p-63f, exp2<float>(host, x)));
  }
  EXPECT_TRUE(std::isnan(exp<float>(host, NAN, lost)));
  EXPECT_TRUE(std::isnan(exp2<float>(host, NAN, lost)));
}

} // namespace
