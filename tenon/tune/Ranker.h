// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/tune/Space.h"

#include <memory>
#include <string>
#include <vector>

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

namespace model {
struct Ceilings;
} // namespace model

/// What a configuration is expected to take, and of what that is made.
struct Prediction {
  struct Term {
    std::string name; ///< "memory", "L2", "vector f32", ...
    double seconds = 0;
  };
  double seconds = 0; ///< infinite: it cannot run
  std::vector<Term> terms; ///< the largest first
  std::string boundBy; ///< the name of the largest
  std::string refusal; ///< why it cannot run
  /// More that a learner may go by, in an order that is the same for all configurations of a kernel.
  std::vector<double> features;
};

/// What puts a space in order without measuring anything.
class Ranker {
public:
  virtual ~Ranker() = default;
  virtual Prediction predict(const Configuration &configuration) const = 0;
};

/// The model of tenon/model (Cost.h has the formula) for every configuration of a space: the kernel is traced a few
/// times, and counted for all other values of its Params without tracing it again.
///
/// On a GPU, model/GpuCost.h has the formula. On the CPU, what the code generator makes of tiles is added to Cost.h's;
/// the model's terms are for any code (the numbers are in ModelFactors.h):
///
///     touched  what an instance without a loop goes over again: the bytes of its windows and of the tiles it keeps
///     tiles    bytes that the instances request / bandwidth of L1 as long as `touched` fits it, and from half as much
///              again on / bandwidth of L2; in a loop always of L2, since operands of a dot are packed; plus, for a
///              tile that a loop carries, its bytes twice a step / bandwidth of the cache that holds it
///     memory   without a loop, Cost.h's times 1 + `mixed` min(1, L2 / touched)^2: small tiles are read and written by
///              turns, those beyond L2 read as a whole, then written
///     work     the operations' terms + tiles
///     seconds  launch + max(memory, work) + serial (1 - overlap) min(memory, work) + `instance` for each of a thread
///     overlap  1 in a loop, whose next loads run while this step is computed; else 1 / (1 + live tile bytes / L1): a
///              small tile's loads run while its neighbour is computed, a large one is loaded, computed, then stored
std::unique_ptr<Ranker> modelRanker(const Kernel &kernel, const Space &space, const Arguments &arguments,
                                    const LaunchOptions &options, const model::Ceilings &ceilings);
/// With the ceilings of the machine that the options name.
std::unique_ptr<Ranker> defaultRanker(const Kernel &kernel, const Space &space, const Arguments &arguments,
                                      const LaunchOptions &options);
/// What is known of the machine without measuring it now: its datasheet, or what was measured earlier.
model::Ceilings knownCeilings(const LaunchOptions &options);

/// One sentence on why the first should be faster, in the model's terms.
std::string explainDifference(const Prediction &better, const Prediction &worse);

} // namespace tenon
#pragma GCC visibility pop
