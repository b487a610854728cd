// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/BoostedTrees.h"

#include "tenon/base/Error.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::tuning {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Borders between bins of about equal count: values of the feature, increasing, the largest left out.
std::vector<float> bordersOf(std::vector<float> values, int bins) {
  std::sort(values.begin(), values.end());
  std::vector<float> distinct = values;
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<float> borders;
  if (distinct.size() <= static_cast<size_t>(bins)) {
    borders = distinct;
  } else {
    for (int bin = 1; bin <= bins; ++bin)
      borders.push_back(values[values.size() * static_cast<size_t>(bin) / static_cast<size_t>(bins) - 1]);
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  }
  if (!borders.empty())
    borders.pop_back();
  return borders;
}

} // namespace

struct BoostedTrees::Growing {
  std::span<const Sample> samples;
  const Options &options;
  std::vector<std::vector<float>> borders;  ///< per feature
  std::vector<std::vector<uint16_t>> bins;  ///< per feature and sample: how many borders lie below its value
  std::vector<double> gradient, curvature;  ///< per sample
};

void BoostedTrees::fit(std::span<const Sample> samples, const Options &options) {
  trees_.clear();
  start_ = 0;
  size_t features = samples.empty() ? 0 : samples[0].features.size();
  importance_.assign(features, 0);
  double yes = 0, all = 0;
  for (const Sample &sample : samples) {
    if (sample.features.size() != features)
      throw InternalError("samples with " + std::to_string(features) + " and " +
                          std::to_string(sample.features.size()) + " features");
    yes += sample.yes ? sample.weight : 0;
    all += sample.weight;
  }
  if (yes <= 0 || yes >= all) { // one answer only: nothing to tell apart
    start_ = all <= 0 ? 0 : yes <= 0 ? -4 : 4;
    return;
  }
  start_ = std::log(yes / (all - yes));

  Growing growing{samples, options, {}, {}, {}, {}};
  growing.borders.resize(features);
  growing.bins.assign(features, std::vector<uint16_t>(samples.size()));
  for (size_t f = 0; f < features; ++f) {
    std::vector<float> values;
    for (const Sample &sample : samples)
      values.push_back(sample.features[f]);
    const std::vector<float> &borders = growing.borders[f] = bordersOf(values, options.bins);
    for (size_t i = 0; i < samples.size(); ++i)
      growing.bins[f][i] = static_cast<uint16_t>(
          std::lower_bound(borders.begin(), borders.end(), values[i]) - borders.begin());
  }
  growing.gradient.resize(samples.size());
  growing.curvature.resize(samples.size());
  std::vector<uint32_t> everyone(samples.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  std::vector<double> scores(samples.size(), start_);
  for (int t = 0; t < options.trees; ++t) {
    for (size_t i = 0; i < samples.size(); ++i) {
      double p = sigmoid(scores[i]);
      growing.gradient[i] = samples[i].weight * (p - (samples[i].yes ? 1 : 0));
      growing.curvature[i] = samples[i].weight * p * (1 - p);
    }
    Tree tree;
    grow(growing, tree, everyone, 0);
    trees_.push_back(std::move(tree));
    const Tree &grown = trees_.back();
    for (size_t i = 0; i < samples.size(); ++i) {
      int at = 0;
      while (grown[at].feature >= 0)
        at = samples[i].features[grown[at].feature] <= grown[at].threshold ? grown[at].low : grown[at].high;
      scores[i] += grown[at].value;
    }
  }
  double total = std::accumulate(importance_.begin(), importance_.end(), 0.0);
  for (double &one : importance_)
    one = total > 0 ? one / total : 0;
}

int BoostedTrees::grow(Growing &growing, Tree &tree, std::vector<uint32_t> members, int depth) {
  const Options &options = growing.options;
  double gradient = 0, curvature = 0, weight = 0;
  for (uint32_t i : members) {
    gradient += growing.gradient[i];
    curvature += growing.curvature[i];
    weight += growing.samples[i].weight;
  }
  auto worth = [&](double g, double h) { return g * g / (h + options.l2); };
  int here = static_cast<int>(tree.size());
  tree.emplace_back();
  tree[here].value = -options.rate * gradient / (curvature + options.l2);

  struct Split {
    double gain = 1e-9;
    int feature = -1;
    size_t border = 0;
  } best;
  struct Bin {
    double gradient = 0, curvature = 0, weight = 0;
  };
  for (size_t f = 0; f < growing.borders.size() && depth < options.depth; ++f) {
    std::vector<Bin> histogram(growing.borders[f].size() + 1);
    for (uint32_t i : members) {
      Bin &bin = histogram[growing.bins[f][i]];
      bin.gradient += growing.gradient[i];
      bin.curvature += growing.curvature[i];
      bin.weight += growing.samples[i].weight;
    }
    Bin low;
    for (size_t border = 0; border < growing.borders[f].size(); ++border) {
      low.gradient += histogram[border].gradient;
      low.curvature += histogram[border].curvature;
      low.weight += histogram[border].weight;
      if (low.weight < options.minWeight || weight - low.weight < options.minWeight)
        continue;
      double gain = worth(low.gradient, low.curvature) + worth(gradient - low.gradient, curvature - low.curvature) -
                    worth(gradient, curvature);
      if (gain > best.gain)
        best = {gain, static_cast<int>(f), border};
    }
  }
  if (best.feature < 0)
    return here;
  std::vector<uint32_t> low, high;
  for (uint32_t i : members)
    (growing.bins[best.feature][i] <= best.border ? low : high).push_back(i);
  importance_[best.feature] += best.gain;
  members = {};
  int lowChild = grow(growing, tree, std::move(low), depth + 1);
  int highChild = grow(growing, tree, std::move(high), depth + 1);
  tree[here].feature = best.feature;
  tree[here].threshold = growing.borders[best.feature][best.border];
  tree[here].low = lowChild;
  tree[here].high = highChild;
  return here;
}

double BoostedTrees::probability(std::span<const float> features) const {
  double score = start_;
  for (const Tree &tree : trees_) {
    int at = 0;
    while (tree[at].feature >= 0)
      at = features[tree[at].feature] <= tree[at].threshold ? tree[at].low : tree[at].high;
    score += tree[at].value;
  }
  return sigmoid(score);
}

} // namespace tenon::tuning
