// SPDX-License-Identifier: Apache-2.0
//
// Moving elements without changing them: broadcast, expand, reshape, transpose, slice, concat, iota, scalar.
#include "LangSupport.h"

using namespace tenon;
using namespace tenon::test;

namespace {

using Shaping = OnTarget;

Tensor row(DType type, int64_t n) { return counting(type, {1, n}); }

TEST_P(Shaping, Iota) {
  for (DType type : {f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8}) {
    Tensor x = Tensor::zeros(type, {1, 1});
    Tensor y = compute(GetParam(), x, type, 3, 24, [=](const std::vector<Tile> &) -> std::vector<Tile> {
      return {iota(type, {2, 3, 4}, 0), iota(type, {2, 3, 4}, 1), iota(type, {2, 3, 4}, 2)};
    });
    for (int64_t i = 0; i < 24; ++i) {
      EXPECT_EQ(y.get({0, i}), i / 12);
      EXPECT_EQ(y.get({1, i}), i / 4 % 3);
      EXPECT_EQ(y.get({2, i}), i % 4);
    }
  }
}

TEST_P(Shaping, OperandsBroadcast) {
  Tensor x = row(f32, 12);
  Tensor y = compute(GetParam(), x, f32, 5, 24, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    Tile a = slice(in[0], 0, 0, 4), b = slice(in[0], 0, 4, 6), one = slice(in[0], 0, 11, 1);
    Tile column = reshape(b, {6, 1});
    return {a + column, column * 100 + a, broadcast(reshape(a, {1, 4}), {6, 4}), broadcast(column, {6, 4}) - one,
            where(column > a + 3, column, a)};
  });
  for (int64_t i = 0; i < 6; ++i)
    for (int64_t j = 0; j < 4; ++j) {
      double a = j, b = 4 + i;
      int64_t at = 4 * i + j;
      EXPECT_EQ(y.get({0, at}), a + b);
      EXPECT_EQ(y.get({1, at}), b * 100 + a);
      EXPECT_EQ(y.get({2, at}), a);
      EXPECT_EQ(y.get({3, at}), b - 11);
      EXPECT_EQ(y.get({4, at}), b > a + 3 ? b : a);
    }
}

TEST_P(Shaping, BroadcastEveryDimension) {
  Tensor x = row(i32, 6);
  Tensor y = compute(GetParam(), x, i32, 4, 2 * 3 * 4 * 5, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    Tile t = in[0];
    return {broadcast(reshape(slice(t, 0, 0, 2), {2, 1, 1, 1}), {2, 3, 4, 5}),
            broadcast(reshape(slice(t, 0, 0, 4), {4, 1}), {2, 3, 4, 5}),
            broadcast(reshape(t, {2, 3, 1, 1}), {2, 3, 4, 5}),
            broadcast(slice(t, 0, 5, 1), {2, 3, 4, 5})};
  });
  for (int64_t i = 0; i < 120; ++i) {
    EXPECT_EQ(y.getInt({0, i}), i / 60);
    EXPECT_EQ(y.getInt({1, i}), i / 5 % 4);
    EXPECT_EQ(y.getInt({2, i}), i / 20);
    EXPECT_EQ(y.getInt({3, i}), 5);
  }
}

TEST_P(Shaping, ExpandAndReshape) {
  Kernel kernel("expand(x, y)", [](View x, View y) {
    Tile t = x.load({0}, {6});
    for (int dim = 0; dim < 2; ++dim) {
      Tile e = expand(t, dim);
      EXPECT_EQ(e.shape(), dim == 0 ? (Shape{1, 6}) : (Shape{6, 1}));
      EXPECT_EQ(e.rank(), 2);
      EXPECT_EQ(e.size(dim), 1);
      y.store({dim, 0}, reshape(e, {1, 6}));
    }
    Tile deep = expand(expand(expand(expand(t, 0), 2), 1), 4); // 1 x 1 x 6 x 1 x 1
    EXPECT_EQ(deep.shape(), (Shape{1, 1, 6, 1, 1}));
    y.store({2, 0}, transpose(reshape(deep, {6, 1})));
    y.store({3, 0}, reshape(transpose(reshape(t, {2, 3})), {1, 6}));
  });
  Tensor x = counting(f32, {6}), y = Tensor::zeros(f32, {4, 6});
  run(kernel, {x, y});
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_EQ(y.get({r, i}), i);
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(y.get({3, i}), (i % 2) * 3 + i / 2);
}

// Every permutation of three dimensions, for every element width.
TEST_P(Shaping, Transpose) {
  const std::vector<int> permutations[] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  const int64_t extents[] = {3, 5, 8};
  for (DType type : {f64, f32, bf16, f8e4m3, i8, boolean}) {
    Tensor x = Tensor::empty(type, {1, 120});
    x.fillRandom(1, 0, type == boolean ? 1 : 100);
    Tensor y = compute(GetParam(), x, type, 6, 120, [&](const std::vector<Tile> &in) {
      std::vector<Tile> out;
      for (const auto &permutation : permutations)
        out.push_back(transpose(reshape(in[0], {3, 5, 8}), permutation));
      return out;
    });
    for (int64_t p = 0; p < 6; ++p) {
      const auto &permutation = permutations[p];
      std::vector<int64_t> sizes = {extents[permutation[0]], extents[permutation[1]], extents[permutation[2]]};
      int64_t next = 0;
      forEachIndex(sizes, [&](const std::vector<int64_t> &i) {
        int64_t source[3];
        for (int d = 0; d < 3; ++d)
          source[permutation[d]] = i[d];
        ASSERT_EQ(y.get({p, next++}), x.get({0, (source[0] * 5 + source[1]) * 8 + source[2]})) << nameOf(type);
      });
    }
  }
}

TEST_P(Shaping, TransposeLargeAndRank5) {
  Tensor x = Tensor::empty(f32, {1, 33 * 47});
  x.fillRandom(2, -1, 1);
  Tensor y = compute(GetParam(), x, f32, 1, 33 * 47, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    return {transpose(reshape(in[0], {33, 47}))};
  });
  for (int64_t i = 0; i < 33; ++i)
    for (int64_t j = 0; j < 47; ++j)
      ASSERT_EQ(y.get({0, j * 33 + i}), x.get({0, i * 47 + j}));

  Tensor five = row(i32, 2 * 3 * 2 * 3 * 2);
  Tensor z = compute(GetParam(), five, i32, 1, 72, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    return {transpose(reshape(in[0], {2, 3, 2, 3, 2}), {4, 1, 0, 3, 2})};
  });
  int64_t next = 0;
  forEachIndex(std::vector<int64_t>{2, 3, 2, 3, 2}, [&](const std::vector<int64_t> &i) {
    ASSERT_EQ(z.getInt({0, next++}), (((i[2] * 3 + i[1]) * 2 + i[4]) * 3 + i[3]) * 2 + i[0]);
  });
}

TEST_P(Shaping, SliceAndConcat) {
  Tensor x = row(i32, 60);
  Tensor y = compute(GetParam(), x, i32, 4, 60, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    Tile t = reshape(in[0], {3, 4, 5});
    std::vector<Tile> out;
    for (int dim = 0; dim < 3; ++dim) { // rotate by one along each dimension
      int64_t n = t.size(dim);
      out.push_back(concat({slice(t, dim, 1, n - 1), slice(t, dim, 0, 1)}, dim));
    }
    std::vector<Tile> parts; // 4 x 5 planes, backwards
    for (int64_t i = 2; i >= 0; --i)
      parts.push_back(slice(t, 0, i, 1));
    out.push_back(concat(parts, 0));
    return out;
  });
  for (int64_t i = 0; i < 60; ++i) {
    int64_t a = i / 20, b = i / 5 % 4, c = i % 5;
    EXPECT_EQ(y.getInt({0, i}), (a + 1) % 3 * 20 + b * 5 + c);
    EXPECT_EQ(y.getInt({1, i}), a * 20 + (b + 1) % 4 * 5 + c);
    EXPECT_EQ(y.getInt({2, i}), a * 20 + b * 5 + (c + 1) % 5);
    EXPECT_EQ(y.getInt({3, i}), (2 - a) * 20 + b * 5 + c);
  }
}

TEST_P(Shaping, ConcatOfOneAndOfManyUneven) {
  Tensor x = row(f32, 10);
  Tensor y = compute(GetParam(), x, f32, 2, 10, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    std::vector<Tile> parts;
    for (int64_t at = 0, n = 1; at < 10; at += n, ++n)
      parts.push_back(slice(in[0], 0, at, n)); // 1 + 2 + 3 + 4
    return {concat({in[0]}, 0), concat(parts, 0)};
  });
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(y.get({0, i}), i);
    EXPECT_EQ(y.get({1, i}), i);
  }
}

TEST_P(Shaping, ScalarsAndFull) {
  Kernel kernel("scalars(x, y)", [](View x, View y) {
    Tile s = x.at({2});
    EXPECT_EQ(s.rank(), 0);
    Tile total = scalar(sum(x.load({0}, {4}), 0));
    EXPECT_EQ(total.rank(), 0);
    y.store({0}, full(f32, {3}, s));
    y.store({3}, s + 1);
    y.store({4}, reshape(s, {1}));
    y.store({5}, broadcast(s, {2}));
    y.store({7}, full(f32, {1}, 7));
    y.store({8}, total * 2);
    y.store({9}, full(f32, {1}, x.at({100})));
  });
  Tensor x = counting(f32, {4}), y = Tensor::zeros(f32, {10});
  y.fill(-1);
  run(kernel, {x, y});
  EXPECT_EQ(valuesOf(y), (std::vector<double>{2, 2, 2, 3, 2, 2, 2, 7, 12, 0}));
}

TENON_ON_EACH_TARGET(Shaping);

} // namespace
