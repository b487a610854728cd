// SPDX-License-Identifier: Apache-2.0
//
// Internal to model/: the values that an integer of the kernel takes over a set of instances and iterations.
#pragma once

#include <cstdint>

namespace tenon::model {

/// lo, lo + stride, ... hi. `full`: every one of them is taken by some instance and iteration; otherwise they are an
/// outer bound. `mask` has a bit for each variable (grid axis, loop) that the value depends on and that is not fixed;
/// `widest` is the variable that moves it most, the one to split.
struct Range {
  int64_t lo = 0, hi = 0, stride = 1;
  uint32_t mask = 0;
  int8_t widest = -1;
  bool known = true; ///< otherwise it is data, or too large: lo and hi mean nothing
  bool full = true;

  static Range of(int64_t value) { return {value, value, 1, 0, -1, true, true}; }
  static Range unknown() { return {0, 0, 1, 0, -1, false, false}; }
  /// 0 or more values of a variable.
  static Range variable(int64_t first, int64_t last, unsigned number) {
    if (first == last)
      return of(first);
    return {first, last, 1, uint32_t(1) << number, static_cast<int8_t>(number), true, true};
  }
  bool single() const { return known && lo == hi; }
  bool canSplit() const { return known && widest >= 0; }
  /// As a condition: certainly true, certainly false.
  bool always() const { return known && (lo > 0 || hi < 0); }
  bool never() const { return known && lo == 0 && hi == 0; }
};

Range addRanges(const Range &a, const Range &b);
Range subtractRanges(const Range &a, const Range &b);
Range multiplyRanges(const Range &a, const Range &b);
enum class Rounding : uint8_t { towardsZero, down, up };
/// x / 0 is 0, as in tile.div.
Range divideRanges(const Range &a, const Range &b, Rounding rounding);
Range remainderRanges(const Range &a, const Range &b);
Range minRanges(const Range &a, const Range &b);
Range maxRanges(const Range &a, const Range &b);
enum class Compare : uint8_t { equal, notEqual, less, lessEqual, greater, greaterEqual };
Range compareRanges(Compare compare, const Range &a, const Range &b);
Range selectRanges(const Range &condition, const Range &a, const Range &b);
enum class Bitwise : uint8_t { bitAnd, bitOr, bitXor };
Range combineBits(Bitwise bitwise, const Range &a, const Range &b);

} // namespace tenon::model
