// SPDX-License-Identifier: Apache-2.0
#include "tenon/model/Range.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tenon::model {
namespace {

/// Beyond this a value is not a size of anything, and sums of such values could overflow.
constexpr int64_t largest = int64_t(1) << 61;

/// What two operands say about a result besides its ends.
Range join(const Range &a, const Range &b) {
  Range result;
  result.mask = a.mask | b.mask;
  bool aMovesMore = static_cast<__int128>(a.hi) - a.lo >= static_cast<__int128>(b.hi) - b.lo;
  result.widest = a.widest < 0 ? b.widest : b.widest < 0 || aMovesMore ? a.widest : b.widest;
  result.known = a.known && b.known;
  result.full = false;
  return result;
}

Range withEnds(Range result, __int128 lo, __int128 hi) {
  if (!result.known || lo < -largest || hi > largest)
    return Range::unknown();
  result.lo = static_cast<int64_t>(lo);
  result.hi = static_cast<int64_t>(hi);
  if (lo == hi) {
    result.full = true;
    result.stride = 1;
  }
  return result;
}

int64_t divide(int64_t a, int64_t b, Rounding rounding) {
  if (b == 0)
    return 0;
  int64_t quotient = a / b, remainder = a % b;
  if (remainder != 0 && rounding == Rounding::down && (remainder < 0) != (b < 0))
    --quotient;
  if (remainder != 0 && rounding == Rounding::up && (remainder < 0) == (b < 0))
    ++quotient;
  return quotient;
}

} // namespace

Range addRanges(const Range &a, const Range &b) {
  Range result = join(a, b);
  if (a.single() || b.single()) {
    const Range &moving = a.single() ? b : a;
    result.stride = moving.stride;
    result.full = moving.full;
  } else if (a.known && b.known) {
    const Range &fine = a.stride <= b.stride ? a : b, &coarse = a.stride <= b.stride ? b : a;
    result.stride = std::gcd(a.stride, b.stride);
    // The steps of one fill the gaps of the other: block * 64 + offset in it.
    result.full = a.full && b.full && !(a.mask & b.mask) && coarse.stride % fine.stride == 0 &&
                  coarse.stride <= fine.hi - fine.lo + fine.stride;
  }
  return withEnds(result, static_cast<__int128>(a.lo) + b.lo, static_cast<__int128>(a.hi) + b.hi);
}

Range subtractRanges(const Range &a, const Range &b) {
  Range negative = b;
  negative.lo = -b.hi;
  negative.hi = -b.lo;
  return addRanges(a, negative);
}

Range multiplyRanges(const Range &a, const Range &b) {
  Range result = join(a, b);
  if (!result.known)
    return Range::unknown();
  __int128 corners[] = {static_cast<__int128>(a.lo) * b.lo, static_cast<__int128>(a.lo) * b.hi,
                        static_cast<__int128>(a.hi) * b.lo, static_cast<__int128>(a.hi) * b.hi};
  if (a.single() || b.single()) {
    const Range &moving = a.single() ? b : a;
    int64_t factor = a.single() ? a.lo : b.lo;
    __int128 stride = static_cast<__int128>(moving.stride) * (factor < 0 ? -factor : factor);
    if (stride > largest)
      return Range::unknown();
    result.stride = std::max<int64_t>(static_cast<int64_t>(stride), 1);
    result.full = moving.full;
    if (factor == 0)
      return Range::of(0);
  }
  return withEnds(result, *std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
}

Range divideRanges(const Range &a, const Range &b, Rounding rounding) {
  Range result = join(a, b);
  if (!result.known || (!b.single() && b.lo <= 0 && b.hi >= 0))
    return Range::unknown();
  int64_t corners[] = {divide(a.lo, b.lo, rounding), divide(a.lo, b.hi, rounding), divide(a.hi, b.lo, rounding),
                       divide(a.hi, b.hi, rounding)};
  if (b.single() && b.lo > 0 && a.full) {
    if (b.lo % a.stride == 0) // every quotient between the ends is met
      result.full = true;
    else if (a.stride % b.lo == 0 && (rounding != Rounding::towardsZero || a.lo >= 0 || a.hi <= 0)) {
      result.full = true;
      result.stride = a.stride / b.lo;
    }
  }
  return withEnds(result, *std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
}

Range remainderRanges(const Range &a, const Range &b) {
  Range result = join(a, b);
  if (!result.known || a.lo < 0 || b.lo <= 0)
    return a.single() && b.single() ? Range::of(b.lo == 0 ? a.lo : a.lo % b.lo) : Range::unknown();
  if (b.single() && a.lo / b.lo == a.hi / b.lo) {
    result.stride = a.stride;
    result.full = a.full;
    return withEnds(result, a.lo % b.lo, a.hi % b.lo);
  }
  if (b.single() && b.lo % a.stride == 0 && a.full && a.hi - a.lo + a.stride >= b.lo) { // all the way round
    result.full = true;
    result.stride = a.stride;
    int64_t first = a.lo % a.stride;
    return withEnds(result, first, first + b.lo - a.stride);
  }
  return withEnds(result, 0, std::min(a.hi, b.hi - 1));
}

Range minRanges(const Range &a, const Range &b) {
  if (!a.known || !b.known)
    return Range::unknown();
  if (a.hi <= b.lo)
    return a;
  if (b.hi <= a.lo)
    return b;
  Range result = join(a, b);
  return withEnds(result, std::min(a.lo, b.lo), std::min(a.hi, b.hi));
}

Range maxRanges(const Range &a, const Range &b) {
  if (!a.known || !b.known)
    return Range::unknown();
  if (a.lo >= b.hi)
    return a;
  if (b.lo >= a.hi)
    return b;
  Range result = join(a, b);
  return withEnds(result, std::max(a.lo, b.lo), std::max(a.hi, b.hi));
}

Range compareRanges(Compare compare, const Range &a, const Range &b) {
  switch (compare) {
  case Compare::greater: return compareRanges(Compare::less, b, a);
  case Compare::greaterEqual: return compareRanges(Compare::lessEqual, b, a);
  case Compare::notEqual: {
    Range equal = compareRanges(Compare::equal, a, b);
    return equal.single() ? Range::of(!equal.lo) : equal;
  }
  default: break;
  }
  Range result = join(a, b);
  if (!result.known)
    return Range::unknown();
  bool always = compare == Compare::less ? a.hi < b.lo : compare == Compare::lessEqual ? a.hi <= b.lo
                                                        : a.single() && b.single() && a.lo == b.lo;
  bool never = compare == Compare::less ? a.lo >= b.hi : compare == Compare::lessEqual ? a.lo > b.hi
                                                       : a.hi < b.lo || b.hi < a.lo;
  if (always || never)
    return Range::of(always);
  return withEnds(result, 0, 1);
}

Range selectRanges(const Range &condition, const Range &a, const Range &b) {
  if (condition.always() || condition.never())
    return condition.always() ? a : b;
  Range result = join(condition, join(a, b));
  result.known = a.known && b.known; // data may choose between two known values
  if (!condition.known)
    result.widest = -1;
  return withEnds(result, std::min(a.lo, b.lo), std::max(a.hi, b.hi));
}

Range combineBits(Bitwise bitwise, const Range &a, const Range &b) {
  bool isAnd = bitwise == Bitwise::bitAnd;
  if (a.single() && b.single())
    return Range::of(isAnd ? a.lo & b.lo : bitwise == Bitwise::bitOr ? a.lo | b.lo : a.lo ^ b.lo);
  if (isAnd && (a.never() || b.never()))
    return Range::of(0);
  if (!a.known || !b.known || a.lo < 0 || b.lo < 0)
    return Range::unknown();
  Range result = join(a, b);
  // No bit of the result is above the highest of either.
  auto bits = std::bit_ceil(static_cast<uint64_t>(std::max(a.hi, b.hi)) + 1) - 1;
  return withEnds(result, bitwise == Bitwise::bitOr ? std::max(a.lo, b.lo) : 0,
                  isAnd ? std::min(a.hi, b.hi) : static_cast<int64_t>(bits));
}

} // namespace tenon::model
