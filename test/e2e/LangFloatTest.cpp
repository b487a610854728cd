// SPDX-License-Identifier: Apache-2.0
//
// Float operators for every type, on all pairs of edge values, against plain C++. f16 and bf16 operations are computed
// in f32 and rounded once per operation.
#include "LangSupport.h"

#include <limits>

using namespace tenon;
using namespace tenon::test;

namespace {

using FloatOperators = OnTarget;

std::vector<double> edges(DType type) {
  std::vector<double> values = {0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 3.7, -1e-3, 100.3, 1.0 / 3, 1e4, -7e4,
                                INFINITY, -INFINITY, NAN, 0.49999997, 8388607.5, 123456.7};
  auto add = [&](std::initializer_list<double> more) { values.insert(values.end(), more); };
  switch (type) { // the smallest subnormal and normal numbers, the largest, and what lies between two
  case DType::f64: add({5e-324, 2.2250738585072014e-308, 1.7976931348623157e308}); break;
  case DType::f32: add({1.401298464324817e-45, 1.1754943508222875e-38, 3.4028234663852886e38}); break;
  case DType::f16: add({5.960464477539063e-8, 6.103515625e-05, 65504.0, 65519.0, 2049.0}); break;
  default: add({9.183549615799121e-41, 1.1754943508222875e-38, 3.3895313892515355e38, 257.0}); break;
  }
  for (double &value : values)
    value = rounded(type, value);
  return values;
}

/// One operation: the tile form and the same in C (float for f32, f16 and bf16, double for f64).
struct Operation {
  const char *name;
  Tile (*tile)(Tile, Tile);
  float (*single)(float, float);
  double (*wide)(double, double);
};

template <class T> T larger(T a, T b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}
template <class T> T smaller(T a, T b) { return -larger<T>(-a, -b); }

#define PLAIN(expression)                                                                                              \
  [](float a, float b) -> float { (void)a, (void)b; return expression; },                                              \
  [](double a, double b) -> double { (void)a, (void)b; return expression; }
#define TILES(expression)                                                                                              \
  [](Tile a, Tile b) -> Tile { (void)a, (void)b; return expression; }

const Operation operations[] = {
    {"a + b", TILES(a + b), PLAIN(a + b)},
    {"a - b", TILES(a - b), PLAIN(a - b)},
    {"a * b", TILES(a * b), PLAIN(a * b)},
    {"a / b", TILES(a / b), PLAIN(a / b)},
    {"-a", TILES(-a), PLAIN(-a)},
    {"0 - a", TILES(0 - a), PLAIN(0 - a)},
    {"a + 0", TILES(a + 0), PLAIN(a + 0)},
    {"a * 0", TILES(a * 0.0), PLAIN(a * 0)},
    {"a * 1", TILES(a * 1), PLAIN(a * 1)},
    {"a - a", TILES(a - a), PLAIN(a - a)},
    {"a / a", TILES(a / a), PLAIN(a / a)},
    {"a / 3", TILES(a / 3), PLAIN(a / 3)},
    {"a == b", TILES((a == b).to(a.dtype())), PLAIN(a == b)},
    {"a != b", TILES((a != b).to(a.dtype())), PLAIN(a != b)},
    {"a < b", TILES((a < b).to(a.dtype())), PLAIN(a < b)},
    {"a <= b", TILES((a <= b).to(a.dtype())), PLAIN(a <= b)},
    {"a > b", TILES((a > b).to(a.dtype())), PLAIN(a > b)},
    {"a >= b", TILES((a >= b).to(a.dtype())), PLAIN(a >= b)},
    {"!(a < b)", TILES((!(a < b)).to(a.dtype())), PLAIN(!(a < b))},
    {"where(a < b, a, b)", TILES(where(a < b, a, b)), PLAIN(a < b ? a : b)},
    {"where(a > b, a, 2.5)", TILES(where(a > b, a, 2.5)), PLAIN(a > b ? a : decltype(a)(2.5))},
    {"maximum", TILES(maximum(a, b)), PLAIN(larger(a, b))},
    {"minimum", TILES(minimum(a, b)), PLAIN(smaller(a, b))},
    {"maximum(a, 0)", TILES(maximum(a, 0)), PLAIN(larger(a, decltype(a)(0)))},
    {"floor", TILES(floor(a)), PLAIN(std::floor(a))},
    {"ceil", TILES(ceil(a)), PLAIN(std::ceil(a))},
    {"round", TILES(round(a)), PLAIN(std::nearbyint(a))},
    {"abs", TILES(abs(a)), PLAIN(std::fabs(a))},
};

void checkPairs(Target target, DType type) {
  std::vector<double> values = edges(type);
  int64_t count = static_cast<int64_t>(values.size()), n = count * count;
  Tensor x = Tensor::empty(type, {2, n});
  for (int64_t i = 0; i < n; ++i) {
    x.set({0, i}, values[i / count]);
    x.set({1, i}, values[i % count]);
  }
  Tensor y = compute(target, x, type, std::size(operations), n, [&](const std::vector<Tile> &in) {
    std::vector<Tile> out;
    for (const Operation &operation : operations)
      out.push_back(operation.tile(in[0], in[1]));
    return out;
  });
  for (size_t o = 0; o < std::size(operations); ++o)
    for (int64_t i = 0; i < n; ++i) {
      double a = values[i / count], b = values[i % count];
      double expected = type == f64 ? operations[o].wide(a, b)
                                    : rounded(type, operations[o].single(static_cast<float>(a), static_cast<float>(b)));
      double got = y.get({static_cast<int64_t>(o), i});
      ASSERT_TRUE(identical(got, expected)) << operations[o].name << " of " << nameOf(type) << " with a = " << a
                                            << ", b = " << b << ": " << got << ", not " << expected;
    }
}

TEST_P(FloatOperators, F64) { checkPairs(GetParam(), f64); }
TEST_P(FloatOperators, F32) { checkPairs(GetParam(), f32); }
TEST_P(FloatOperators, F16) { checkPairs(GetParam(), f16); }
TEST_P(FloatOperators, BF16) { checkPairs(GetParam(), bf16); }

TEST_P(FloatOperators, FmaRoundsOnce) {
  for (DType type : {f32, f64}) {
    double step = type == f32 ? 0x1p-23 : 0x1p-52;
    std::vector<double> values = {0,       -0.0,  1,     -1,       1 + step, 1 - step / 2,
                                  1.0 / 3, -1e10, 1e-30, INFINITY, NAN};
    for (double &value : values)
      value = rounded(type, value);
    int64_t k = static_cast<int64_t>(values.size()), n = k * k * k;
    Tensor x = Tensor::empty(type, {3, n});
    for (int64_t i = 0; i < n; ++i) {
      x.set({0, i}, values[i / (k * k)]);
      x.set({1, i}, values[i / k % k]);
      x.set({2, i}, values[i % k]);
    }
    Tensor y = compute(GetParam(), x, type, 2, n, [](const std::vector<Tile> &in) -> std::vector<Tile> {
      return {fma(in[0], in[1], in[2]), in[0] * in[1] + in[2]};
    });
    for (int64_t i = 0; i < n; ++i) {
      double a = x.get({0, i}), b = x.get({1, i}), c = x.get({2, i});
      double once = type == f64 ? std::fma(a, b, c) : std::fma(float(a), float(b), float(c));
      volatile float product = float(a) * float(b); // volatile: no contraction here
      volatile double wideProduct = a * b;
      double twice = type == f64 ? wideProduct + c : product + float(c);
      ASSERT_TRUE(identical(y.get({0, i}), once)) << "fma(" << a << ", " << b << ", " << c << ")";
      ASSERT_TRUE(identical(y.get({1, i}), twice)) << a << " * " << b << " + " << c << " must not be contracted";
    }
  }
}

// Each operation rounds to the tile's type, so a chain in f16 is not a chain in f32 rounded at the end.
TEST_P(FloatOperators, EveryOperationRounds) {
  Tensor x = Tensor::empty(f16, {1, 64});
  for (int64_t i = 0; i < 64; ++i)
    x.set({0, i}, 1000.0 + i);
  for (DType type : {f16, bf16}) {
    Tensor in = Tensor::empty(type, {1, 64});
    for (int64_t i = 0; i < 64; ++i)
      in.set({0, i}, x.get({0, i}));
    Tensor y = compute(GetParam(), in, type, 1, 64, [](const std::vector<Tile> &t) -> std::vector<Tile> {
      return {(t[0] * 1.3 + 3000.0) - 3000.0};
    });
    for (int64_t i = 0; i < 64; ++i) {
      auto r = [&](float v) { return static_cast<float>(rounded(type, v)); };
      float a = static_cast<float>(in.get({0, i}));
      EXPECT_EQ(y.get({0, i}), r(r(r(a * r(1.3f)) + r(3000)) - r(3000))) << nameOf(type) << " " << a;
    }
  }
}

// Numbers take the type they meet, rounded once; the 8-bit floats saturate.
TEST_P(FloatOperators, Literals) {
  Kernel kernel("literals(x, y)", [](View x, View y) {
    DType type = y.dtype();
    Tile t = concat({full(type, {1}, 1e9), full(type, {1}, -inf), full(type, {1}, 1.0 / 3), full(type, {1}, -0.0),
                     full(type, {1}, 16777217), full(type, {1}, 0xffffffffffffffffull), full(type, {1}, NAN)}, 0);
    y.store({0}, t);
    y.store({7}, x.load({-1}, {1}, 1e9));
    y.store({8}, x.load({-1}, {1}, -0.0));
  });
  for (DType type : {f64, f32, f16, bf16, f8e4m3, f8e5m2}) {
    Tensor x = Tensor::zeros(type, {1}), y = Tensor::zeros(type, {9});
    run(kernel, {x, y});
    const double expected[] = {1e9, -INFINITY, 1.0 / 3, -0.0, 16777217, 18446744073709551615.0, NAN, 1e9, -0.0};
    for (int64_t i = 0; i < 9; ++i)
      EXPECT_TRUE(identical(y.get({i}), rounded(type, expected[i])))
          << nameOf(type) << " " << expected[i] << " became " << y.get({i});
  }
}

// A Scalar takes the type of the float tile it meets.
TEST_P(FloatOperators, ScalarArguments) {
  Kernel kernel("scale(x, y, s)", [](View x, View y, Scalar s) {
    Tile t = x.load({0}, {4});
    y.store({0}, t * s + s);
    y.store({4}, (s * 2 + 1).to(y.dtype()));
    y.store({5}, where(t > s, s, t));
  });
  for (DType type : {f64, f32, f16, bf16}) {
    Tensor x = counting(type, {4}), y = Tensor::zeros(type, {9});
    run(kernel, {x, y, 1.1});
    double s = rounded(type, 1.1);
    for (int64_t i = 0; i < 4; ++i) {
      double product = type == f64 ? s * i : rounded(type, float(s) * float(i));
      EXPECT_EQ(y.get({i}), type == f64 ? product + s : rounded(type, float(product) + float(s))) << nameOf(type);
      EXPECT_EQ(y.get({5 + i}), i > s ? s : i);
    }
    EXPECT_EQ(y.get({4}), rounded(type, 1.1 * 2 + 1));
  }
  Tensor x = counting(f32, {4}), y = Tensor::zeros(f32, {9});
  run(kernel, {x, y, 3}); // an integer is a number too
  EXPECT_EQ(y.get({1}), 6);
}

// Storage-only types can still be moved, selected, padded and stored.
TEST_P(FloatOperators, Float8Moves) {
  Kernel kernel("moves(x, y)", [](View x, View y) {
    Tile t = x.load({0}, {6}, 2.0);
    Tile s = where(iota(6) < 3, t, full(x.dtype(), {6}, 0.5));
    y.store({0}, concat({slice(s, 0, 3, 3), slice(s, 0, 0, 3)}, 0));
  });
  for (DType type : {f8e4m3, f8e5m2}) {
    Tensor x = vectorOf(type, {1, 1.5}), y = Tensor::zeros(type, {6});
    run(kernel, {x, y});
    EXPECT_EQ(valuesOf(y), (std::vector<double>{0.5, 0.5, 0.5, 1, 1.5, 2}));
  }
}

TENON_ON_EACH_TARGET(FloatOperators);

} // namespace
