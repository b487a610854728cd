// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::tuning {

/// A classifier of gradient-boosted trees, small enough to be learned again after every few measurements.
///
/// F(x) is a sum of trees; the probability of "yes" is p = 1 / (1 + exp(-F)). Each tree is grown on the gradient of the
/// logistic loss, g = p - y, with curvature h = p (1 - p): a leaf that holds the samples S moves F by
///     -rate * sum(g over S) / (sum(h over S) + l2)
/// and a split of S into L and R is worth
///     G(L)^2 / (H(L) + l2) + G(R)^2 / (H(R) + l2) - G(S)^2 / (H(S) + l2).
/// Thresholds are the borders of at most `bins` bins of equal count per feature. Deterministic: no randomness at all,
/// ties go to the first feature and the lowest threshold.
class BoostedTrees {
public:
  struct Options {
    int trees = 50, depth = 3, bins = 32;
    double rate = 0.2, l2 = 1;
    double minWeight = 0.5; ///< of the samples (weighted) in a leaf
  };
  struct Sample {
    std::vector<float> features;
    bool yes = false;
    double weight = 1;
  };

  /// All samples have equally many features.
  void fit(std::span<const Sample> samples, const Options &options);
  void fit(std::span<const Sample> samples) { fit(samples, Options()); }
  /// Of "yes"; 0.5 before anything was learned.
  double probability(std::span<const float> features) const;
  /// By how much each feature's splits lowered the loss, summing to 1 (or all 0).
  const std::vector<double> &importance() const { return importance_; }

private:
  struct Node {
    int feature = -1; ///< -1: a leaf
    float threshold = 0;
    int low = 0, high = 0; ///< where features[feature] <= threshold, and where not
    double value = 0;
  };
  using Tree = std::vector<Node>;
  struct Growing;
  int grow(Growing &growing, Tree &tree, std::vector<uint32_t> members, int depth);

  std::vector<Tree> trees_;
  std::vector<double> importance_;
  double start_ = 0;
};

} // namespace tenon::tuning
