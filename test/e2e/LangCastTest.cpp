// SPDX-License-Identifier: Apache-2.0
//
// Conversions between every pair of element types, and bitcasts.
#include "LangSupport.h"

#include <cstring>
#include <limits>

using namespace tenon;
using namespace tenon::test;

namespace {

using Conversions = OnTarget;

/// One element of any type: what it is as a number, exactly.
struct Number {
  bool isInteger;
  double real = 0;
  bool isNegative = false; ///< of an integer
  uint64_t bits = 0;       ///< of an integer, sign-extended to 64
};

Number elementOf(const Tensor &tensor, int64_t i) {
  if (isFloat(tensor.dtype()))
    return {false, tensor.get({i})};
  int64_t value = tensor.getInt({i});
  return {true, 0, !isUnsigned(tensor.dtype()) && value < 0, static_cast<uint64_t>(value)};
}

/// Towards zero, saturating, NaN gives zero.
uint64_t toInteger(double value, DType type) {
  int bits = static_cast<int>(8 * sizeOf(type));
  if (std::isnan(value))
    return 0;
  if (isUnsigned(type)) {
    uint64_t largest = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
    return value <= 0 ? 0 : value >= std::ldexp(1.0, bits) ? largest : static_cast<uint64_t>(value);
  }
  int64_t largest = static_cast<int64_t>((uint64_t(1) << (bits - 1)) - 1);
  if (value >= std::ldexp(1.0, bits - 1))
    return static_cast<uint64_t>(largest);
  return static_cast<uint64_t>(value <= -std::ldexp(1.0, bits - 1) ? -largest - 1 : static_cast<int64_t>(value));
}

uint64_t cut(uint64_t bits, DType type) {
  int drop = 64 - static_cast<int>(8 * sizeOf(type));
  return isUnsigned(type) ? bits << drop >> drop : static_cast<uint64_t>(static_cast<int64_t>(bits << drop) >> drop);
}

/// An integer rounded once to a float type: straight from the integer, for f32 and f64 as C++ does it.
double toFloat(const Number &number, DType type) {
  auto convert = [&](auto zero) {
    using F = decltype(zero);
    return number.isNegative ? static_cast<F>(static_cast<int64_t>(number.bits)) : static_cast<F>(number.bits);
  };
  if (type == f32)
    return convert(0.0f);
  if (type == f64)
    return convert(0.0);
  // Narrower: round to odd on the way to double, so that the second rounding is the only one that counts.
  uint64_t magnitude = number.isNegative ? 0 - number.bits : number.bits;
  if (magnitude >> 53 != 0)
    magnitude = (magnitude >> 11 << 11) | (magnitude & 0x7ff ? 0x800 : 0);
  double value = static_cast<double>(magnitude);
  return rounded(type, number.isNegative ? -value : value);
}

Kernel convertToAll("convert(x, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, count)",
                    [](View x, View a, View b, View c, View d, View e, View f, View g, View h, View i, View j, View k,
                       View l, View m, View n, View o, Param count) {
                      Tile t = x.load({0}, {count});
                      for (const View &to : {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o})
                        to.store({0}, t.to(to.dtype()));
                    });

Tensor sources(DType type) {
  std::vector<double> reals = {0, -0.0, 1, -1, 0.5, -0.5, 0.99, 1.5, -1.5, 2.5, 127, 127.9, 128, -128, -128.9, -129,
                               255, 255.9, 256, 32767.5, 32768, -32769, 65535.5, 65536, 2147483647.0, 2147483648.0,
                               -2147483648.0, -2147483649.0, 4294967295.0, 4294967296.0, 9.223372036854775e18,
                               9.223372036854776e18, -9.223372036854776e18, -1e19, 1.8446744073709550e19,
                               1.8446744073709552e19, 1e30, -1e30, 1e300, INFINITY, -INFINITY, NAN, 448, 464, 465, 480,
                               57344, 61440, 61441, 65504, 65519, 65520, 1e-3, 3e-8, 2.9e-8, 1e-40, 1e-46, 7e-46,
                               1.0 / 3, 16777217, 0.0009765625, 0.001953125, 0.0029296875, 1.0625, 1.1875,
                               3.3895313892515355e38, 3.3961775292304957e38, 3.4028235677973366e38};
  if (isFloat(type))
    return vectorOf(type, reals);
  std::vector<uint64_t> integers = {0, 1, 2, 7, 127, 128, 255, 256, 2049, 4097, 32767, 32768, 65535, 65536, 16777217,
                                    16777219, 33554435, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
                                    9007199254740993, 0x4000004000000001, 0x4000000000000200, 0x7fffffffffffffff};
  Tensor tensor = Tensor::empty(type, {static_cast<int64_t>(4 * integers.size())});
  for (size_t i = 0; i < 4 * integers.size(); ++i) {
    uint64_t value = integers[i / 4];
    value = i % 4 == 0 ? value : i % 4 == 1 ? 0 - value : i % 4 == 2 ? ~value : value + 0x101010101010101;
    if (type == boolean)
      value &= 1;
    tensor.setInt({static_cast<int64_t>(i)}, static_cast<int64_t>(type == boolean ? value : cut(value, type)));
  }
  return tensor;
}

class ConversionsFrom : public testing::TestWithParam<std::tuple<Target, DType>> {};

TEST_P(ConversionsFrom, EveryType) {
  auto [target, from] = GetParam();
  Tensor x = sources(from);
  int64_t n = x.size(0);
  Arguments arguments = {x};
  for (DType to : allDTypes)
    arguments.push_back(Tensor::zeros(to, {n}));
  LaunchOptions options;
  options.target = target;
  options.params = {{"count", n}};
  launch(convertToAll, arguments, options);
  for (size_t k = 0; k < std::size(allDTypes); ++k) {
    DType to = allDTypes[k];
    const Tensor &y = arguments[k + 1].tensor();
    for (int64_t i = 0; i < n; ++i) {
      Number number = elementOf(x, i);
      if (isFloat(to)) {
        double expected = number.isInteger ? toFloat(number, to) : rounded(to, number.real);
        ASSERT_TRUE(identical(y.get({i}), expected))
            << nameOf(from) << " to " << nameOf(to) << ": element " << i << " (" << x.get({i}) << ") gives "
            << y.get({i}) << ", not " << expected;
      } else {
        uint64_t expected = to == boolean ? (number.isInteger ? number.bits != 0 : number.real != 0)
                            : number.isInteger ? cut(number.bits, to)
                                               : toInteger(number.real, to);
        ASSERT_EQ(static_cast<uint64_t>(y.getInt({i})), expected)
            << nameOf(from) << " to " << nameOf(to) << ": element " << i << " (" << x.get({i}) << ")";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ConversionsFrom,
                         testing::Combine(testing::ValuesIn(everyTarget), testing::ValuesIn(allDTypes)),
                         [](const auto &info) {
                           return std::string(nameOf(std::get<0>(info.param))) + "_" +
                                  std::string(nameOf(std::get<1>(info.param)));
                         });

TEST_P(Conversions, ScalarsAndIndices) {
  Kernel kernel("scalars(y, s, i)", [](View y, Scalar s, Index i) {
    y.store({0}, s.to(i32).to(f64));
    y.store({1}, s.to(f16).to(f64));
    y.store({2}, s.to(u8).to(f64));
    y.store({3}, i.to(f64));
    y.store({4}, i.to(i8).to(f64));
    y.store({5}, i.to(u16).to(f64));
    y.store({6}, Index(s.to(i64)).to(f64));
    y.store({7}, i.to(boolean).to(f64));
    y.store({8}, i.bitcast(f64));
  });
  Tensor y = Tensor::zeros(f64, {9});
  run(kernel, {y, 300.7, -200});
  std::vector<double> expected = {300, rounded(f16, 300.7), 255, -200, 56, 65336, 300, 1};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(y.get({static_cast<int64_t>(i)}), expected[i]) << i;
  int64_t bits;
  std::memcpy(&bits, static_cast<double *>(y.data()) + 8, 8);
  EXPECT_EQ(bits, -200);
}

TEST_P(Conversions, Bitcast) {
  Kernel kernel("bitcast(x, y)", [](View x, View y) { y.store({0}, x.load({0}, {16}).bitcast(y.dtype())); });
  std::vector<std::vector<DType>> widths = {
      {f64, i64, u64}, {f32, i32, u32}, {f16, bf16, i16, u16}, {f8e4m3, f8e5m2, i8, u8}};
  for (const auto &types : widths)
    for (DType from : types)
      for (DType to : types) {
        Tensor x = Tensor::empty(from, {16}), y = Tensor::zeros(to, {16});
        size_t bytes = 16 * sizeOf(from);
        for (size_t i = 0; i < bytes; ++i)
          static_cast<uint8_t *>(x.data())[i] = static_cast<uint8_t>(37 * i + 11);
        run(kernel, {x, y});
        EXPECT_EQ(std::memcmp(x.data(), y.data(), bytes), 0) << nameOf(from) << " as " << nameOf(to);
      }
}

TENON_ON_EACH_TARGET(Conversions);

} // namespace
