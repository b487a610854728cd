// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iterator>

namespace tenon::fuzz {

/// splitmix64: the same numbers for the same seed on every machine and library, unlike the standard distributions.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// In [low, high].
  int64_t range(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return range(1, 100) <= percent; }
  template <class Container> auto &pick(Container &container) {
    return *std::next(std::begin(container), range(0, std::distance(std::begin(container), std::end(container)) - 1));
  }
  template <class T> T pick(std::initializer_list<T> list) { return *(list.begin() + range(0, list.size() - 1)); }

private:
  uint64_t state_;
};

} // namespace tenon::fuzz
