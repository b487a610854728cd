// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/tune/BoostedTrees.h"
#include "tenon/tune/Policy.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

/// Which configuration to measure next. Knows nothing of processes, clocks or kernels: it is asked for candidates and
/// told what became of them, by the tuner or by the replay of a table.
namespace tenon::tuning {

/// A candidate as the strategy sees it.
struct Candidate {
  double predicted = 0;        ///< seconds, by the model
  std::vector<float> features; ///< configuration, shape, what the model counted; as many for each
  std::vector<int> place;      ///< in the space: which value of each dimension
};

/// Measurements of other shapes, kernels or devices: what was good there.
struct Experience {
  std::vector<float> features;
  bool good = false; ///< within the best tenth there
  double weight = 1;
  double slowness = 0; ///< doublings of the best time there; infinite: it failed
  size_t group = 0;    ///< the same for what belongs to one shape on one device
};

struct StrategyOptions {
  TunePolicy policy = TunePolicy::quick;
  size_t quickCount = 16;      ///< what `quick` measures; `full` begins with them
  size_t most = SIZE_MAX;      ///< configurations in all
  size_t batch = 4;            ///< asked for at a time, once it is learning
  uint64_t seed = 1;
  bool random = false;         ///< in random order, for comparison
};

/// The plan:
///   1. In the model's order: the best few, of `quick` the second eight in no order within 5%. With experience, behind
///      the model's first choice in the order of what was fast elsewhere (Transfer.h). Of what `full` begins with, a
///      quarter is drawn at random: a model that is wrong must not be all there is to learn from.
///   2. `full`: after each batch a BoostedTrees learns from everything so far "is this within the best tenth?", where a
///      failure is a no. The next batch: the likeliest neighbour of the best one (one step along one dimension), the
///      likeliest of all not yet tried, and now and then one at random.
/// The same seed, candidates and answers give the same questions.
class Strategy {
public:
  Strategy(std::vector<Candidate> candidates, StrategyOptions options, std::vector<Experience> experience = {});

  /// What to measure next, best guess first: none, when it is enough. At most what may still be measured.
  std::vector<size_t> next();
  /// Nothing: it failed.
  void tell(size_t candidate, std::optional<double> seconds);

  /// In the model's order, with experience where there is some: what would be tried first.
  const std::vector<size_t> &order() const { return order_; }
  size_t tried() const { return told_.size(); }

private:
  void mixTies();
  std::vector<size_t> learned(size_t count);
  bool isNeighbour(size_t a, size_t b) const;
  size_t drawn();
  double randomUnit();

  std::vector<Candidate> candidates_;
  StrategyOptions options_;
  std::vector<Experience> experience_;
  std::vector<size_t> order_;
  std::vector<bool> asked_;
  std::map<size_t, std::optional<double>> told_;
  size_t askedCount_ = 0;
  uint64_t random_;
};

} // namespace tenon::tuning
