// SPDX-License-Identifier: Apache-2.0
//
// Tiles whose neighbours in memory lie along another dimension than those of the result, of every type and on every
// instruction set: what comes out is the same element.
#include "tenon/jit/Jit.h"

#include <gtest/gtest.h>

using namespace tenon;

namespace {

/// Small whole numbers that every type has.
Tensor numbered(DType dtype, std::vector<int64_t> shape) {
  Tensor tensor = Tensor::empty(dtype, shape);
  for (int64_t i = 0; i < shape[0]; ++i)
    for (int64_t j = 0; j < shape[1]; ++j)
      tensor.set({i, j}, dtype == boolean ? (i * 5 + j * 3) % 7 < 3 : static_cast<double>((i * 31 + j * 7) % 15));
  return tensor;
}

const Kernel transposed("transposed(x, y, bm, bn)", [](View x, View y, Param bm, Param bn) {
  auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
  y.store({i * bm, j * bn}, transpose(x.load({j * bn, i * bm}, {bn, bm})));
});

TEST(CpuTranspose, EveryTypeAndInstructionSet) {
  for (DType dtype : {f64, f32, f16, bf16, f8e4m3, i64, i32, i16, i8, u8, boolean})
    for (const char *isa : {"native", "avx2", "baseline"})
      for (auto [rows, cols] : {std::pair<int64_t, int64_t>{64, 64}, {70, 45}, {3, 200}}) {
        Tensor x = numbered(dtype, {rows, cols}), y = Tensor::zeros(dtype, {cols, rows});
        for (auto [bm, bn] : {std::pair<int64_t, int64_t>{32, 64}, {24, 40}, {16, 16}, {64, 8}, {12, 16}, {6, 12}}) {
          LaunchOptions options;
          options.params = {{"bm", bm}, {"bn", bn}};
          options.compile.isa = isa;
          y.fill(1);
          launch(transposed, {x, y}, options);
          for (int64_t i = 0; i < cols; ++i)
            for (int64_t j = 0; j < rows; ++j)
              ASSERT_EQ(y.get({i, j}), x.get({j, i})) << isa << " " << bm << " x " << bn << ": " << i << ", " << j;
        }
      }
}

/// Two views stored by columns, one of them 16 bits wide, beside one stored by rows and a vector.
TEST(CpuTranspose, ViewsByColumnsBesideOthers) {
  const Kernel mixed("mixed(a, b, c, v, y)", [](View a, View b, View c, View v, View y) {
    constexpr int64_t bm = 32, bn = 96;
    auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
    Tile weights = expand(v.load({j * bn}, {bn}), 0);
    Tile sum = a.load({i * bm, j * bn}, {bm, bn}).to(f32) * weights + b.load({i * bm, j * bn}, {bm, bn});
    y.store({i * bm, j * bn}, sum + c.load({i * bm, j * bn}, {bm, bn}));
  });
  for (auto [rows, cols] : {std::pair<int64_t, int64_t>{64, 192}, {50, 100}}) {
    Tensor a = numbered(bf16, {cols, rows}).transpose({1, 0}), b = numbered(f32, {cols, rows}).transpose({1, 0});
    Tensor c = numbered(f32, {rows, cols}), v = Tensor::empty(f32, {cols}), y = Tensor::zeros(f32, {rows, cols});
    for (int64_t j = 0; j < cols; ++j)
      v.set({j}, static_cast<double>(j % 4));
    launch(mixed, {a, b, c, v, y});
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        ASSERT_EQ(y.get({i, j}), a.get({i, j}) * v.get({j}) + b.get({i, j}) + c.get({i, j})) << i << ", " << j;
  }
}

/// Batches, with the dimensions of each exchanged, and a slice of the result: other loops around the blocks.
TEST(CpuTranspose, DimensionsOfBatches) {
  const Kernel exchanged("exchanged(x, y)", [](View x, View y) {
    Index i = grid(y.size(0));
    y.store({i, 0, 0}, transpose(x.load({0, i, 0}, {48, 1, 32}), {1, 2, 0}));
  });
  Tensor flat = numbered(f32, {48, 5 * 32}), x = flat.reshape({48, 5, 32}), y = Tensor::zeros(f32, {5, 32, 48});
  launch(exchanged, {x, y});
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 32; ++j)
      for (int64_t k = 0; k < 48; ++k)
        ASSERT_EQ(y.get({i, j, k}), x.get({k, i, j})) << i << ", " << j << ", " << k;
}

/// Nothing but a copy, of rows that may end within a tile; and stored by columns as well.
TEST(CpuTranspose, CopiesOfViewsByColumns) {
  const Kernel copied("copied(x, y)", [](View x, View y) {
    constexpr int64_t bm = 48, bn = 64;
    auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
    y.store({i * bm, j * bn}, x.load({i * bm, j * bn}, {bm, bn}));
  });
  for (DType dtype : {f32, bf16, u8})
    for (auto [rows, cols] : {std::pair<int64_t, int64_t>{96, 128}, {77, 128}, {96, 100}, {5, 7}}) {
      Tensor x = numbered(dtype, {cols, rows}).transpose({1, 0}), y = Tensor::zeros(dtype, {rows, cols});
      Tensor z = Tensor::zeros(dtype, {cols, rows}).transpose({1, 0});
      launch(copied, {x, y});
      launch(copied, {y, z});
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j)
          ASSERT_TRUE(y.get({i, j}) == x.get({i, j}) && z.get({i, j}) == x.get({i, j})) << i << ", " << j;
    }
}

/// One load, cut in two ways, whose lanes lie along different dimensions at the same place.
TEST(CpuTranspose, OneLoadAcrossTwoDimensions) {
  const Kernel both("both(x, w, y)", [](View x, View w, View y) {
    Index i = grid(1);
    Tile t = x.load({i, 0, 0}, {16, 16, 16});
    Tile first = transpose(slice(t, 0, 0, 1), {2, 0, 1}), second = transpose(slice(t, 1, 0, 1), {2, 1, 0});
    y.store({0, 0, 0}, first + 2 * second + transpose(w.load({0, 0, 0}, {16, 1, 16}), {2, 1, 0}));
  });
  Tensor x = numbered(f32, {16, 256}).reshape({16, 16, 16}), w = numbered(f32, {16, 16}).reshape({16, 1, 16});
  Tensor y = Tensor::zeros(f32, {16, 1, 16});
  launch(both, {x, w, y});
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = 0; j < 16; ++j)
      ASSERT_EQ(y.get({i, 0, j}), x.get({0, j, i}) + 2 * x.get({j, 0, i}) + w.get({j, 0, i})) << i << ", " << j;
}

/// In place, square by square: what is read is read before it is written.
TEST(CpuTranspose, InPlace) {
  constexpr int64_t size = 64;
  Tensor x = numbered(f32, {size, size}), before = x.clone();
  LaunchOptions options;
  options.params = {{"bm", size}, {"bn", size}};
  launch(transposed, {x, x}, options);
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < size; ++j)
      ASSERT_EQ(x.get({i, j}), before.get({j, i})) << i << ", " << j;
}

} // namespace
