// SPDX-License-Identifier: Apache-2.0
//
// Reductions and scans of every kind and type along each dimension, and dot.
#include "LangSupport.h"

#include <limits>

using namespace tenon;
using namespace tenon::test;

namespace {

using Reductions = OnTarget;

constexpr int64_t shape[3] = {3, 5, 7};
constexpr int64_t count = 3 * 5 * 7;

/// Calls visit(line, positions): the elements of x (flat, of `shape`) that are combined into one along dim.
void forEachLine(int dim, const std::function<void(int64_t, const std::vector<int64_t> &)> &visit) {
  int64_t inner = 1;
  for (int d = dim + 1; d < 3; ++d)
    inner *= shape[d];
  int64_t lines = count / shape[dim];
  for (int64_t line = 0; line < lines; ++line) {
    std::vector<int64_t> positions;
    for (int64_t k = 0; k < shape[dim]; ++k)
      positions.push_back((line / inner * shape[dim] + k) * inner + line % inner);
    visit(line, positions);
  }
}

/// Small whole numbers, so that every sum is exact and the order does not matter.
Tensor smallNumbers(DType type) {
  Tensor x = Tensor::empty(type, {1, count});
  for (int64_t i = 0; i < count; ++i)
    x.set({0, i}, type == boolean ? (i * 7 % 5 < 3) : isUnsigned(type) ? i * 11 % 13 : i * 11 % 13 - 6);
  return x;
}

TEST_P(Reductions, SumMaxMinOfEveryType) {
  for (DType type : {f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8})
    for (int dim = 0; dim < 3; ++dim) {
      Tensor x = smallNumbers(type);
      int64_t lines = count / shape[dim];
      Tensor y = compute(GetParam(), x, f64, 5, lines, [=](const std::vector<Tile> &in) -> std::vector<Tile> {
        Tile t = reshape(in[0], {shape[0], shape[1], shape[2]});
        return {sum(t, dim).to(f64), max(t, dim).to(f64), min(t, dim).to(f64), argmax(t, dim).to(f64),
                argmin(t, dim).to(f64)};
      });
      forEachLine(dim, [&](int64_t line, const std::vector<int64_t> &positions) {
        double total = 0, largest = -1e9, smallest = 1e9, argLargest = 0, argSmallest = 0;
        for (size_t k = 0; k < positions.size(); ++k) {
          double value = x.get({0, positions[k]});
          total += value;
          if (value > largest)
            largest = value, argLargest = static_cast<double>(k);
          if (value < smallest)
            smallest = value, argSmallest = static_cast<double>(k);
        }
        const double expected[] = {total, largest, smallest, argLargest, argSmallest};
        for (int64_t row = 0; row < 5; ++row)
          ASSERT_EQ(y.get({row, line}), expected[row]) << nameOf(type) << " dim " << dim << " kind " << row;
      });
    }
}

// Narrow integers are summed and multiplied in 32 bits; 16-bit floats in f32, rounded once.
TEST_P(Reductions, Accumulators) {
  Kernel kernel("wide(a, b, c, d)", [](View a, View b, View c, View d) {
    Tile total = sum(a.load({0, 0}, {1, 100}), 1);
    b.store({0, 0}, total);
    Tile half = sum(c.load({0, 0}, {1, 100}), 1);
    d.store({0, 0}, half);
    b.store({0, 1}, prod(full(a.dtype(), {1, 5}, 100), 1));
  });
  Tensor c = Tensor::empty(bf16, {1, 100}), d = Tensor::zeros(bf16, {1, 1});
  c.fill(1.0078125); // 1 + 2^-7: accumulating in bf16 would lose it
  for (auto [narrow, wide] : {std::pair{i8, i32}, {i16, i32}, {u8, u32}, {u16, u32}, {boolean, i32}}) {
    if (narrow == boolean)
      continue;
    Tensor a = Tensor::empty(narrow, {1, 100}), b = Tensor::zeros(wide, {1, 2});
    a.fill(120);
    run(kernel, {a, b, c, d});
    EXPECT_EQ(b.getInt({0, 0}), 12000) << nameOf(narrow);
    EXPECT_EQ(b.getInt({0, 1}), 1410065408) << nameOf(narrow); // 10^10 modulo 2^32
    EXPECT_EQ(d.get({0, 0}), rounded(bf16, 100.78125));
  }
  Kernel countTrue("count(a, b)", [](View a, View b) { b.store({0}, sum(a.load({0}, {300}), 0)); });
  Tensor flags = Tensor::empty(boolean, {300}), n = Tensor::zeros(i32, {1});
  flags.fill(1);
  run(countTrue, {flags, n});
  EXPECT_EQ(n.getInt({0}), 300);
}

TEST_P(Reductions, ProdAnyAll) {
  Tensor x = Tensor::empty(f32, {1, 24});
  for (int64_t i = 0; i < 24; ++i)
    x.set({0, i}, i % 5 - 1.5);
  Tensor y = compute(GetParam(), x, f32, 4, 4, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    Tile t = reshape(in[0], {4, 6});
    return {prod(t, 1), any(t > 2, 1).to(f32), all(t > -1.25, 1).to(f32), sum(t > 0, 1).to(f32)};
  });
  for (int64_t i = 0; i < 4; ++i) {
    double product = 1, anyLarge = 0, allLarge = 1, positive = 0;
    for (int64_t j = 0; j < 6; ++j) {
      double value = x.get({0, 6 * i + j});
      product *= value;
      anyLarge = std::max<double>(anyLarge, value > 2);
      allLarge = std::min<double>(allLarge, value > -1.25);
      positive += value > 0;
    }
    EXPECT_FLOAT_EQ(y.get({0, i}), product);
    EXPECT_EQ(y.get({1, i}), anyLarge);
    EXPECT_EQ(y.get({2, i}), allLarge);
    EXPECT_EQ(y.get({3, i}), positive);
  }
}

// One NaN, wherever in its row, in whole steps of a loop or in what they leave.
TEST_P(Reductions, ExtremesWithOneNaN) {
  constexpr int64_t rows = 32;
  for (int64_t cols : {96, 128, 140}) {
    Tensor x = Tensor::empty(f32, {1, rows * cols});
    for (int64_t i = 0; i < rows * cols; ++i)
      x.set({0, i}, static_cast<double>(i * 37 % 101) - 50);
    auto place = [&](int64_t i) { return i * cols + (cols - 1 - i * 29 % cols); };
    for (int64_t i = 1; i < rows; ++i)
      x.set({0, place(i)}, NAN);
    x.set({0, 77}, -INFINITY);
    x.set({0, 5}, 1000);
    Tensor y = compute(GetParam(), x, f32, 2, rows, [=](const std::vector<Tile> &in) -> std::vector<Tile> {
      Tile t = reshape(in[0], {rows, cols});
      return {max(t, 1), min(t, 1)};
    });
    EXPECT_EQ(y.get({0, 0}), 1000) << cols;
    EXPECT_EQ(y.get({1, 0}), -INFINITY) << cols;
    for (int64_t i = 1; i < rows; ++i)
      for (int64_t k : {0, 1})
        EXPECT_TRUE(std::isnan(y.get({k, i}))) << cols << " columns, row " << i;
  }
}

TEST_P(Reductions, ExtremesTiesAndNaN) {
  for (DType type : {f64, f32, f16, bf16}) {
    std::vector<std::vector<double>> rows = {
        {1, 3, 3, -2, -2, 0, 1, 2, 0, 0, 1, 1, 2, 2, 1, 0, 3},  // ties: the first
        {NAN, 5, NAN, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5}, // NaN wins, the first of them
        {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, NAN, 2, NAN},
        {-INFINITY, INFINITY, INFINITY, -INFINITY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {-0.0, 0.0, -0.0, 0.0, -0.0, 0.0, 0.0, -0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0},
    };
    std::vector<std::vector<double>> expected = {{3, -2, 1, 3}, {NAN, NAN, 0, 0}, {NAN, NAN, 14, 14},
                                                 {INFINITY, -INFINITY, 1, 0}, {0.0, -0.0, 0, 0}};
    for (size_t r = 0; r < rows.size(); ++r) {
      Tensor x = vectorOf(type, rows[r]).reshape({1, 17});
      Tensor y = compute(GetParam(), x, type, 4, 1, [=](const std::vector<Tile> &in) -> std::vector<Tile> {
        return {max(in[0], 0), min(in[0], 0), argmax(in[0], 0).to(type), argmin(in[0], 0).to(type)};
      });
      for (int64_t k = 0; k < 4; ++k)
        EXPECT_TRUE(identical(y.get({k, 0}), expected[r][k]))
            << nameOf(type) << " row " << r << " kind " << k << ": " << y.get({k, 0});
    }
  }
}

TEST_P(Reductions, IntegerExtremes) {
  Kernel kernel("extremes(x, y)", [](View x, View y) {
    Tile t = x.load({0}, {9});
    y.store({0}, max(t, 0));
    y.store({1}, min(t, 0));
    y.store({2}, sum(t, 0));
    y.store({3}, argmax(t, 0).to(y.dtype()));
    y.store({4}, argmin(t, 0).to(y.dtype()));
  });
  Tensor x = Tensor::zeros(i64, {9}), y = Tensor::zeros(i64, {5});
  x.setInt({2}, INT64_MIN);
  x.setInt({5}, INT64_MAX);
  x.setInt({6}, INT64_MAX);
  run(kernel, {x, y});
  EXPECT_EQ(intsOf(y), (std::vector<int64_t>{INT64_MAX, INT64_MIN, INT64_MAX - 1, 5, 2}));
  Tensor u = Tensor::zeros(u64, {9}), v = Tensor::zeros(u64, {5});
  u.fill(7);
  u.setInt({4}, -1);
  u.setInt({7}, 6);
  run(kernel, {u, v});
  EXPECT_EQ(intsOf(v), (std::vector<int64_t>{-1, 6, 7 * 7 + 6 - 1, 4, 7}));
}

TEST_P(Reductions, UserDefinedCombine) {
  Tensor x = smallNumbers(i32);
  for (int dim = 0; dim < 3; ++dim) {
    int64_t lines = count / shape[dim];
    Tensor y = compute(GetParam(), x, i32, 2, lines, [=](const std::vector<Tile> &in) -> std::vector<Tile> {
      Tile t = reshape(in[0], {shape[0], shape[1], shape[2]});
      return {reduce(t, dim, [](Tile a, Tile b) { return a ^ b; }),
              reduce(t, dim, [](Tile a, Tile b) { return where(abs(a) >= abs(b), abs(a), abs(b)); })};
    });
    forEachLine(dim, [&](int64_t line, const std::vector<int64_t> &positions) {
      int64_t bits = 0, largest = 0;
      for (int64_t p : positions) {
        bits ^= x.getInt({0, p});
        largest = std::max(largest, std::abs(x.getInt({0, p})));
      }
      ASSERT_EQ(y.getInt({0, line}), bits);
      ASSERT_EQ(y.getInt({1, line}), largest);
    });
  }
}

// Rows that are whole vectors, and some whole vectors and every kind of rest; the last combination has no neutral
// element.
TEST_P(Reductions, RowsOfManyLengths) {
  for (int64_t n : {2, 3, 5, 9, 15, 17, 24, 31, 33, 40, 47, 48, 51, 63, 79, 83, 127, 527, 560, 575, 1008}) {
    Tensor x = Tensor::empty(i32, {1, n});
    for (int64_t i = 0; i < n; ++i)
      x.setInt({0, i}, i * 37 % 1009 - 500);
    Tensor y = compute(GetParam(), x, i32, 4, 1, [=](const std::vector<Tile> &in) -> std::vector<Tile> {
      return {sum(in[0], 0), max(in[0].to(f32), 0).to(i32), argmin(in[0], 0).to(i32),
              reduce(in[0], 0, [](Tile a, Tile b) { return where(abs(a) >= abs(b), abs(a), abs(b)); })};
    });
    int64_t total = 0, largest = INT32_MIN, least = 0, farthest = 0;
    for (int64_t i = 0; i < n; ++i) {
      int64_t value = x.getInt({0, i});
      total += value;
      largest = std::max(largest, value);
      least = value < x.getInt({0, least}) ? i : least;
      farthest = std::max(farthest, std::abs(value));
    }
    EXPECT_EQ(intsOf(y), (std::vector<int64_t>{total, largest, least, farthest})) << n;
  }
}

// Mean and variance of one pass (Welford), over three tiles at once.
TEST_P(Reductions, SeveralTiles) {
  Tensor x = Tensor::empty(f32, {1, count});
  x.fillRandom(3, -1, 1);
  for (int dim = 0; dim < 3; ++dim) {
    int64_t lines = count / shape[dim];
    Tensor y = compute(GetParam(), x, f32, 3, lines, [=](const std::vector<Tile> &in) {
      Tile t = reshape(in[0], {shape[0], shape[1], shape[2]});
      Tile zero = zeros(f32, t.shape());
      return reduce({t, zero, zero + 1}, dim, [](const std::vector<Tile> &a, const std::vector<Tile> &b) {
        Tile n = a[2] + b[2], delta = b[0] - a[0];
        return std::vector<Tile>{a[0] + delta * (b[2] / n), a[1] + b[1] + delta * delta * (a[2] * b[2] / n), n};
      });
    });
    forEachLine(dim, [&](int64_t line, const std::vector<int64_t> &positions) {
      double mean = 0, squares = 0;
      for (int64_t p : positions)
        mean += x.get({0, p}) / positions.size();
      for (int64_t p : positions)
        squares += (x.get({0, p}) - mean) * (x.get({0, p}) - mean);
      ASSERT_NEAR(y.get({0, line}), mean, 1e-6);
      ASSERT_NEAR(y.get({1, line}), squares, 1e-5);
      ASSERT_EQ(y.get({2, line}), positions.size());
    });
  }
}

TEST_P(Reductions, ScansOfEveryType) {
  for (DType type : {f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean})
    for (int dim = 0; dim < 3; ++dim) {
      Tensor x = smallNumbers(type);
      Tensor y = compute(GetParam(), x, f64, 2, count, [=](const std::vector<Tile> &in) -> std::vector<Tile> {
        Tile t = reshape(in[0], {shape[0], shape[1], shape[2]});
        return {cumsum(t, dim).to(f64), cumsum(t, dim, /*reverse=*/true).to(f64)};
      });
      forEachLine(dim, [&](int64_t, const std::vector<int64_t> &positions) {
        double forward = 0, backward = 0;
        for (size_t k = 0; k < positions.size(); ++k) {
          ASSERT_EQ(y.get({0, positions[k]}), forward += x.get({0, positions[k]})) << nameOf(type) << " dim " << dim;
          int64_t last = positions[positions.size() - 1 - k];
          ASSERT_EQ(y.get({1, last}), backward += x.get({0, last})) << nameOf(type) << " dim " << dim << " reversed";
        }
      });
    }
}

TEST_P(Reductions, ScanKeepsTheOrder) {
  Tensor x = Tensor::empty(i32, {1, 40});
  for (int64_t i = 0; i < 40; ++i)
    x.setInt({0, i}, i % 6 + 1);
  // Associative but not commutative: always the left operand, always the right one.
  Tensor y = compute(GetParam(), x, i32, 4, 40, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    Tile t = in[0] * 1000 + iota(40);
    return {scan(t, 0, [](Tile a, Tile) { return a; }), scan(t, 0, [](Tile, Tile b) { return b; }),
            scan(in[0], 0, [](Tile a, Tile b) { return maximum(a, b); }),
            scan(in[0], 0, [](Tile a, Tile b) { return a * b; }, /*reverse=*/true)};
  });
  int64_t largest = 0;
  uint32_t product = 1;
  for (int64_t i = 0; i < 40; ++i) {
    largest = std::max(largest, x.getInt({0, i}));
    EXPECT_EQ(y.getInt({0, i}), 1000);
    EXPECT_EQ(y.getInt({1, i}), x.getInt({0, i}) * 1000 + i);
    EXPECT_EQ(y.getInt({2, i}), largest);
    product *= static_cast<uint32_t>(x.getInt({0, 39 - i}));
    EXPECT_EQ(y.getInt({3, 39 - i}), static_cast<int32_t>(product));
  }
}

// A linear recurrence, and a running sum that begins anew where a flag is set: associative, and no scan of one tile.
TEST_P(Reductions, ScanOfSeveralTiles) {
  for (int64_t n : {1, 40, 300}) {
    Tensor x = Tensor::empty(u32, {2, n});
    for (int64_t i = 0; i < n; ++i) {
      x.setInt({0, i}, i * 7 % 5 + 1);
      x.setInt({1, i}, i * 3 % 11);
    }
    Tensor y = compute(GetParam(), x, u32, 4, n, [](const std::vector<Tile> &in) -> std::vector<Tile> {
      CombineMany after = [](const std::vector<Tile> &a, const std::vector<Tile> &b) {
        return std::vector<Tile>{a[0] * b[0], a[1] * b[0] + b[1]};
      };
      CombineMany restart = [](const std::vector<Tile> &a, const std::vector<Tile> &b) {
        return std::vector<Tile>{a[0] | b[0], where(b[0], b[1], a[1] + b[1])};
      };
      // Backwards the right operand comes first.
      CombineMany before = [&](const std::vector<Tile> &a, const std::vector<Tile> &b) { return after(b, a); };
      std::vector<Tile> segments = scan({in[0] == 1, in[1]}, 0, restart);
      return {scan({in[0], in[1]}, 0, after)[1], scan({in[0], in[1]}, 0, before, /*reverse=*/true)[1], segments[1],
              segments[0].to(u32)};
    });
    uint32_t forward = 0, backward = 0, sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      auto a = [&](int64_t at) { return static_cast<uint32_t>(x.getInt({0, at})); };
      auto b = [&](int64_t at) { return static_cast<uint32_t>(x.getInt({1, at})); };
      ASSERT_EQ(y.getInt({0, i}), forward = a(i) * forward + b(i)) << n << ", element " << i;
      int64_t last = n - 1 - i;
      ASSERT_EQ(y.getInt({1, last}), backward = a(last) * backward + b(last)) << n << ", element " << last;
      ASSERT_EQ(y.getInt({2, i}), sum = a(i) == 1 ? b(i) : sum + b(i)) << n << ", element " << i;
      ASSERT_EQ(y.getInt({3, i}), 1);
    }
  }
}

TEST_P(Reductions, OneElement) {
  Tensor x = Tensor::empty(f32, {1, 4});
  x.fillRandom(5, -1, 1);
  Tensor y = compute(GetParam(), x, f32, 3, 4, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    Tile t = reshape(in[0], {4, 1});
    return {sum(t, 1), argmax(t, 1).to(f32), cumsum(t, 1)};
  });
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(y.get({0, i}), x.get({0, i}));
    EXPECT_EQ(y.get({1, i}), 0);
    EXPECT_EQ(y.get({2, i}), x.get({0, i}));
  }
}

// Large sums stay accurate: the order is the compiler's, the error small.
TEST_P(Reductions, LongSum) {
  Kernel kernel("total(x, y)", [](View x, View y) { y.store({0}, sum(x.load({0}, {100000}), 0)); });
  Tensor x = Tensor::empty(f32, {100000}), y = Tensor::zeros(f32, {1});
  x.fillRandom(7, -1, 1);
  double exact = 0;
  for (int64_t i = 0; i < x.size(0); ++i)
    exact += x.get({i});
  run(kernel, {x, y});
  EXPECT_NEAR(y.get({0}), exact, 0.05);
}

//===--- dot ------------------------------------------------------------------------------------------------------===//

Kernel product("product(a, b, c, y, m, n, k)", [](View a, View b, View c, View y, Param m, Param n, Param k) {
  Tile acc = dot(a.load({0, 0}, {m, k}), b.load({0, 0}, {k, n}), c.load({0, 0}, {m, n}));
  y.store({0, 0}, acc);
  y.store({m, 0}, dot(a.load({0, 0}, {m, k}), b.load({0, 0}, {k, n})));
});

TEST_P(Reductions, DotOfEveryType) {
  struct Case {
    DType a, b, acc;
  };
  for (auto [ta, tb, tc] : {Case{f64, f64, f64}, {f32, f32, f32}, {f16, f16, f32}, {bf16, bf16, f32},
                            {f8e4m3, f8e4m3, f32}, {f8e5m2, f8e5m2, f32}, {f8e4m3, f8e5m2, f32}, {i8, i8, i32},
                            {u8, u8, i32}, {i8, u8, i32}, {u8, i8, i32}})
    for (auto [m, n, k] : {std::array<int64_t, 3>{5, 7, 3}, {16, 16, 16}, {17, 33, 20}, {40, 1, 65}}) {
      Tensor a = Tensor::empty(ta, {m, k}), b = Tensor::empty(tb, {k, n}), c = Tensor::empty(tc, {m, n});
      Tensor y = Tensor::zeros(tc, {2 * m, n});
      // Small whole numbers (exact in every type and order), large bytes for the integers.
      a.fillRandom(1, isFloat(ta) ? -1 : 0, isFloat(ta) ? 1 : 255);
      b.fillRandom(2, isFloat(tb) ? -1 : 0, isFloat(tb) ? 1 : 255);
      c.fillRandom(3, -1, 1);
      for (const Tensor *t : {&a, &b, &c})
        if (isFloat(t->dtype()))
          forEachIndex(t->sizes(), [&](const std::vector<int64_t> &i) { t->set(i, std::round(t->get(i) * 8)); });
      run(product, {a, b, c, y}, {{"m", m}, {"n", n}, {"k", k}});
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double total = 0;
          for (int64_t l = 0; l < k; ++l)
            total += a.get({i, l}) * b.get({l, j});
          ASSERT_EQ(y.get({m + i, j}), total) << nameOf(ta) << " x " << nameOf(tb) << " " << m << "x" << n << "x" << k;
          ASSERT_EQ(y.get({i, j}), total + c.get({i, j})) << nameOf(ta) << " x " << nameOf(tb);
        }
    }
}

TEST_P(Reductions, DotPropagatesNaN) {
  Tensor a = Tensor::zeros(f32, {8, 8}), b = Tensor::zeros(f32, {8, 8}), c = Tensor::zeros(f32, {8, 8});
  Tensor y = Tensor::zeros(f32, {16, 8});
  a.set({2, 3}, NAN);
  b.set({1, 5}, INFINITY); // 0 * inf
  run(product, {a, b, c, y}, {{"m", 8}, {"n", 8}, {"k", 8}});
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 8; ++j)
      EXPECT_EQ(std::isnan(y.get({i, j})), i == 2 || j == 5) << i << "," << j;
}

TENON_ON_EACH_TARGET(Reductions);

} // namespace
