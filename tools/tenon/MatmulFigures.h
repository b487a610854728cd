// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "GpuPeers.h"
#include "MatmulCases.h"
#include "PeerFigures.h"

#include "tenon/measure/GpuRounds.h"

#include <functional>
#include <map>
#include <optional>

namespace tenon::tool {

/// One case in one regime.
struct RegimeFigures {
  std::string name; ///< "sustained", "bursts"
  Estimate seconds;
  size_t rounds = 0;
  double heatedSeconds = 0;
  bool steady = false;
  Json state; ///< of the card, while it is at work (nvidia-smi); null in bursts
  std::map<std::string, PeerFigures> peers;
};

/// All that is found out about one case.
struct MatmulFigures {
  MatmulFigures(const MatmulCase &one, Tiling tiling) : one(&one), tiling(std::move(tiling)) {}

  const MatmulCase *one;
  Tiling tiling;
  CompileReport compiled;
  std::optional<Verdict> verdict;
  std::string failure; ///< it could not be compiled, run or measured, or is wrong: why
  size_t sets = 1;
  std::map<std::string, PeerFigures> unready; ///< peers that never got as far as being measured
  std::vector<RegimeFigures> regimes;

  bool passed() const { return failure.empty(); }
  /// The fastest of the peers named, or of all that count; null where none was measured.
  const PeerFigures *bestPeer(const RegimeFigures &regime, const std::vector<std::string> &among = {},
                              std::string *name = nullptr) const;
  double teraflops(double seconds) const { return seconds > 0 ? one->flops() / seconds / 1e12 : 0; }
};

struct MatmulOptions {
  bool verify = true;
  std::vector<Regime> regimes;
  GpuPeers *peers = nullptr; ///< none: only our own time
};

using Stage = std::function<void(const std::string &)>;
MatmulFigures findMatmulFigures(const MatmulCase &one, const MatmulOptions &options, const Stage &stage);
/// Every tiling of the case, fastest first, measured side by side in the one regime; those that fail are last.
std::vector<MatmulFigures> sweepMatmul(const MatmulCase &one, bool verify, const Regime &regime, const Stage &stage);

/// What a goal's group reached in one regime: the ratio of every case that was measured.
struct GoalFigures {
  const MatmulGoal *goal;
  std::string regime;
  size_t cases = 0, missing = 0; ///< measured; of the group, but without a figure
  double mean = 0, least = 0;
  std::string leastCase;
  /// Whether the goal is reached; the least is compared by the end of its interval: what cannot be told from equal is
  /// equal.
  bool reached = false;
};
std::vector<GoalFigures> goalFigures(const std::vector<MatmulFigures> &all);

Json toJson(const MatmulFigures &figures);
Json toJson(const GoalFigures &figures);

} // namespace tenon::tool
