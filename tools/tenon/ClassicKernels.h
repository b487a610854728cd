// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/verify/Verify.h"

#include <functional>
#include <string>
#include <vector>

/// GELU and softmax with a kernel for every step, as a framework without a compiler runs them: each writes to memory
/// what the next reads.
namespace tenon::tool {

/// The steps of one computation over [rows, cols], with the memory between them.
class UnfusedSteps {
public:
  /// `work` is "gelu_tanh" or "softmax"; the memory is where `x` is.
  UnfusedSteps(const std::string &work, const Tensor &x);

  size_t launches() const { return steps_.size(); }
  /// y = work(x); the options tell the target and the stream.
  void operator()(const Tensor &x, const Tensor &y, const LaunchOptions &options) const;

private:
  struct Step {
    const Kernel *kernel;
    /// With the computation's x and y.
    std::function<Arguments(const Tensor &x, const Tensor &y)> arguments;
    bool spansRows = false;
  };
  void addGelu();
  void addSoftmax();

  std::vector<Step> steps_;
  Tensor first_, second_, perRow_; ///< between the steps
};

/// The same problem judged for separate steps: what is straightforward there is rounded to the type after every step.
Problem roundedProblem(const std::string &work, Problem problem);

} // namespace tenon::tool
