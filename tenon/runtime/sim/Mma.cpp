// SPDX-License-Identifier: Apache-2.0
//
// mma.sync. Which lane holds which element is the PTX manual's "Matrix fragments for mma". How sums are formed is
// Hopper's way, found out from outputs of an H200 and equal to them bit for bit (test/nvidia/recorded):
//   f64               one fma after another, in the order of k, starting from c
//   s8, u8            modulo 2^32
//   f16, bf16, tf32   c and all products are added at once, as fixed-point numbers with 25 bits after the place of the
//                     largest exponent (of a product: the sum of its factors' exponents); what lies below is cut off
//                     each term, and the sum is cut to f32
//   e4m3, e5m2        there are no such units: the elements become f16, those whose k has bit 1 clear are multiplied by
//                     one instruction from zero, the others by a second one on top of it, and c is added as an f32
//
// wgmma is taken to do the same with its own k, but for e4m3 and e5m2, for which it has units: c and all 32 products
// are added at once, with 13 bits after the place of the largest exponent, and the sum is cut to as many.
#include "tenon/runtime/sim/Mma.h"

#include "tenon/base/FloatFormats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

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

/// What the adder sees of a factor.
struct Factor {
  double value;
  int exponent; ///< as the format stores it: subnormals have that of the smallest normal; `nothing` for zero
  static constexpr int nothing = -100000;
};

Factor withExponent(float value, int smallest) {
  if (value == 0 || !std::isfinite(value))
    return {value, Factor::nothing};
  int exponent = static_cast<int>(std::bit_cast<uint32_t>(value) >> 23 & 255) - 127;
  return {value, std::max(exponent, smallest)};
}
Factor factorOf(OperandType type, float value) {
  bool isHalf = type != OperandType::bf16 && type != OperandType::tf32; // or becomes it
  return withExponent(value, isHalf ? -14 : -126);
}

double powerOfTwo(int exponent) { return std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52); }

/// How wide an adder is: bits of the terms after the place of the largest exponent, and of the sum.
struct Adder {
  int termBits, sumBits;
};
constexpr Adder wide{25, 24}, narrow{13, 14};

float cutToF32(int64_t sum, int scale, int bits) { // sum * 2^scale
  uint64_t magnitude = static_cast<uint64_t>(std::abs(sum));
  int drop = std::max(64 - std::countl_zero(magnitude) - bits, -149 - scale);
  if (drop >= 64)
    return 0;
  if (drop > 0) {
    magnitude >>= drop;
    scale += drop;
  }
  double value = static_cast<double>(magnitude) * powerOfTwo(scale);
  return static_cast<float>(sum < 0 ? -value : value);
}

constexpr float canonicalNaN = std::bit_cast<float>(0x7fffffff);

/// c + the products of a and b at index(0), index(1), ...: one instruction of the f16, bf16 and tf32 units.
template <class Index>
float addAligned(float c, const Factor *a, const Factor *b, int count, Index index, Adder adder = wide) {
  int largest = Factor::nothing;
  bool finite = std::isfinite(c);
  for (int i = 0; i < count; ++i) {
    const Factor &x = a[index(i)], &y = b[index(i)];
    largest = std::max(largest, x.exponent + y.exponent);
    finite &= std::isfinite(x.value) && std::isfinite(y.value);
  }
  if (!finite) {
    double sum = c;
    for (int i = 0; i < count; ++i)
      sum += a[index(i)].value * b[index(i)].value;
    return std::isnan(sum) ? canonicalNaN : static_cast<float>(sum);
  }
  largest = std::max(largest, factorOf(OperandType::tf32, c).exponent);
  if (largest < -1000)
    return 0;
  int scale = largest - adder.termBits;
  double unit = powerOfTwo(-scale);
  auto sum = static_cast<int64_t>(c * unit);
  for (int i = 0; i < count; ++i)
    sum += static_cast<int64_t>(a[index(i)].value * b[index(i)].value * unit);
  return cutToF32(sum, scale, adder.sumBits);
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
    return multiply16<int, uint32_t>(a, b, fragments, integerAt, [](uint32_t c, const int *x, const int *y, int k) {
      for (int i = 0; i < k; ++i)
        c += static_cast<uint32_t>(x[i] * y[i]);
      return c;
    });
  auto read = [](OperandType type, const void *registers, int index) {
    return factorOf(type, floatAt(type, registers, index));
  };
  if (elementBytes(a) > 1)
    return multiply16<Factor, float>(a, b, fragments, read, [](float c, const Factor *x, const Factor *y, int k) {
      return addAligned(c, x, y, k, [](int i) { return i; });
    });
  multiply16<Factor, float>(a, b, fragments, read, [](float c, const Factor *x, const Factor *y, int k) {
    float low = addAligned(0, x, y, k / 2, [](int i) { return (i & ~1) << 1 | (i & 1); });
    float sum = c + addAligned(low, x, y, k / 2, [](int i) { return (i & ~1) << 1 | 2 | (i & 1); });
    return std::isnan(sum) ? canonicalNaN : sum;
  });
}

void multiplyWarpgroup(OperandType a, OperandType b, int n, const uint8_t *left, const uint8_t *right,
                       bool accumulates, uint32_t *accumulators) {
  const int k = 32 / elementBytes(a);
  auto multiply = [&](auto read, auto result) {
    using Element = decltype(read(a, left, 0));
    std::vector<Element> rows(64 * k), columns(n * k); // no arrays: a fiber's stack is small
    for (int i = 0; i < 64 * k; ++i)
      rows[i] = read(a, left, i);
    for (int i = 0; i < n * k; ++i)
      columns[i] = read(b, right, i);
    for (int row = 0; row < 64; ++row)
      for (int column = 0; column < n; ++column) {
        uint32_t &sum = accumulators[row * n + column];
        sum = result(accumulates ? sum : 0, &rows[row * k], &columns[column * k]);
      }
  };
  if (a == OperandType::s8 || a == OperandType::u8)
    return multiply(integerAt, [&](uint32_t c, const int *x, const int *y) {
      for (int i = 0; i < k; ++i)
        c += static_cast<uint32_t>(x[i] * y[i]);
      return c;
    });
  auto read = [](OperandType type, const uint8_t *elements, int index) {
    float value = floatAt(type, elements, index);
    return type == OperandType::e4m3 ? withExponent(value, -6) : factorOf(type, value);
  };
  Adder adder = k == 32 ? narrow : wide;
  multiply(read, [&](uint32_t c, const Factor *x, const Factor *y) {
    return std::bit_cast<uint32_t>(addAligned(std::bit_cast<float>(c), x, y, k, [](int i) { return i; }, adder));
  });
}

} // namespace tenon::sim
