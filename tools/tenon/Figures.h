// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Options.h"
#include "Report.h"

#include "tenon/measure/Bench.h"

#include <functional>
#include <optional>

namespace tenon::tool {

/// All that `bench` and `demo` find out about one kernel on one shape and type.
struct Figures {
  Case one;
  Params params;
  double flops = 0, bytes = 0; ///< what the work needs at least
  CompileReport compiled;
  std::optional<Verdict> verdict; ///< none if not asked for
  std::optional<Timing> ours, plain;
  std::optional<Timing> warm; ///< ours on the same arguments over and over, where asked for
  Estimate speedUp;    ///< plain / ours, where both are there
  size_t sets = 1;     ///< argument sets taken in turn
  bool cold = false;   ///< they exceed the caches
  std::string failure; ///< the kernel could not be compiled, run or measured: why

  bool passed() const { return failure.empty() && (!verdict || verdict->passed); }
};

struct FigureOptions {
  bool verify = true, warm = false;
  BenchOptions bench;
  /// The seconds that measuring may take, asked when it begins: verification may have used up some. Overrides the
  /// budget in `bench`.
  std::function<double()> budget;
};

/// Compiles (from scratch, so that the time says something), verifies, measures beside the plain loop. A kernel that
/// fails is reported in `failure`; wrong use is thrown. `stage` is told what is going on.
Figures findFigures(const Case &one, const Request &request, const FigureOptions &options,
                    const std::function<void(const std::string &)> &stage);

Json toJson(const Figures &figures, const Request &request);

} // namespace tenon::tool
