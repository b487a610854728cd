// SPDX-License-Identifier: Apache-2.0
//
// dot of f32 and f16 on AMX, whose operands are taken apart into pieces of bf16: every bit of them counts, errors are
// those of sums of f32, and infinities and NaNs are what they are for vectors.
#include "CpuDotSupport.h"

#include "tenon/kernels/Problems.h"

#include <cmath>
#include <limits>

using namespace tenon;
using namespace tenon::test;

namespace {

/// Where f32 is taken apart: functions in place of tiles, and tiles where there are some (of products as large as these).
const std::vector<std::string> &pieceLevels() {
  static const std::vector<std::string> found = levelsAmong({"native", "amx-emulated"});
  return found;
}

const Kernel sums("sums(a, b, c, bm, bn, bk, turns_a=0, turns_b=0, tf32=0)",
                  [](View a, View b, View c, Param bm, Param bn, Param bk, Param turns_a, Param turns_b, Param tf32) {
  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
  Tile acc = zeros(f32, {bm, bn});
  for (Index k : range(0, turns_a ? a.size(0) : a.size(1), bk)) {
    Tile x = turns_a ? transpose(a.load({k, i * bm}, {bk, bm})) : a.load({i * bm, k}, {bm, bk});
    Tile y = turns_b ? transpose(b.load({j * bn, k}, {bn, bk})) : b.load({k, j * bn}, {bk, bn});
    acc = dot(x, y, acc, {.allow_tf32 = tf32 != 0});
  }
  c.store({i * bm, j * bn}, acc);
});

struct Case {
  int64_t m, n, k;
  bool turnsA = false, turnsB = false;
};

Tensor multiply(const Tensor &a, const Tensor &b, const Case &c, const std::string &level, bool tf32, int64_t bk) {
  Tensor result = Tensor::empty(f32, {c.m, c.n});
  result.fillBytes(0xff);
  LaunchOptions options;
  options.compile.isa = level;
  options.params = {{"bm", 256},           {"bn", 128},           {"bk", bk},
                    {"turns_a", c.turnsA}, {"turns_b", c.turnsB}, {"tf32", tf32}};
  auto turned = [](const Tensor &t, bool turns) { return turns ? t.transpose({1, 0}).clone() : t; };
  launch(sums, {turned(a, c.turnsA), turned(b, c.turnsB), result}, options);
  return result;
}

/// Compares with sums of doubles; errors are allowed `units` times 2^-24 of the sum of magnitudes. Where that is not
/// finite, it has to be the same.
void expectSums(const Tensor &a, const Tensor &b, const Case &c, const std::string &level, double units,
                bool tf32 = false, int64_t bk = 96) {
  std::vector<double> x = valuesOf(a), y = valuesOf(b), z = valuesOf(multiply(a, b, c, level, tf32, bk));
  std::vector<double> row(c.n), magnitudes(c.n);
  for (int64_t i = 0; i < c.m; ++i) {
    row.assign(c.n, 0);
    magnitudes.assign(c.n, 0);
    for (int64_t l = 0; l < c.k; ++l)
      for (int64_t j = 0; j < c.n; ++j) {
        double product = x[i * c.k + l] * y[l * c.n + j];
        row[j] += product;
        magnitudes[j] += std::fabs(product);
      }
    for (int64_t j = 0; j < c.n; ++j) {
      double found = z[i * c.n + j], expected = row[j];
      bool isRight = std::isnan(expected)   ? std::isnan(found)
                     : std::isinf(expected) ? found == expected
                                            : std::fabs(found - expected) <= std::ldexp(units * magnitudes[j], -24);
      ASSERT_TRUE(isRight) << nameOf(a.dtype()) << " " << level << ", " << c.m << "x" << c.n << "x" << c.k << ", turned "
                           << c.turnsA << c.turnsB << ", at " << i << ", " << j << ": " << found << ", expected "
                           << expected << ", " << std::ldexp(std::fabs(found - expected) / magnitudes[j], 24)
                           << " units off";
    }
  }
}

// At the edges of tiles and of steps of K, and in two tiles.
const Case cases[] = {{70, 40, 33},        {256, 128, 96}, {33, 150, 50, true}, {33, 150, 50, false, true},
                      {300, 17, 100, true, true}};

Tensor random(DType type, IndexList sizes, uint64_t seed) {
  Tensor tensor = Tensor::empty(type, sizes);
  tensor.fillRandom(seed, -1, 1);
  return tensor;
}

TEST(CpuPieces, EveryBitOfAnOperandCounts) {
  for (const std::string &level : pieceLevels())
    for (const Case &c : cases)
      for (bool isLeft : {false, true}) { // whole numbers of 19 bits, which is three pieces, times 0 and 1: sums are exact
        auto made = [&](IndexList sizes, bool isLong, uint64_t seed) {
          Tensor whole = Tensor::empty(i32, sizes), tensor = Tensor::empty(f32, sizes);
          whole.fillRandom(seed, isLong ? -(1 << 18) : 0, isLong ? 1 << 18 : 1);
          forEachIndex(tensor.sizes(), [&](const std::vector<int64_t> &at) { tensor.set(at, whole.get(at)); });
          return tensor;
        };
        Case few = c;
        few.k = std::min<int64_t>(c.k, 60); // less than 2^24 in all
        expectSums(made({c.m, few.k}, isLeft, 1), made({few.k, c.n}, !isLeft, 2), few, level, 0);
      }
}

TEST(CpuPieces, ErrorsAreThoseOfSums) {
  for (const std::string &level : pieceLevels())
    for (DType type : {f32, f16})
      for (const Case &c : cases)
        expectSums(random(type, {c.m, c.k}, 1), random(type, {c.k, c.n}, 2), c, level, 6);
}

// Less than 2^-22 of each product is left out, also where there is but one and where magnitudes differ. Numbers just below
// a longer first piece are the worst.
TEST(CpuPieces, ASingleProduct) {
  for (const std::string &level : pieceLevels()) {
    Tensor a = random(f32, {256, 1}, 1), b = random(f32, {1, 128}, 2);
    for (int64_t i = 0; i < 256; ++i)
      a.set({i, 0}, std::ldexp(i % 2 ? 1.00779724 : a.get({i, 0}), static_cast<int>(i % 90) - 60));
    for (int64_t j = 0; j < 128; j += 2)
      b.set({0, j}, 1.00779724);
    expectSums(a, b, {256, 128, 1}, level, 5);
  }
}

// A long sum is far larger than what each step adds to it, and where all numbers have one sign the smaller products, which
// have it as well, must not be lost again and again.
TEST(CpuPieces, LongSumsOfOneSign) {
  for (const std::string &level : pieceLevels())
    for (DType type : {f32, f16}) {
      constexpr int64_t k = 16384;
      Tensor a = Tensor::empty(type, {32, k}), b = Tensor::empty(type, {k, 32});
      a.fillRandom(1, 0, 1);
      b.fillRandom(2, 0, 1);
      // Vectors are 8 and 27 units off, pieces 8 and 6; in one sum of all of K they would be 60 to 100.
      for (int64_t bk : {128, 4096})
        expectSums(a, b, {32, 32, k}, level, level == "amx-emulated" ? 10 : 30, /*tf32=*/false, bk);
    }
}

TEST(CpuPieces, Tf32HasTwoPieces) {
  for (const std::string &level : pieceLevels())
    for (const Case &c : cases) {
      Tensor a = random(f32, {c.m, c.k}, 1), b = random(f32, {c.k, c.n}, 2);
      expectSums(a, b, c, level, 1 << 9, /*tf32=*/true); // 2^-15; tf32 itself would have 2^-11
    }
  for (const std::string &level : pieceLevels()) { // less than 2^-14 of each product
    Tensor a = random(f32, {256, 1}, 1), b = random(f32, {1, 128}, 2);
    a.set({0, 0}, 1.00779724);
    b.set({0, 0}, 1.00779724);
    expectSums(a, b, {256, 128, 1}, level, 1 << 10, /*tf32=*/true);
  }
}

TEST(CpuPieces, WhatIsNotFiniteIsAsForVectors) {
  double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::string &level : pieceLevels())
    for (DType type : {f32, f16})
      for (const Case &c : cases) {
        Tensor a = random(type, {c.m, c.k}, 1), b = random(type, {c.k, c.n}, 2);
        a.set({c.m / 2, c.k / 3}, inf); // times numbers of which pieces are zero, or of the other sign
        a.set({c.m - 1, c.k - 1}, -inf);
        expectSums(a, b, c, level, 6);
        for (int64_t l = 0; l < c.k; ++l)
          b.set({l, 1}, l % 3 == 0 ? 0 : 0.5);
        expectSums(a, b, c, level, 6);
        a.set({0, c.k - 1}, nan);
        b.set({0, c.n - 1}, -inf);
        b.set({c.k - 1, c.n / 2}, nan);
        expectSums(a, b, c, level, 6);
      }
}

// A rounded first piece would be an infinity, and so is the sum of the first two without the third.
TEST(CpuPieces, TheLargestNumbers) {
  double largest = std::numeric_limits<float>::max();
  for (const std::string &level : pieceLevels()) {
    Tensor ends = random(f32, {64, 40}, 1), ones = Tensor::zeros(f32, {40, 64});
    for (int64_t i = 0; i < 64; ++i)
      for (int64_t l = 0; l < 40; ++l)
        ends.set({i, l}, (i % 2 ? largest : -largest) * (1 - std::ldexp(l, -24)));
    for (int64_t j = 0; j < 64; ++j)
      ones.set({j % 40, j}, 1);
    expectSums(ends, ones, {64, 64, 40}, level, 4);
    expectSums(ones.transpose({1, 0}).clone(), ends.transpose({1, 0}).clone(), {64, 64, 40}, level, 4);
    Tensor a = random(f32, {64, 40}, 1), b = random(f32, {40, 64}, 2);
    for (int64_t l = 0; l < 40; ++l)
      for (int64_t i = 0; i < 64; ++i) {
        a.set({i, l}, i < 32 ? largest : a.get({i, l}) * largest);
        b.set({l, i}, b.get({l, i}) / 64);
      }
    expectSums(a, b, {64, 64, 40}, level, 6);
  }
}

// B stays in pieces for the instances below, with what is known of its infinities.
TEST(CpuPieces, WhatStaysKnowsOfInfinities) {
  for (const std::string &level : pieceLevels())
    for (bool isSpecial : {false, true}) {
      Case c = {600, 200, 96};
      Tensor a = random(f32, {c.m, c.k}, 1), b = random(f32, {c.k, c.n}, 2);
      if (isSpecial)
        b.set({40, 130}, std::numeric_limits<double>::infinity());
      expectSums(a, b, c, level, 6);
    }
}

// Sums that are changed before more is added, and operands that are computed: an attention.
TEST(CpuPieces, AnAttention) {
  for (const std::string &level : pieceLevels())
    for (DType type : {f32, f16}) {
      Problem problem = zoo::find("attention").makeProblem(std::vector<int64_t>{1, 2, 1, 300, 128}, type, 1);
      LaunchOptions options;
      options.compile.isa = level;
      options.params = problem.params;
      options.params.insert_or_assign("bm", 256);
      options.params.insert_or_assign("bn", 128);
      Verdict verdict = verify(problem, zoo::find("attention").kernel, options);
      EXPECT_TRUE(verdict.passed) << nameOf(type) << " " << level << ": " << verdict.reason;
    }
}

} // namespace
