// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/tune/Space.h"

#include <functional>
#include <span>
#include <string>

/// The process that compiles, runs and times candidates. It reads questions from its standard input and writes answers
/// to its standard output, each a JSON object on a line of its own (measure/PeerProcess.h):
///
///     setup    the shared memory, the argument words, the memory it may use    -> {}
///     compile  a job: Tile IR and options                                      -> {"milliseconds": ...}
///     run      a job once, on the shared memory                                -> {"seconds": ...}
///     time     jobs in turn, on copies of the shared memory                    -> {"timings": [...]}
///     forget   all jobs                                                        -> {}
///
/// or {"error": "..."}. Whatever a candidate does, it does it here: the tuner only ever waits, reads and judges.
#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon::tuning {

/// For tests: candidates that misbehave in ways that no Tile IR can.
struct WorkerHooks {
  std::function<void(const Configuration &)> beforeCompile;
  /// Instead of a launch; `run` is the launch.
  std::function<void(const Configuration &, std::span<const int64_t> words, const std::function<void()> &run)>
      aroundRun;
};

/// Answers until the input ends; returns the exit status.
int workerMain(const WorkerHooks &hooks = {});

/// Identifies what generated code depends on in Tenon itself: its version, LLVM's, and a hash of the compiler's
/// sources. The same in the library and in the command of one build.
const std::string &compilerId();

} // namespace tenon::tuning
#pragma GCC visibility pop
