// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Options.h"
#include "Report.h"
#include "RooflinePlot.h"

#include "tenon/model/Cost.h"

#include <functional>
#include <optional>

namespace tenon::tool {

struct RooflineRequest : Request {
  double seconds = 1;
  bool noMeasure = false, remeasure = false;
};

/// All that is found out about a kernel under its roofs.
struct RooflineFigures {
  Case one;
  std::string target; ///< "cpu", "cuda", "sm_90a", ...
  Params params;
  model::Ceilings ceilings;
  model::Counts counts;
  model::Cost cost;                   ///< the model's opinion
  model::Configuration configuration; ///< of a GPU
  bool registersKnown = false;        ///< from the assembler; otherwise they are a guess

  /// The least time that each resource needs for the useful work alone, the slowest first.
  std::vector<model::Cost::Term> roofs;
  double ridge = 0;         ///< FLOP per byte from which on the arithmetic decides
  std::string arithmetic;   ///< the unit whose roof counts: "vector f32"
  double arithmeticRate = 0;

  std::optional<Verdict> verdict;
  std::optional<Estimate> seconds; ///< measured
  size_t trials = 0;
  bool cold = false;
  std::string failure; ///< wrong, or could not run: one sentence

  double least() const { return roofs.empty() ? 0 : roofs.front().seconds; }
  const std::string &boundBy() const { return roofs.front().resource; }
  /// The part of the roof that was reached.
  double fraction() const { return seconds ? least() / seconds->median : 0; }
};

/// Throws Error for what has no roofline.
void checkRooflineTarget(const std::string &target);
RooflineFigures findRoofline(const RooflineRequest &request, const std::function<void(const std::string &)> &stage);
RooflinePlot plotOf(const RooflineFigures &figures);
Json toJson(const RooflineFigures &figures);

} // namespace tenon::tool
