// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/tune/Database.h"
#include "tenon/tune/Policy.h"
#include "tenon/tune/Ranker.h"
#include "tenon/tune/Space.h"
#include "tenon/verify/Verify.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

/// The autotuner: right by default without measuring anything, better with a little, never wrong.
///
///     TuneOptions options;
///     options.policy = TunePolicy::quick;                       // the default never measures
///     TuneReport best = tune(softmax, space, problem, options); // compiles, verifies and times in worker processes
///     launch(softmax, arguments, best.options);
///
/// Every candidate runs in a process of its own, on poisoned copies of the arguments, is judged by verify/ before it is
/// timed, and judged again on what the timed launches left. One that crashes, hangs, blows up or is wrong costs that
/// candidate and nothing else, and its reason is kept.
#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// How far a tuning run is.
struct TuneProgress {
  size_t tried = 0, failed = 0, candidates = 0; ///< candidates: that may be tried
  Configuration best;
  double bestSeconds = 0; ///< 0: none yet
  double elapsedSeconds = 0, leftSeconds = 0;
  std::string doing; ///< "compiling 4", "bm=64 bn=32"
};

struct TuneOptions {
  TunePolicy policy = TunePolicy::cached;
  LaunchOptions launch;          ///< target, and whatever the space does not name
  double budgetSeconds = 60;
  size_t maxConfigurations = 0;  ///< that may be measured; 0: as many as the time allows
  size_t quickCount = 16;        ///< that `quick` measures
  uint64_t seed = 1;             ///< of the search
  const Ranker *ranker = nullptr; ///< null: the model of tenon/model
  Database *database = nullptr;  ///< null: the user's own
  bool warmStart = true;         ///< learn from other shapes in the database

  std::vector<std::string> worker; ///< the command that starts one; empty: the `tenon` that belongs to this library
  int workers = 0;               ///< that compile at once; 0: as many as there are processors, at most 8
  uint64_t memoryBytes = 0;      ///< that each may use; 0: half of what is free, shared by them
  double compileSeconds = 60, runSeconds = 20; ///< that a candidate may take
  double timingSeconds = 0.1;    ///< spent on timing a candidate
  /// No launch can take less: a candidate that does is refused. 0: from the problem's bytes and FLOPs and what this
  /// machine can do at most; negative: no limit.
  double floorSeconds = 0;
  /// Further problems of the same shapes, with other values: the winner must be right on these, too.
  std::vector<Problem> checks;

  /// Who is judged by the reference: each candidate, or the first one, and the others by comparison with what it left
  /// (tune/Examination.h). The reference of a large problem takes many times as long as all candidates together.
  enum class Judging : unsigned char {
    automatic, ///< the first one on a CUDA device, where the outputs are contiguous; elsewhere each
    each,
    first,
  };
  Judging judging = Judging::automatic;
  /// Smaller problems whose outputs are parts of this one's: where given, the first candidate is judged by these.
  /// Slices of the arguments, say every 61st row of a matrix and of what is computed from it.
  std::function<std::vector<Arguments>(const Arguments &)> samples;

  std::function<void(const TuneProgress &)> progress;
  std::function<bool()> stop; ///< asked between candidates; what was found is kept
  /// What tells how much of the budget is spent: a parameter for tests, as BenchOptions::now is.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

struct TuneReport {
  enum class Source : unsigned char { model, database, measured };
  Source source = Source::model;
  Configuration configuration;
  LaunchOptions options;   ///< to launch with
  double seconds = 0;      ///< measured; 0: it was not
  Prediction prediction;
  std::string reason;      ///< why this one, and why something was measured or not: one sentence

  struct Tried {
    Configuration configuration;
    Outcome outcome;
    double predicted = 0;
    bool known = false; ///< from an earlier run
  };
  std::vector<Tried> tried;
  size_t combinations = 0, valid = 0;
  Space::Refusals refusals;
  size_t measured = 0, failed = 0; ///< in this run
  double elapsedSeconds = 0;
  bool stopped = false; ///< asked to, or out of time, before the policy was done
};

/// Chooses a configuration as the policy says. Throws Error when the space is empty, or when every candidate failed,
/// with the reasons. The problem's arguments are read and never written.
TuneReport tune(const Kernel &kernel, const Space &space, const Problem &problem, const TuneOptions &options = {});

/// The choice for arguments without a reference to judge by: as tune() with policy off or cached; refuses the others.
TuneReport choose(const Kernel &kernel, const Space &space, const Arguments &arguments,
                  const TuneOptions &options = {});

/// Under what a measurement of this is kept.
TuneKey tuneKeyOf(const Kernel &kernel, const Space &space, const Arguments &arguments, const LaunchOptions &options);

} // namespace tenon
#pragma GCC visibility pop
