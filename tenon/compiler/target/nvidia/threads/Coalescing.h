// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/threads/Distribution.h"

#include <algorithm>

namespace tenon::nvidia {

/// How many neighbours along `dim` the lanes of a warp have together in one access of `width` of them each: of lanes
/// whose parts follow each other.
inline int64_t neighboursOfLanes(const Distribution &tile, int64_t dim, int64_t width) {
  int64_t run = width;
  for (const Distribution::ThreadBit &bit : tile.threadBits())
    if (bit.bit < 5 && bit.dim == dim && bit.step == run)
      run *= 2;
  return run;
}

/// Bytes of a sector, in which memory is written, that the lanes write together in one such access.
inline int64_t ofSector(const Distribution &tile, int64_t dim, int64_t width, int64_t elementBytes) {
  constexpr int64_t sector = 32;
  return std::min(sector, elementBytes * neighboursOfLanes(tile, dim, width));
}

} // namespace tenon::nvidia
