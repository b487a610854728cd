// SPDX-License-Identifier: Apache-2.0
//
// Random numbers on the CPU: in fours, in lumps and one by one, the bits are those of their counters.
#include "tenon/jit/Jit.h"
#include "tenon/kernels/dropout/Reference.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace tenon;

namespace {

/// Rows whose first counter is a multiple of 4, and rows where it is not; lanes in fours and left-over ones.
TEST(CpuRandom, BitsInFours) {
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

/// Numbers that are drawn in lumps by the nest that uses them, of both lengths; more of them than that nest uses; rows
/// that begin in the middle of a block; tiles that end outside.
TEST(CpuRandom, BitsInLumps) {
  const Kernel noise("noise(y, s, seed, rows=2, cols)", [](View y, View s, Index seed, Param rows, Param cols) {
    auto [i, j] = grid(cdiv(y.size(0), rows), cdiv(y.size(1), cols));
    Tile row = iota(i64, {rows, 1}, 0) + i * rows, column = iota(i64, {1, cols}, 1) + j * cols;
    Tile counter = row * y.size(1) + column;
    Tile halves = random_bits(seed, counter, {.bits = 16, .rounds = 7}).to(i32),
         words = random_bits(seed, counter) >> 8;
    y.store({i * rows, j * cols}, halves + words.to(i32));
    Tile others = random_bits(seed + 1, counter, {.bits = 16, .rounds = 8}).to(i32);
    s.store({i * rows, j * cols}, others * 2 + max(others, 1));
  });
  for (int64_t cols : {1024, 1001})
    for (int64_t tile : {512, 1024, 320}) {
      LaunchOptions options;
      options.params = {{"cols", tile}};
      Tensor y = Tensor::zeros(i32, {3, cols}), s = Tensor::zeros(i32, {3, cols});
      uint64_t seed = 0x7123456789abcdef;
      launch(noise, {y, s, static_cast<int64_t>(seed)}, options);
      for (int64_t i = 0; i < y.elements(); ++i) {
        auto at = static_cast<uint64_t>(i);
        auto expected = static_cast<int64_t>(zoo::randomHalf(seed, at, 7) + (zoo::randomWord(seed, at) >> 8));
        ASSERT_EQ(y.getInt({i / cols, i % cols}), expected) << cols << " columns, tiles of " << tile << ", " << i;
        int64_t largest = 0, row = i / cols, first = i % cols / tile * tile;
        if (i % cols == first) // the largest of a tile's row, what lies outside included
          for (int64_t k = 0; k < tile; ++k)
            largest =
                std::max<int64_t>(largest, zoo::randomHalf(seed + 1, static_cast<uint64_t>(row * cols + first + k), 8));
        if (i % cols == first)
          ASSERT_EQ(s.getInt({row, first}), int64_t(2 * zoo::randomHalf(seed + 1, at, 8)) + largest)
              << cols << ", " << tile;
      }
    }
}

/// Counters that run backwards, or in steps, or past 2^32, are not taken for neighbours.
TEST(CpuRandom, BitsOfOtherCounters) {
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

/// Rows of counters in whole blocks, on both sides of where the blocks' numbers outgrow 32 bits.
TEST(CpuRandom, BitsAcrossTheUpperHalf) {
  const Kernel bits("far(y, seed, first, cols=64)", [](View y, Index seed, Index first, Param cols) {
    Index i = grid(cdiv(y.size(0), cols));
    y.store({i * cols}, random_bits(seed, iota(i64, {cols}, 0) + (i * cols + first)));
  });
  for (int64_t first : {int64_t(0x3ffffff00), int64_t(0x3fffffff0), int64_t(0x400000000), int64_t(0x7fffffffc)}) {
    Tensor y = Tensor::zeros(u32, {640});
    launch(bits, {y, 12345, first});
    for (int64_t i = 0; i < 640; ++i)
      ASSERT_EQ(static_cast<uint32_t>(y.getInt({i})), zoo::randomWord(12345, static_cast<uint64_t>(first + i)))
          << first << " + " << i;
  }
}

} // namespace
