// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "GpuCases.h"
#include "GpuPeers.h"
#include "PeerFigures.h"
#include "Report.h"

#include "tenon/measure/Pairs.h"

#include <functional>
#include <map>
#include <optional>

namespace tenon::tool {

/// All that is found out about one case.
struct GpuFigures {
  GpuFigures(const GpuCase &one, Tiling tiling) : one(&one), tiling(std::move(tiling)) {}

  const GpuCase *one;
  Tiling tiling;
  double bytes = 0;
  CompileReport compiled;
  std::optional<Verdict> verdict;
  std::string failure; ///< it could not be compiled, run or measured, or is wrong: why
  std::vector<double> bursts; ///< seconds per launch
  size_t sets = 1, launches = 0;
  std::map<std::string, PeerFigures> peers; ///< by name; "tenon_copy", "tenon_read": our own yardsticks

  bool passed() const { return failure.empty(); }
  Estimate seconds() const { return estimate(bursts); }
  double bytesPerSecond() const { return bursts.empty() ? 0 : bytes / seconds().median; }
  /// Of the fastest yardstick, and of the fastest other peer; null where none was measured.
  const PeerFigures *yardstick() const;
  const PeerFigures *bestPeer(std::string *name = nullptr) const;
  /// Whether the case's goals are reached; none where there are none, or nothing to compare with.
  std::optional<bool> bandwidthGoal() const, peerGoal() const;
};

struct GpuFigureOptions {
  bool verify = true;
  PairOptions pairs;
  GpuPeers *peers = nullptr; ///< none: only our own yardsticks
};

using Stage = std::function<void(const std::string &)>;
GpuFigures findGpuFigures(const GpuCase &one, const GpuFigureOptions &options, const Stage &stage);
/// Every tiling of the case, our own time alone, fastest first; those that fail are last.
std::vector<GpuFigures> sweepTilings(const GpuCase &one, bool verify, const Stage &stage);

Json toJson(const GpuFigures &figures);

} // namespace tenon::tool
