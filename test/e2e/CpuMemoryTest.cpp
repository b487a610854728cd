// SPDX-License-Identifier: Apache-2.0
//
// What the CPU target does for kernels that wait for memory: results past the cache, random numbers in fours. Kernels
// that have nothing in common but that, at sizes and addresses on both sides of every decision.
#include "tenon/jit/Jit.h"
#include "tenon/kernels/Zoo.h"
#include "tenon/kernels/dropout/Reference.h"
#include "tenon/verify/Values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace tenon;

namespace {

/// y = x + 1 and z = 2 x: two results of one nest.
const Kernel twoResults("two_results(x, y, z, rows=4, cols=256)", [](View x, View y, View z, Param rows, Param cols) {
  auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
  Tile t = x.load({i * rows, j * cols}, {rows, cols});
  y.store({i * rows, j * cols}, t + 1);
  z.store({i * rows, j * cols}, (2 * t).to(z.dtype()));
});

/// Rows less their smallest element.
const Kernel lessLeast("less_least(x, y, rows=2, cols)", [](View x, View y, Param rows, Param cols) {
  Index i = grid(cdiv(x.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}, inf);
  y.store({i * rows, 0}, t - min(t, 1));
});

/// Small whole numbers, so that every result is exact.
float number(int64_t row, int64_t col) { return static_cast<float>((row * 31 + col * 7) % 113 - 56); }

Tensor numbers(const Tensor &into) {
  for (int64_t row = 0; row < into.size(0); ++row) {
    auto *line = static_cast<float *>(into.data()) + row * into.stride(0);
    for (int64_t col = 0; col < into.size(1); ++col)
      line[col] = number(row, col);
  }
  return into;
}

/// `rows` x `cols` in the middle of something larger, the first element `shift` floats from a cache line's start, so
/// many bytes from row to row.
Tensor placed(int64_t rows, int64_t cols, int64_t pitch, int64_t shift) {
  Tensor memory = Tensor::empty(f32, {rows * pitch + shift + 64});
  memory.fill(-7);
  auto *first = static_cast<float *>(memory.data()) + shift;
  return Tensor::borrow(first, static_cast<size_t>(rows * pitch) * 4, f32, {rows, cols}, {pitch, 1},
                        [memory] {});
}

struct Place {
  int64_t rows, cols, pitch, shift;
};
// 40 MB and a few KB; on the lines and off them; rows that end with the tile, that leave some columns over, that lie
// apart.
const Place places[] = {{5000, 2048, 2048, 0},  {5000, 2048, 2048, 1}, {5000, 2000, 2048, 0}, {5000, 2001, 2001, 0},
                        {4999, 2048, 2064, 16}, {16, 512, 512, 0},     {15, 500, 512, 0},
                        {1, 10240000, 10240000, 0}};

TEST(CpuMemory, LargeResultsAreCompleteAndNothingElseIsTouched) {
  for (const Place &p : places) {
    Tensor x = numbers(placed(p.rows, p.cols, p.cols, 0)), y = placed(p.rows, p.cols, p.pitch, p.shift);
    Tensor z = Tensor::zeros(bf16, {p.rows, p.cols});
    launch(twoResults, {x, y, z});
    for (int64_t row = 0; row < p.rows; ++row) {
      auto *line = static_cast<float *>(y.data()) + row * p.pitch;
      for (int64_t col = 0; col < p.pitch && (col < p.cols || row + 1 < p.rows); ++col)
        ASSERT_EQ(line[col], col < p.cols ? number(row, col) + 1 : -7) << p.cols << " at " << row << ", " << col;
    }
    for (int64_t row = 0; row < p.rows; row += 97)
      for (int64_t col = 0; col < std::min<int64_t>(p.cols, 5000); col += 3)
        ASSERT_EQ(z.get({row, col}), 2 * number(row, col));
  }
}

TEST(CpuMemory, LargeResultsOfRows) {
  for (const Place &p : places) {
    if (p.cols > 4096)
      continue;
    Tensor x = numbers(placed(p.rows, p.cols, p.cols, 0)), y = placed(p.rows, p.cols, p.pitch, p.shift);
    for (int threads : {1, 2}) {
      LaunchOptions options;
      options.params = {{"cols", (p.cols + 15) / 16 * 16}};
      options.threads = threads;
      launch(lessLeast, {x, y}, options);
      for (int64_t row = 0; row < p.rows; ++row) {
        auto *line = static_cast<float *>(y.data()) + row * p.pitch;
        for (int64_t col = 0; col < p.cols; ++col)
          ASSERT_EQ(line[col], number(row, col) + 56) << p.cols << " at " << row << ", " << col;
      }
    }
  }
}

/// The same kernel on one tensor twice (no streaming: read and written) and on two.
TEST(CpuMemory, InPlaceIsTheSame) {
  Tensor x = numbers(Tensor::empty(f32, {3000, 2048})), y = Tensor::zeros(f32, {3000, 2048});
  LaunchOptions options;
  options.params = {{"cols", 2048}};
  launch(lessLeast, {x, y}, options);
  launch(lessLeast, {x, x}, options);
  EXPECT_EQ(std::memcmp(x.data(), y.data(), static_cast<size_t>(x.elements()) * 4), 0);
}

/// Every f32 whose lower half is around a tie, among them subnormals, infinities and NaNs, alone in their vectors and
/// among ordinary numbers: the instruction for it must not be seen in the result.
TEST(CpuMemory, RoundsToBf16) {
  const Kernel narrow("narrow(x, y, scale, cols=256)", [](View x, View y, Scalar scale, Param cols) {
    Index i = grid(cdiv(x.size(0), cols));
    y.store({i * cols}, (x.load({i * cols}, {cols}) * scale).to(bf16));
  });
  const Kernel twice("twice(x, y, rows=2, cols=128)", [](View x, View y, Param rows, Param cols) {
    auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
    Tile t = x.load({i * rows, j * cols}, {rows, cols});
    y.store({i * rows, j * cols}, maximum(t, t).to(bf16));
  });
  std::vector<uint32_t> bits;
  for (uint32_t upper = 0; upper < 0x10000; ++upper)
    for (uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      bits.push_back(upper << 16 | lower);
  for (size_t i = 0; i < 0x20000; ++i) // in company
    bits.push_back(i % 37 ? 0x3f800000u + static_cast<uint32_t>(i) * 977 : bits[i * 3]);
  auto n = static_cast<int64_t>(bits.size());
  Tensor x = Tensor::empty(f32, {n});
  std::memcpy(x.data(), bits.data(), bits.size() * 4);
  for (bool rows : {false, true}) {
    Tensor y = Tensor::zeros(bf16, {n});
    if (rows)
      launch(twice, {x.reshape({n / 1024, 1024}), y.reshape({n / 1024, 1024})});
    else
      launch(narrow, {x, y, 1.0});
    for (int64_t i = 0; i < n; ++i) {
      float value = static_cast<const float *>(x.data())[i];
      double rounded = y.get({i}), expected = roundTo(bf16, value);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(rounded)) << std::hex << bits[i];
      } else {
        ASSERT_EQ(rounded, expected) << std::hex << bits[i];
        ASSERT_EQ(std::signbit(rounded), std::signbit(expected)) << std::hex << bits[i];
      }
    }
  }
}

/// Rows whose first counter is a multiple of 4, and rows where it is not; lanes in fours and left-over ones.
TEST(CpuMemory, RandomBitsInFours) {
  const Kernel bits("bits(y, seed, rows=3, cols=64)", [](View y, Index seed, Param rows, Param cols) {
    auto [i, j] = grid(cdiv(y.size(0), rows), cdiv(y.size(1), cols));
    Tile row = iota(i64, {rows, 1}, 0) + i * rows, column = iota(i64, {1, cols}, 1) + j * cols;
    y.store({i * rows, j * cols}, random_bits(seed, row * y.size(1) + column));
  });
  for (int64_t cols : {64, 63, 62, 130, 7, 100})
    for (int64_t tile : {64, 36, 6})
      for (const char *isa : {"native", "baseline"}) {
        LaunchOptions options;
        options.params = {{"cols", tile}};
        options.compile.isa = isa;
        Tensor y = Tensor::zeros(u32, {11, cols});
        int64_t seed = 0x7123456789abcdef;
        launch(bits, {y, seed}, options);
        for (int64_t i = 0; i < y.elements(); ++i)
          ASSERT_EQ(static_cast<uint32_t>(y.getInt({i / cols, i % cols})),
                    zoo::randomWord(static_cast<uint64_t>(seed), static_cast<uint64_t>(i)))
              << cols << " columns, tiles of " << tile << ", element " << i;
      }
}

/// Counters that run backwards, or in steps, or past 2^32, are not taken for neighbours.
TEST(CpuMemory, RandomBitsOfOtherCounters) {
  const Kernel bits("strange(y, seed)", [](View y, Index seed) {
    grid(1);
    Tile n = iota(i64, {64}, 0);
    Tile counters = concat({expand(4000 - n, 0), expand(3 * n, 0), expand(n + int64_t(0x3fffffff0), 0),
                            expand(n * n, 0)}, 0);
    y.store({0, 0}, random_bits(seed, counters));
  });
  Tensor y = Tensor::zeros(u32, {4, 64});
  launch(bits, {y, 99});
  for (int64_t n = 0; n < 64; ++n) {
    int64_t counters[] = {4000 - n, 3 * n, n + 0x3fffffff0, n * n};
    for (int64_t row = 0; row < 4; ++row)
      ASSERT_EQ(static_cast<uint32_t>(y.getInt({row, n})), zoo::randomWord(99, static_cast<uint64_t>(counters[row])))
          << row << ", " << n;
  }
}

} // namespace
