// SPDX-License-Identifier: Apache-2.0
//
// Functions of one float tile against long double: at most 2 ulp of the tile's type, special values exactly.
#include "LangSupport.h"

#include <limits>

using namespace tenon;
using namespace tenon::test;

namespace {

using MathFunctions = OnTarget;

struct Function {
  const char *name;
  Tile (*tile)(Arg);
  long double (*exact)(long double);
};

const Function functions[] = {
    {"exp", exp, [](long double x) { return expl(x); }},
    {"exp2", exp2, [](long double x) { return exp2l(x); }},
    {"expm1", expm1, [](long double x) { return expm1l(x); }},
    {"log", log, [](long double x) { return logl(x); }},
    {"log2", log2, [](long double x) { return log2l(x); }},
    {"log1p", log1p, [](long double x) { return log1pl(x); }},
    {"sqrt", sqrt, [](long double x) { return sqrtl(x); }},
    {"rsqrt", rsqrt, [](long double x) { return 1 / sqrtl(x); }},
    {"sin", sin, [](long double x) { return sinl(x); }},
    {"cos", cos, [](long double x) { return cosl(x); }},
    {"tanh", tanh, [](long double x) { return tanhl(x); }},
    {"erf", erf, [](long double x) { return erfl(x); }},
    {"sigmoid", sigmoid, [](long double x) { return x >= 0 ? 1 / (1 + expl(-x)) : expl(x) / (1 + expl(x)); }},
};

struct Format {
  int digits;      ///< of the significand
  int minExponent; ///< of the smallest normal number
  double largest;
};
Format formatOf(DType type) {
  switch (type) {
  case DType::f64: return {53, -1022, std::numeric_limits<double>::max()};
  case DType::f32: return {24, -126, std::numeric_limits<float>::max()};
  case DType::f16: return {11, -14, 65504};
  default: return {8, -126, 3.3895313892515355e38};
  }
}

/// The error of `got` in units of the last place of `exact`; 0 also where both overflow.
long double ulps(DType type, double got, long double exact) {
  Format format = formatOf(type);
  if (std::isnan(exact))
    return std::isnan(got) ? 0 : INFINITY;
  int exponent = exact == 0 || std::isinf(exact) ? format.minExponent : std::max(ilogbl(exact), format.minExponent);
  if (std::isinf(got) || std::isinf(exact)) {
    // Infinity stands for everything that rounds past the largest finite number.
    bool overflows = fabsl(exact) > format.largest;
    return std::isinf(got) && overflows && (got > 0) == (exact > 0) ? 0 : INFINITY;
  }
  return fabsl(static_cast<long double>(got) - exact) / ldexpl(1, exponent - format.digits + 1);
}

std::vector<double> arguments(DType type) {
  std::vector<double> values = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 0.5, 2, 10, 88.7, 88.73, 89, -87.4, -88,
                                -95, -100, -103.9, -104.1, -110, 127.9, 128, -126.5, -149, -150, 709.7, 709.8, -708.5,
                                -740, -745.2, -750, 1024, -1074, -1075, 1e5, 1e10, 1e22, 1e30, 1e300, 3.141592653589793,
                                1.5707963267948966, 6.283185307179586, 1e-5, 1e-10, -1e-20, 1e-38, 1e-40, 1e-310,
                                5e-324, 0.99999994, 1.0000001, 0.84375, 1.25, 2.857, 6, 4e4};
  for (int i = 0; i < 200; ++i) { // near the origin, then over many magnitudes
    values.push_back((i - 100) * 0.0713);
    values.push_back(std::ldexp(1 + i * 0.0049, i % 60 - 30) * (i % 2 ? 1 : -1));
    values.push_back((i - 100) * 1.01);
    values.push_back(1 + (i - 100) * 1e-3);
  }
  for (double &value : values)
    value = rounded(type, value);
  return values;
}

void checkAccuracy(Target target, DType type) {
  std::vector<double> values = arguments(type);
  int64_t n = static_cast<int64_t>(values.size());
  Tensor x = vectorOf(type, values).reshape({1, n});
  Tensor y = compute(target, x, type, std::size(functions), n, [&](const std::vector<Tile> &in) {
    std::vector<Tile> out;
    for (const Function &function : functions)
      out.push_back(function.tile(in[0]));
    return out;
  });
  for (size_t f = 0; f < std::size(functions); ++f)
    for (int64_t i = 0; i < n; ++i) {
      long double exact = functions[f].exact(values[i]);
      double got = y.get({static_cast<int64_t>(f), i});
      EXPECT_LE(ulps(type, got, exact), 2.0L)
          << functions[f].name << "(" << values[i] << ") in " << nameOf(type) << " is " << got << ", not " << exact;
    }
}

TEST_P(MathFunctions, F64) { checkAccuracy(GetParam(), f64); }
TEST_P(MathFunctions, F32) { checkAccuracy(GetParam(), f32); }
TEST_P(MathFunctions, F16) { checkAccuracy(GetParam(), f16); }
TEST_P(MathFunctions, BF16) { checkAccuracy(GetParam(), bf16); }

TEST_P(MathFunctions, Powers) {
  std::vector<double> bases = {0,   1,    -1,    2,    -2,     0.3,      -0.3,      1e-3, 7,
                               1e4, -1e4, 1e-30, 3e38, 1.0001, INFINITY, -INFINITY, NAN};
  std::vector<double> exponents = {0, 1, -1, 2, 3, -3, 0.5, -0.5, 2.5, 1e4, -77.7, 1e-6, INFINITY, -INFINITY, NAN};
  int64_t n = static_cast<int64_t>(bases.size() * exponents.size());
  for (DType type : {f64, f32, f16, bf16}) {
    Tensor x = Tensor::empty(type, {2, n});
    for (int64_t i = 0; i < n; ++i) {
      x.set({0, i}, bases[static_cast<size_t>(i) % bases.size()]);
      x.set({1, i}, exponents[static_cast<size_t>(i) / bases.size()]);
    }
    Tensor y = compute(GetParam(), x, type, 4, n, [](const std::vector<Tile> &in) {
      return std::vector<Tile>{pow(in[0], in[1]), pow(in[0], 2), pow(in[0], -1.0), pow(in[0], 257)}; // no bf16 is 257
    });
    for (int64_t i = 0; i < n; ++i) {
      double base = x.get({0, i});
      for (auto [row, exponent] : {std::pair<int64_t, double>{0, x.get({1, i})}, {1, 2}, {2, -1}, {3, 257}}) {
        long double exact = powl(base, exponent), steps = fabsl(exponent * log2l(fabsl(base)));
        double got = y.get({row, i});
        EXPECT_LE(ulps(type, got, exact), type == f64 && std::isfinite(steps) ? 2 + steps : 1)
            << base << " to the power " << exponent << " in " << nameOf(type) << " is " << got << ", not " << exact;
      }
    }
  }
}

TEST_P(MathFunctions, Clamp) {
  Tensor x = vectorOf(f32, {-3, -0.5, 0, 0.5, 3, INFINITY, -INFINITY, NAN}).reshape({1, 8});
  Tensor y = compute(GetParam(), x, f32, 3, 8, [](const std::vector<Tile> &in) {
    return std::vector<Tile>{clamp(in[0], -1, 1), clamp(in[0], in[0] * 0 + 2, 1), clamp(in[0].to(i32), 0, 2).to(f32)};
  });
  std::vector<double> expected = {-1, -0.5, 0, 0.5, 1, 1, -1, NAN};
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(identical(y.get({0, i}), expected[static_cast<size_t>(i)])) << i;
    if (i < 5) {
      EXPECT_EQ(y.get({1, i}), 1); // above the highest
      EXPECT_EQ(y.get({2, i}), i == 4 ? 2 : 0);
    }
  }
}

// A function of a C++ number, of a scalar and of a tile of odd size.
TEST_P(MathFunctions, ScalarsAndOddSizes) {
  Kernel kernel("functions(x, y, s)", [](View x, View y, Scalar s) {
    y.store({0}, exp(x.load({0}, {7})));
    y.store({7}, sqrt(s).to(f32));
    y.store({8}, full(f32, {1}, sqrt(2.0)));
    y.store({9}, sin(x.at({3})));
  });
  Tensor x = vectorOf(f32, {0, 1, 2, 3, 4, 5, 6}), y = Tensor::zeros(f32, {10});
  run(kernel, {x, y, 6.25});
  for (int64_t i = 0; i < 7; ++i)
    EXPECT_LE(ulps(f32, y.get({i}), expl(i)), 2);
  EXPECT_EQ(y.get({7}), 2.5);
  EXPECT_EQ(y.get({8}), static_cast<float>(std::sqrt(2.0)));
  EXPECT_LE(ulps(f32, y.get({9}), sinl(3)), 2);
}

// A function of a constant has the bits of the same function of a value from memory: whoever folds it, folds it alike.
// Also where it becomes a constant only on the way: by arithmetic, as a scalar, as what a loop does not change.
TEST_P(MathFunctions, OfConstants) {
  std::vector<double> numbers = {0.1, 0.7, 1.3, 3.7, 11.7};
  for (DType type : {f32, f64}) {
    for (double &number : numbers)
      number = rounded(type, number);
    int64_t n = static_cast<int64_t>(numbers.size()), count = std::size(functions);
    Kernel kernel("constants(x, y)", [=](View x, View y) {
      Tile first = full(type, {1}, numbers[0]), half = full(type, {1}, numbers[0] / 2);
      for (int64_t f = 0; f < count; ++f) {
        auto function = functions[f].tile;
        y.store({0, f, 0}, reshape(function(x.load({0}, {n})), {1, 1, n}));
        for (int64_t i = 0; i < n; ++i)
          y.store({1, f, i}, reshape(function(full(type, {1}, numbers[i])), {1, 1, 1}));
        y.store({2, f, 0}, reshape(function(half + half), {1, 1, 1}));
        y.store({2, f, 1}, full(type, {1, 1, 1}, function(scalar(first))));
      }
      Tile carried = first;
      for (Index k : range(0, 3)) {
        y.store({2, 0, 2 + k}, reshape(exp(carried), {1, 1, 1}));
        carried = carried * 1;
      }
    });
    Tensor x = vectorOf(type, numbers), y = Tensor::zeros(type, {3, count, n});
    run(kernel, {x, y});
    for (int64_t f = 0; f < count; ++f)
      for (int64_t i = 0; i < n; ++i) {
        double wanted = y.get({0, f, i}), first = y.get({0, f, 0});
        EXPECT_TRUE(identical(y.get({1, f, i}), wanted))
            << functions[f].name << "(" << numbers[i] << ") in " << nameOf(type) << " is " << y.get({1, f, i})
            << " of a constant and " << wanted << " of a number from memory";
        if (i < 2 || f == 0)
          EXPECT_TRUE(identical(y.get({2, f, i}), first))
              << functions[f].name << "(" << numbers[0] << ") in " << nameOf(type) << ", form " << i << ", is "
              << y.get({2, f, i}) << ", and " << first << " of a number from memory";
      }
  }
}

TENON_ON_EACH_TARGET(MathFunctions);

} // namespace
