// SPDX-License-Identifier: Apache-2.0
//
// mma.sync. Which lane holds which element is the PTX manual's "Matrix fragments for mma". How sums are formed:
//   f64             one fma after another, in the order of k, starting from c
//   s8, u8          modulo 2^32
//   other floats    all products, which are exact, and c are added in double precision in the order of k, c first; one
//                   rounding to f32 at the end. The hardware keeps fewer bits on the way: results differ in the last ones.
#include "tenon/runtime/sim/Mma.h"

#include "tenon/base/FloatFormats.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace tenon::sim {
namespace {

template <class Convert> std::array<float, 256> tableOf(Convert convert) {
  std::array<float, 256> table;
  for (int i = 0; i < 256; ++i)
    table[i] = convert(static_cast<uint8_t>(i));
  return table;
}

float halfToFloat(uint16_t bits) {
  static const auto *table = [] {
    auto *values = new std::array<float, 65536>();
    for (int i = 0; i < 65536; ++i)
      (*values)[i] = f16ToF32(static_cast<uint16_t>(i));
    return values;
  }();
  return (*table)[bits];
}

int elementBytes(OperandType type) {
  switch (type) {
  case OperandType::f16:
  case OperandType::bf16: return 2;
  case OperandType::tf32: return 4;
  case OperandType::f64: return 8;
  default: return 1;
  }
}

float floatAt(OperandType type, const void *registers, int index) {
  static const auto e4m3 = tableOf(f8e4m3ToF32), e5m2 = tableOf(f8e5m2ToF32);
  const auto *bytes = static_cast<const uint8_t *>(registers);
  auto halfWord = [&] {
    uint16_t bits;
    std::memcpy(&bits, bytes + 2 * index, 2);
    return bits;
  };
  switch (type) {
  case OperandType::f16: return halfToFloat(halfWord());
  case OperandType::bf16: return bf16ToF32(halfWord());
  case OperandType::e4m3: return e4m3[bytes[index]];
  case OperandType::e5m2: return e5m2[bytes[index]];
  default: break;
  }
  uint32_t bits;
  std::memcpy(&bits, bytes + 4 * index, 4);
  return std::bit_cast<float>(bits & ~0x1fffu); // tf32: the low 13 bits are not looked at
}

int integerAt(OperandType type, const void *registers, int index) {
  return type == OperandType::s8 ? int(static_cast<const int8_t *>(registers)[index])
                                 : int(static_cast<const uint8_t *>(registers)[index]);
}

/// A 16 x K, B K x 8 (kept by column) and the result 16 x 8, for all types but f64: K is 32 bytes of elements.
template <class Element, class Sum, class Read, class Result>
void multiply16(OperandType aType, OperandType bType, const MmaFragments &fragments, Read read, Result result) {
  const int perWord = 4 / elementBytes(aType), k = 8 * perWord;
  Element a[16][32], b[8][32];
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane / 4, member = lane % 4;
    for (int word = 0; word < 4; ++word)
      for (int i = 0; i < perWord; ++i)
        a[group + (word & 1) * 8][(member + (word >> 1) * 4) * perWord + i] =
            read(aType, fragments.a[lane], word * perWord + i);
    for (int word = 0; word < 2; ++word)
      for (int i = 0; i < perWord; ++i)
        b[group][(member + word * 4) * perWord + i] = read(bType, fragments.b[lane], word * perWord + i);
  }
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      const Element *left = a[lane / 4 + (i >> 1) * 8], *right = b[lane % 4 * 2 + (i & 1)];
      auto *c = static_cast<Sum *>(fragments.c[lane]) + i;
      *c = result(*c, left, right, k);
    }
}

float addProducts(float c, const float *a, const float *b, int k) {
  double sum = c;
  for (int i = 0; i < k; ++i)
    sum += double(a[i]) * b[i];
  return std::isnan(sum) ? std::bit_cast<float>(0x7fffffff) : static_cast<float>(sum);
}

uint32_t addProducts(uint32_t c, const int *a, const int *b, int k) {
  for (int i = 0; i < k; ++i)
    c += static_cast<uint32_t>(a[i] * b[i]);
  return c;
}

void multiplyDoubles(const MmaFragments &fragments) { // 8 x 4 times 4 x 8
  double a[8][4], b[8][4];
  for (int lane = 0; lane < 32; ++lane) {
    a[lane / 4][lane % 4] = *static_cast<const double *>(fragments.a[lane]);
    b[lane / 4][lane % 4] = *static_cast<const double *>(fragments.b[lane]);
  }
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 2; ++i) {
      double &c = static_cast<double *>(fragments.c[lane])[i];
      for (int k = 0; k < 4; ++k)
        c = std::fma(a[lane / 4][k], b[lane % 4 * 2 + i][k], c);
    }
}

} // namespace

void multiplyFragments(OperandType a, OperandType b, const MmaFragments &fragments) {
  if (a == OperandType::f64)
    return multiplyDoubles(fragments);
  if (a == OperandType::s8 || a == OperandType::u8)
    return multiply16<int, uint32_t>(a, b, fragments, integerAt,
                                     [](auto... xs) { return addProducts(xs...); });
  multiply16<float, float>(a, b, fragments, floatAt, [](auto... xs) { return addProducts(xs...); });
}

} // namespace tenon::sim
