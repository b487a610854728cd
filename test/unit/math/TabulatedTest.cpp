// SPDX-License-Identifier: Apache-2.0
//
// Functions by tables of polynomials: how good they are for every bf16, every f16 and other floats, what is refused, and
// special values.
#include "tenon/compiler/math/Tabulated.h"
#include "tenon/compiler/math/HostArithmetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>

using namespace tenon::math;

namespace {

struct TableArithmetic : HostArithmetic {
  float lookUp(const Table &table, std::uint32_t index, const float *factor) {
    return table[index % tableEntries] * (factor ? *factor : 1);
  }
  float bounded(float x, float bound) { return std::fabs(x) < bound ? x : std::copysign(bound, x); }
  float boundedMagnitude(float x, float bound) { return std::fabs(x) < bound ? std::fabs(x) : bound; }
  float positivePart(float x) { return x < 0 ? (std::isinf(x) ? std::nanf("") : -0.0f) : x; }
  float isPositive(float x) { return std::isnan(x) ? x : x < 0 ? 0.0f : 1.0f; }
};

constexpr double rootOfHalf = 0.7071067811865476, slopeOfTanh = 0.7978845608028654;

struct Case {
  const char *name;
  std::function<double(double)> complement;
};

const Case cases[] = {{"erf(x / sqrt(2))", complementOfErf(rootOfHalf)},
                      {"erf(x)", complementOfErf(1)},
                      {"erf(x / sqrt(32))", complementOfErf(rootOfHalf / 4)},
                      {"tanh of GELU's cubic", complementOfTanh(slopeOfTanh, slopeOfTanh * 0.044715)}};

/// What has a table for its product with x only: it falls as e^-2t.
const Case slow = {"tanh(x)", complementOfTanh(1, 0)};

struct Errors {
  double most = 0, tail = 0; ///< relative to the factor of x; where that is below 2^-12
  double small = 0;          ///< in absolute terms, where it is below 2^-22
  double vanished = 0;       ///< the same where the complement is 0

  void measure(float x, const Case &one, double factor) {
    double c = one.complement(std::fabs(x)), exact = x < 0 ? c : 1 - c;
    double off = std::isnan(factor) ? 1e9 : std::abs(factor - exact);
    double &worst = c < RangeTable::vanishing(SeenAs::Bf16) ? vanished
                    : exact < RangeTable::small             ? small
                    : exact < RangeTable::tail              ? tail
                                                            : most;
    worst = std::max(worst, exact < RangeTable::small || c < RangeTable::vanishing(SeenAs::Bf16) ? off : off / exact);
  }

  void print(const char *of, const char *name) const {
    std::printf("%s of %s: 2^%.2f, 2^%.2f where it is below 2^-12; in absolute terms 2^%.2f where it is below 2^-22, "
                "2^%.2f where it is 0\n",
                of, name, std::log2(most), std::log2(tail), std::log2(small), std::log2(vanished));
  }
};

/// Every bf16 and, on the way, the floats between them; the f16 are among those.
TEST(MathTabulated, AllOfBf16AndMore) {
  TableArithmetic host;
  for (const Case &one : cases) {
    auto table = tabulate(one.complement), ofProduct = tabulateProduct(one.complement, SeenAs::Bf16);
    ASSERT_TRUE(table && ofProduct && ofProduct->bothSides) << one.name;
    Errors function, product;
    auto measure = [&](float x) {
      function.measure(x, one, tabulated(host, x, *table));
      if (std::abs(x) > 0x1p-100) // a smaller product is rounded once more
        product.measure(x, one, tabulatedProduct(host, x, *ofProduct) / static_cast<double>(x));
    };
    for (std::uint64_t bits = 0; bits < (std::uint64_t(1) << 32); bits += 0x2000)
      if (float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits)); std::isfinite(x) && x != 0)
        measure(x);
    for (double x = -12; x < 12; x += 0x1p-14)
      if (x != 0)
        measure(static_cast<float>(x));
    function.print("the factor", one.name);
    EXPECT_LE(function.most, 0x1p-12) << one.name;
    EXPECT_LE(function.tail, 0x1.1p-10) << one.name;
    EXPECT_LE(function.small, 0x1.1p-32) << one.name;
    EXPECT_LE(function.vanished, 0x1p-24) << one.name;
    product.print("that of the product", one.name);
    EXPECT_LE(product.most, 0x1.2p-11) << one.name;
    EXPECT_LE(product.tail, 0x1p-7) << one.name;
    EXPECT_LE(product.small, 0x1.4p-30) << one.name;
    EXPECT_LE(product.vanished, 0x1.01p-24) << one.name;
  }
}

/// As it is stored: of numbers that do not vanish never more than one unit of bf16 from the nearest, or two in the tail,
/// and three at its end.
TEST(MathTabulated, RoundedToBf16) {
  auto round = [](double x) { // to eight bits
    int exponent = 0;
    double fraction = std::frexp(x, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
  };
  for (const Case &one : {cases[0], cases[1], cases[2], cases[3], slow}) {
    auto table = tabulateProduct(one.complement, SeenAs::Bf16);
    ASSERT_TRUE(table) << one.name;
    TableArithmetic host;
    int different = 0, count = 0;
    auto unitOf = [](double x) { return std::ldexp(1, std::ilogb(x) - 7); };
    for (std::uint32_t half = 0; half < 0x10000; ++half) {
      float x = std::bit_cast<float>(half << 16);
      double c = one.complement(std::fabs(x)), exact = x * (x < 0 ? c : 1 - c);
      if (!std::isfinite(x) || c < RangeTable::vanishing(SeenAs::Bf16) || std::abs(exact) < 0x1p-120)
        continue;
      double got = round(tabulatedProduct(host, x, *table)), nearest = round(exact);
      ++count;
      different += got != nearest;
      int most = x > 0 || c >= 0x1p-18 ? 1 : c >= 0x1p-22 ? 2 : 3;
      EXPECT_LE(std::abs(got - nearest), most * unitOf(nearest)) << one.name << " of " << x;
    }
    std::printf("%s: %d of %d are not the nearest\n", one.name, different, count);
    EXPECT_LE(different, count / 500);
  }
}

/// What is stored as f32: the factor of x is as good as one that is computed step by step, whose sum with 1 is a multiple of
/// 2^-24 below 1. `stride`: of the bits of the numbers that are tried.
double worstFactorOfF32(const Case &one, std::uint64_t stride) {
  auto table = tabulateProduct(one.complement, SeenAs::F32);
  TableArithmetic host;
  double worst = table ? 0 : 1;
  auto measure = [&](float x) {
    double c = one.complement(std::fabs(x)), exact = x < 0 ? c : 1 - c;
    double product = tabulatedProduct(host, x, *table), off = std::abs(product - x * exact) / std::abs(double(x));
    worst = std::isnan(product) ? 1 : std::max(worst, off);
  };
  for (std::uint64_t bits = 0; table && bits < (std::uint64_t(1) << 32); bits += stride)
    if (float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits)); std::isnormal(x) && std::abs(x) > 0x1p-120)
      measure(x);
  return worst;
}

TEST(MathTabulated, SeenAsF32) {
  for (const Case &one : cases) {
    double worst = worstFactorOfF32(one, 0x1fff);
    std::printf("%s: the factor is off by at most %.2f times 2^-24\n", one.name, worst * 0x1p24);
    EXPECT_LE(worst, 0x1.cdp-24) << one.name;
  }
}

TEST(MathTabulated, DISABLED_Exhaustive) {
  for (const Case &one : cases)
    std::printf("%s: %.3f times 2^-24\n", one.name, worstFactorOfF32(one, 1) * 0x1p24);
}

/// A factor in the coefficients: as good, relative to the result, and special values stay what they are.
TEST(MathTabulated, ProductTimesFactor) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Case &one : {cases[0], cases[1], cases[2], cases[3], slow}) {
    auto table = tabulateProduct(one.complement, SeenAs::Bf16);
    ASSERT_TRUE(table) << one.name;
    TableArithmetic host;
    for (float factor : {1 / 0.9f, 3.0f, -0.7f, 0x1p-20f, 1e20f}) {
      auto product = [&](float x) { return tabulatedProduct(host, x, *table, &factor); };
      double most = 0;
      for (double x = -12; x < 12; x += 0x1p-12) {
        double c = one.complement(std::abs(x)), exact = factor * x * (x < 0 ? c : 1 - c);
        if (x != 0 && c >= RangeTable::tail)
          most = std::max(most, std::abs(product(static_cast<float>(x)) - exact) / std::abs(exact));
      }
      EXPECT_LE(most, 0x1.3p-11) << one.name << " times " << factor;
      EXPECT_EQ(product(infinity), factor * infinity);
      EXPECT_TRUE(std::isnan(product(-infinity)));
      EXPECT_TRUE(std::isnan(product(std::nanf(""))));
      EXPECT_EQ(product(100), 100 * factor);
      for (float x : {-100.0f, -0.0f, 0.0f}) {
        EXPECT_EQ(product(x), 0) << x;
        EXPECT_TRUE(factor < 0 || std::signbit(product(x)) == std::signbit(x)) << x << " times " << factor;
      }
    }
    for (float nothing : {0.0f, -0.0f}) {
      EXPECT_EQ(tabulatedProduct(host, 1.0f, *table, &nothing), 0);
      EXPECT_TRUE(std::isnan(tabulatedProduct(host, infinity, *table, &nothing)));
    }
  }
}

/// Ranges of one length have any length: that of the product knows no scale of x that suits it best.
TEST(MathTabulated, ProductOfAnyScale) {
  for (double scale : {0.01, 0.9, 1.2, 1.37, 100.0})
    for (SeenAs seen : {SeenAs::Bf16, SeenAs::F32})
      EXPECT_TRUE(tabulateProduct(complementOfErf(scale * rootOfHalf), seen)) << scale;
}

/// What falls as e^-t has no place in 32 ranges; nor has what does not fall.
TEST(MathTabulated, IsRefused) {
  EXPECT_TRUE(tabulate(complementOfErf(1.05 * rootOfHalf)));
  EXPECT_FALSE(tabulate(complementOfErf(1.2 * rootOfHalf))); // ranges that double are too long, others too few
  EXPECT_FALSE(tabulate(complementOfTanh(1, 0)));
  EXPECT_FALSE(tabulate([](double t) { return 1 / (1 + std::exp(t)); }));
  EXPECT_FALSE(tabulate([](double t) { return 0.5 / (1 + t); }));
  EXPECT_FALSE(tabulate([](double) { return 0.5; }));
  for (SeenAs seen : {SeenAs::Bf16, SeenAs::F32}) {
    EXPECT_FALSE(tabulateProduct([](double t) { return 0.5 / (1 + t); }, seen));
    EXPECT_FALSE(tabulateProduct([](double) { return 0.5; }, seen));
  }
  EXPECT_FALSE(tabulateProduct(slow.complement, SeenAs::F32)); // ranges twice as long as GELU's
  EXPECT_FALSE(tabulateProduct(slow.complement, SeenAs::Bf16)->bothSides);
}

TEST(MathTabulated, SpecialValues) {
  TableArithmetic host;
  const float infinity = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  for (const Case &one : cases) {
    auto table = tabulate(one.complement);
    ASSERT_TRUE(table) << one.name;
    auto function = [&](float x) { return tabulated(host, x, *table); };
    EXPECT_TRUE(std::isnan(function(std::nanf(""))));
    EXPECT_EQ(function(infinity), 1);
    EXPECT_EQ(function(-infinity), 0);
    for (SeenAs seen : {SeenAs::Bf16, SeenAs::F32}) {
      auto ofProduct = tabulateProduct(one.complement, seen);
      ASSERT_TRUE(ofProduct) << one.name;
      auto product = [&](float x) { return tabulatedProduct(host, x, *ofProduct); };
      EXPECT_EQ(product(infinity), infinity);
      EXPECT_TRUE(std::isnan(product(-infinity))); // infinity times 0
      EXPECT_TRUE(std::isnan(product(std::nanf(""))));
      EXPECT_EQ(product(most), most);
      for (float x : {-most, -1e10f, -100.0f, -0.0f}) {
        EXPECT_EQ(product(x), 0) << x;
        EXPECT_TRUE(std::signbit(product(x))) << x;
      }
      EXPECT_FALSE(std::signbit(product(0.0f)));
      EXPECT_EQ(product(100), 100);
    }
  }
}

} // namespace
