// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/TileEmulation.h"

#include "tenon/compiler/target/cpu/AmxTiles.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tenon::cpu {
namespace {

constexpr int tileCount = 8;

struct Tile {
  int rows = 0, rowBytes = 0;
  char bytes[tileRows][tileRowBytes] = {};

  template <class T> T get(int row, int column) const {
    T value;
    std::memcpy(&value, bytes[row] + column * sizeof(T), sizeof(T));
    return value;
  }
  template <class T> void set(int row, int column, T value) {
    std::memcpy(bytes[row] + column * sizeof(T), &value, sizeof(T));
  }
};

struct State {
  bool isConfigured = false;
  Tile tiles[tileCount];
};

State &state() {
  thread_local State ofThisThread;
  return ofThisThread;
}

void require(bool condition, const char *what) {
  if (condition)
    return;
  std::fprintf(stderr, "emulated AMX: %s\n", what);
  std::abort();
}

Tile &tile(int64_t number) {
  require(state().isConfigured, "a tile is used before ldtilecfg");
  require(number >= 0 && number < tileCount, "there are eight tiles");
  return state().tiles[number];
}

void configure(const char *configuration) {
  require(configuration[0] == 1 && configuration[1] == 0, "only palette 1, from row 0, is known");
  State &now = state();
  now = State();
  for (int number = 0; number < tileCount; ++number) {
    uint16_t rowBytes;
    std::memcpy(&rowBytes, configuration + 16 + 2 * number, 2);
    now.tiles[number].rowBytes = rowBytes;
    now.tiles[number].rows = static_cast<uint8_t>(configuration[48 + number]);
    require(rowBytes <= tileRowBytes && now.tiles[number].rows <= tileRows, "a tile is larger than 16 rows of 64 bytes");
  }
  now.isConfigured = true;
}

void release() { state() = State(); }

void zero(int64_t number) { std::memset(tile(number).bytes, 0, sizeof(Tile::bytes)); }

void load(int64_t number, const char *from, int64_t stride) {
  zero(number);
  Tile &to = tile(number);
  for (int row = 0; row < to.rows; ++row)
    std::memcpy(to.bytes[row], from + row * stride, to.rowBytes);
}

void store(int64_t number, char *to, int64_t stride) {
  const Tile &from = tile(number);
  for (int row = 0; row < from.rows; ++row)
    std::memcpy(to + row * stride, from.bytes[row], from.rowBytes);
}

void requireShapes(const Tile &sum, const Tile &a, const Tile &b) {
  require(&sum != &a && &sum != &b && &a != &b, "a product needs three different tiles");
  require(a.rows == sum.rows && b.rowBytes == sum.rowBytes && a.rowBytes == 4 * b.rows, "shapes do not match");
}

float flushed(float value) { return std::fabs(value) < FLT_MIN ? std::copysign(0.0f, value) : value; }

float element(const Tile &from, int row, int column) {
  return flushed(std::bit_cast<float>(uint32_t(from.get<uint16_t>(row, column)) << 16));
}

void multiplyBf16(int64_t sumNumber, int64_t aNumber, int64_t bNumber) {
  Tile &sum = tile(sumNumber);
  const Tile &a = tile(aNumber), &b = tile(bNumber);
  requireShapes(sum, a, b);
  for (int row = 0; row < sum.rows; ++row)
    for (int column = 0; column < sum.rowBytes / 4; ++column) {
      float even = 0, odd = 0; // two sums, joined at the end
      for (int k = 0; k < b.rows; ++k) {
        even = flushed(std::fma(element(a, row, 2 * k), element(b, k, 2 * column), even));
        odd = flushed(std::fma(element(a, row, 2 * k + 1), element(b, k, 2 * column + 1), odd));
      }
      float both = flushed(even + odd);
      sum.set(row, column, flushed(flushed(sum.get<float>(row, column)) + both));
    }
}

template <class A, class B> void multiplyBytes(int64_t sumNumber, int64_t aNumber, int64_t bNumber) {
  Tile &sum = tile(sumNumber);
  const Tile &a = tile(aNumber), &b = tile(bNumber);
  requireShapes(sum, a, b);
  for (int row = 0; row < sum.rows; ++row)
    for (int column = 0; column < sum.rowBytes / 4; ++column) {
      uint32_t total = sum.get<uint32_t>(row, column); // wraps
      for (int k = 0; k < b.rows; ++k)
        for (int i = 0; i < 4; ++i)
          total += static_cast<uint32_t>(int32_t(a.get<A>(row, 4 * k + i)) * int32_t(b.get<B>(k, 4 * column + i)));
      sum.set(row, column, total);
    }
}

template <class Function> void *address(Function *function) { return reinterpret_cast<void *>(function); }

const ExternalSymbol symbols[] = {
    {"tenon_tile_configure", address(&configure)},
    {"tenon_tile_release", address(&release)},
    {"tenon_tile_zero", address(&zero)},
    {"tenon_tile_load", address(&load)},
    {"tenon_tile_store", address(&store)},
    {"tenon_tile_multiply_bf16", address(&multiplyBf16)},
    {"tenon_tile_multiply_ss", address(&multiplyBytes<int8_t, int8_t>)},
    {"tenon_tile_multiply_su", address(&multiplyBytes<int8_t, uint8_t>)},
    {"tenon_tile_multiply_us", address(&multiplyBytes<uint8_t, int8_t>)},
    {"tenon_tile_multiply_uu", address(&multiplyBytes<uint8_t, uint8_t>)},
};

} // namespace

std::span<const ExternalSymbol> tileEmulation() { return symbols; }

} // namespace tenon::cpu
