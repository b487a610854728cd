// SPDX-License-Identifier: Apache-2.0
//
// Rows in flight (Overlap.cpp): whether the loops of several program instances are one must not be seen, on any
// instruction set that does it: over several pages ("amx-emulated", and "native" where there is AMX) or along rows
// ("avx512-dot").
#include "Levels.h"

#include "tenon/jit/Jit.h"
#include "tenon/kernels/Kernels.h"
#include "tenon/kernels/Zoo.h"

#include <gtest/gtest.h>

#include <algorithm>
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

/// z times the first of a row's powers, over their sum. Rows of z are longer than those of x by what is no whole step:
/// the first power is read again behind the loop.
const Kernel byTheFirst("by_the_first(x, z, y, cols)", [](View x, View z, View y, Param cols) {
  Index i = grid(x.size(0));
  Tile t = x.load({i, 0}, {1, cols}), e = exp(t - max(t, 1));
  y.store({i, 0}, z.load({i, 0}, {1, cols + 16}) * slice(e, 1, 0, 1) / sum(e, 1));
});

/// Two loops between the first and the last, one of which reads what no other does.
const Kernel fourLoops("four_loops(x, z, y, cols)", [](View x, View z, View y, Param cols) {
  Index i = grid(x.size(0));
  Tile t = x.load({i, 0}, {1, cols}), d = t - sum(t, 1) * 0x1p-12;
  Tile width = sum(d * d, 1), most = max(abs(d) * z.load({i, 0}, {1, cols}), 1);
  y.store({i, 0}, d / (width + most));
});

/// A loop of the user's and a scan between the first loop and the last.
const Kernel ownLoop("own_loop(x, z, y, cols)", [](View x, View z, View y, Param cols) {
  Index i = grid(x.size(0));
  Tile t = x.load({i, 0}, {1, cols}), m = max(t, 1), sums = zeros(x.dtype(), {1, 64});
  for (Index k : range(0, cols, 64))
    sums = sums + z.load({i, k}, {1, 64}) * m;
  Tile last = slice(scan(sums, 1, [](Tile p, Tile q) { return p + q; }), 1, 63, 1);
  y.store({i, 0}, t - last);
});

/// The rows of y of one launch are those of launches of a few rows, whose loops run one by one.
TEST(CpuInFlight, LoopsOfAllKinds) {
  for (const std::string &isa : levels())
    for (DType type : {f32, f64})
      for (const Kernel *kernel : {&byTheFirst, &fourLoops, &ownLoop}) {
        constexpr int64_t cols = 4096, few = 3;
        int64_t wide = kernel == &byTheFirst ? cols + 16 : cols;
        int64_t rows = (int64_t(33) << 20) / (wide * static_cast<int64_t>(sizeOf(type))) + 3;
        Tensor x = Tensor::empty(type, {rows, cols}), z = Tensor::empty(type, {rows, wide});
        Tensor y = Tensor::zeros(type, {rows, wide});
        x.fillRandom(1, -3, 3);
        z.fillRandom(2, -3, 3);
        LaunchOptions options;
        options.compile.isa = isa;
        options.threads = 1;
        options.params = {{"cols", cols}};
        launch(*kernel, {x, z, y}, options);
        for (int64_t first = 0; first + few <= rows; first += 97) {
          Tensor small = Tensor::zeros(type, {few, wide});
          launch(*kernel, {x.slice(0, first, few), z.slice(0, first, few), small}, options);
          ASSERT_EQ(
              std::memcmp(small.data(), y.slice(0, first, few).data(), static_cast<size_t>(few * wide) * sizeOf(type)),
              0)
              << isa << ", kernel " << kernel->name() << ", rows from " << first;
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
