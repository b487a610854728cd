// SPDX-License-Identifier: Apache-2.0
//
// The accuracy of the maths expansion, against MPFR. Errors are in units in the last place of the exact result (the
// spacing of the format at that result, subnormals included); infinity counts as the next power of two, so that an
// early or late overflow is an ordinary error. Every function must stay within 2 ulp; the measured maxima are printed.
#include "tenon/compiler/math/Functions.h"
#include "tenon/compiler/math/HostArithmetic.h"
#include "tenon/compiler/math/Relaxed.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cinttypes>
#include <cstdio>
#include <functional>
#include <random>
#include <thread>
#include <vector>

using namespace tenon::math;

namespace {

constexpr double allowedUlps = 2;
constexpr mpfr_prec_t referenceBits = 160;

template <class T> T ours(Function function, T x) {
  HostArithmetic host;
  return evaluate<T>(host, function, x);
}

/// A number of MPFR with a scope.
class Real {
public:
  explicit Real(mpfr_prec_t bits = referenceBits) { mpfr_init2(value, bits); }
  Real(const Real &) = delete;
  Real &operator=(const Real &) = delete;
  ~Real() { mpfr_clear(value); }
  operator mpfr_ptr() { return value; }

private:
  mpfr_t value;
};

void reference(Function function, mpfr_ptr result, mpfr_ptr x) {
  switch (function) {
  case Function::Exp:
    mpfr_exp(result, x, MPFR_RNDN);
    return;
  case Function::Exp2:
    mpfr_exp2(result, x, MPFR_RNDN);
    return;
  case Function::Expm1: mpfr_expm1(result, x, MPFR_RNDN); return;
  case Function::Log:
    mpfr_log(result, x, MPFR_RNDN);
    return;
  case Function::Log2:
    mpfr_log2(result, x, MPFR_RNDN);
    return;
  case Function::Log1p: mpfr_log1p(result, x, MPFR_RNDN); return;
  case Function::Sin:
    mpfr_sin(result, x, MPFR_RNDN);
    return;
  case Function::Cos:
    mpfr_cos(result, x, MPFR_RNDN);
    return;
  case Function::Tanh:
    mpfr_tanh(result, x, MPFR_RNDN);
    return;
  case Function::Erf:
    mpfr_erf(result, x, MPFR_RNDN);
    return;
  case Function::Rsqrt:
    // MPFR has rsqrt(-0) = +infinity; IEEE 754, and we, -infinity.
    if (mpfr_zero_p(x))
      mpfr_set_inf(result, mpfr_signbit(x) ? -1 : 1);
    else
      mpfr_rec_sqrt(result, x, MPFR_RNDN);
    return;
  }
}

/// The same in double from the C library: good to 2^-28 of a float ulp, and fast. A filter only, see measure().
double quickReference(Function function, double x) {
  switch (function) {
  case Function::Exp:
    return std::exp(x);
  case Function::Exp2:
    return std::exp2(x);
  case Function::Expm1: return std::expm1(x);
  case Function::Log:
    return std::log(x);
  case Function::Log2:
    return std::log2(x);
  case Function::Log1p: return std::log1p(x);
  case Function::Sin:
    return std::sin(x);
  case Function::Cos:
    return std::cos(x);
  case Function::Tanh:
    return std::tanh(x);
  case Function::Erf:
    return std::erf(x);
  case Function::Rsqrt:
    return 1 / std::sqrt(x);
  }
  return 0;
}

constexpr double wrong = std::numeric_limits<double>::infinity();

/// The error of y as function(x), in ulps.
template <class T> double ulps(Function function, T x, T y, Real &exact, Real &difference) {
  using Limits = std::numeric_limits<T>;
  mpfr_set_d(exact, x, MPFR_RNDN);
  reference(function, exact, exact);
  if (mpfr_nan_p(static_cast<mpfr_ptr>(exact)))
    return std::isnan(y) ? 0 : wrong;
  if (std::isnan(y))
    return wrong;
  // An infinite result is exact only when it is one at a pole or at infinity, or the overflow of a finite one.
  if (mpfr_inf_p(static_cast<mpfr_ptr>(exact)))
    return y == static_cast<T>(mpfr_get_d(exact, MPFR_RNDN)) ? 0 : wrong;
  if (std::signbit(y) != (mpfr_signbit(static_cast<mpfr_ptr>(exact)) != 0) && y != 0)
    return wrong;
  mpfr_exp_t exponent = mpfr_zero_p(static_cast<mpfr_ptr>(exact)) ? -10000 : mpfr_get_exp(exact);
  // Beyond the format everything is the power of two that infinity stands for.
  if (exponent > Limits::max_exponent) {
    mpfr_set_ui_2exp(exact, 1, Limits::max_exponent, MPFR_RNDN);
    exponent = Limits::max_exponent;
  }
  exponent = std::max<mpfr_exp_t>(exponent, Limits::min_exponent);
  if (std::isinf(y)) {
    mpfr_set_ui_2exp(difference, 1, Limits::max_exponent, MPFR_RNDN);
    if (y < 0)
      mpfr_neg(difference, difference, MPFR_RNDN);
  } else {
    mpfr_set_d(difference, y, MPFR_RNDN);
  }
  mpfr_sub(difference, difference, exact, MPFR_RNDN);
  mpfr_mul_2si(difference, difference, Limits::digits - exponent, MPFR_RNDN);
  return std::fabs(mpfr_get_d(difference, MPFR_RNDN));
}

template <class T> struct Worst {
  double error = 0;
  T at = 0;
  std::uint64_t samples = 0;
  Real exact, difference;

  void measure(Function function, T x) {
    ++samples;
    T y = ours(function, x);
    // For float, MPFR judges each 16th sample, and each that matters.
    if constexpr (std::is_same_v<T, float>) {
      if (samples % 16 != 0 && !mayMatter(function, x, y))
        return;
    }
    double e = ulps(function, x, y, exact, difference);
    if (!(e <= error)) {
      error = e;
      at = x;
    }
  }

  /// Whether the double reference leaves it open that the error is above the maximum so far, and half an ulp.
  bool mayMatter(Function function, float x, float y) const {
    return !(quickError(function, x, y) < std::max(error, 0.5) - 0.001);
  }

  static double quickError(Function function, float x, float y) {
    double expected = quickReference(function, x);
    if (std::isnan(expected) && std::isnan(y))
      return -1;
    if (std::isinf(y) && std::fabs(expected) >= 0x1p128 && std::signbit(expected) == std::signbit(y))
      return -1;
    if (!(std::fabs(expected) < std::numeric_limits<float>::max()) || !std::isfinite(y))
      return wrong;
    // 2^23 over the power of two at or below |expected| (of the subnormals: the smallest normal number), made from its
    // bits since the exhaustive test comes here 2^32 times.
    double atLeast = std::max(std::fabs(expected), static_cast<double>(std::numeric_limits<float>::min()));
    std::uint64_t field = std::bit_cast<std::uint64_t>(atLeast) >> 52;
    return std::fabs((y - expected) * std::bit_cast<double>((2 * std::uint64_t(1023) + 23 - field) << 52));
  }
};

template <class T> void addNeighbours(std::vector<T> &points, T x, int count) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  T up = x, down = x;
  points.push_back(x);
  for (int i = 0; i < count; ++i) {
    points.push_back(up = std::nextafter(up, infinity));
    points.push_back(down = std::nextafter(down, -infinity));
  }
}

/// Doubles (or floats) that lie closest to multiples of pi/2, for every exponent: the denominators of the continued
/// fraction of 2^e 2/pi that fit the significand, scaled to its full width where they are short.
template <class T> void addWorstForReduction(std::vector<T> &points) {
  constexpr int digits = std::numeric_limits<T>::digits;
  Real value(1400), whole(1400);
  for (int e = -digits; e <= std::numeric_limits<T>::max_exponent - digits; ++e) {
    mpfr_const_pi(value, MPFR_RNDN);
    mpfr_ui_div(value, 2, value, MPFR_RNDN);
    mpfr_mul_2si(value, value, e, MPFR_RNDN);
    mpfr_frac(value, value, MPFR_RNDN);
    double previous = 0, current = 1;
    while (true) {
      mpfr_ui_div(value, 1, value, MPFR_RNDN);
      mpfr_floor(whole, value);
      double next = mpfr_get_d(whole, MPFR_RNDN) * current + previous;
      if (next >= std::ldexp(1.0, digits))
        break;
      mpfr_sub(value, value, whole, MPFR_RNDN);
      previous = current;
      current = next;
      if (current > std::ldexp(1.0, digits - 12))
        points.push_back(static_cast<T>(std::ldexp(current, e)));
    }
  }
  // Multiples of pi/2 of ordinary size.
  for (int k = 1; k < 20000; ++k) {
    mpfr_const_pi(value, MPFR_RNDN);
    mpfr_mul_ui(value, value, k, MPFR_RNDN);
    mpfr_div_2ui(value, value, 2, MPFR_RNDN); // of pi/4: where the polynomials meet
    addNeighbours(points, static_cast<T>(mpfr_get_d(value, MPFR_RNDN)), 1);
  }
}

/// Ends of the range, thresholds of the methods, and all powers of two, with neighbours and both signs.
template <class T> std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> points;
  for (T x : {T(0), Limits::denorm_min(), Limits::min(), Limits::max(), Limits::infinity(), Limits::quiet_NaN(), T(1),
              T(0.5), T(2), T(0.70710678118654752), T(1.4142135623730951), T(0.78539816339744831),
              T(0.34657359027997264), T(1.0397207708399179), T(0.625), T(3.95), T(5.92), T(6), T(9.01), T(9.25),
              T(19.06), T(20)})
    addNeighbours(points, x, 200);
  for (T x : {T(88.72284), T(-87.33655), T(-103.27893), T(-103.97208), T(-104.5), T(89), T(128), T(-126), T(-149),
              T(-150), T(709.782712893384), T(-708.3964185322641), T(-744.4400719213812), T(-745.1332191019412),
              T(1024), T(-1022), T(-1074), T(-1075)})
    addNeighbours(points, x, 2000);
  for (int e = Limits::min_exponent - Limits::digits; e < Limits::max_exponent; ++e)
    addNeighbours(points, std::ldexp(T(1), e), 20);
  size_t count = points.size();
  for (size_t i = 0; i < count; ++i)
    points.push_back(-points[i]);
  return points;
}

/// Where the function is neither constant nor the identity, in magnitude; sampled more densely.
double interestingReach(Function function, bool isFloat) {
  switch (function) {
  case Function::Exp:
  case Function::Expm1: return isFloat ? 105 : 747;
  case Function::Exp2:
    return isFloat ? 151 : 1077;
  case Function::Tanh:
    return isFloat ? 10 : 21;
  case Function::Erf:
    return isFloat ? 4 : 6.1;
  case Function::Sin:
  case Function::Cos:
    return 100;
  default:
    return 3;
  }
}

/// Random bit patterns (one from each of `patterns` equal strata), and uniform numbers of the interesting range.
template <class T> void forSamples(Function function, std::uint64_t patterns, std::function<void(T)> visit) {
  using Bits = typename Format<T>::Bits;
  std::mt19937_64 random(20 + static_cast<unsigned>(function));
  Bits stratum = ~Bits(0) / static_cast<Bits>(patterns) + 1;
  for (std::uint64_t i = 0; i < patterns; ++i)
    visit(std::bit_cast<T>(static_cast<Bits>(i * stratum + random() % stratum)));
  double reach = interestingReach(function, std::is_same_v<T, float>);
  std::uniform_real_distribution<double> wide(-reach, reach), narrow(-2, 2), nearOne(0.9, 1.1);
  for (std::uint64_t i = 0; i < patterns / 2; ++i) {
    visit(static_cast<T>(wide(random)));
    visit(static_cast<T>(narrow(random)));
    if (i % 4 == 0)
      visit(static_cast<T>(nearOne(random)));
  }
  for (T x : edges<T>())
    visit(x);
  if (function == Function::Sin || function == Function::Cos) {
    std::vector<T> points;
    addWorstForReduction(points);
    for (T x : points)
      visit(x);
  }
}

template <class T> void report(Function function, const Worst<T> &worst) {
  std::printf("%-6s %s  %.3f ulp at %-24a (%" PRIu64 " measured)\n", name(function),
              std::is_same_v<T, float> ? "f32" : "f64", worst.error, static_cast<double>(worst.at), worst.samples);
  std::fflush(stdout);
}

class MathAccuracy : public testing::TestWithParam<Function> {};

TEST_P(MathAccuracy, F32) {
  Worst<float> worst;
  forSamples<float>(GetParam(), 1u << 20, [&](float x) { worst.measure(GetParam(), x); });
  report(GetParam(), worst);
  EXPECT_LE(worst.error, allowedUlps) << "at " << worst.at;
}

TEST_P(MathAccuracy, F64) {
  Worst<double> worst;
  forSamples<double>(GetParam(), 200000, [&](double x) { worst.measure(GetParam(), x); });
  report(GetParam(), worst);
  EXPECT_LE(worst.error, allowedUlps) << "at " << worst.at;
}

/// Every float: about a minute per function.
TEST_P(MathAccuracy, DISABLED_F32Exhaustive) {
  Function function = GetParam();
  unsigned count = std::max(1u, std::thread::hardware_concurrency());
  std::vector<Worst<float>> worst(count);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t bits = t; bits < (std::uint64_t(1) << 32); bits += count) {
        float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        // No 16th sample for MPFR here: that alone would take hours.
        if (worst[t].mayMatter(function, x, ours(function, x)))
          worst[t].measure(function, x);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (Worst<float> &w : worst) {
    report(function, w);
    EXPECT_LE(w.error, allowedUlps) << "at " << w.at;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MathAccuracy, testing::ValuesIn(allFunctions),
                         [](const auto &instance) { return std::string(name(instance.param)); });

/// Values that must be exact, sign of zero included.
template <class T> void checkSpecialValues() {
  constexpr T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  struct Case {
    Function function;
    T x, y;
  };
  const Case cases[] = {
      {Function::Exp, T(0), T(1)},           {Function::Exp, -T(0), T(1)},
      {Function::Exp, infinity, infinity},   {Function::Exp, -infinity, T(0)},
      {Function::Exp2, T(0), T(1)},          {Function::Exp2, infinity, infinity},
      {Function::Exp2, -infinity, T(0)},     {Function::Exp2, T(10), T(1024)},
      {Function::Log, T(1), T(0)},           {Function::Log, T(0), -infinity},
      {Function::Log, -T(0), -infinity},     {Function::Log, infinity, infinity},
      {Function::Log, T(-1), nan},           {Function::Log, -infinity, nan},
      {Function::Expm1, T(0), T(0)},         {Function::Expm1, -T(0), -T(0)},
      {Function::Expm1, infinity, infinity}, {Function::Expm1, -infinity, T(-1)},
      {Function::Log1p, T(0), T(0)},         {Function::Log1p, -T(0), -T(0)},
      {Function::Log1p, T(-1), -infinity},   {Function::Log1p, infinity, infinity},
      {Function::Log1p, T(-2), nan},         {Function::Log2, T(1), T(0)},
      {Function::Log2, T(0), -infinity},     {Function::Log2, -T(0), -infinity},
      {Function::Log2, infinity, infinity},  {Function::Log2, T(-1), nan},
      {Function::Log2, -infinity, nan},      {Function::Log2, T(0.125), T(-3)},
      {Function::Sin, T(0), T(0)},           {Function::Sin, -T(0), -T(0)},
      {Function::Sin, infinity, nan},        {Function::Sin, -infinity, nan},
      {Function::Cos, T(0), T(1)},           {Function::Cos, -T(0), T(1)},
      {Function::Cos, infinity, nan},        {Function::Cos, -infinity, nan},
      {Function::Tanh, T(0), T(0)},          {Function::Tanh, -T(0), -T(0)},
      {Function::Tanh, infinity, T(1)},      {Function::Tanh, -infinity, T(-1)},
      {Function::Erf, T(0), T(0)},           {Function::Erf, -T(0), -T(0)},
      {Function::Erf, infinity, T(1)},       {Function::Erf, -infinity, T(-1)},
      {Function::Rsqrt, T(0), infinity},     {Function::Rsqrt, -T(0), -infinity},
      {Function::Rsqrt, infinity, T(0)},     {Function::Rsqrt, T(-1), nan},
      {Function::Rsqrt, -infinity, nan},     {Function::Rsqrt, T(4), T(0.5)},
  };
  for (const Case &c : cases) {
    T y = ours(c.function, c.x);
    bool same = std::isnan(c.y) ? std::isnan(y) : y == c.y && std::signbit(y) == std::signbit(c.y);
    EXPECT_TRUE(same) << name(c.function) << "(" << c.x << ") = " << y << ", not " << c.y;
  }
  // NaNs of any sign and payload stay NaN.
  using Bits = typename Format<T>::Bits;
  Bits quiet = std::bit_cast<Bits>(nan);
  for (Function function : allFunctions)
    for (Bits bits : {quiet, Bits(quiet | 1), Bits(~Bits(0)), Bits(~Bits(0) >> 1), Bits(quiet | Format<T>::signMask)})
      EXPECT_TRUE(std::isnan(ours(function, std::bit_cast<T>(bits)))) << name(function) << " of a NaN";
}

TEST(MathSpecialValues, F32) { checkSpecialValues<float>(); }
TEST(MathSpecialValues, F64) { checkSpecialValues<double>(); }

/// 1 + erf and 1 + tanh as one function each: their error is that of the sum, in absolute terms, and special values are
/// the sum's.
TEST(MathSums, AreAsGoodAsTheSum) {
  HostArithmetic host;
  double erfError = 0, tanhError = 0, tanhRelative = 0, cubicError = 0;
  auto measure = [&](float x) {
    double erfExact = std::erfc(-static_cast<double>(x)), tanhExact = 2 / (1 + std::exp(-2 * static_cast<double>(x)));
    erfError = std::max(erfError, std::abs(onePlusErf(host, x) - erfExact));
    double tanhOff = std::abs(onePlusTanh(host, x) - tanhExact);
    tanhError = std::max(tanhError, tanhOff);
    if (x > -40) // above the subnormals; the exponent's rounding grows with it
      tanhRelative = std::max(tanhRelative, tanhOff / tanhExact / std::max(1.0, std::abs(static_cast<double>(x))));
    constexpr double first = 0.7978845608028654, third = first * 0.044715;
    double cubic = x * (first + third * x * x);
    cubicError =
        std::max(cubicError, std::abs(onePlusTanhOfCubic(host, x, first, third) - 2 / (1 + std::exp(-2 * cubic))));
  };
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0, 2);
  for (int i = 0; i < 2'000'000; ++i)
    measure(normal(generator));
  for (float x = 1e-30f; x < 1e30f; x *= 1.01f) {
    measure(x);
    measure(-x);
  }
  std::printf(
      "1 + erf %.2f, 1 + tanh %.2f, of a cubic %.2f times 2^-24; 1 + tanh relative to it and to |x| %.2f times 2^-24\n",
      erfError * 0x1p24, tanhError * 0x1p24, cubicError * 0x1p24, tanhRelative * 0x1p24);
  EXPECT_LE(erfError, 2.5 * 0x1p-24);
  EXPECT_LE(tanhError, 3.5 * 0x1p-24);
  EXPECT_LE(cubicError, 3.5 * 0x1p-24);
  EXPECT_LE(tanhRelative, 5 * 0x1p-24);

  const float infinity = std::numeric_limits<float>::infinity();
  for (auto *sum : {+[](HostArithmetic &a, float x) { return onePlusErf(a, x); },
                    +[](HostArithmetic &a, float x) { return onePlusTanh(a, x); },
                    +[](HostArithmetic &a, float x) { return onePlusTanhOfCubic(a, x, 0.8, 0.04); }}) {
    EXPECT_EQ(sum(host, infinity), 2);
    EXPECT_EQ(sum(host, -infinity), 0);
    EXPECT_EQ(sum(host, 0.0f), 1);
    EXPECT_EQ(sum(host, -0.0f), 1);
    EXPECT_EQ(sum(host, std::numeric_limits<float>::max()), 2);
    EXPECT_EQ(sum(host, -std::numeric_limits<float>::max()), 0);
    EXPECT_TRUE(std::isnan(sum(host, std::numeric_limits<float>::quiet_NaN())));
  }
}

/// Half the sum, as one function, is half of what the sum is, bit for bit where that is a normal number.
TEST(MathSums, HalvesAreHalves) {
  HostArithmetic host;
  std::mt19937 generator(2);
  std::normal_distribution<float> normal(0, 3);
  for (int i = 0; i < 200'000; ++i) {
    float x = normal(generator);
    auto same = [&](float whole, float half) {
      if (whole / 2 >= std::numeric_limits<float>::min())
        ASSERT_EQ(whole / 2, half) << x;
    };
    same(onePlusErf(host, x), onePlusErf(host, x, true));
    same(onePlusTanh(host, x), onePlusTanh(host, x, true));
    same(relaxedOnePlusErf(host, x), relaxedOnePlusErf(host, x, true));
    same(relaxedOnePlusTanh(host, x), relaxedOnePlusTanh(host, x, true));
  }
}

/// The largest errors of the functions for results of 16 bits, relative to the exact result, where that is normal.
struct RelaxedErrors {
  double exp = 0, exp2 = 0, erf = 0, erfTail = 0, tanh = 0;
  double coarseExp = 0, coarseExp2 = 0, coarseErf = 0, coarseErfTail = 0, coarseTanh = 0; ///< for bf16

  void measure(float x) {
    HostArithmetic host;
    constexpr double least = std::numeric_limits<float>::min(), most = std::numeric_limits<float>::max();
    auto take = [&](double &worst, double got, double exact) {
      if (exact >= least && exact <= most)
        worst = std::max(worst, std::isnan(got) ? wrong : std::abs(got - exact) / exact);
      else if (!(exact < least ? std::abs(got - exact) <= 0x1p-140 || got <= 2 * least : got >= most / 2))
        worst = wrong;
    };
    double wide = x;
    take(exp, relaxedExp(host, x), std::exp(wide));
    if (x <= 0) {
      take(exp, relaxedExpOfNonPositive(host, x, Grain::f16), std::exp(wide));
      take(coarseExp, relaxedExpOfNonPositive(host, x, Grain::bf16), std::exp(wide));
    }
    take(exp2, relaxedExp2(host, x), std::exp2(wide));
    take(tanh, relaxedOnePlusTanh(host, x), 2 / (1 + std::exp(-2 * wide)));
    if (x > -9.15f)
      take(x > -3 ? erf : erfTail, relaxedOnePlusErf(host, x), std::erfc(-wide));
    take(coarseExp, relaxedExp(host, x, Grain::bf16), std::exp(wide));
    take(coarseExp2, relaxedExp2(host, x, Grain::bf16), std::exp2(wide));
    take(coarseTanh, relaxedOnePlusTanh(host, x, false, Grain::bf16), 2 / (1 + std::exp(-2 * wide)));
    if (x > -9.15f)
      take(x > -3 ? coarseErf : coarseErfTail, relaxedOnePlusErf(host, x, false, Grain::bf16), std::erfc(-wide));
    constexpr double first = 0.7978845608028654, third = first * 0.044715; // GELU's
    take(coarseTanh, relaxedOnePlusTanhOfCubic(host, x, first, third, false, Grain::bf16),
         2 / (1 + std::exp(-2 * (first * wide + third * wide * wide * wide))));
    constexpr float scale = 0.70710678f; // GELU's
    if (double scaled = wide * scale; scaled > -9.15)
      take(scaled > -3 ? erf : erfTail, relaxedOnePlusErf(host, x, false, Grain::f16, scale), std::erfc(-scaled));
  }
  void join(const RelaxedErrors &other) {
    exp = std::max(exp, other.exp), exp2 = std::max(exp2, other.exp2), tanh = std::max(tanh, other.tanh);
    erf = std::max(erf, other.erf), erfTail = std::max(erfTail, other.erfTail);
    coarseExp = std::max(coarseExp, other.coarseExp), coarseExp2 = std::max(coarseExp2, other.coarseExp2);
    coarseErf = std::max(coarseErf, other.coarseErf), coarseErfTail = std::max(coarseErfTail, other.coarseErfTail);
    coarseTanh = std::max(coarseTanh, other.coarseTanh);
  }
  void judge() const {
    std::printf("relaxed, relative: exp 2^%.2f, exp2 2^%.2f, 1 + erf 2^%.2f (2^%.2f below -3), 1 + tanh 2^%.2f\n",
                std::log2(exp), std::log2(exp2), std::log2(erf), std::log2(erfTail), std::log2(tanh));
    EXPECT_LE(exp, 0x1p-17);
    EXPECT_LE(exp2, 0x1p-18);
    EXPECT_LE(erf, 0x1p-16);
    EXPECT_LE(erfTail, 0x1p-13);
    EXPECT_LE(tanh, 0x1p-17);
    std::printf("for bf16, relative: exp 2^%.2f, exp2 2^%.2f, 1 + erf 2^%.2f (2^%.2f below -3), 1 + tanh 2^%.2f\n",
                std::log2(coarseExp), std::log2(coarseExp2), std::log2(coarseErf), std::log2(coarseErfTail),
                std::log2(coarseTanh));
    EXPECT_LE(coarseExp, 0x1p-13);
    EXPECT_LE(coarseExp2, 0x1p-13);
    EXPECT_LE(coarseErf, 0x1p-13);
    EXPECT_LE(coarseErfTail, 0x1p-12);
    EXPECT_LE(coarseTanh, 0x1p-13);
  }
};

TEST(MathRelaxed, IsGoodEnoughFor16Bits) {
  RelaxedErrors errors;
  for (std::uint64_t bits = 0; bits < (std::uint64_t(1) << 32); bits += 1021)
    if (float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits)); !std::isnan(x))
      errors.measure(x);
  for (double x = -110; x < 110; x += 0x1p-12)
    errors.measure(static_cast<float>(x));
  errors.judge();
}

/// Every float.
TEST(MathRelaxed, DISABLED_Exhaustive) {
  unsigned count = std::max(1u, std::thread::hardware_concurrency());
  std::vector<RelaxedErrors> errors(count);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t bits = t; bits < (std::uint64_t(1) << 32); bits += count)
        if (float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits)); !std::isnan(x))
          errors[t].measure(x);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (unsigned t = 1; t < count; ++t)
    errors[0].join(errors[t]);
  errors[0].judge();
}

TEST(MathRelaxed, SpecialValues) {
  HostArithmetic host;
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (auto *power : {+[](HostArithmetic &a, float x) { return relaxedExp(a, x); },
                      +[](HostArithmetic &a, float x) { return relaxedExp2(a, x); }}) {
    EXPECT_EQ(power(host, infinity), infinity);
    EXPECT_EQ(power(host, -infinity), 0);
    EXPECT_TRUE(std::isnan(power(host, nan)));
  }
  for (Grain grain : {Grain::f16, Grain::bf16}) {
    EXPECT_EQ(relaxedExpOfNonPositive(host, -infinity, grain), 0);
    EXPECT_NEAR(relaxedExpOfNonPositive(host, -0.0f, grain), 1, 0x1p-13);
    EXPECT_TRUE(std::isnan(relaxedExpOfNonPositive(host, nan, grain)));
  }
  for (auto *sum : {+[](HostArithmetic &a, float x) { return relaxedOnePlusErf(a, x); },
                    +[](HostArithmetic &a, float x) { return relaxedOnePlusTanh(a, x); }}) {
    EXPECT_EQ(sum(host, infinity), 2);
    EXPECT_EQ(sum(host, -infinity), 0);
    EXPECT_NEAR(sum(host, 0.0f), 1, 0x1p-17);
    EXPECT_NEAR(sum(host, -0.0f), 1, 0x1p-17);
    EXPECT_TRUE(std::isnan(sum(host, nan)));
  }
}

} // namespace
