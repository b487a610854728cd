// SPDX-License-Identifier: Apache-2.0
#include "PeerFigures.h"

#include <fmt/format.h>

namespace tenon::tool {

Table::Cell peerCell(const std::map<std::string, PeerFigures> &peers, const std::string &name) {
  auto found = peers.find(name);
  if (found == peers.end() || found->second.status == "not asked" || found->second.status == "none")
    return "-";
  const PeerFigures &peer = found->second;
  if (!peer.measured())
    return {peer.status == "not installed" ? "missing" : "failed", Style::warn};
  return {fmt::format("{:.2f}x", peer.ratio.median), peer.ratio.high >= 1 ? Style::plain : Style::warn};
}

Json toJson(const std::map<std::string, PeerFigures> &peers) {
  Json result = Json::object();
  for (const auto &[name, peer] : peers) {
    result[name] = {{"status", peer.status}, {"detail", peer.detail}};
    if (peer.measured()) {
      result[name]["time"] = toJson(peer.seconds);
      result[name]["ratio"] = toJson(peer.ratio);
      result[name]["pairs"] = peer.pairs;
    }
  }
  return result;
}

} // namespace tenon::tool
