// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/layout/Echelon.h"
#include "tenon/compiler/target/nvidia/layout/LinearLayout.h"

#include <algorithm>
#include <functional>
#include <random>

/// Layouts for property tests, and loops over all of their indices.
namespace tenon::nvidia::test {

using Random = std::mt19937;

inline unsigned below(Random &random, unsigned end) {
  return std::uniform_int_distribution<unsigned>(0, end - 1)(random);
}

/// A basis of the space of that many bits: half the time the unit vectors in some order, as real layouts have them,
/// else any.
inline std::vector<uint64_t> randomBasis(Random &random, unsigned bits) {
  std::vector<uint64_t> basis;
  for (unsigned bit = 0; bit < bits; ++bit)
    basis.push_back(uint64_t(1) << bit);
  std::shuffle(basis.begin(), basis.end(), random);
  if (below(random, 2))
    for (unsigned step = 0; step < 3 * bits; ++step) {
      unsigned a = below(random, bits), b = below(random, bits);
      if (a != b)
        basis[a] ^= basis[b];
    }
  return basis;
}

inline Shape randomShape(Random &random, unsigned bits) {
  std::vector<unsigned> logs(1 + below(random, 3));
  for (unsigned bit = 0; bit < bits; ++bit)
    ++logs[below(random, logs.size())];
  Shape shape;
  for (unsigned log : logs)
    shape.push_back(int64_t(1) << log);
  return shape;
}

/// A surjective layout of these unit sizes; bits beyond those that the shape needs are duplicates, zero or dependent.
inline LinearLayout randomLayout(Random &random, const std::array<unsigned, numUnits> &logs, const Shape &shape) {
  IndexSpace in = IndexSpace::hardware(logs), out = IndexSpace::tensor(shape);
  std::vector<uint64_t> columns = randomBasis(random, out.bits());
  while (columns.size() < in.bits()) {
    uint64_t duplicate = below(random, 2) ? 0 : random() & ((uint64_t(1) << out.bits()) - 1);
    columns.insert(columns.begin() + below(random, columns.size() + 1), duplicate);
  }
  return LinearLayout(in, out, columns);
}

inline LinearLayout randomShared(Random &random, const Shape &shape) {
  return randomLayout(random, {0, 0, 0, 0, IndexSpace::tensor(shape).bits()}, shape);
}

inline void forEachPlace(const LinearLayout &layout, const std::function<void(const Place &)> &visit) {
  for (uint64_t packed = 0; packed < uint64_t(1) << layout.in().bits(); ++packed) {
    std::vector<int64_t> index = layout.in().unpack(packed);
    visit({index[0], index[1], index[2], index[3], index[4]});
  }
}

inline void forEachCoords(const Shape &shape, const std::function<void(const Coords &)> &visit) {
  IndexSpace space = IndexSpace::tensor(powerOfTwoExtents(shape));
  for (uint64_t packed = 0; packed < uint64_t(1) << space.bits(); ++packed)
    if (Coords coords = space.unpack(packed); isInside(coords, shape))
      visit(coords);
}

inline bool isFree(const LinearLayout &layout, const Place &place) {
  auto masks = layout.freeVariableMasks();
  return (place.reg & masks[0]) || (place.lane & masks[1]) || (place.warp & masks[2]) || (place.block & masks[3]) ||
         (place.offset & masks[4]);
}

} // namespace tenon::nvidia::test
