// SPDX-License-Identifier: Apache-2.0
//
// Rows in flight (Overlap.cpp): whether the loops of several program instances are one must not be seen, on any
// instruction set that does it: by pages ("amx-emulated", and "native" where there is AMX) or along rows ("avx512-dot").
#include "Levels.h"

#include "tenon/jit/Jit.h"
#include "tenon/kernels/Kernels.h"
#include "tenon/kernels/Zoo.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using namespace tenon;

namespace {

const std::vector<std::string> &levels() {
  static const std::vector<std::string> found = test::levelsAmong({"native", "avx512-dot", "amx-emulated"});
  return found;
}

std::vector<std::pair<std::string, DType>> levelsAndTypes() {
  std::vector<std::pair<std::string, DType>> pairs;
  for (const std::string &level : levels())
    for (DType type : {f32, bf16})
      pairs.emplace_back(level, type);
  return pairs;
}

/// Of each row of x + r, in pairs of rows: itself, if it is kept, and its distance from its mean by its extent. Sums
/// are rounded; one beside a store goes in shorter steps than the maximum, and such loops stay apart.
const Kernel spread("spread(x, r, y, z, cols, keeps)", [](View x, View r, View y, View z, Param cols, Param keeps) {
  auto [i, k] = grid(cdiv(x.size(0), 2), 2);
  Index row = 2 * i + k;
  Tile t = x.load({row, 0}, {1, cols}).to(f32) + r.load({row, 0}, {1, cols}).to(f32);
  if (keeps)
    y.store({row, 0}, t.to(y.dtype()));
  Tile mean = sum(t, 1) / x.size(1).to(f32);
  Tile width = max(abs(t - mean) * r.load({row, 0}, {1, cols}).to(f32), 1) + 1;
  z.store({row, 0}, ((t - mean) / width).to(z.dtype()));
});

Tensor fractions(DType type, int64_t rows, int64_t cols, int64_t seed) {
  Tensor tensor = Tensor::empty(type, {rows, cols});
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    float value = static_cast<float>((i * 7919 + seed) % 100003) / 12345.0f - 4;
    if (type == f32)
      static_cast<float *>(tensor.data())[i] = value;
    else
      static_cast<uint16_t *>(tensor.data())[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); // bf16
  }
  return tensor;
}

/// In a large result the loops of several rows are one (Overlap.cpp), in a small one they are not: that must not be
/// seen, nor where a thread's share begins and ends, nor rows that lie past the end.
TEST(CpuInFlight, RowsOfLargeResultsAreThoseOfSmallOnes) {
  for (const auto &[isa, type] : levelsAndTypes())
    for (int64_t cols : {4096, 2048, 3000}) {
      int64_t rows = (int64_t(33) << 20) / (cols * static_cast<int64_t>(sizeOf(type))) + 3, few = 7;
      Tensor x = fractions(type, rows, cols, 1), r = fractions(type, rows, cols, 50);
      for (int keeps : {0, 1, -1})
        for (int threads : {1, 2}) {
          if (isa != "native" && threads > 1)
            continue;
          bool isSoftmax = keeps < 0;
          LaunchOptions options;
          options.compile.isa = isa;
          options.threads = threads;
          options.params = {{"cols", cols}};
          if (!isSoftmax)
            options.params["keeps"] = keeps;
          Tensor y = Tensor::zeros(type, {rows, cols}), z = Tensor::zeros(type, {rows, cols});
          auto run = [&](const Tensor &ofX, const Tensor &ofR, const Tensor &ofY, const Tensor &ofZ) {
            if (isSoftmax)
              launch(zoo::softmax, {ofX, ofZ}, options);
            else
              launch(spread, {ofX, ofR, ofY, ofZ}, options);
          };
          run(x, r, y, z);
          for (int64_t first = 0; first < rows; first += 101) {
            int64_t count = std::min(few, rows - first);
            Tensor smallY = Tensor::zeros(type, {count, cols}), smallZ = Tensor::zeros(type, {count, cols});
            run(x.slice(0, first, count), r.slice(0, first, count), smallY, smallZ);
            auto same = [&](const Tensor &small, const Tensor &large) {
              return std::memcmp(small.data(), large.slice(0, first, count).data(),
                                 static_cast<size_t>(count * cols) * sizeOf(type)) == 0;
            };
            ASSERT_TRUE(same(smallZ, z)) << isa << ", " << cols << " columns, rows from " << first << ", softmax "
                                         << isSoftmax;
            ASSERT_TRUE(isSoftmax || same(smallY, y)) << isa << ", " << cols << " columns, rows from " << first;
          }
        }
    }
}

/// The Euclidean norm of what each row is beside its mean, scaled so that no square overflows, of rows that are wanted;
/// and the mean: single numbers are stored between the loops and behind them, and read from elsewhere.
const Kernel norms("norms(x, wanted, mean, norm, cols)", [](View x, View wanted, View mean, View norm, Param cols) {
  Index i = grid(x.size(0));
  Tile t = x.load({i, 0}, {1, cols}).to(f32), m = sum(t, 1) / x.size(1).to(f32);
  mean.store({i}, reshape(m, {1}));
  Tile d = abs(t - m), largest = max(d, 1), q = d / largest;
  Tile counts = expand(wanted.load({i}, {1}, 0), 1);
  Tile length = largest * sqrt(sum(q * q, 1));
  norm.store({i}, reshape(where(counts > 0, length, -1), {1}));
});

/// Rows in flight where only numbers are stored: a launch of many rows has the bits of launches of one row each, whose
/// loops run one by one.
TEST(CpuInFlight, NumbersOfManyRowsAreThoseOfSingleOnes) {
  for (const auto &[isa, type] : levelsAndTypes())
    for (int64_t cols : {4096, 4000})
      for (int threads : {1, 2}) {
        constexpr int64_t rows = 301;
        Tensor x = fractions(type, rows, cols, 1), wanted = Tensor::zeros(f32, {rows});
        Tensor mean = Tensor::zeros(f32, {rows}), norm = Tensor::zeros(f32, {rows});
        for (int64_t i = 0; i < rows; ++i)
          wanted.set({i}, i % 5 != 2);
        LaunchOptions options;
        options.compile.isa = isa;
        options.threads = threads;
        options.params = {{"cols", 4096}};
        launch(norms, {x, wanted, mean, norm}, options);
        for (int64_t i = 0; i < rows; ++i) {
          Tensor one = Tensor::zeros(f32, {1}), other = Tensor::zeros(f32, {1});
          launch(norms, {x.slice(0, i, 1), wanted.slice(0, i, 1), one, other}, options);
          ASSERT_EQ(one.get({0}), mean.get({i})) << isa << ", row " << i;
          ASSERT_EQ(other.get({0}), norm.get({i})) << isa << ", row " << i;
          ASSERT_TRUE(i % 5 == 2 ? norm.get({i}) == -1 : norm.get({i}) > 1) << i;
        }
      }
}

/// Rows in flight whose largest is found by its bits: those that have to be gone over again, because of a NaN, of
/// infinities, of zeros or of numbers that f16 has no place for, keep their place among the others.
TEST(CpuInFlight, RowsThatAreReducedAgain) {
  const Kernel shifted("shifted(x, y, rows=1, cols=4096)", [](View x, View y, Param rows, Param cols) {
    Index i = grid(cdiv(x.size(0), rows));
    Tile t = x.load({i * rows, 0}, {rows, cols}).to(f32), m = max(t, 1);
    y.store({i * rows, 0}, m + sum(abs(t - m), 1));
  });
  constexpr int64_t rows = 40, cols = 4096;
  Tensor x = Tensor::empty(bf16, {rows, cols});
  x.fillRandom(3, -4, 4);
  const double odd[] = {NAN, -INFINITY, 0x1p122, -0x1p127, INFINITY};
  for (int64_t row = 0; row < rows; row += 3)
    x.set({row, row * 97 % cols}, odd[row / 3 % 5]);
  for (int64_t col = 0; col < cols; ++col) {
    x.set({7, col}, col == 100 ? 0.0 : -0.0);
    x.set({8, col}, -0x1p125);
  }
  Tensor wanted = Tensor::zeros(f32, {rows, 1}), y = Tensor::zeros(f32, {rows, 1});
  launch(shifted, {x, wanted}, {.target = Target::interpreter});
  for (const std::string &isa : levels()) {
    LaunchOptions options;
    options.compile.isa = isa;
    options.threads = 1;
    launch(shifted, {x, y}, options);
    for (int64_t row = 0; row < rows; ++row) {
      double want = wanted.get({row, 0}), got = y.get({row, 0});
      if (std::isfinite(want))
        EXPECT_NEAR(got, want, 1e-5 * std::abs(want)) << isa << ", row " << row;
      else
        EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << isa << ", row " << row;
    }
  }
}

} // namespace
