// SPDX-License-Identifier: Apache-2.0
#include "test/nvidia/Instructions.h"

#include "test/nvidia/KernelText.h"

#include <bit>
#include <cmath>
#include <cstdio>

namespace tenon::test {
namespace {

/// An element as its bits, and how its format divides them.
struct Format {
  int bytes, mantissaBits;
};

Format formatOf(Compare compare) {
  switch (compare) {
  case Compare::Bits:
    return {4, 0};
  case Compare::F32:
    return {4, 23};
  case Compare::F64:
    return {8, 52};
  case Compare::F16:
    return {2, 10};
  case Compare::BF16:
    return {2, 7};
  }
  return {4, 0};
}

uint64_t element(const std::vector<uint8_t> &bytes, size_t index, int size) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * size, size);
  return bits;
}

bool isNan(uint64_t bits, Format format) {
  uint64_t magnitude = bits & ((uint64_t(1) << (8 * format.bytes - 1)) - 1);
  uint64_t infinity = ((uint64_t(1) << (8 * format.bytes - 1 - format.mantissaBits)) - 1) << format.mantissaBits;
  return magnitude > infinity;
}

/// The number of the value on a line of all values in order: neighbours differ by one, +0 and -0 by none.
int64_t rank(uint64_t bits, Format format) {
  uint64_t sign = uint64_t(1) << (8 * format.bytes - 1);
  int64_t magnitude = bits & (sign - 1);
  return bits & sign ? -magnitude : magnitude;
}

/// Whether two numbers that are not NaN are as close as the test allows. With a tolerance of 0 the sign of zero counts.
bool isClose(uint64_t want, uint64_t got, const InstructionTest &test, Format format) {
  if (test.ulps > 0 && std::abs(double(rank(want, format)) - double(rank(got, format))) <= test.ulps)
    return true;
  auto number = [](uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); };
  return test.absolute > 0 && std::abs(number(want) - number(got)) <= test.absolute;
}

} // namespace

std::vector<InstructionTest> instructionTests() {
  std::vector<InstructionTest> tests;
  addMemoryTests(tests);
  addOrderTests(tests);
  addExchangeTests(tests);
  addMatrixTests(tests);
  addArithmeticTests(tests);
  addBulkTests(tests);
  addWarpgroupTests(tests);
  return tests;
}

std::string difference(const InstructionTest &test, const std::vector<uint8_t> &expected,
                       const std::vector<uint8_t> &actual) {
  if (expected.size() != size_t(test.outputBytes) || actual.size() != size_t(test.outputBytes))
    return test.name + ": outputs of " + std::to_string(expected.size()) + " and " + std::to_string(actual.size()) +
           " bytes, not " + std::to_string(test.outputBytes);
  Format format = formatOf(test.compare);
  for (size_t i = 0; i < expected.size() / format.bytes; ++i) {
    uint64_t want = element(expected, i, format.bytes), got = element(actual, i, format.bytes);
    if (want == got)
      continue;
    if (test.compare != Compare::Bits) {
      bool wantNan = isNan(want, format), gotNan = isNan(got, format);
      if (wantNan && gotNan)
        continue;
      if (!wantNan && !gotNan && isClose(want, got, test, format))
        continue;
    }
    char text[160];
    int digits = 2 * format.bytes;
    std::snprintf(text, sizeof text, ": element %zu of %d bytes is %0*llx, not %0*llx", i, format.bytes, digits,
                  (unsigned long long)got, digits, (unsigned long long)want);
    return test.name + text;
  }
  return "";
}

} // namespace tenon::test
