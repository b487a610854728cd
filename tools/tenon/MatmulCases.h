// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "GpuCases.h"
#include "Report.h"

#include "tenon/measure/GpuProduct.h"

#include <string>
#include <vector>

/// What `tenon bench gpu --suite matmul` measures: matrix products of large models, every weight in memory as [n, k].
namespace tenon::tool {

struct MatmulPeer {
  std::string name;   ///< in the words of scripts/peers/matmul_peers.py
  bool counts = true; ///< otherwise it does not compute the same, or is a yardstick: shown, but never the best peer
};

struct MatmulCase {
  enum class Work : unsigned char { product, biasGelu, gated, grouped };

  std::vector<std::string> groups; ///< that it counts in: "bf16", "skinny", ...
  Work work = Work::product;
  DType dtype = bf16;
  bool fastAccum = false; ///< of f8
  int64_t m = 0, n = 0, k = 0;
  std::vector<int64_t> experts; ///< rows of each; they are m together
  std::vector<Tiling> tilings;  ///< the tuner's model's best: the first one is the default, --sweep tries all
  std::vector<MatmulPeer> peers;

  std::string name() const; ///< "bf16,skinny 16x8192x8192", "grouped 64 experts 66712x7168x2048"
  std::string kernelName() const;
  const Kernel &kernel() const;
  double flops() const;
  double bytes() const; ///< that must be moved at least
  /// So short that launching would show: so many are launched as one CUDA graph, by all. 0: launched one by one.
  size_t graphLaunches() const;
  LaunchOptions launchOptions(const Tiling &tiling) const;
  Json description(size_t sets) const; ///< for the peers
};

/// In the order of the table, each with tilings in the order of what they should take on an H200. `quick`: no dimension
/// above 512, and only those that still differ. `device`: where they will run, which is asked how many clusters fit.
std::vector<MatmulCase> matmulCases(bool quick, int device);

/// What is asked of a group of cases, in each regime.
struct MatmulGoal {
  std::string group;
  std::vector<std::string> peers; ///< the best of these; none: of all that count
  double mean = 0;                ///< the geometric mean of the ratios, at least
  double least = 0;               ///< each of them, at least
};
const std::vector<MatmulGoal> &matmulGoals();

/// A case on a device: random inputs, and the check of what a launch made of them.
class MatmulProblem {
public:
  MatmulProblem(const MatmulCase &one, Device device);

  const Arguments &arguments() const { return sets_[0]; }
  /// At least that many sets of arguments, each with its own numbers.
  const std::vector<Arguments> &sets(size_t count);
  size_t bytes() const; ///< of one set
  /// Launches on the first set and judges the result by samples of it.
  Verdict verify(const LaunchOptions &options) const;

private:
  Arguments makeSet(uint64_t seed) const;

  const MatmulCase &one_;
  Device device_;
  std::vector<Arguments> sets_;
};

} // namespace tenon::tool
