// SPDX-License-Identifier: Apache-2.0
//
// GELU, exponentials of what is not positive and 1 + tanh of a cubic, in kernels that are no GELU and no softmax: the
// same bits with and without AVX-512, whatever the type of the result, at every kind of number; but for what AVX-512
// finds in tables where bf16 sees it, which is compared with what it should be.
#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

using namespace tenon;

namespace {

/// g times x times the normal distribution at x: a gated unit.
const Kernel gated("gated(x, g, y, cols=256)", [](View x, View g, View y, Param cols) {
  Index i = grid(cdiv(x.size(0), cols));
  Tile t = x.load({i * cols}, {cols}).to(f32), gate = g.load({i * cols}, {cols}).to(f32);
  y.store({i * cols}, (gate * (t * (0.5 * (1 + erf(t * 0.7071067811865476))))).to(y.dtype()));
});

/// The same with the half elsewhere.
const Kernel halved("halved(x, g, y, cols=256)", [](View x, View g, View y, Param cols) {
  Index i = grid(cdiv(x.size(0), cols));
  Tile t = x.load({i * cols}, {cols}).to(f32), gate = g.load({i * cols}, {cols}).to(f32);
  y.store({i * cols}, (gate * (0.5 * t * (1 + erf(t * 0.7071067811865476)))).to(y.dtype()));
});

/// log2(1 + 2^x): a power that is lost in a sum.
const Kernel softplus("softplus(x, y, cols=256)", [](View x, View y, Param cols) {
  Index i = grid(cdiv(x.size(0), cols));
  Tile t = x.load({i * cols}, {cols}).to(f32);
  y.store({i * cols}, log2(1 + exp2(t)).to(y.dtype()));
});

/// 8^x, which may overflow or be nothing.
const Kernel eighth("eighth(x, y, cols=256)", [](View x, View y, Param cols) {
  Index i = grid(cdiv(x.size(0), cols));
  y.store({i * cols}, exp2(x.load({i * cols}, {cols}).to(f32) * 3).to(y.dtype()));
});

/// How far each is below the largest, as a power of e.
const Kernel below("below(x, y, cols=256)", [](View x, View y, Param cols) {
  Index i = grid(cdiv(x.size(0), cols));
  Tile t = x.load({i * cols}, {cols}, -inf).to(f32);
  y.store({i * cols}, exp(t - max(t, 0)).to(y.dtype()));
});

/// Powers of two, of whatever there is.
const Kernel powers("powers(x, y, cols=256)", [](View x, View y, Param cols) {
  Index i = grid(cdiv(x.size(0), cols));
  y.store({i * cols}, exp2(x.load({i * cols}, {cols}).to(f32)).to(y.dtype()));
});

/// Half of 1 + tanh(3 x + x^3).
const Kernel soft("soft(x, y, cols=256)", [](View x, View y, Param cols) {
  Index i = grid(cdiv(x.size(0), cols));
  Tile t = x.load({i * cols}, {cols}).to(f32);
  y.store({i * cols}, (0.5 * (1 + tanh(t * (t * t + 3)))).to(y.dtype()));
});

Tensor samples(DType type) {
  constexpr int64_t count = 7000;
  Tensor x = Tensor::empty(type, {count});
  const double special[] = {0,     -0.0,  1e-40, -1e-40, 3e38, -3e38, 1e20,  -1e20,
                            -13.2, -13.5, -14.2, 14,     -1,   1,     1e-30, -1e-10};
  for (int64_t i = 0; i < count; ++i)
    x.set({i}, i < 16 ? special[i] : std::sin(static_cast<double>(i)) * std::exp2(static_cast<double>(i % 11) - 5));
  return x;
}

Tensor resultOf(const Kernel &kernel, Arguments arguments, DType type, const char *isa) {
  LaunchOptions options;
  options.compile.isa = isa;
  Tensor y = Tensor::zeros(type, {7000});
  arguments.push_back(y);
  launch(kernel, arguments, options);
  return y;
}

void expectSame(const Kernel &kernel, const Arguments &arguments, DType type) {
  Tensor reference = resultOf(kernel, arguments, type, "native");
  for (const char *isa : {"avx2", "baseline"}) {
    Tensor other = resultOf(kernel, arguments, type, isa);
    for (int64_t i = 0; i < 7000; ++i) {
      double a = reference.get({i}), b = other.get({i});
      ASSERT_TRUE((std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)))
          << kernel.name() << " " << nameOf(type) << " " << isa << ", element " << i << ": " << a << " and " << b;
    }
  }
}

void expectGatedUnits(const Kernel &kernel) {
  for (DType type : {f32, f16, bf16}) {
    Tensor x = samples(type), g = Tensor::empty(type, {7000});
    g.fill(-3);
    x.set({6999}, INFINITY);
    x.set({6998}, -INFINITY);
    x.set({6997}, NAN);
    if (type == f16) // the others come out of tables where there is AVX-512
      expectSame(kernel, {x, g}, type);
    for (const char *isa : {"native", "avx2"}) {
      Tensor y = resultOf(kernel, {x, g}, type, isa);
      EXPECT_EQ(y.get({6999}), -INFINITY);
      EXPECT_TRUE(std::isnan(y.get({6998})));
      EXPECT_TRUE(std::isnan(y.get({6997})));
      bool isTable = type == bf16 && isa == std::string("native");
      double unit = type == f32 ? 0x1p-20 : type == f16 ? 0x1p-10 : 0x1p-7;
      for (int64_t i = 0; i < 6997; ++i) {
        double t = x.get({i}), exact = -3 * t * std::erfc(-t * std::sqrt(0.5)) / 2;
        // In bf16 the smallest factor is about 2^-126, of numbers up to 14, times 3; by a table 2^-24, of those up
        // to 6.
        double least = type == f32 ? 1e-6 : type == f16 ? 1e-7 : isTable ? 18 * 0x1p-24 : 5e-37;
        if (i >= 16)
          ASSERT_NEAR(y.get({i}), exact, unit * std::abs(exact) + least) << t;
        if (t != 0 || i < 2)
          ASSERT_EQ(std::signbit(y.get({i})), std::signbit(exact)) << t;
      }
    }
  }
}

TEST(CpuPowers, GatedUnits) { expectGatedUnits(gated); }
TEST(CpuPowers, GatedUnitsWithHalfOfX) { expectGatedUnits(halved); }

TEST(CpuPowers, LostInSums) {
  for (DType type : {f32, f16, bf16}) {
    Tensor x = samples(type);
    x.set({6999}, -INFINITY);
    x.set({6998}, NAN);
    for (int64_t i = 0; i < 300; ++i) // through all that is small, in whole registers too
      x.set({100 + i}, -static_cast<double>(2 * i));
    expectSame(softplus, {x}, type);
    Tensor y = resultOf(softplus, {x}, type, "native");
    EXPECT_EQ(y.get({6999}), 0);
    EXPECT_TRUE(std::isnan(y.get({6998})));
    for (int64_t i = 0; i < 300; ++i)
      ASSERT_NEAR(y.get({100 + i}), std::log2(1 + std::exp2(-2.0 * i)), 0x1p-8) << i;
  }
}

TEST(CpuPowers, FromNothingToInfinity) {
  for (DType type : {f32, f16, bf16}) {
    Tensor x = samples(type);
    x.set({6999}, INFINITY);
    x.set({6998}, -INFINITY);
    x.set({6997}, NAN);
    for (int64_t i = 0; i < 300; ++i) // 2^x from -225 to 223.5: subnormal numbers and both ends, in whole registers
      x.set({100 + i}, static_cast<double>(i - 150) / 2);
    expectSame(eighth, {x}, type);
    Tensor y = resultOf(eighth, {x}, type, "native");
    EXPECT_EQ(y.get({6999}), INFINITY);
    EXPECT_EQ(y.get({6998}), 0);
    EXPECT_TRUE(std::isnan(y.get({6997})));
    for (int64_t i = 0; i < 300; ++i) {
      double power = 1.5 * static_cast<double>(i - 150), exact = std::exp2(power), got = y.get({100 + i});
      if (power >= 128)
        EXPECT_EQ(got, INFINITY) << power;
      else if (power < 16 || type != f16)
        EXPECT_NEAR(got, exact, exact * 0x1p-8 + 0x1p-24) << power;
    }
  }
}

TEST(CpuPowers, BelowTheLargest) {
  for (DType type : {f32, f16, bf16}) {
    Tensor x = samples(type);
    x.set({6999}, -INFINITY);
    expectSame(below, {x}, type);
    x.set({300}, NAN);
    x.set({600}, INFINITY);
    expectSame(below, {x}, type);
    Tensor y = resultOf(below, {x}, type, "native");
    EXPECT_TRUE(std::isnan(y.get({310})));
    EXPECT_EQ(y.get({6999}), 0);
    // Through the subnormal numbers, which f32 keeps.
    Tensor falling = Tensor::zeros(type, {7000});
    for (int64_t i = 0; i < 7000; ++i)
      falling.set({i}, -static_cast<double>(i % 256));
    expectSame(below, {falling}, type);
    Tensor z = resultOf(below, {falling}, type, "native");
    for (int64_t i = 0; i < 256; ++i) {
      double exact = std::exp(-static_cast<double>(i)), unit = type == f32 ? 0x1p-22 : type == f16 ? 0x1p-10 : 0x1p-8;
      double least = type == f32 ? 0x1p-149 : type == f16 ? 0x1p-24 : 0x1p-126;
      ASSERT_NEAR(z.get({i}), exact, exact * unit + least) << i;
      ASSERT_TRUE(type != f32 || (z.get({i}) > 0) == (i < 104)) << i;
    }
  }
}

// What is too large for a power, or too small, is told from the argument without its bounds.
TEST(CpuPowers, OfTwo) {
  for (DType type : {f32, f16, bf16}) {
    Tensor x = samples(type);
    x.set({6999}, INFINITY);
    x.set({6998}, -INFINITY);
    x.set({6997}, NAN);
    for (int64_t i = 0; i < 512; ++i)
      x.set({100 + i}, static_cast<double>(i - 256));
    expectSame(powers, {x}, type);
    Tensor y = resultOf(powers, {x}, type, "native");
    EXPECT_EQ(y.get({6999}), INFINITY);
    EXPECT_EQ(y.get({6998}), 0);
    EXPECT_TRUE(std::isnan(y.get({6997})));
    for (int64_t i = 0; i < 512 && type == f32; ++i)
      ASSERT_EQ(y.get({100 + i}), static_cast<float>(std::exp2(i - 256))) << i;
  }
}

TEST(CpuPowers, SoftSteps) {
  for (DType type : {f16, bf16}) {
    Tensor x = samples(type);
    x.set({6999}, INFINITY);
    x.set({6998}, -INFINITY);
    x.set({6997}, NAN);
    Tensor y = resultOf(soft, {x}, type, "native");
    EXPECT_EQ(y.get({6999}), 1);
    EXPECT_EQ(y.get({6998}), 0);
    EXPECT_TRUE(std::isnan(y.get({6997})));
    for (int64_t i = 0; i < 6997; ++i) {
      double t = x.get({i}), exact = 1 / (1 + std::exp(-2 * (t * t * t + 3 * t)));
      ASSERT_NEAR(y.get({i}), exact, exact * (type == f16 ? 0x1p-10 : 0x1p-7) + 1e-7) << t;
    }
  }
}

/// The logarithm of each row's sum of powers: of e, relative to the largest, and of two, as they are.
const Kernel logSums("log_sums(x, ofE, ofTwo, cols)", [](View x, View ofE, View ofTwo, Param cols) {
  Index i = grid(x.size(0));
  Tile t = x.load({i, 0}, {1, cols}, -inf).to(f32), m = max(t, 1);
  ofE.store({i, 0}, m + log(sum(exp(t - m), 1)));
  ofTwo.store({i, 0}, log2(sum(exp2(t), 1)));
});

TEST(CpuPowers, AddedUp) {
  constexpr int64_t rows = 40, cols = 1000;
  for (DType type : {f32, bf16})
    for (const char *isa : {"native", "avx2", "baseline"}) {
      Tensor x = Tensor::empty(type, {rows, cols}), ofE = Tensor::zeros(f32, {rows, 1}),
             ofTwo = Tensor::zeros(f32, {rows, 1});
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) // powers of about 1, where what is left is rounded, and of 2^-120 to 2^120
          x.set({i, j},
                std::sin(static_cast<double>(i * cols + j)) * (i < 4 ? 0x1p-6 : 4) + (i < 8 ? 0 : 6.0 * (i - 24)));
      x.set({0, 3}, -INFINITY);
      x.set({1, 3}, INFINITY);
      x.set({2, 3}, NAN);
      x.set({3, 3}, -300);
      LaunchOptions options;
      options.compile.isa = isa;
      options.params = {{"cols", 1024}};
      launch(logSums, {x, ofE, ofTwo}, options);
      for (int64_t i = 0; i < rows; ++i) {
        double e = 0, two = 0;
        for (int64_t j = 0; j < cols; ++j) {
          e += std::exp(x.get({i, j}));
          two += std::exp2(x.get({i, j}));
        }
        if (i == 1 || i == 2) {
          EXPECT_TRUE(std::isnan(ofE.get({i, 0}))) << i;
          EXPECT_TRUE(i == 1 ? ofTwo.get({i, 0}) == INFINITY : std::isnan(ofTwo.get({i, 0}))) << i;
          continue;
        }
        // Half a unit in the last place of the result, 2^-22.6 of a power, and a few additions.
        auto allowed = [](double exact) { return 0x1p-21 + std::abs(exact) * 0x1p-23; };
        ASSERT_NEAR(ofE.get({i, 0}), std::log(e), allowed(std::log(e))) << i << " " << isa << " " << nameOf(type);
        ASSERT_NEAR(ofTwo.get({i, 0}), std::log2(two), 2 * allowed(std::log2(two))) << i << " " << isa;
      }
    }
}

/// e^(-x^2 / 2) over the normal distribution at x, but for a factor: it grows as -x where both vanish. What is divided
/// by must not be 0 before it leaves the numbers.
const Kernel millsRatio("mills_ratio(x, y, cols=256)", [](View x, View y, Param cols) {
  Index i = grid(cdiv(x.size(0), cols));
  Tile t = x.load({i * cols}, {cols}).to(f32);
  y.store({i * cols}, (exp(-0.5 * t * t) / (0.5 * (1 + erf(t * 0.7071067811865476)))).to(y.dtype()));
});

TEST(CpuPowers, Divisors) {
  Tensor x = Tensor::empty(bf16, {7000});
  for (int64_t i = 0; i < 7000; ++i)
    x.set({i}, 3 - static_cast<double>(i) * 0.00175);
  Tensor y = resultOf(millsRatio, {x}, bf16, "native");
  for (int64_t i = 0; i < 7000; ++i) {
    double t = x.get({i}), exact = std::exp(-t * t / 2) / (std::erfc(-t * std::sqrt(0.5)) / 2);
    ASSERT_NEAR(y.get({i}), exact, exact * 0x1p-7) << t;
  }
}

/// Squared forty times: each product is a use of the one before twice, which must not be followed 2^40 times.
const Kernel squares("squares(x, y, cols=256)", [](View x, View y, Param cols) {
  Index i = grid(cdiv(x.size(0), cols));
  Tile t = 1 + erf(x.load({i * cols}, {cols}).to(f32));
  for (int n = 0; n < 40; ++n)
    t = t * t;
  y.store({i * cols}, t.to(y.dtype()));
});

TEST(CpuPowers, Squares) {
  Tensor x = Tensor::empty(bf16, {2});
  x.set({0}, -1);
  x.set({1}, 1);
  Tensor y = resultOf(squares, {x}, bf16, "native");
  EXPECT_EQ(y.get({0}), 0);
  EXPECT_EQ(y.get({1}), std::numeric_limits<double>::infinity());
}

/// The normal distribution's function, twice that of x sqrt(2), and a unit with tanh: what AVX-512 finds in tables.
const Kernel distributions("distributions(x, half, whole, unit, cols=256)", [](View x, View half, View whole, View unit,
                                                                               Param cols) {
  Index i = grid(cdiv(x.size(0), cols));
  Tile t = x.load({i * cols}, {cols}).to(f32);
  half.store({i * cols}, (0.5 * (1 + erf(t * 0.7071067811865476))).to(half.dtype()));
  whole.store({i * cols}, (1 + erf(t)).to(whole.dtype()));
  unit.store({i * cols}, (0.5 * t * (1 + tanh(0.7978845608028654 * (t + 0.044715 * t * t * t)))).to(unit.dtype()));
});

TEST(CpuPowers, EveryBf16) {
  constexpr int64_t count = 0x10000;
  constexpr double rounding = 0x1.1p-8; // half a unit in the last place, and a sixteenth of that
  Tensor x = Tensor::empty(bf16, {count}), half = Tensor::zeros(bf16, {count}), whole = Tensor::zeros(bf16, {count}),
         unit = Tensor::zeros(bf16, {count});
  for (int64_t i = 0; i < count; ++i)
    x.set({i}, std::bit_cast<float>(static_cast<uint32_t>(i) << 16));
  launch(distributions, {x, half, whole, unit});
  for (int64_t i = 0; i < count; ++i) {
    double t = x.get({i});
    if (std::isnan(t)) {
      ASSERT_TRUE(std::isnan(half.get({i})) && std::isnan(whole.get({i})) && std::isnan(unit.get({i}))) << i;
      continue;
    }
    double cubic = 0.7978845608028654 * (t + 0.044715 * t * t * t);
    double halfOf = std::erfc(-t * std::sqrt(0.5)) / 2, wholeOf = std::erfc(-t),
           unitOf = t / (1 + std::exp(-2 * cubic));
    ASSERT_NEAR(half.get({i}), halfOf, rounding * halfOf + 0x1p-24) << t;
    ASSERT_NEAR(whole.get({i}), wholeOf, rounding * wholeOf + 0x1p-23) << t;
    if (std::isinf(t))
      ASSERT_TRUE(t > 0 ? unit.get({i}) == t : std::isnan(unit.get({i})));
    else
      ASSERT_NEAR(unit.get({i}), unitOf, rounding * std::abs(unitOf) + 6 * 0x1p-24) << t;
  }
}

/// A gate and what it leaves: a sigmoid that is one function, of x and of what x is multiplied by.
const Kernel gates("gates(x, y, cols=256)", [](View x, View y, Param cols) {
  Index i = grid(cdiv(x.size(0), cols));
  Tile t = x.load({i * cols}, {cols}).to(f32);
  y.store({i * cols}, (sigmoid(t) * sigmoid(-0.5 * t)).to(y.dtype()));
});

TEST(CpuPowers, EverySigmoid) {
  constexpr int64_t count = 0x10000;
  for (DType type : {bf16, f16})
    for (const char *isa : {"native", "avx2"}) {
      Tensor x = Tensor::empty(type, {count}), y = Tensor::zeros(type, {count});
      for (int64_t i = 0; i < count; ++i)
        x.set({i}, std::bit_cast<float>(static_cast<uint32_t>(i) << 16)); // those of f16 that bf16 has, too
      LaunchOptions options;
      options.compile.isa = isa;
      launch(gates, {x, y}, options);
      double rounding = type == bf16 ? 0x1.1p-8 : 0x1.2p-11, least = type == bf16 ? 0x1p-134 : 0x1p-25;
      for (int64_t i = 0; i < count; ++i) {
        double t = x.get({i}), exact = 1 / (1 + std::exp(-t)) / (1 + std::exp(0.5 * t));
        if (std::isnan(t))
          ASSERT_TRUE(std::isnan(y.get({i}))) << i;
        else
          ASSERT_NEAR(y.get({i}), exact, rounding * exact + least) << t << " " << isa;
      }
    }
}

} // namespace
