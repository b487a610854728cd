// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/measure/Bench.h"

#include <cstddef>
#include <string>

namespace tenon::tool {

/// What one peer of a case did.
struct PeerFigures {
  std::string status; ///< "measured", "not installed", "none", "failed", "not asked"
  std::string detail; ///< the variant that was measured, or why none was
  Estimate seconds;
  Estimate ratio; ///< its time over ours; a yardstick's for as many bytes: the part of its bandwidth that we reach
  size_t pairs = 0;

  bool measured() const { return status == "measured"; }
};

} // namespace tenon::tool
