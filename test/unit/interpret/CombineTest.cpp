// SPDX-License-Identifier: Apache-2.0
//
// Movement of elements, reductions, scans, dot, random bits.
#include "tenon/base/FloatFormats.h"
#include "tenon/compiler/interpret/Philox.h"
#include "test/unit/interpret/Harness.h"

namespace tenon::interpret {
namespace {

using Ints = std::vector<int32_t>;
using Floats = std::vector<float>;

class Tiles : public InterpreterTest {
protected:
  /// Runs `body`, which makes %r of type tensor<RxCxi32>, and returns its elements.
  Ints elements(int64_t rows, int64_t columns, const std::string &body) {
    Ints out(rows * columns, 99);
    EXPECT_EQ(launch("%y: !tile.view<2, i32>",
                     "%zero = arith.constant 0 : index\n" + body + "\ntile.store %r, %y[%zero, %zero] : tensor<" +
                         std::to_string(rows) + "x" + std::to_string(columns) + "xi32>, !tile.view<2, i32>",
                     Arguments().view(out, rows, columns)),
              "");
    return out;
  }
};

TEST_F(Tiles, Iota) {
  EXPECT_EQ(elements(2, 3, "%r = tile.iota 0 : tensor<2x3xi32>"), (Ints{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(elements(2, 3, "%r = tile.iota 1 : tensor<2x3xi32>"), (Ints{0, 1, 2, 0, 1, 2}));
}

TEST_F(Tiles, SplatBroadcastReshape) {
  EXPECT_EQ(elements(1, 3, R"(
      %c = arith.constant -5 : i32
      %r = tile.splat %c : i32 -> tensor<1x3xi32>)"), (Ints{-5, -5, -5}));
  EXPECT_EQ(elements(2, 3, R"(
      %a = tile.iota 1 : tensor<1x3xi32>
      %r = tile.broadcast %a : tensor<1x3xi32> -> tensor<2x3xi32>)"), (Ints{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(elements(2, 3, R"(
      %a = tile.iota 0 : tensor<2x1xi32>
      %r = tile.broadcast %a : tensor<2x1xi32> -> tensor<2x3xi32>)"), (Ints{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(elements(3, 2, R"(
      %a = tile.iota 0 : tensor<6xi32>
      %r = tile.reshape %a : tensor<6xi32> -> tensor<3x2xi32>)"), (Ints{0, 1, 2, 3, 4, 5}));
}

TEST_F(Tiles, TransposeSliceConcatScalar) {
  EXPECT_EQ(elements(3, 2, R"(
      %a = arith.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
      %r = tile.transpose %a [1, 0] : tensor<2x3xi32> -> tensor<3x2xi32>)"), (Ints{1, 4, 2, 5, 3, 6}));
  // Three dimensions, a cycle: result (i, j, k) is operand (k, i, j), which tells a permutation from its inverse.
  EXPECT_EQ(elements(6, 2, R"(
      %a = tile.iota 0 : tensor<12xi32>
      %b = tile.reshape %a : tensor<12xi32> -> tensor<2x3x2xi32>
      %c = tile.transpose %b [1, 2, 0] : tensor<2x3x2xi32> -> tensor<3x2x2xi32>
      %r = tile.reshape %c : tensor<3x2x2xi32> -> tensor<6x2xi32>)"), (Ints{0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11}));
  EXPECT_EQ(elements(1, 2, R"(
      %a = arith.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
      %r = tile.slice %a [1, 1] : tensor<2x3xi32> -> tensor<1x2xi32>)"), (Ints{5, 6}));
  std::string parts = R"(
      %a = arith.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
      %b = arith.constant dense<[[5], [6]]> : tensor<2x1xi32>
      %c = arith.constant dense<[[7, 8]]> : tensor<1x2xi32>
  )";
  EXPECT_EQ(elements(2, 4, parts + "%r = tile.concat %a, %b, %b dim 1 : tensor<2x2xi32>, tensor<2x1xi32>, "
                                   "tensor<2x1xi32> -> tensor<2x4xi32>"),
            (Ints{1, 2, 5, 5, 3, 4, 6, 6}));
  EXPECT_EQ(elements(3, 2, parts + "%r = tile.concat %c, %a dim 0 : tensor<1x2xi32>, tensor<2x2xi32> -> "
                                   "tensor<3x2xi32>"),
            (Ints{7, 8, 1, 2, 3, 4}));
  EXPECT_EQ(elements(1, 1, R"(
      %a = arith.constant dense<41> : tensor<1x1xi32>
      %s = tile.scalar %a : tensor<1x1xi32>
      %one = arith.constant 1 : i32
      %t = arith.addi %s, %one : i32
      %r = tile.splat %t : i32 -> tensor<1x1xi32>)"), (Ints{42}));
}

const std::string sum = R"({
      ^bb0(%p: i32, %q: i32):
        %c = arith.addi %p, %q : i32
        tile.yield %c : i32
      })";

TEST_F(Tiles, ReduceAlongEachDimension) {
  std::string a = "%a = arith.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>\n";
  EXPECT_EQ(elements(2, 1, a + "%r = tile.reduce %a dim 1 : (tensor<2x3xi32>) -> tensor<2x1xi32>" + sum),
            (Ints{6, 15}));
  EXPECT_EQ(elements(1, 3, a + "%r = tile.reduce %a dim 0 : (tensor<2x3xi32>) -> tensor<1x3xi32>" + sum),
            (Ints{5, 7, 9}));
  EXPECT_EQ(elements(2, 2, R"(
      %a = tile.iota 0 : tensor<12xi32>
      %b = tile.reshape %a : tensor<12xi32> -> tensor<2x3x2xi32>
      %c = tile.reduce %b dim 1 : (tensor<2x3x2xi32>) -> tensor<2x1x2xi32>)" + sum +
                               "%r = tile.reshape %c : tensor<2x1x2xi32> -> tensor<2x2xi32>"),
            (Ints{6, 9, 24, 27}));
}

TEST_F(Tiles, ReduceOfOneElementPassesItThrough) {
  // A combination that would be noticed.
  EXPECT_EQ(elements(1, 2, R"(
      %a = arith.constant dense<[[1, 2]]> : tensor<1x2xi32>
      %r = tile.reduce %a dim 0 : (tensor<1x2xi32>) -> tensor<1x2xi32> {
      ^bb0(%p: i32, %q: i32):
        %c = arith.constant 99 : i32
        tile.yield %c : i32
      })"), (Ints{1, 2}));
}

TEST_F(Tiles, ReduceTwoOperandsArgmax) {
  EXPECT_EQ(elements(2, 1, R"(
      %a = arith.constant dense<[[1.0, 7.0, 3.0, 7.0], [-1.0, -5.0, -0.5, -2.0]]> : tensor<2x4xf32>
      %i = tile.iota 1 : tensor<2x4xi32>
      %m, %r = tile.reduce %a, %i dim 1 : (tensor<2x4xf32>, tensor<2x4xi32>) -> (tensor<2x1xf32>, tensor<2x1xi32>) {
      ^bb0(%v0: f32, %i0: i32, %v1: f32, %i1: i32):
        %greater = arith.cmpf ogt, %v0, %v1 : f32
        %equal = arith.cmpf oeq, %v0, %v1 : f32
        %first = arith.cmpi slt, %i0, %i1 : i32
        %tie = arith.andi %equal, %first : i1
        %left = arith.ori %greater, %tie : i1
        %v = arith.select %left, %v0, %v1 : f32
        %i2 = arith.select %left, %i0, %i1 : i32
        tile.yield %v, %i2 : f32, i32
      })"), (Ints{1, 2}));
}

TEST_F(Tiles, RegionThatYieldsItsArgumentsCrosswise) {
  // Yields (right0, left0): the values must be read before either is replaced.
  EXPECT_EQ(elements(1, 1, R"(
      %a = arith.constant dense<[[1, 2, 3]]> : tensor<1x3xi32>
      %b = arith.constant dense<[[4, 5, 6]]> : tensor<1x3xi32>
      %x, %r = tile.reduce %a, %b dim 1 : (tensor<1x3xi32>, tensor<1x3xi32>) -> (tensor<1x1xi32>, tensor<1x1xi32>) {
      ^bb0(%a0: i32, %b0: i32, %a1: i32, %b1: i32):
        tile.yield %b0, %a0 : i32, i32
      })"), (Ints{4}));
}

TEST_F(Tiles, Scan) {
  std::string a = "%a = arith.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>\n";
  std::string type = " : (tensor<2x3xi32>) -> tensor<2x3xi32>" + sum;
  EXPECT_EQ(elements(2, 3, a + "%r = tile.scan %a dim 1" + type), (Ints{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(elements(2, 3, a + "%r = tile.scan %a dim 0" + type), (Ints{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(elements(2, 3, a + "%r = tile.scan %a dim 1 reverse" + type), (Ints{6, 5, 3, 15, 11, 6}));
}

TEST_F(Tiles, ScanKeepsTheOrderOfOperands) {
  // x -> m x + c composed left to right: (m0, c0) then (m1, c1) is (m0 m1, c0 m1 + c1). Not commutative.
  auto scan = [&](const std::string &reverse) {
    return elements(1, 3, R"(
      %m = arith.constant dense<[[2, 3, 5]]> : tensor<1x3xi32>
      %c = arith.constant dense<[[1, 1, 1]]> : tensor<1x3xi32>
      %x, %r = tile.scan %m, %c dim 1 )" + reverse +
                              R"( : (tensor<1x3xi32>, tensor<1x3xi32>) -> (tensor<1x3xi32>, tensor<1x3xi32>) {
      ^bb0(%m0: i32, %c0: i32, %m1: i32, %c1: i32):
        %p = arith.muli %m0, %m1 : i32
        %q = arith.muli %c0, %m1 : i32
        %s = arith.addi %q, %c1 : i32
        tile.yield %p, %s : i32, i32
      })");
  };
  EXPECT_EQ(scan(""), (Ints{1, 4, 21}));
  EXPECT_EQ(scan("reverse"), (Ints{21, 6, 1}));
}

class Dot : public InterpreterTest {
protected:
  /// (2x3) * (3x2) + acc, the operands given as the bits of `typeA` and `typeB`.
  template <class Acc, class A, class B>
  std::vector<Acc> dot(const std::string &typeA, const std::string &typeB, const std::string &typeAcc,
                       std::vector<A> a, std::vector<B> b, std::vector<Acc> acc, const std::string &attributes = "") {
    std::string va = "!tile.view<2, " + typeA + ">", vb = "!tile.view<2, " + typeB + ">",
                vc = "!tile.view<2, " + typeAcc + ">";
    std::string ta = "tensor<2x3x" + typeA + ">", tb = "tensor<3x2x" + typeB + ">", tc = "tensor<2x2x" + typeAcc + ">";
    EXPECT_EQ(launch("%x: " + va + ", %y: " + vb + ", %z: " + vc,
                     "%c0 = arith.constant 0 : index\n%a = tile.load %x[%c0, %c0] : " + va + " -> " + ta +
                         "\n%b = tile.load %y[%c0, %c0] : " + vb + " -> " + tb +
                         "\n%c = tile.load %z[%c0, %c0] : " + vc + " -> " + tc + "\n%r = tile.dot %a, %b, %c " +
                         attributes + " : " + ta + ", " + tb + ", " + tc + "\ntile.store %r, %z[%c0, %c0] : " + tc +
                         ", " + vc,
                     Arguments().view(a, 2, 3).view(b, 3, 2).view(acc, 2, 2)),
              "");
    return acc;
  }
};

TEST_F(Dot, FloatsOfEveryType) {
  Floats a = {1, -2, 3, 0.5f, 4, -1}, b = {1, 2, -0.5f, 4, 3, 0.25f}, acc = {10, 20, 30, 40};
  Floats want = {21, 14.75f, 25.5f, 56.75f}; // exact in every type
  auto convert = [](const Floats &values, auto narrow) {
    std::vector<decltype(narrow(0.0))> bits;
    for (float value : values)
      bits.push_back(narrow(value));
    return bits;
  };
  EXPECT_EQ((dot<float>("f32", "f32", "f32", a, b, acc)), want);
  EXPECT_EQ((dot<float>("f32", "f32", "f32", a, b, acc, "{allow_tf32}")), want);
  EXPECT_EQ((dot<float>("f16", "f16", "f32", convert(a, f64ToF16), convert(b, f64ToF16), acc)), want);
  EXPECT_EQ((dot<float>("bf16", "bf16", "f32", convert(a, f64ToBF16), convert(b, f64ToBF16), acc)), want);
  auto a43 = convert(a, f64ToF8e4m3), b43 = convert(b, f64ToF8e4m3);
  auto a52 = convert(a, f64ToF8e5m2), b52 = convert(b, f64ToF8e5m2);
  EXPECT_EQ((dot<float>("f8E4M3FN", "f8E4M3FN", "f32", a43, b43, acc)), want);
  EXPECT_EQ((dot<float>("f8E5M2", "f8E5M2", "f32", a52, b52, acc)), want);
  EXPECT_EQ((dot<float>("f8E4M3FN", "f8E5M2", "f32", a43, b52, acc)), want);
  EXPECT_EQ((dot<float>("f8E5M2", "f8E4M3FN", "f32", a52, b43, acc)), want);
  std::vector<double> a64(a.begin(), a.end()), b64(b.begin(), b.end());
  EXPECT_EQ((dot<double>("f64", "f64", "f64", a64, b64, {10, 20, 30, 40})),
            (std::vector<double>{21, 14.75, 25.5, 56.75}));
}

TEST_F(Dot, FloatsPropagateNaNAndInfinity) {
  expectSame(dot<float>("f32", "f32", "f32", Floats{nan32, 0, 0, infinity, 0, 0}, Floats{1, 1, 1, 1, 1, 1},
                        Floats{0, 0, 0, -infinity}),
             {nan32, nan32, infinity, nan32});
}

TEST_F(Dot, FloatOperandsAreNotRounded) {
  // 1 + 2^-20 squared would be 1 in tf32.
  float x = 1 + 0x1p-20f;
  Floats only = {x, 0, 0, 0, 0, 0};
  EXPECT_EQ((dot<float>("f32", "f32", "f32", only, only, Floats(4, 0)))[0], x * x);
}

TEST_F(Dot, Integers) {
  std::vector<uint8_t> a = {255, 2, 0, 128, 0, 0}, b = {255, 1, 128, 0, 0, 0};
  using Attribute = std::string;
  EXPECT_EQ((dot<int32_t>("i8", "i8", "i32", a, b, Ints{5, 0, 0, 0})), (Ints{5 + 1 - 256, -1, 128, -128}));
  EXPECT_EQ((dot<int32_t>("i8", "i8", "i32", a, b, Ints(4, 0), Attribute("{a_unsigned}"))),
            (Ints{-255 - 256, 255, -128, 128}));
  EXPECT_EQ((dot<int32_t>("i8", "i8", "i32", a, b, Ints(4, 0), Attribute("{b_unsigned}"))),
            (Ints{-255 + 256, -1, -128 * 255, -128}));
  EXPECT_EQ((dot<int32_t>("i8", "i8", "i32", a, b, Ints(4, 0), Attribute("{a_unsigned, b_unsigned}"))),
            (Ints{65025 + 256, 255, 128 * 255, 128}));
  int32_t max = std::numeric_limits<int32_t>::max();
  EXPECT_EQ((dot<int32_t>("i8", "i8", "i32", a, b, Ints{0, 0, max, 0}))[2], std::numeric_limits<int32_t>::min() + 127);
}

TEST(Philox, PublishedVectors) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}, 7), (Words{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
}

TEST_F(Tiles, Philox) {
  auto random = [&](uint64_t seed, uint64_t counter) {
    std::vector<uint32_t> out(8);
    EXPECT_EQ(launch("%seed: i64, %counter: i64, %y: !tile.view<2, i32>", R"(
        %c0 = arith.constant 0 : index
        %base = tile.splat %counter : i64 -> tensor<1x2xi64>
        %iota = tile.iota 1 : tensor<1x2xi64>
        %i = arith.addi %base, %iota : tensor<1x2xi64>
        %a, %b, %c, %d = tile.philox %seed, %i : tensor<1x2xi64>
            -> tensor<1x2xi32>, tensor<1x2xi32>, tensor<1x2xi32>, tensor<1x2xi32>
        %r = tile.concat %a, %b, %c, %d dim 0
            : tensor<1x2xi32>, tensor<1x2xi32>, tensor<1x2xi32>, tensor<1x2xi32> -> tensor<4x2xi32>
        tile.store %r, %y[%c0, %c0] : tensor<4x2xi32>, !tile.view<2, i32>)",
                     Arguments().scalar(seed).scalar(counter).view(out, 4, 2)),
              "");
    return out;
  };
  auto want = [](uint64_t seed, uint64_t counter) {
    return philox4x32({uint32_t(counter), uint32_t(counter >> 32), 0, 0}, {uint32_t(seed), uint32_t(seed >> 32)});
  };
  std::vector<uint32_t> zero = random(0, 0), other = random(0x123456789abcdef0, 0xfedcba9876543210);
  EXPECT_EQ(zero[0], 0x6627e8d5u);
  EXPECT_EQ(zero[6], 0x9b00dbd8u);
  for (size_t w = 0; w < 4; ++w) {
    EXPECT_EQ(zero[2 * w + 1], want(0, 1)[w]);
    EXPECT_EQ(other[2 * w], want(0x123456789abcdef0, 0xfedcba9876543210)[w]);
  }
}

TEST_F(Tiles, RandomBits) {
  auto random = [&](uint64_t seed, uint64_t counter) {
    std::vector<uint32_t> out(9);
    EXPECT_EQ(launch("%seed: i64, %counter: i64, %y: !tile.view<1, i32>", R"(
        %c0 = arith.constant 0 : index
        %base = tile.splat %counter : i64 -> tensor<9xi64>
        %iota = tile.iota 0 : tensor<9xi64>
        %i = arith.addi %base, %iota : tensor<9xi64>
        %r = tile.random_bits %seed, %i : tensor<9xi64> -> tensor<9xi32>
        tile.store %r, %y[%c0] : tensor<9xi32>, !tile.view<1, i32>)",
                     Arguments().scalar(seed).scalar(counter).view(out)),
              "");
    return out;
  };
  // The published vector, one word after the other.
  EXPECT_EQ(random(0, 0)[0], 0x6627e8d5u);
  EXPECT_EQ(random(0, 0)[1], 0xe169c58du);
  EXPECT_EQ(random(0, 0)[2], 0xbc57ac4cu);
  EXPECT_EQ(random(0, 0)[3], 0x9b00dbd8u);
  // From any counter on, past 2^32 and past 2^64; a large counter is no negative one.
  for (uint64_t first : {uint64_t(0), uint64_t(0x3fffffffd), uint64_t(0x7ffffffffffffffe), ~uint64_t(0) - 5}) {
    std::vector<uint32_t> bits = random(0x123456789abcdef0, first);
    for (uint64_t i = 0; i < 9; ++i) {
      uint64_t counter = first + i, block = counter >> 2;
      EXPECT_EQ(bits[i],
                philox4x32({uint32_t(block), uint32_t(block >> 32), 0, 0}, {0x9abcdef0, 0x12345678})[counter & 3]);
    }
  }
}

} // namespace
} // namespace tenon::interpret
