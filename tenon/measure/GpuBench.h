// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/measure/Bench.h"
#include "tenon/measure/GpuRounds.h"
#include "tenon/verify/Verify.h"

#include <vector>

/// Kernels on a CUDA device: large inputs without large work on the host, a check of the very launch that is measured,
/// and its time by the device's clock.
namespace tenon {

/// A problem of many rows whose inputs repeat those of a problem of few ("block"), which the host can fill and judge in
/// no time. Which arguments have rows is told by their sizes in a problem of one row and in one of two.
///
///     block (host):  x [128, 8192]        device: x [16384, 8192], the block 128 times
class RepeatedProblem {
public:
  /// `makeProblem(rows)` poses the problem with that many rows; `rows` must be a multiple of `blockRows`.
  RepeatedProblem(const std::function<Problem(int64_t rows)> &makeProblem, int64_t rows, int64_t blockRows,
                  Device device);

  /// On the device.
  const Arguments &arguments() const { return arguments_; }
  /// The kernel's launch on all rows, judged (verify/) by the block's reference in the first rows. With `sameRows` the
  /// last rows must equal them bit by bit; leave it out for kernels whose rows depend on their position.
  Verdict verify(const Kernel &kernel, const LaunchOptions &options, bool sameRows = true) const;
  /// `sets` sets of the arguments in memory of their own, the first one being arguments().
  std::vector<Arguments> copies(size_t sets) const;
  size_t bytes() const; ///< of one set

private:
  void fill(const Arguments &block) const;

  Problem block_;
  int64_t rows_, blockRows_;
  std::vector<bool> hasRows_; ///< per argument
  Arguments arguments_;
};

/// How many sets of arguments, taken in turn, exceed twice the device's cache; one, if a set alone does.
size_t setsToExceedCache(size_t bytesPerSet, Device device);

/// Launches of one kernel in a row, timed by events. A burst is some untimed launches, so that the device is busy while
/// the host queues the rest, then as many as take about `burstSeconds`.
class GpuBursts {
public:
  struct Options {
    double burstSeconds = 3e-3;
    size_t graphLaunches = 0; ///< not 0: that many launches are captured as a graph, and the graph is launched
  };
  /// Compiles, warms up and finds the length of a burst.
  GpuBursts(const Kernel &kernel, std::vector<Arguments> sets, const LaunchOptions &options, Options burst);
  GpuBursts(const Kernel &kernel, std::vector<Arguments> sets, const LaunchOptions &options)
      : GpuBursts(kernel, std::move(sets), options, Options()) {}
  ~GpuBursts();

  /// Seconds per launch.
  double operator()();
  double operator()(const BurstLength &length); ///< of a burst of another length
  size_t launches() const; ///< in a burst

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace tenon
