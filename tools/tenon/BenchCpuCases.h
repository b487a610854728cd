// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Report.h"

#include "tenon/kernels/Zoo.h"

#include <functional>
#include <string>
#include <vector>

/// What `tenon bench cpu` measures.
namespace tenon::tool {

/// A problem that is part of a larger one: a few of its rows, say, with all that they depend on. The reference is at
/// hand at once where that of the whole would take minutes.
struct CpuPart {
  Problem problem;
  /// Of the outputs of the whole, what should equal the outputs of `problem`, in their order.
  std::vector<Tensor> outputs;
};

struct CpuCase {
  std::string group; ///< "matmul f32": what is summed up together
  std::string kernelName;
  const Kernel *kernel = nullptr;
  std::vector<int64_t> shape;
  DType dtype = f32;
  std::string variant; ///< "causal", or empty
  std::function<Problem()> problem;
  std::function<std::vector<CpuPart>(const Problem &whole)> parts;
  std::vector<std::string> peers; ///< in the words of scripts/peers/cpu_peers.py
  double copyGoal = 0;            ///< at least that part of a copy's bandwidth; 0: none
  std::string goalPeer;           ///< whose speed counts; empty: the fastest peer's
  double meanGoal = 0;            ///< of the group's ratios, in geometric mean
  double leastGoal = 0;           ///< of every ratio; 0: none

  std::string name() const; ///< "attention 1x16x512x64 bf16 causal"
  /// What a peer must know.
  Json description() const;
};

/// In the order of the table. `quick`: smaller sizes.
std::vector<CpuCase> cpuCases(bool quick);

/// A kernel that waits for memory, at one number of elements: x to y, as a copy does.
struct ScalingCase {
  std::string kernelName;
  const Kernel *kernel = nullptr;
  std::vector<int64_t> shape;
  Params params;
  int64_t elements() const;
  std::string name() const; ///< "scaling gelu 10000"
};
std::vector<ScalingCase> scalingCases(bool quick);

} // namespace tenon::tool
