// SPDX-License-Identifier: Apache-2.0
//
// Every operation on ranges against all the values in them: nothing may lie outside the result, and what is called full
// must be met.
#include "tenon/model/Range.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

using namespace tenon::model;

namespace {

using Function = std::function<int64_t(int64_t, int64_t)>;

std::vector<int64_t> valuesOf(const Range &range) {
  std::vector<int64_t> values;
  for (int64_t value = range.lo; value <= range.hi; value += range.stride)
    values.push_back(value);
  return values;
}

void expectHolds(const Range &a, const Range &b, const Range &result, const Function &function, const char *name) {
  if (!result.known)
    return;
  std::set<int64_t> met;
  for (int64_t x : valuesOf(a))
    for (int64_t y : valuesOf(b))
      met.insert(function(x, y));
  for (int64_t value : met) {
    ASSERT_GE(value, result.lo) << name;
    ASSERT_LE(value, result.hi) << name;
    ASSERT_EQ((value - result.lo) % result.stride, 0)
        << name << " [" << a.lo << ", " << a.hi << "] by " << a.stride << ", [" << b.lo << ", " << b.hi << "]";
  }
  if (result.full) {
    ASSERT_EQ(met.size(), valuesOf(result).size())
        << name << " [" << a.lo << ", " << a.hi << "] by " << a.stride << ", [" << b.lo << ", " << b.hi << "] by "
        << b.stride;
  }
}

int64_t floorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
int64_t ceilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0 && (a % b < 0) == (b < 0)); }

TEST(Range, HoldsEveryValue) {
  std::mt19937 random(7);
  auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  for (int round = 0; round < 20000; ++round) {
    auto make = [&](unsigned variable, bool positive) {
      int64_t stride = pick(1, 8), count = pick(1, 9), lo = pick(positive ? 1 : -20, 20);
      Range range = count == 1 ? Range::of(lo) : Range::variable(0, count - 1, variable);
      if (count > 1)
        range = addRanges(multiplyRanges(range, Range::of(stride)), Range::of(lo));
      return range;
    };
    Range a = make(0, pick(0, 1)), b = make(1, false), positive = make(1, true);
    expectHolds(a, b, addRanges(a, b), std::plus<>(), "add");
    expectHolds(a, b, subtractRanges(a, b), std::minus<>(), "subtract");
    expectHolds(a, b, multiplyRanges(a, b), std::multiplies<>(), "multiply");
    expectHolds(a, positive, divideRanges(a, positive, Rounding::down), floorDivide, "divide down");
    expectHolds(a, positive, divideRanges(a, positive, Rounding::up), ceilDivide, "divide up");
    expectHolds(a, positive, divideRanges(a, positive, Rounding::towardsZero), std::divides<>(), "divide");
    expectHolds(a, positive, remainderRanges(a, positive), std::modulus<>(), "remainder");
    expectHolds(a, b, minRanges(a, b), [](int64_t x, int64_t y) { return std::min(x, y); }, "min");
    expectHolds(a, b, maxRanges(a, b), [](int64_t x, int64_t y) { return std::max(x, y); }, "max");
    expectHolds(a, b, compareRanges(Compare::less, a, b), std::less<>(), "less");
    expectHolds(a, b, compareRanges(Compare::equal, a, b), std::equal_to<>(), "equal");
    expectHolds(a, b, compareRanges(Compare::greaterEqual, a, b), std::greater_equal<>(), "greater or equal");
    expectHolds(a, b, combineBits(Bitwise::bitAnd, a, b), std::bit_and<>(), "and");
    expectHolds(a, b, combineBits(Bitwise::bitOr, a, b), std::bit_or<>(), "or");
    expectHolds(a, b, combineBits(Bitwise::bitXor, a, b), std::bit_xor<>(), "xor");
    if (HasFatalFailure())
      return;
  }
}

TEST(Range, BlockAndOffsetAreFull) {
  Range block = multiplyRanges(Range::variable(0, 9, 0), Range::of(64)), offset = Range::variable(0, 63, 3);
  Range sum = addRanges(block, offset);
  EXPECT_TRUE(sum.full);
  EXPECT_EQ(sum.stride, 1);
  EXPECT_EQ(sum.hi, 639);
  EXPECT_EQ(sum.widest, 0); // the block moves it most
  EXPECT_FALSE(addRanges(block, Range::variable(0, 62, 3)).full);
}

TEST(Range, TooLargeIsUnknown) {
  Range large = Range::of(int64_t(1) << 60);
  EXPECT_FALSE(multiplyRanges(large, large).known);
  EXPECT_FALSE(addRanges(multiplyRanges(large, Range::of(2)), large).known);
  EXPECT_FALSE(addRanges(Range::unknown(), Range::of(1)).known);
  EXPECT_TRUE(combineBits(Bitwise::bitAnd, Range::unknown(), Range::of(0)).never());
}

} // namespace
