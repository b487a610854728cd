// SPDX-License-Identifier: Apache-2.0
//
// Roundings to bf16 that may take ties away from zero: of every number the nearest, whatever the instruction set, the
// place in a tile and the bits of a NaN.
#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

using namespace tenon;

namespace {

/// A product of two, times a factor that is 1 for large g: exact, but nobody is promised that.
const Kernel gate("gate(x, z, g, y, scale, cols=64)", [](View x, View z, View g, View y, Scalar scale, Param cols) {
  Index i = grid(cdiv(x.size(0), cols));
  auto at = [&](View v) { return v.load({i * cols}, {cols}).to(f32); };
  y.store({i * cols}, (at(x) * at(z) * sigmoid(at(g)) * scale.to(f32)).to(bf16));
});

/// The mean of a row less than each, and more: what a norm does.
const Kernel centre("centre(x, y, cols)", [](View x, View y, Param cols) {
  Index i = grid(x.size(0));
  Tile t = x.load({i, 0}, {1, cols}).to(f32);
  y.store({i, 0}, (t - sum(t, 1) / Tile(x.size(1)).to(f32)).to(bf16));
});

class Ties : public testing::TestWithParam<const char *> {
protected:
  LaunchOptions options() {
    LaunchOptions options;
    options.compile.isa = GetParam();
    return options;
  }
};

float asFloat(uint32_t bits) { return std::bit_cast<float>(bits); }

void setBits(Tensor &t, int64_t i, uint16_t bits) {
  std::memcpy(static_cast<char *>(t.data()) + 2 * i, &bits, 2);
}

uint16_t bitsOf(const Tensor &t, int64_t i) {
  uint16_t bits;
  std::memcpy(&bits, static_cast<const char *>(t.data()) + 2 * i, 2);
  return bits;
}

float widened(const Tensor &t, int64_t i) { return asFloat(uint32_t(bitsOf(t, i)) << 16); }

/// Every bf16 there is, and some more, so that the last tile hangs over the end.
constexpr int64_t count = 65536 + 37;

} // namespace

TEST_P(Ties, TheNearestOfEveryNumber) {
  Tensor x = Tensor::empty(bf16, {count}), z = Tensor::empty(bf16, {count}), g = Tensor::empty(bf16, {count}),
         y = Tensor::empty(bf16, {count});
  for (int64_t i = 0; i < count; ++i) {
    setBits(x, i, static_cast<uint16_t>(i));
    z.set({i}, 1 + (i * 37 % 128) / 128.0);
    g.set({i}, 200);
  }
  launch(gate, {x, z, g, y, 1.0}, options());
  int64_t ties = 0;
  for (int64_t i = 0; i < count; ++i) {
    float in = widened(x, i), out = widened(y, i);
    if (std::isnan(in)) {
      EXPECT_TRUE(std::isnan(out)) << i << ": " << out;
      continue;
    }
    double exact = double(in) * double(widened(z, i));
    uint16_t bits = bitsOf(y, i);
    ASSERT_EQ(std::signbit(exact), std::signbit(out)) << i;
    if (std::isinf(out)) {
      EXPECT_GE(std::abs(exact), 0x1.ffp127 - 0x1p119 / 2) << i; // half a place below the power that is too large
      continue;
    }
    // Neither neighbour is nearer.
    double below = asFloat(uint32_t(bits - ((bits & 0x7fff) != 0)) << 16), above = asFloat(uint32_t(bits + 1) << 16);
    double off = std::abs(exact - out);
    EXPECT_LE(off, std::abs(exact - below)) << i << ": " << exact << " " << out;
    EXPECT_LE(off, std::abs(exact - above)) << i << ": " << exact << " " << out;
    ties += off != 0 && off == std::abs(exact - below);
    ties += off != 0 && off == std::abs(exact - above);
  }
  EXPECT_GT(ties, 100); // or nothing was tested
}

TEST_P(Ties, LongNans) {
  // Of bf16, and of a scalar whose lower half would carry over.
  constexpr int64_t length = 200;
  Tensor x = Tensor::empty(bf16, {length}), z = Tensor::empty(bf16, {length}), g = Tensor::empty(bf16, {length}),
         y = Tensor::empty(bf16, {length});
  for (int64_t i = 0; i < length; ++i) {
    setBits(x, i, i % 3 ? 0xffff : 0x7fff);
    z.set({i}, 1.5);
    g.set({i}, 1);
  }
  launch(gate, {x, z, g, y, 1.0}, options());
  for (int64_t i = 0; i < length; ++i)
    EXPECT_TRUE(std::isnan(widened(y, i))) << i;
  x.fillRandom(1, -1, 1);
  for (uint64_t nan : {0x7fffffffffffffffull, 0xffffffffffffffffull}) {
    launch(gate, {x, z, g, y, std::bit_cast<double>(nan)}, options());
    for (int64_t i = 0; i < length; ++i)
      EXPECT_TRUE(std::isnan(widened(y, i))) << i;
  }
}

TEST_P(Ties, TheSameAtAnyPlace) {
  // Rows that a tile spans and rows that it hangs over, whose last vectors are masked.
  for (int64_t cols : {64, 100, 333}) {
    Tensor x = Tensor::empty(bf16, {8, cols}), y = Tensor::empty(bf16, {8, cols}), wide = Tensor::empty(bf16, {8, cols});
    x.fillRandom(3, -4, 4);
    LaunchOptions exact = options(), over = options();
    exact.params = {{"cols", cols}};
    over.params = {{"cols", cols + 30}};
    launch(centre, {x, y}, exact);
    launch(centre, {x, wide}, over);
    for (int64_t i = 0; i < 8; ++i) {
      double mean = 0;
      for (int64_t j = 0; j < cols; ++j)
        mean += x.get({i, j}) / static_cast<double>(cols);
      for (int64_t j = 0; j < cols; ++j) {
        double want = x.get({i, j}) - mean;
        EXPECT_NEAR(y.get({i, j}), want, std::abs(want) * 0x1p-8 + 1e-6) << i << ", " << j;
        EXPECT_NEAR(wide.get({i, j}), want, std::abs(want) * 0x1p-8 + 1e-6) << i << ", " << j;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Ties, testing::Values("native", "avx2", "baseline"),
                         [](const auto &info) { return std::string(info.param); });
