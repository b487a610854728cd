// SPDX-License-Identifier: Apache-2.0
//
// arith, math and tile.cast on tiles, with the values at which implementations differ.
#include "test/unit/interpret/Harness.h"

namespace tenon::interpret {
namespace {

constexpr int32_t min32 = std::numeric_limits<int32_t>::min(), max32 = std::numeric_limits<int32_t>::max();
constexpr int64_t min64 = std::numeric_limits<int64_t>::min(), max64 = std::numeric_limits<int64_t>::max();

class Elementwise : public InterpreterTest {
protected:
  std::vector<int32_t> i32(const std::string &op, std::vector<int32_t> a, std::vector<int32_t> b) {
    return apply<int32_t>("i32", "i32", "%r = " + op + " : $T", std::vector<std::vector<int32_t>>{a, b});
  }
  std::vector<uint8_t> compareF32(const std::string &predicate, std::vector<float> a, std::vector<float> b) {
    return apply<uint8_t>("f32", "i1", "%r = arith.cmpf " + predicate + ", %a, %b : $T",
                          std::vector<std::vector<float>>{a, b});
  }
};

using Bytes = std::vector<uint8_t>;
using Halves = std::vector<uint16_t>;

TEST_F(Elementwise, FloatArithmetic) {
  std::vector<float> a = {1, 0.1f, 1e38f, infinity, nan32, -0.0f}, b = {2, 0.2f, 1e38f, -infinity, 1, 0.0f};
  expectSame(f32("arith.addf %a, %b", {a, b}), {3, 0.1f + 0.2f, 2e38f, nan32, nan32, 0.0f});
  expectSame(f32("arith.subf %a, %b", {a, b}), {-1, 0.1f - 0.2f, 0, infinity, nan32, -0.0f});
  expectSame(f32("arith.mulf %a, %b", {a, b}), {2, 0.1f * 0.2f, infinity, -infinity, nan32, -0.0f});
  expectSame(f32("arith.divf %a, %b", {a, b}), {0.5f, 0.1f / 0.2f, 1, nan32, nan32, nan32});
  expectSame(f32("arith.divf %a, %b", {{1, -1, 1, 0}, {0, 0, -0.0f, 0}}), {infinity, -infinity, -infinity, nan32});
  expectSame(f32("arith.negf %a", {a}), {-1, -0.1f, -1e38f, -infinity, nan32, 0.0f});
  expectSame(f32("arith.remf %a, %b", {{5.5f, -5.5f, 5.5f, 1, infinity, 3}, {2, 2, -2, 0, 2, infinity}}),
             {1.5f, -1.5f, 1.5f, nan32, nan32, 3});
}

TEST_F(Elementwise, SubnormalsAreKept) {
  expectSame(f32("arith.mulf %a, %b", {{1e-30f}, {1e-10f}}), {1e-40f});
}

TEST_F(Elementwise, FloatMinMax) {
  std::vector<float> a = {1, nan32, 1, -0.0f, 0.0f, -infinity}, b = {2, 1, nan32, 0.0f, -0.0f, infinity};
  expectSame(f32("arith.maximumf %a, %b", {a, b}), {2, nan32, nan32, 0.0f, 0.0f, infinity});
  expectSame(f32("arith.minimumf %a, %b", {a, b}), {1, nan32, nan32, -0.0f, -0.0f, -infinity});
  expectSame(f32("arith.maxnumf %a, %b", {a, b}), {2, 1, 1, 0.0f, 0.0f, infinity});
  expectSame(f32("arith.minnumf %a, %b", {a, b}), {1, 1, 1, -0.0f, -0.0f, -infinity});
  expectSame(f32("arith.maxnumf %a, %b", {{nan32}, {nan32}}), {nan32});
}

TEST_F(Elementwise, FloatComparisons) {
  std::vector<float> a = {1, 2, 2, nan32, 0.0f}, b = {2, 1, 2, 1, -0.0f};
  EXPECT_EQ(compareF32("false", a, b), (Bytes{0, 0, 0, 0, 0}));
  EXPECT_EQ(compareF32("oeq", a, b), (Bytes{0, 0, 1, 0, 1}));
  EXPECT_EQ(compareF32("ogt", a, b), (Bytes{0, 1, 0, 0, 0}));
  EXPECT_EQ(compareF32("oge", a, b), (Bytes{0, 1, 1, 0, 1}));
  EXPECT_EQ(compareF32("olt", a, b), (Bytes{1, 0, 0, 0, 0}));
  EXPECT_EQ(compareF32("ole", a, b), (Bytes{1, 0, 1, 0, 1}));
  EXPECT_EQ(compareF32("one", a, b), (Bytes{1, 1, 0, 0, 0}));
  EXPECT_EQ(compareF32("ord", a, b), (Bytes{1, 1, 1, 0, 1}));
  EXPECT_EQ(compareF32("ueq", a, b), (Bytes{0, 0, 1, 1, 1}));
  EXPECT_EQ(compareF32("ugt", a, b), (Bytes{0, 1, 0, 1, 0}));
  EXPECT_EQ(compareF32("uge", a, b), (Bytes{0, 1, 1, 1, 1}));
  EXPECT_EQ(compareF32("ult", a, b), (Bytes{1, 0, 0, 1, 0}));
  EXPECT_EQ(compareF32("ule", a, b), (Bytes{1, 0, 1, 1, 1}));
  EXPECT_EQ(compareF32("une", a, b), (Bytes{1, 1, 0, 1, 0}));
  EXPECT_EQ(compareF32("uno", a, b), (Bytes{0, 0, 0, 1, 0}));
  EXPECT_EQ(compareF32("true", a, b), (Bytes{1, 1, 1, 1, 1}));
}

TEST_F(Elementwise, NarrowFloatsRoundAfterEveryOperation) {
  // 2048 + 1 is a tie in f16 (to even: 2048); 2048 + 3 rounds up to 2052. 65504 + 32 ties to infinity.
  EXPECT_EQ(apply<uint16_t>("f16", "f16", "%r = arith.addf %a, %b : $T",
                            std::vector<Halves>{{0x6800, 0x6800, 0x7bff, 0x7e00}, {0x3c00, 0x4200, 0x5000, 0x3c00}}),
            (Halves{0x6800, 0x6802, 0x7c00, 0x7e00}));
  // bf16: 256 + 1 is a tie (256); 1 / 3.
  EXPECT_EQ(apply<uint16_t>("bf16", "bf16", "%r = arith.addf %a, %b : $T", std::vector<Halves>{{0x4380}, {0x3f80}}),
            (Halves{0x4380}));
  EXPECT_EQ(apply<uint16_t>("bf16", "bf16", "%r = arith.divf %a, %b : $T", std::vector<Halves>{{0x3f80}, {0x4040}}),
            (Halves{0x3eab}));
  // f8e4m3 saturates: 448 + 448.
  EXPECT_EQ(apply<uint8_t>("f8E4M3FN", "f8E4M3FN", "%r = arith.addf %a, %b : $T", std::vector<Bytes>{{0x7e}, {0x7e}}),
            (Bytes{0x7e}));
}

TEST_F(Elementwise, DoubleArithmetic) {
  EXPECT_EQ(apply<double>("f64", "f64", "%r = arith.addf %a, %b : $T", std::vector<std::vector<double>>{{0.1}, {0.2}}),
            (std::vector<double>{0.1 + 0.2}));
  EXPECT_EQ(apply<double>("f64", "f64", "%r = math.exp %a : $T", std::vector<std::vector<double>>{{1, 0}}),
            (std::vector<double>{std::exp(1.0), 1}));
}

TEST_F(Elementwise, IntegerArithmeticWraps) {
  EXPECT_EQ(i32("arith.addi %a, %b", {1, max32}, {2, 1}), (std::vector<int32_t>{3, min32}));
  EXPECT_EQ(i32("arith.subi %a, %b", {1, min32}, {2, 1}), (std::vector<int32_t>{-1, max32}));
  EXPECT_EQ(i32("arith.muli %a, %b", {-3, 65536}, {2, 65536}), (std::vector<int32_t>{-6, 0}));
  EXPECT_EQ(i32("arith.andi %a, %b", {12}, {10}), (std::vector<int32_t>{8}));
  EXPECT_EQ(i32("arith.ori %a, %b", {12}, {10}), (std::vector<int32_t>{14}));
  EXPECT_EQ(i32("arith.xori %a, %b", {12}, {10}), (std::vector<int32_t>{6}));
  EXPECT_EQ(i32("arith.maxsi %a, %b", {-1, 2}, {1, 1}), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(i32("arith.minsi %a, %b", {-1, 2}, {1, 1}), (std::vector<int32_t>{-1, 1}));
  EXPECT_EQ(i32("arith.maxui %a, %b", {-1, 2}, {1, 1}), (std::vector<int32_t>{-1, 2}));
  EXPECT_EQ(i32("arith.minui %a, %b", {-1, 2}, {1, 1}), (std::vector<int32_t>{1, 1}));
  using I8 = std::vector<int8_t>;
  EXPECT_EQ(apply<int8_t>("i8", "i8", "%r = arith.addi %a, %b : $T", std::vector<I8>{{127}, {1}}), (I8{-128}));
  EXPECT_EQ(apply<int8_t>("i8", "i8", "%r = math.absi %a : $T", std::vector<I8>{{-5, 5, -128}}), (I8{5, 5, -128}));
}

TEST_F(Elementwise, IntegerComparisons) {
  auto compare = [&](const std::string &predicate) {
    return apply<uint8_t>("i32", "i1", "%r = arith.cmpi " + predicate + ", %a, %b : $T",
                          std::vector<std::vector<int32_t>>{{-1, 1, 3}, {1, -1, 3}});
  };
  EXPECT_EQ(compare("eq"), (Bytes{0, 0, 1}));
  EXPECT_EQ(compare("ne"), (Bytes{1, 1, 0}));
  EXPECT_EQ(compare("slt"), (Bytes{1, 0, 0}));
  EXPECT_EQ(compare("sle"), (Bytes{1, 0, 1}));
  EXPECT_EQ(compare("sgt"), (Bytes{0, 1, 0}));
  EXPECT_EQ(compare("sge"), (Bytes{0, 1, 1}));
  EXPECT_EQ(compare("ult"), (Bytes{0, 1, 0}));
  EXPECT_EQ(compare("ule"), (Bytes{0, 1, 1}));
  EXPECT_EQ(compare("ugt"), (Bytes{1, 0, 0}));
  EXPECT_EQ(compare("uge"), (Bytes{1, 0, 1}));
}

TEST_F(Elementwise, DivisionAndShiftsAreDefinedEverywhere) {
  std::vector<int32_t> a = {7, -7, 7, -7, 5, min32}, b = {2, 2, -2, -2, 0, -1};
  EXPECT_EQ(i32("tile.div %a, %b", a, b), (std::vector<int32_t>{3, -3, -3, 3, 0, min32}));
  EXPECT_EQ(i32("tile.rem %a, %b", a, b), (std::vector<int32_t>{1, -1, 1, -1, 5, 0}));
  EXPECT_EQ(i32("tile.div unsigned %a, %b", {-1, 7, 7}, {2, -1, 0}), (std::vector<int32_t>{max32, 0, 0}));
  EXPECT_EQ(i32("tile.rem unsigned %a, %b", {-1, 7, 7}, {2, -1, 0}), (std::vector<int32_t>{1, 7, 7}));
  EXPECT_EQ(i32("tile.shl %a, %b", {1, 1, 1, 1}, {4, 31, 32, -1}), (std::vector<int32_t>{16, min32, 0, 0}));
  EXPECT_EQ(i32("tile.shr %a, %b", {-16, -16, 16, -16}, {2, 32, 32, -1}), (std::vector<int32_t>{-4, -1, 0, -1}));
  EXPECT_EQ(i32("tile.shr unsigned %a, %b", {-1, -1, 16}, {31, 32, 2}), (std::vector<int32_t>{1, 0, 4}));
  using I64 = std::vector<int64_t>;
  EXPECT_EQ(apply<int64_t>("i64", "i64", "%r = tile.div %a, %b : $T", std::vector<I64>{{min64, 9}, {-1, 0}}),
            (I64{min64, 0}));
}

TEST_F(Elementwise, ArithDivisionsAndShifts) {
  EXPECT_EQ(i32("arith.divsi %a, %b", {-7}, {2}), (std::vector<int32_t>{-3}));
  EXPECT_EQ(i32("arith.divui %a, %b", {-1}, {2}), (std::vector<int32_t>{max32}));
  EXPECT_EQ(i32("arith.remsi %a, %b", {-7}, {2}), (std::vector<int32_t>{-1}));
  EXPECT_EQ(i32("arith.remui %a, %b", {-1}, {10}), (std::vector<int32_t>{5}));
  std::vector<int32_t> a = {7, -7, 7, -7, 6, 5}, b = {2, 2, -2, -2, 2, 0};
  EXPECT_EQ(i32("arith.ceildivsi %a, %b", a, b), (std::vector<int32_t>{4, -3, -3, 4, 3, 0}));
  EXPECT_EQ(i32("arith.floordivsi %a, %b", a, b), (std::vector<int32_t>{3, -4, -4, 3, 3, 0}));
  EXPECT_EQ(i32("arith.ceildivui %a, %b", {7, -1}, {2, 2}), (std::vector<int32_t>{4, min32}));
  EXPECT_EQ(i32("arith.shli %a, %b", {3}, {4}), (std::vector<int32_t>{48}));
  EXPECT_EQ(i32("arith.shrsi %a, %b", {-16}, {2}), (std::vector<int32_t>{-4}));
  EXPECT_EQ(i32("arith.shrui %a, %b", {-16}, {28}), (std::vector<int32_t>{15}));
}

TEST_F(Elementwise, ExtendedProducts) {
  auto high = [&](const std::string &op, int64_t a, int64_t b) {
    return apply<int64_t>("i64", "i64", "%low, %r = arith." + op + " %a, %b : $T",
                          std::vector<std::vector<int64_t>>{{a}, {b}})[0];
  };
  EXPECT_EQ(high("mulsi_extended", -1, 1), -1);
  EXPECT_EQ(high("mului_extended", -1, -1), -2);
  EXPECT_EQ(apply<int32_t>("i32", "i32", "%low, %r = arith.mulsi_extended %a, %b : $T",
                           std::vector<std::vector<int32_t>>{{1 << 20, -3}, {1 << 20, 5}}),
            (std::vector<int32_t>{256, -1}));
}

TEST_F(Elementwise, Select) {
  expectSame(apply<float>("f32", "f32", R"(
      %m = arith.cmpf olt, %a, %b : $T
      %x = arith.select %m, %a, %b : tensor<3xi1>, $T
      %false = arith.constant false
      %r = arith.select %false, %a, %x : $T)", std::vector<std::vector<float>>{{1, 2, nan32}, {2, 1, 5}}),
             {1, 1, 5});
}

TEST_F(Elementwise, MathExact) {
  std::vector<float> x = {1.5f, 2.5f, -1.5f, -0.5f, 0.3f, infinity, nan32};
  expectSame(f32("math.ceil %a", {x}), {2, 3, -1, -0.0f, 1, infinity, nan32});
  expectSame(f32("math.floor %a", {x}), {1, 2, -2, -1, 0, infinity, nan32});
  expectSame(f32("math.trunc %a", {x}), {1, 2, -1, -0.0f, 0, infinity, nan32});
  expectSame(f32("math.round %a", {x}), {2, 3, -2, -1, 0, infinity, nan32});
  expectSame(f32("math.roundeven %a", {x}), {2, 2, -2, -0.0f, 0, infinity, nan32});
  expectSame(f32("math.absf %a", {{-1, -0.0f, -infinity, nan32}}), {1, 0, infinity, nan32});
  expectSame(f32("math.copysign %a, %b", {{1, -2, infinity}, {-0.0f, 3, -1}}), {-1, 2, -infinity});
  expectSame(f32("math.sqrt %a", {{2, -1, 0, infinity}}), {std::sqrt(2.0f), nan32, 0, infinity});
  // a * b has a tail that only a fused operation keeps.
  float e = std::ldexp(1.0f, -12);
  expectSame(f32("math.fma %a, %b, %c", {{1 + e}, {1 - e}, {-1}}), {-e * e});
}

TEST_F(Elementwise, MathFunctions) {
  std::vector<float> x = {0.75f, 0.0f, infinity, -infinity, nan32};
  auto wide = [](double value) { return static_cast<float>(value); };
  expectSame(f32("math.exp %a", {x}), {wide(std::exp(0.75)), 1, infinity, 0, nan32});
  expectSame(f32("math.exp2 %a", {x}), {wide(std::exp2(0.75)), 1, infinity, 0, nan32});
  expectSame(f32("math.expm1 %a", {x}), {wide(std::expm1(0.75)), 0, infinity, -1, nan32});
  expectSame(f32("math.log %a", {x}), {wide(std::log(0.75)), -infinity, infinity, nan32, nan32});
  expectSame(f32("math.log2 %a", {x}), {wide(std::log2(0.75)), -infinity, infinity, nan32, nan32});
  expectSame(f32("math.log1p %a", {x}), {wide(std::log1p(0.75)), 0, infinity, nan32, nan32});
  expectSame(f32("math.sin %a", {x}), {wide(std::sin(0.75)), 0, nan32, nan32, nan32});
  expectSame(f32("math.cos %a", {x}), {wide(std::cos(0.75)), 1, nan32, nan32, nan32});
  expectSame(f32("math.tan %a", {x}), {wide(std::tan(0.75)), 0, nan32, nan32, nan32});
  expectSame(f32("math.tanh %a", {x}), {wide(std::tanh(0.75)), 0, 1, -1, nan32});
  expectSame(f32("math.erf %a", {x}), {wide(std::erf(0.75)), 0, 1, -1, nan32});
  expectSame(f32("math.rsqrt %a", {x}), {wide(1 / std::sqrt(0.75)), infinity, 0, nan32, nan32});
  expectSame(f32("math.powf %a, %b", {{2, -8, 0, nan32}, {0.5f, 3, -1, 0}}), {wide(std::sqrt(2.0)), -512, infinity, 1});
  // f16 is computed in f32 and rounded: exp(1) = 2.71875 in f16.
  EXPECT_EQ(apply<uint16_t>("f16", "f16", "%r = math.exp %a : $T", std::vector<Halves>{{0x3c00}}), (Halves{0x4170}));
}

TEST_F(Elementwise, CastFloatToInteger) {
  std::vector<std::vector<float>> x = {{1.9f, -1.9f, 300, -300, 3e9f, -3e9f, infinity, -infinity, nan32, 255.5f}};
  auto cast = [](const std::string &how) { return "%r = tile.cast " + how + " %a : $T -> $U"; };
  EXPECT_EQ((apply<int32_t, float>("f32", "i32", cast(""), x)),
            (std::vector<int32_t>{1, -1, 300, -300, max32, min32, max32, min32, 0, 255}));
  EXPECT_EQ((apply<uint32_t, float>("f32", "i32", cast("unsigned"), x)),
            (std::vector<uint32_t>{1, 0, 300, 0, 3000000000u, 0, 0xffffffffu, 0, 0, 255}));
  EXPECT_EQ((apply<int8_t, float>("f32", "i8", cast(""), x)),
            (std::vector<int8_t>{1, -1, 127, -128, 127, -128, 127, -128, 0, 127}));
  EXPECT_EQ((apply<uint8_t, float>("f32", "i8", cast("unsigned"), x)),
            (Bytes{1, 0, 255, 0, 255, 0, 255, 0, 0, 255}));
  EXPECT_EQ((apply<uint8_t, float>("f32", "i1", cast(""), x)), (Bytes{1, 0, 1, 0, 1, 0, 1, 0, 0, 1}));
  std::vector<std::vector<double>> y = {{9.3e18, -9.3e18, 1.9e19, 4e18}};
  EXPECT_EQ((apply<int64_t, double>("f64", "i64", cast(""), y)),
            (std::vector<int64_t>{max64, min64, max64, 4000000000000000000}));
  EXPECT_EQ((apply<uint64_t, double>("f64", "i64", cast("unsigned"), y)),
            (std::vector<uint64_t>{9300000000000000000u, 0, ~uint64_t(0), 4000000000000000000u}));
}

TEST_F(Elementwise, CastIntegerToFloat) {
  auto cast = [](const std::string &how) { return "%r = tile.cast " + how + " %a : $T -> $U"; };
  // One rounding only: 2^62 + 2^54 is a tie in bf16, 1 more decides it, which a detour over double or f32 would lose.
  int64_t tie = (int64_t(1) << 62) + (int64_t(1) << 54);
  std::vector<std::vector<int64_t>> x = {{tie, tie + 1, -tie - 1, -1, max64}};
  EXPECT_EQ((apply<uint16_t, int64_t>("i64", "bf16", cast(""), x)), (Halves{0x5e80, 0x5e81, 0xde81, 0xbf80, 0x5f00}));
  EXPECT_EQ((apply<float, int64_t>("i64", "f32", cast(""), x)),
            (std::vector<float>{float(tie), float(tie + 1), -float(tie + 1), -1, 9223372036854775808.0f}));
  EXPECT_EQ((apply<double, int64_t>("i64", "f64", cast("unsigned"), x))[3], 18446744073709551616.0);
  EXPECT_EQ((apply<float, int64_t>("i64", "f32", cast("unsigned"), x))[3], 18446744073709551616.0f);
  std::vector<std::vector<uint8_t>> bytes = {{200, 0, 127}};
  EXPECT_EQ((apply<float, uint8_t>("i8", "f32", cast(""), bytes)), (std::vector<float>{-56, 0, 127}));
  EXPECT_EQ((apply<float, uint8_t>("i8", "f32", cast("unsigned"), bytes)), (std::vector<float>{200, 0, 127}));
  EXPECT_EQ((apply<float, uint8_t>("i1", "f32", cast(""), bytes)), (std::vector<float>{1, 0, 1}));
  EXPECT_EQ((apply<uint8_t, int64_t>("i64", "f8E4M3FN", cast(""), {{500, -500, 1}})), (Bytes{0x7e, 0xfe, 0x38}));
  EXPECT_EQ((apply<uint16_t, int64_t>("i64", "f16", cast(""), {{65519, 65520}})), (Halves{0x7bff, 0x7c00}));
}

TEST_F(Elementwise, CastFloatToFloat) {
  std::vector<std::vector<float>> x = {{1, 65520, -infinity, nan32, 1e-8f}};
  std::string cast = "%r = tile.cast %a : $T -> $U";
  EXPECT_EQ((apply<uint16_t, float>("f32", "f16", cast, x)), (Halves{0x3c00, 0x7c00, 0xfc00, 0x7e00, 0}));
  EXPECT_EQ((apply<uint8_t, float>("f32", "f8E4M3FN", cast, x)), (Bytes{0x38, 0x7e, 0xfe, 0x7f, 0}));
  EXPECT_EQ((apply<uint8_t, float>("f32", "f8E5M2", cast, x)), (Bytes{0x3c, 0x7b, 0xfb, 0x7f, 0}));
  EXPECT_EQ((apply<uint8_t, float>("f32", "f8E5M2", "%r = arith.truncf %a : $T to $U", x)),
            (Bytes{0x3c, 0x7b, 0xfb, 0x7f, 0}));
  EXPECT_EQ((apply<float, uint16_t>("f16", "f32", "%r = arith.extf %a : $T to $U", {{0x3555, 0x0001}})),
            (std::vector<float>{0.333251953125f, std::ldexp(1.0f, -24)}));
  // f64 to f16 rounds once: just above a tie, by less than f32 can hold.
  EXPECT_EQ((apply<uint16_t, double>("f64", "f16", cast, {{1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40}})),
            (Halves{0x3c00, 0x3c01}));
  EXPECT_EQ((apply<float, double>("f64", "f32", cast, {{1e300, 0.1}})), (std::vector<float>{infinity, 0.1f}));
}

TEST_F(Elementwise, CastIntegerToInteger) {
  std::vector<std::vector<int32_t>> x = {{-1, 300, 2}};
  auto cast = [](const std::string &how) { return "%r = tile.cast " + how + " %a : $T -> $U"; };
  EXPECT_EQ((apply<int8_t, int32_t>("i32", "i8", cast(""), x)), (std::vector<int8_t>{-1, 44, 2}));
  EXPECT_EQ((apply<int64_t, int32_t>("i32", "i64", cast(""), x)), (std::vector<int64_t>{-1, 300, 2}));
  EXPECT_EQ((apply<int64_t, int32_t>("i32", "i64", cast("unsigned"), x)), (std::vector<int64_t>{0xffffffff, 300, 2}));
  EXPECT_EQ((apply<uint8_t, int32_t>("i32", "i1", cast(""), x)), (Bytes{1, 0, 0}));
  EXPECT_EQ((apply<int32_t, uint8_t>("i1", "i32", cast(""), {{1, 0}})), (std::vector<int32_t>{1, 0}));
}

TEST_F(Elementwise, ArithCasts) {
  EXPECT_EQ((apply<int64_t, int32_t>("i32", "i64", "%r = arith.extsi %a : $T to $U", {{-1}})),
            (std::vector<int64_t>{-1}));
  EXPECT_EQ((apply<int64_t, int32_t>("i32", "i64", "%r = arith.extui %a : $T to $U", {{-1}})),
            (std::vector<int64_t>{0xffffffff}));
  EXPECT_EQ((apply<int8_t, int32_t>("i32", "i8", "%r = arith.trunci %a : $T to $U", {{257}})),
            (std::vector<int8_t>{1}));
  EXPECT_EQ((apply<float, int32_t>("i32", "f32", "%r = arith.sitofp %a : $T to $U", {{-1}})),
            (std::vector<float>{-1}));
  EXPECT_EQ((apply<float, uint8_t>("i8", "f32", "%r = arith.uitofp %a : $T to $U", {{200}})),
            (std::vector<float>{200}));
  EXPECT_EQ((apply<int32_t, float>("f32", "i32", "%r = arith.fptosi %a : $T to $U", {{-1.5f}})),
            (std::vector<int32_t>{-1}));
  EXPECT_EQ((apply<uint8_t, float>("f32", "i8", "%r = arith.fptoui %a : $T to $U", {{200.5f}})), (Bytes{200}));
  EXPECT_EQ((apply<uint32_t, float>("f32", "i32", "%r = arith.bitcast %a : $T to $U", {{1.0f}})),
            (std::vector<uint32_t>{0x3f800000}));
  EXPECT_EQ((apply<int64_t, int32_t>("i32", "i64", R"(
      %x = arith.index_cast %a : $T to tensor<1xindex>
      %y = arith.index_castui %a : $T to tensor<1xindex>
      %z = arith.subi %y, %x : tensor<1xindex>
      %r = arith.index_cast %z : tensor<1xindex> to $U)", {{-1}})),
            (std::vector<int64_t>{int64_t(1) << 32}));
}

TEST_F(Elementwise, Constants) {
  expectSame(apply<float>("f32", "f32", R"(
      %dense = arith.constant dense<[1.0, -2.0, 0x7F800000]> : $T
      %splat = arith.constant dense<1.0> : $T
      %x = arith.addf %dense, %splat : $T
      %r = arith.addf %x, %a : $T)", std::vector<std::vector<float>>{{0, 0, 0}}),
             {2, -1, infinity});
  EXPECT_EQ((apply<int8_t, int8_t>("i8", "i8", R"(
      %mask = arith.constant dense<[true, false]> : tensor<2xi1>
      %minus = arith.constant dense<-1> : $T
      %r = arith.select %mask, %minus, %a : tensor<2xi1>, $T)", {{5, 6}})),
            (std::vector<int8_t>{-1, 6}));
}

} // namespace
} // namespace tenon::interpret
