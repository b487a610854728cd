// SPDX-License-Identifier: Apache-2.0
//
// Roundings to bf16 that may take ties away from zero: of every number the nearest, whatever the instruction set, the
// place in a tile and the bits of a NaN.
#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <gtest/gtest.h>

#include <algorithm>
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

/// Shares of a row.
const Kernel shares("shares(x, y, cols)", [](View x, View y, Param cols) {
  Index i = grid(x.size(0));
  Tile t = exp(x.load({i, 0}, {1, cols}, -inf).to(f32));
  y.store({i, 0}, (t / sum(t, 1)).to(bf16));
});

/// The same scalar in what is rounded and as it is: its bits are kept where they are seen.
const Kernel seen("seen(x, f, y, z)", [](View x, View f, View y, View z) {
  Tile scale = full(f32, {64}, f.at({0}));
  y.store({0}, (exp(x.load({0}, {64}).to(f32)) * scale).to(bf16));
  z.store({0}, scale);
});

/// A number between two of bf16, beside something that is off.
const Kernel beside("beside(x, y, z)", [](View x, View y, View z) {
  Index i = grid(cdiv(x.size(0), 64));
  Tile e = exp(x.load({i * 64}, {64}).to(f32));
  y.store({i * 64}, maximum(e, 1.00390625).to(bf16));
  z.store({i * 64}, (e + 1.00390625).to(bf16));
});

/// More scalars than a small table holds.
const Kernel scaled("scaled(x, s, y)", [](View x, View s, View y) {
  Tile t = exp(x.load({0}, {64}).to(f32));
  for (int64_t j = 0; j < 40; ++j)
    t = t * s.at({j});
  y.store({0}, t.to(bf16));
});

/// Of a sum, its rounding and what that leaves over.
const Kernel halves("halves(x, high, low, cols)", [](View x, View high, View low, Param cols) {
  Index i = grid(x.size(0));
  Tile s = sum(x.load({i, 0}, {1, cols}).to(f32), 1);
  Tile rounded = s.to(bf16);
  high.store({i, 0}, rounded);
  low.store({i, 0}, (s - rounded.to(f32)).to(bf16));
});

class Ties : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    try {
      Tensor x = Tensor::zeros(bf16, {1, 8}), y = Tensor::zeros(bf16, {1, 8});
      LaunchOptions one = options();
      one.params = {{"cols", 8}};
      launch(shares, {x, y}, one);
    } catch (const Error &) {
      GTEST_SKIP() << "this processor does not have " << GetParam();
    }
  }
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
  // Rows that a tile spans, and rows that it hangs over, whose last vectors are masked: the same numbers, of which only
  // the sum may be another.
  for (int64_t cols : {64, 100, 333}) {
    Tensor x = Tensor::empty(bf16, {8, cols}), y = Tensor::empty(bf16, {8, cols}), wide = Tensor::empty(bf16, {8, cols});
    x.fillRandom(3, 0, 1);
    LaunchOptions exact = options(), over = options();
    exact.params = {{"cols", cols}};
    over.params = {{"cols", cols + 30}};
    launch(shares, {x, y}, exact);
    launch(shares, {x, wide}, over);
    for (int64_t i = 0; i < 8; ++i) {
      double total = 0;
      for (int64_t j = 0; j < cols; ++j)
        total += std::exp(x.get({i, j}));
      for (int64_t j = 0; j < cols; ++j) {
        double want = std::exp(x.get({i, j})) / total;
        EXPECT_NEAR(y.get({i, j}), want, want * 0x1.1p-8) << i << ", " << j;
        EXPECT_NEAR(wide.get({i, j}), want, want * 0x1.1p-8) << i << ", " << j;
      }
    }
  }
}

TEST_P(Ties, ExactNumbersBesidePowers) {
  // 1 and half a place: where the power is less, that is what is rounded, to even.
  Tensor x = Tensor::empty(bf16, {256}), larger = Tensor::empty(bf16, {256}), sum = Tensor::empty(bf16, {256});
  x.fill(-120);
  launch(beside, {x, larger, sum}, options());
  for (int64_t i = 0; i < 256; ++i) {
    ASSERT_EQ(larger.get({i}), 1);
    ASSERT_EQ(sum.get({i}), 1);
  }
}

TEST_P(Ties, ManyScalars) {
  Tensor x = Tensor::zeros(bf16, {64}), s = Tensor::empty(f32, {40}), y = Tensor::empty(bf16, {64});
  s.fill(1);
  s.set({7}, 3);
  launch(scaled, {x, s, y}, options());
  for (int64_t i = 0; i < 64; ++i)
    ASSERT_EQ(y.get({i}), 3);
}

TEST_P(Ties, BitsThatAreSeen) {
  Tensor x = Tensor::empty(bf16, {64}), f = Tensor::empty(f32, {1}), y = Tensor::empty(bf16, {64}),
         z = Tensor::empty(f32, {64});
  x.fillRandom(1, -1, 1);
  uint32_t bits = 0xffffffff;
  std::memcpy(f.data(), &bits, 4);
  launch(seen, {x, f, y, z}, options());
  for (int64_t i = 0; i < 64; ++i) {
    EXPECT_TRUE(std::isnan(widened(y, i)));
    uint32_t kept;
    std::memcpy(&kept, static_cast<const char *>(z.data()) + 4 * i, 4);
    EXPECT_EQ(kept, bits);
  }
}

TEST_P(Ties, HalvesAddUp) {
  Tensor x = Tensor::zeros(bf16, {200, 64}), high = Tensor::empty(bf16, {200, 1}), low = Tensor::empty(bf16, {200, 1});
  for (int64_t i = 0; i < 200; ++i) {
    x.set({i, 0}, static_cast<double>(2 * i));
    x.set({i, 7}, 1);
  }
  LaunchOptions wide = options();
  wide.params = {{"cols", 64}};
  launch(halves, {x, high, low}, wide);
  for (int64_t i = 0; i < 200; ++i)
    EXPECT_EQ(high.get({i, 0}) + low.get({i, 0}), static_cast<double>(2 * i + 1));
}

INSTANTIATE_TEST_SUITE_P(Cpu, Ties, testing::Values("native", "avx512-dot", "amx-emulated", "avx2", "baseline"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });
