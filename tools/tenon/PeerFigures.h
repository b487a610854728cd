// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Report.h"
#include "Table.h"

#include "tenon/measure/Bench.h"

#include <cstddef>
#include <map>
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

/// The fastest of those that were measured, yardsticks only or none of them; null: nobody was. `name`: which.
template <class IsYardstick>
const PeerFigures *fastestOf(const std::map<std::string, PeerFigures> &peers, const IsYardstick &isYardstick,
                             bool yardsticks, std::string *name = nullptr) {
  const PeerFigures *best = nullptr;
  for (const auto &[each, peer] : peers)
    if (isYardstick(each) == yardsticks && peer.measured() && (!best || peer.ratio.median < best->ratio.median)) {
      best = &peer;
      if (name)
        *name = each;
    }
  return best;
}

/// How the named peer did, for a table: the ratio, or why there is none.
Table::Cell peerCell(const std::map<std::string, PeerFigures> &peers, const std::string &name);

Json toJson(const std::map<std::string, PeerFigures> &peers);

} // namespace tenon::tool
