// SPDX-License-Identifier: Apache-2.0
//
// Random numbers of 16 bits, sixteen to an evaluation of the generator, with fewer rounds: the same bits on every target
// however the counters lie, and draws that look like chance: how often each number comes up, whether neighbours know of
// each other, whether neighbouring seeds do. That any two of the sixteen are independent is shown, not tried.
#include "LangSupport.h"

#include "tenon/kernels/dropout/Reference.h"

#include <algorithm>
#include <bitset>

using namespace tenon;
using namespace tenon::test;

namespace {

using RandomHalves = OnTarget;

const Kernel halves("halves(y, first, seed, rows, cols, rounds=7)", [](View y, Index first, Index seed, Param rows,
                                                                       Param cols, Param rounds) {
  auto [i, j] = grid(cdiv(y.size(0), rows), cdiv(y.size(1), cols));
  Tile row = iota(i64, {rows, 1}, 0) + i * rows, column = iota(i32, {1, cols}, 1).to(i64) + j * cols;
  RandomOptions options{.bits = 16, .rounds = static_cast<int>(rounds)};
  y.store({i * rows, j * cols}, random_bits(seed, row * y.size(1) + column + first, options).to(y.dtype()));
});

TEST_P(RandomHalves, KnownAnswer) {
  // Of Random123: philox4x32 with 7 rounds, counter and key zero, is 5f6fb709 0d893f64 4f121f81 4f730a48.
  // Upper bytes are those of halves b709 5f6f 3f64 0d89 1f81 4f12 0a48 4f73, then their lower bytes.
  Tensor y = Tensor::zeros(u16, {1, 64});
  run(halves, {y, 0, 0}, {{"rows", 1}, {"cols", 64}});
  std::vector<int64_t> numbers = intsOf(y);
  EXPECT_EQ((std::vector<int64_t>{numbers.begin(), numbers.begin() + 8}),
            (std::vector<int64_t>{0xb700 | (0x09 ^ 0x81), 0x5f00 | (0x6f ^ 0x12), 0x3f00 | (0x64 ^ 0x48),
                                  0x0d00 | (0x89 ^ 0x73), 0x1f00 | (0x81 ^ 0xb7), 0x4f00 | (0x12 ^ 0x5f),
                                  0x0a00 | (0x48 ^ 0x3f), 0x4f00 | (0x73 ^ 0x0d)}));
  EXPECT_EQ((std::vector<int64_t>{numbers.begin() + 32, numbers.begin() + 40}),
            (std::vector<int64_t>{0x0900 | (0xb7 ^ 0x1f), 0x6f00 | (0x5f ^ 0x4f), 0x6400 | (0x3f ^ 0x0a),
                                  0x8900 | (0x0d ^ 0x4f), 0x8100 | (0x1f ^ 0x09), 0x1200 | (0x4f ^ 0x6f),
                                  0x4800 | (0x0a ^ 0x64), 0x7300 | (0x4f ^ 0x89)}));
}

TEST(RandomHalvesOfABlock, AnyTwoAreIndependentAndAllUpperBytesAre) {
  // The numbers are linear in the block's 128 bits, so bits of them are independent if and only if no exclusive or of
  // some is always 0: if the rows that say which of the 128 each is made of have full rank.
  std::array<std::bitset<128>, 256> madeOf;
  for (size_t bit = 0; bit < 128; ++bit) {
    std::array<uint32_t, 4> words{};
    words[bit / 32] = uint32_t(1) << bit % 32;
    std::array<uint16_t, 16> numbers = zoo::randomHalves(words);
    for (size_t i = 0; i < 256; ++i)
      madeOf[i][bit] = numbers[i / 16] >> i % 16 & 1;
  }
  auto rank = [](std::vector<std::bitset<128>> rows) {
    size_t found = 0;
    for (size_t bit = 0; bit < 128; ++bit) {
      auto pivot = std::find_if(rows.begin() + static_cast<ptrdiff_t>(found), rows.end(),
                                [&](const auto &row) { return row[bit]; });
      if (pivot == rows.end())
        continue;
      std::swap(*pivot, rows[found]);
      for (size_t i = 0; i < rows.size(); ++i)
        if (i != found && rows[i][bit])
          rows[i] ^= rows[found];
      ++found;
    }
    return found;
  };
  auto appendNumber = [&](std::vector<std::bitset<128>> &rows, size_t number, size_t firstBit) {
    rows.insert(rows.end(), madeOf.begin() + static_cast<ptrdiff_t>(16 * number + firstBit),
                madeOf.begin() + static_cast<ptrdiff_t>(16 * number + 16));
  };
  std::vector<std::bitset<128>> upperBytes;
  for (size_t a = 0; a < 16; ++a) {
    appendNumber(upperBytes, a, 8);
    for (size_t c = 0; c < a; ++c) {
      std::vector<std::bitset<128>> both;
      appendNumber(both, a, 0);
      appendNumber(both, c, 0);
      EXPECT_EQ(rank(both), 32u) << a << " and " << c;
    }
  }
  EXPECT_EQ(rank(upperBytes), 128u);
}

TEST_P(RandomHalves, OfCountersHoweverAligned) {
  // Rows of a multiple of 64 and less, whole blocks and not, on both sides of where the blocks' numbers outgrow 32 bits
  // and the counters 64; what is left of a row; all numbers of rounds.
  for (DType type : {u16, u32})
    for (int64_t columns : {256, 160, 64, 48, 20, 17})
      for (int64_t first : {int64_t(0), int64_t(8), int64_t(12), int64_t(64), int64_t(-3), int64_t(0xfffffffe0)}) {
        int64_t rounds = 7 + columns % 4;
        Tensor y = Tensor::zeros(type, {5, columns});
        run(halves, {y, first, 0x7123456789abcdef},
            {{"rows", 4}, {"cols", columns > 100 ? 256 : columns == 64 ? 64 : 16}, {"rounds", rounds}});
        for (int64_t i = 0; i < 5; ++i)
          for (int64_t j = 0; j < columns; ++j)
            ASSERT_EQ(y.getInt({i, j}),
                      zoo::randomHalf(0x7123456789abcdef, static_cast<uint64_t>(first + i * columns + j),
                                      static_cast<int>(rounds)))
                << nameOf(type) << " " << i << ", " << j << " of " << columns << " columns from " << first;
      }
}

TEST_P(RandomHalves, OfCountersThatAreNotNeighbours) {
  Kernel kernel("bits(y)", [](View y) {
    Tile down = iota(i64, {16, 8}, 0), across = iota(i64, {16, 8}, 1);
    Tile counters[] = {across * 16 + down, 127 - across - down * 8, (across + down * 8) * 2,
                       (across + down) * (across + down)};
    for (int64_t n = 0; n < 4; ++n)
      y.store({n, 0, 0}, reshape(random_bits(3, counters[n], {.bits = 16}), {1, 16, 8}));
  });
  Tensor y = Tensor::zeros(u16, {4, 16, 8});
  run(kernel, {y});
  for (int64_t n = 0; n < 4; ++n)
    for (int64_t i = 0; i < 16; ++i)
      for (int64_t j = 0; j < 8; ++j) {
        int64_t counters[] = {j * 16 + i, 127 - j - i * 8, (j + i * 8) * 2, (i + j) * (i + j)};
        ASSERT_EQ(y.getInt({n, i, j}), zoo::randomHalf(3, static_cast<uint64_t>(counters[n]), 10))
            << n << ": " << i << ", " << j;
      }
}

TEST_P(RandomHalves, LookLikeChance) {
  constexpr int64_t n = 1 << 15;
  auto draw = [&](int64_t seed) {
    Tensor y = Tensor::zeros(u16, {n / 1024, 1024});
    run(halves, {y, 0, seed}, {{"rows", 8}, {"cols", 1024}});
    std::vector<int64_t> ints = intsOf(y);
    return std::vector<double>(ints.begin(), ints.end());
  };
  auto correlation = [](const double *a, const double *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i)
      sum += (a[i] - 32767.5) * (b[i] - 32767.5);
    return sum / (static_cast<double>(count) * 65536.0 * 65536.0 / 12);
  };
  double deviation = 1 / std::sqrt(static_cast<double>(n));
  std::vector<double> numbers = draw(42);
  // How often each of 256 classes comes up, by the upper bits and by the lower ones: chi squared has 255 degrees of
  // freedom and a deviation of 22.6.
  for (int shift : {8, 0}) {
    std::array<double, 256> counts{};
    for (double number : numbers)
      ++counts[static_cast<size_t>(number) >> shift & 255];
    double chi = 0;
    for (double count : counts)
      chi += (count - n / 256.0) * (count - n / 256.0) / (n / 256.0);
    EXPECT_NEAR(chi, 255, 5 * 22.6) << shift;
  }
  // Each bit as often as not.
  for (int bit = 0; bit < 16; ++bit) {
    int64_t set = 0;
    for (double number : numbers)
      set += static_cast<int64_t>(number) >> bit & 1;
    EXPECT_NEAR(static_cast<double>(set) / n, 0.5, 2.5 * deviation) << bit;
  }
  // Neighbours, both halves of a word, the same place of the next block, rows; then the next seed, and one bit further
  // up in it.
  for (int64_t lag : {1, 2, 3, 4, 7, 8, 16, 28, 32, 36, 64, 1024})
    EXPECT_NEAR(correlation(numbers.data(), numbers.data() + lag, n - lag), 0, 5 * deviation) << lag;
  for (int64_t seed : {int64_t(43), int64_t(42) + (int64_t(1) << 32), int64_t(42) + (int64_t(1) << 63)})
    EXPECT_NEAR(correlation(numbers.data(), draw(seed).data(), n), 0, 5 * deviation) << seed;
}

TEST_P(RandomHalves, EventsAreAsProbableAsTheyShouldBe) {
  Kernel given("given(y, p, seed)", [](View y, Scalar p, Index seed) {
    y.store({0}, random_event(p, seed, iota(i64, {20000}, 0)).to(i32));
  });
  for (double p : {-1.0, 0.0, 0x1p-18, 0x1p-17, 0.1, 0.5, 1 - 0x1p-18, 1.0, 7.0}) {
    Kernel known("known(y, seed)",
                 [p](View y, Index seed) { y.store({0}, random_event(p, seed, iota(i64, {20000}, 0)).to(i32)); });
    Tensor y = Tensor::zeros(i32, {20000}), z = Tensor::zeros(i32, {20000});
    run(given, {y, p, 5});
    run(known, {z, 5});
    int64_t events = 0;
    for (int64_t i = 0; i < 20000; ++i) {
      ASSERT_EQ(y.getInt({i}), zoo::randomHalf(5, static_cast<uint64_t>(i), 7) < zoo::dropLimit(p)) << p;
      ASSERT_EQ(y.getInt({i}), z.getInt({i})) << p;
      events += y.getInt({i});
    }
    double probability = std::clamp(p, 0.0, 1.0);
    EXPECT_NEAR(static_cast<double>(events), 20000 * probability,
                5 * std::sqrt(20000 * probability * (1 - probability)) + 2)
        << p;
  }
}

TEST_P(RandomHalves, DropoutOfEverythingAndOfNothing) {
  Kernel kernel("drop(x, y, p)", [](View x, View y, Scalar p) {
    y.store({0}, dropout(x.load({0}, {70000}), p, 9, iota(i64, {70000}, 0)));
  });
  Tensor x = Tensor::empty(f32, {70000}), y = Tensor::zeros(f32, {70000});
  x.fill(3);
  for (double p : {0.0, 1.0}) { // among so many, some have all bits set
    run(kernel, {x, y, p});
    for (int64_t i = 0; i < 70000; ++i)
      ASSERT_EQ(y.get({i}), p == 0 ? 3 : 0) << i;
  }
}

TENON_ON_EACH_TARGET(RandomHalves);

} // namespace
