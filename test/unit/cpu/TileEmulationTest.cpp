// SPDX-License-Identifier: Apache-2.0
//
// The functions that stand in for AMX's instructions do what the manual says of them. Where this machine has the
// instructions, e2e-cpu-dot runs these, and the same sums must come out.
#include "tenon/compiler/target/cpu/TileEmulation.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

using namespace tenon;
using namespace tenon::cpu;

namespace {

template <class... Arguments> void call(std::string_view name, Arguments... arguments) {
  for (const ExternalSymbol &symbol : tileEmulation())
    if (symbol.name == name)
      return reinterpret_cast<void (*)(Arguments...)>(symbol.address)(arguments...);
  FAIL() << "no function called " << name;
}

/// Eight tiles of one shape.
std::vector<char> configuration(int rows, int rowBytes, int palette = 1) {
  std::vector<char> bytes(64);
  bytes[0] = static_cast<char>(palette);
  for (int tile = 0; tile < 8; ++tile) {
    bytes[16 + 2 * tile] = static_cast<char>(rowBytes);
    bytes[48 + tile] = static_cast<char>(rows);
  }
  return bytes;
}

void configure(int rows, int rowBytes, int palette = 1) {
  call("tenon_tile_configure", static_cast<const char *>(configuration(rows, rowBytes, palette).data()));
}
void load(int64_t tile, const void *from, int64_t stride) {
  call("tenon_tile_load", tile, static_cast<const char *>(from), stride);
}
void store(int64_t tile, void *to, int64_t stride) { call("tenon_tile_store", tile, static_cast<char *>(to), stride); }
void multiply(const char *how, int64_t sum, int64_t a, int64_t b) {
  call(std::string("tenon_tile_multiply_") + how, sum, a, b);
}

uint16_t bf16(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); }

TEST(TileEmulation, LoadsAndStoresRowsOfTheConfiguredShape) {
  configure(2, 8);
  std::vector<char> from(64, 'x'), to(64, '-');
  std::memcpy(from.data(), "01234567", 8);
  std::memcpy(from.data() + 20, "abcdefgh", 8);
  load(3, from.data(), 20);
  store(3, to.data(), 10);
  EXPECT_EQ(std::string(to.data(), 20), "01234567--abcdefgh--");
  call("tenon_tile_zero", int64_t(3));
  store(3, to.data(), 10);
  EXPECT_EQ(std::string(to.data(), 8), std::string(8, '\0'));
  call("tenon_tile_release");
}

// One row, one column, two units: sum + ((a0 b0 + a2 b2) + (a1 b1 + a3 b3)), each sum rounded.
TEST(TileEmulation, AddsEvenAndOddPairsApart) {
  configure(2, 8); // A: 2 rows of 2 units; B: 2 units of 2 columns
  uint16_t a[2][4] = {{bf16(1), bf16(1), bf16(1), bf16(1)}, {}}, b[2][4] = {};
  // Column 0. Even: 2^24 + 1 is rounded to 2^24; odd: 1 - 2^24 is exact. Without rounding the sum would be 2.
  b[0][0] = bf16(0x1p24f), b[0][1] = bf16(1), b[1][0] = bf16(1), b[1][1] = bf16(-0x1p24f);
  float sum[2][2] = {};
  load(0, sum, 8), load(1, a, 8), load(2, b, 8);
  multiply("bf16", 0, 1, 2);
  store(0, sum, 8);
  EXPECT_EQ(sum[0][0], 1) << "2^24 + (1 - 2^24)";
  EXPECT_EQ(sum[0][1], 0);
  EXPECT_EQ(sum[1][0], 0);
  call("tenon_tile_release");
}

TEST(TileEmulation, TakesSubnormalNumbersForZero) {
  configure(2, 8);
  uint16_t a[2][4] = {{bf16(0x1p-130f), bf16(1)}, {bf16(0x1p-100f), 0}}, b[2][4] = {{bf16(0x1p100f), bf16(2)}, {}};
  float sum[2][2] = {{0, 0x1p-140f}, {}};
  load(0, sum, 8), load(1, a, 8), load(2, b, 8);
  multiply("bf16", 0, 1, 2);
  store(0, sum, 8);
  EXPECT_EQ(sum[0][0], 2) << "an operand";
  EXPECT_EQ(sum[0][1], 0) << "a sum";
  EXPECT_EQ(sum[1][0], 1);
  call("tenon_tile_release");
}

TEST(TileEmulation, BytesHaveTheSignThatTheInstructionSays) {
  configure(2, 8);
  uint8_t a[2][8] = {{200, 1, 0, 0}, {}}, b[2][8] = {{255, 3, 0, 0}, {}};
  for (auto [how, expected] : {std::pair<const char *, int32_t>{"ss", -56 * -1 + 3},
                               {"su", -56 * 255 + 3},
                               {"us", 200 * -1 + 3},
                               {"uu", 200 * 255 + 3}}) {
    int32_t sum[2][2] = {{1000, 0}, {}};
    load(0, sum, 8), load(1, a, 8), load(2, b, 8);
    multiply(how, 0, 1, 2);
    store(0, sum, 8);
    EXPECT_EQ(sum[0][0], 1000 + expected) << how;
  }
  call("tenon_tile_release");
}

TEST(TileEmulationDeathTest, RefusesWhatTheProcessorWould) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  float memory[64] = {};
  EXPECT_DEATH(load(0, memory, 64), "a tile is used before ldtilecfg");
  EXPECT_DEATH(configure(2, 8, 2), "only palette 1");
  EXPECT_DEATH(configure(17, 64), "larger than 16 rows of 64 bytes");
  EXPECT_DEATH((configure(2, 8), multiply("ss", 1, 1, 2)), "three different tiles");
  EXPECT_DEATH((configure(3, 8), multiply("ss", 0, 1, 2)), "shapes do not match");
  EXPECT_DEATH((configure(2, 8), load(8, memory, 64)), "eight tiles");
}

} // namespace
