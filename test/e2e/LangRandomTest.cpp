// SPDX-License-Identifier: Apache-2.0
//
// Random numbers: the published Philox vectors, the same bits on every target, and a distribution that looks right.
#include "LangSupport.h"

using namespace tenon;
using namespace tenon::test;

namespace {

using Random = OnTarget;

/// Philox4x32-10 as Salmon et al. (2011) give it.
std::array<uint32_t, 4> philoxReference(uint64_t key, uint64_t counter) {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53) * c[0], p1 = uint64_t(0xCD9E8D57) * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

/// The rule of random_bits: four counters to an evaluation of the generator.
uint32_t bitsReference(uint64_t seed, uint64_t counter) { return philoxReference(seed, counter / 4)[counter % 4]; }

Kernel words("words(c, y, seed)", [](View c, View y, Index seed) {
  auto four = philox(seed, c.load({0}, {21}));
  for (int64_t w = 0; w < 4; ++w)
    y.store({w, 0}, reshape(four[w], {1, 21}));
});

TEST_P(Random, KnownAnswer) {
  // The first published vector: counter and key zero.
  Tensor c = Tensor::zeros(i64, {21}), y = Tensor::zeros(u32, {4, 21});
  run(words, {c, y, 0});
  EXPECT_EQ(y.getInt({0, 0}), 0x6627e8d5);
  EXPECT_EQ(y.getInt({1, 0}), 0xe169c58d);
  EXPECT_EQ(y.getInt({2, 0}), 0xbc57ac4c);
  EXPECT_EQ(y.getInt({3, 0}), 0x9b00dbd8);
}

TEST_P(Random, EveryCounterAndSeed) {
  for (DType type : {i64, u64, i32, u32}) {
    Tensor c = Tensor::zeros(type, {21}), y = Tensor::zeros(u32, {4, 21});
    for (int64_t i = 0; i < 21; ++i)
      c.setInt({i}, sizeOf(type) == 8 ? i * 0x123456789abcdef : i * 1000003);
    if (type == i32)
      c.setInt({0}, -1);
    if (type == u32)
      c.setInt({0}, 0xffffffff);
    for (int64_t seed : {int64_t(0), int64_t(1), int64_t(-1), int64_t(0x123456789abcdef0)}) {
      run(words, {c, y, seed});
      for (int64_t i = 0; i < 21; ++i) {
        auto expected = philoxReference(static_cast<uint64_t>(seed), static_cast<uint64_t>(c.getInt({i})));
        for (int64_t w = 0; w < 4; ++w)
          ASSERT_EQ(y.getInt({w, i}), expected[w]) << nameOf(type) << " seed " << seed << " element " << i;
      }
    }
  }
}

TEST_P(Random, UniformIsFlat) {
  Kernel kernel("uniform(y, seed)", [](View y, Index seed) {
    Index i = grid(cdiv(y.size(0), 1000));
    y.store({i * 1000}, random_uniform(seed, i * 1000 + iota(i64, {1000}, 0)));
  });
  int64_t n = 20000;
  Tensor y = Tensor::zeros(f32, {n});
  run(kernel, {y, 42});
  std::array<int, 16> bins{};
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    double value = y.get({i});
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    ASSERT_EQ(value, (bitsReference(42, i) >> 8) * 0x1p-24);
    ++bins[static_cast<size_t>(value * 16)];
    total += value;
  }
  EXPECT_NEAR(total / n, 0.5, 0.01);
  for (int bin : bins)
    EXPECT_NEAR(bin, n / 16, 6 * std::sqrt(n / 16.0));
}

TEST_P(Random, DropoutKeepsTheExpectation) {
  Kernel kernel("drop(x, y, p, seed)", [](View x, View y, Scalar p, Index seed) {
    Index i = grid(cdiv(x.size(0), 500));
    Tile at = i * 500 + iota(i64, {500}, 0);
    y.store({i * 500}, dropout(x.load({i * 500}, {500}), p, seed, at));
  });
  for (DType type : {f32, f16, bf16, f64})
    for (double p : {0.0, 0.25, 0.5, 0.9}) {
      int64_t n = 20000;
      Tensor x = Tensor::empty(type, {n}), y = Tensor::zeros(type, {n});
      x.fill(2);
      run(kernel, {x, y, p, 7});
      double total = 0;
      int64_t dropped = 0;
      for (int64_t i = 0; i < n; ++i) {
        dropped += y.get({i}) == 0;
        total += y.get({i});
        if (y.get({i}) != 0) {
          ASSERT_NEAR(y.get({i}), 2 / (1 - p), 0.02 / (1 - p)) << nameOf(type) << " " << p;
        }
      }
      EXPECT_NEAR(static_cast<double>(dropped) / n, p, 0.02) << nameOf(type);
      EXPECT_NEAR(total / n, 2, 0.2) << nameOf(type) << " " << p;
      if (p == 0.0) {
        EXPECT_EQ(dropped, 0);
      }
    }
}

// What is dropped is 0 whatever it was, and with a probability of 1 that is everything: given at run time or known
// before.
TEST_P(Random, DropoutOfProbabilityOne) {
  auto body = [](View x, View y, Arg p) { y.store({0}, dropout(x.load({0}, {300}), p, 7, iota(i64, {300}, 0))); };
  Kernel given("drop(x, y, p)", [&](View x, View y, Scalar p) { body(x, y, p); });
  Kernel known("drop(x, y)", [&](View x, View y) { body(x, y, 1.0); });
  Tensor x = Tensor::empty(f32, {300}), y = Tensor::empty(f32, {300}), z = Tensor::empty(f32, {300});
  x.fill(std::numeric_limits<double>::infinity());
  y.fill(1);
  z.fill(1);
  run(given, {x, y, 1.0});
  run(known, {x, z});
  for (int64_t i = 0; i < 300; ++i) {
    ASSERT_EQ(y.get({i}), 0) << i;
    ASSERT_EQ(z.get({i}), 0) << i;
  }
}

TEST_P(Random, BitsDoNotDependOnTheTiling) {
  Kernel kernel("bits(y, tile)", [](View y, Param tile) {
    Index i = grid(cdiv(y.size(0), tile));
    y.store({i * tile}, random_bits(5, i * tile + iota(i64, {tile}, 0)));
  });
  Tensor a = Tensor::zeros(u32, {100}), b = Tensor::zeros(u32, {100});
  run(kernel, {a}, {{"tile", 7}});
  run(kernel, {b}, {{"tile", 64}});
  EXPECT_EQ(intsOf(a), intsOf(b));
}

TEST_P(Random, KnownAnswerOfBits) {
  // The words of the published vector, one after the other.
  Kernel kernel("bits(y)", [](View y) { y.store({0}, random_bits(0, iota(i32, {5}, 0))); });
  Tensor y = Tensor::zeros(u32, {5});
  run(kernel, {y});
  EXPECT_EQ(intsOf(y), (std::vector<int64_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, bitsReference(0, 4)}));
}

TEST_P(Random, BitsOfCountersHoweverAligned) {
  // Rows of a multiple of 4 (one that leaves three groups of four), of 2 and of 1 elements, from counters that are or
  // are not multiples; element types whose vectors hold 16, 4 and 2; a tile whose edge cuts a group of four.
  Kernel kernel("bits(y, first, seed, rows, cols)", [](View y, Index first, Index seed, Param rows, Param cols) {
    auto [i, j] = grid(cdiv(y.size(0), rows), cdiv(y.size(1), cols));
    Tile row = iota(i64, {rows, 1}, 0) + i * rows, column = iota(i32, {1, cols}, 1).to(i64) + j * cols;
    y.store({i * rows, j * cols}, random_bits(seed, row * y.size(1) + column + first).to(y.dtype()));
  });
  for (DType type : {u8, u32, u64})
    for (int64_t columns : {64, 48, 28, 20, 18, 17})
      for (int64_t first : {int64_t(0), int64_t(4), int64_t(6), int64_t(-3), int64_t(0x3fffffff0)}) {
        Tensor y = Tensor::zeros(type, {6, columns});
        run(kernel, {y, first, 0x123456789}, {{"rows", 4}, {"cols", columns == 48 ? 23 : columns == 28 ? 28 : 16}});
        for (int64_t i = 0; i < 6; ++i)
          for (int64_t j = 0; j < columns; ++j) {
            uint32_t bits = bitsReference(0x123456789, static_cast<uint64_t>(first + i * columns + j));
            ASSERT_EQ(y.getInt({i, j}), type == u8 ? bits & 255 : bits)
                << nameOf(type) << " " << i << ", " << j << " of " << columns << " columns from " << first;
          }
      }
}

TEST_P(Random, BitsOfCountersThatAreNotNeighbours) {
  // Along the other dimension, reversed, doubled, transposed, wrapped in 32 bits, and from memory.
  Kernel kernel("bits(c, y)", [](View c, View y) {
    Tile down = iota(i64, {16, 8}, 0), across = iota(i64, {16, 8}, 1);
    Tile counters[] = {across * 16 + down, 127 - across - down * 8, (across + down * 8) * 2,
                       transpose(iota(i64, {8, 16}, 1) + iota(i64, {8, 16}, 0) * 16),
                       (iota(u32, {16, 8}, 1) + 0xfffffffc).to(i64) + down * 8, c.load({0, 0}, {16, 8})};
    for (int64_t n = 0; n < 6; ++n) {
      y.store({n, 0, 0}, reshape(random_bits(3, counters[n]), {1, 16, 8}));
      y.store({n + 6, 0, 0}, reshape(counters[n].to(u32), {1, 16, 8}));
    }
  });
  Tensor c = Tensor::zeros(i64, {16, 8}), y = Tensor::zeros(u32, {12, 16, 8});
  for (int64_t i = 0; i < 128; ++i)
    c.setInt({i / 8, i % 8}, i * i);
  run(kernel, {c, y});
  for (int64_t n = 0; n < 6; ++n)
    for (int64_t i = 0; i < 16; ++i)
      for (int64_t j = 0; j < 8; ++j) {
        int64_t expected[] = {j * 16 + i,      127 - j - i * 8, (j + i * 8) * 2,
                              i + j * 16,      int64_t(uint32_t(j + 0xfffffffc)) + i * 8, (i * 8 + j) * (i * 8 + j)};
        ASSERT_EQ(y.getInt({n + 6, i, j}), static_cast<uint32_t>(expected[n]));
        ASSERT_EQ(y.getInt({n, i, j}), bitsReference(3, expected[n])) << n << ": " << i << ", " << j;
      }
}

TEST_P(Random, BitsOfCountersFarApart) {
  // A thread has elements from all over a wide tile, whose counters pass 2^32, four times 2^32 and 2^64.
  Kernel kernel("bits(y, first)", [](View y, Index first) {
    y.store({0, 0}, random_bits(11, iota(i64, {2, 2048}, 1) + iota(i64, {2, 2048}, 0) * 3000 + first));
  });
  for (int64_t first : {int64_t(0), (int64_t(1) << 32) - 1024, (int64_t(1) << 34) - 1022, int64_t(-1027)}) {
    Tensor y = Tensor::zeros(u32, {2, 2048});
    run(kernel, {y, first});
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 2048; ++j)
        ASSERT_EQ(y.getInt({i, j}), bitsReference(11, static_cast<uint64_t>(first + 3000 * i + j)))
            << i << ", " << j << " from " << first;
  }
}

TEST_P(Random, ComparedWithAnyThreshold) {
  Kernel kernel("compare(y, p)", [](View y, Scalar p) {
    Tile u = random_uniform(21, iota(i64, {64}, 0));
    Tile results[] = {u >= p, u > p, u <= p, u < p};
    for (int64_t n = 0; n < 4; ++n)
      y.store({n, 0}, reshape(results[n].to(i32), {1, 64}));
  });
  double drawn = (bitsReference(21, 5) >> 8) * 0x1p-24;
  for (double p : {double(-INFINITY), -1.0, -0.0, 0x1p-26, drawn, 0.5, 1 - 0x1p-24, 1.0, 3e38, double(INFINITY), double(NAN)}) {
    Tensor y = Tensor::zeros(i32, {4, 64});
    run(kernel, {y, p});
    for (int64_t i = 0; i < 64; ++i) {
      double u = (bitsReference(21, static_cast<uint64_t>(i)) >> 8) * 0x1p-24;
      int64_t expected[] = {u >= p, u > p, u <= p, u < p};
      for (int64_t n = 0; n < 4; ++n)
        ASSERT_EQ(y.getInt({n, i}), expected[n]) << u << " and " << p << ", comparison " << n;
    }
  }
}

TENON_ON_EACH_TARGET(Random);

//===--- Looking inside -------------------------------------------------------------------------------------------===//

using Inspection = OnTarget;

TEST_P(Inspection, Print) {
  Kernel kernel("show(x)", [](View x) {
    auto [i, j] = grid(2, 1);
    Tile t = x.load({0, 0}, {2, 2});
    if_(i == 1, [&] {
      device_print("tile", t);
      device_print("row", reshape(t, {4}).to(u8));
      device_print("flag", t > 1);
      device_print("index", i * 10 + j);
      device_print("number", 2.5);
      device_print("scalar", x.at({1, 1}));
    });
  });
  Tensor x = counting(f32, {2, 2});
  x.set({0, 0}, -0.5);
  testing::internal::CaptureStdout();
  run(kernel, {x});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "tile (1, 0, 0): [[-0.5, 1], [2, 3]]\n"
                                                    "row (1, 0, 0): [0, 1, 2, 3]\n"
                                                    "flag (1, 0, 0): [[false, false], [true, true]]\n"
                                                    "index (1, 0, 0): 10\n"
                                                    "number (1, 0, 0): 2.5\n"
                                                    "scalar (1, 0, 0): 3\n");
}

TEST_P(Inspection, PrintOfUnsignedNarrowAndNaN) {
  Kernel kernel("show(x, y, z)", [](View x, View y, View z) {
    device_print("u64", x.load({0}, {2}));
    device_print("bf16", y.load({0}, {3}));
    device_print("i8", z.load({0}, {2}));
  });
  Tensor x = Tensor::zeros(u64, {2}), y = vectorOf(bf16, {NAN, -INFINITY, 0.1}), z = vectorOf(i8, {-128, 127});
  x.setInt({0}, -1);
  testing::internal::CaptureStdout();
  run(kernel, {x, y, z});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "u64 (0, 0, 0): [18446744073709551615, 0]\n"
                                                    "bf16 (0, 0, 0): [nan, -inf, 0.100097656]\n"
                                                    "i8 (0, 0, 0): [-128, 127]\n");
}

TEST_P(Inspection, Assert) {
  unsigned line = 0;
  Kernel kernel("check(x)", [&](View x) {
    Index i = grid(x.size(0));
    line = __LINE__ + 1;
    device_assert(x.load({i, 0}, {1, 4}) < 100, "values stay below 100");
    device_assert(i < 50, "not many rows");
  });
  Tensor x = counting(f32, {20, 4});
  EXPECT_NO_THROW(run(kernel, {x}));
  x.set({13, 2}, 100);
  std::string text = errorOf([&] { run(kernel, {x}); });
  expectParts(text, {"assertion failed: values stay below 100", "LangRandomTest.cpp:" + std::to_string(line),
                     "program (13, 0, 0), element (0, 2))"});
  Tensor many = Tensor::zeros(f32, {60, 4});
  expectParts(errorOf([&] { run(kernel, {many}); }),
              {"not many rows", "LangRandomTest.cpp:" + std::to_string(line + 1)});
  x.set({13, 2}, 0);
  EXPECT_NO_THROW(run(kernel, {x})); // a failed launch leaves nothing behind
  x.set({0, 0}, NAN);
  EXPECT_THROW(run(kernel, {x}), Error);
}

TENON_ON_EACH_TARGET(Inspection);

} // namespace
