// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Strategy.h"

#include "tenon/tune/Transfer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tenon {

namespace {
constexpr std::pair<TunePolicy, std::string_view> policyNames[] = {
    {TunePolicy::off, "off"}, {TunePolicy::cached, "cached"}, {TunePolicy::quick, "quick"}, {TunePolicy::full, "full"}};
} // namespace

std::string_view nameOf(TunePolicy policy) {
  for (auto [value, name] : policyNames)
    if (value == policy)
      return name;
  return "";
}

std::optional<TunePolicy> parsePolicy(std::string_view name) {
  for (auto [value, text] : policyNames)
    if (text == name)
      return value;
  return std::nullopt;
}

namespace tuning {
namespace {

/// SplitMix64: a sequence that is the same on every machine.
uint64_t nextRandom(uint64_t &state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

} // namespace

Strategy::Strategy(std::vector<Candidate> candidates, StrategyOptions options, std::vector<Experience> experience)
    : candidates_(std::move(candidates)), options_(options), experience_(std::move(experience)),
      asked_(candidates_.size()), random_(options.seed) {
  order_.resize(candidates_.size());
  std::iota(order_.begin(), order_.end(), 0);
  // What the model cannot tell apart comes in no order when the search goes on from there: neighbours teach little.
  if (options_.random || options_.policy == TunePolicy::full)
    for (size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[nextRandom(random_) % i]);
  if (options_.random)
    return;
  std::stable_sort(order_.begin(), order_.end(),
                   [&](size_t a, size_t b) { return candidates_[a].predicted < candidates_[b].predicted; });
  if (options_.policy == TunePolicy::quick)
    mixTies();
  size_t width = candidates_.empty() ? 0 : candidates_[0].features.size();
  std::erase_if(experience_, [&](const Experience &one) { return one.features.size() != width; });
  if (experience_.empty())
    return;
  std::vector<double> slowness = slownessFrom(experience_, candidates_);
  if (slowness.empty())
    return;
  // The model's first choice stays the first: it knows this shape, and whoever learnt from others does not.
  std::stable_sort(order_.begin() + 1, order_.end(), [&](size_t a, size_t b) { return slowness[a] < slowness[b]; });
}

/// The first eight stay. Behind them the order within what the model cannot tell apart is drawn: otherwise the sixteen
/// would be neighbours, alike in whatever the model does not know.
void Strategy::mixTies() {
  constexpr size_t kept = 8;
  constexpr double ties = 0.05;
  if (order_.size() <= kept)
    return;
  double least = std::max(candidates_[order_[0]].predicted, 1e-12);
  std::vector<std::pair<double, uint64_t>> keys(candidates_.size());
  for (size_t candidate : order_)
    keys[candidate] = {std::floor(std::log(candidates_[candidate].predicted / least) / ties), nextRandom(random_)};
  std::sort(order_.begin() + kept, order_.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
}

double Strategy::randomUnit() { return static_cast<double>(nextRandom(random_) >> 11) * 0x1p-53; }

std::vector<size_t> Strategy::next() {
  size_t most = std::min(options_.most, candidates_.size());
  bool isMeasuring = options_.policy == TunePolicy::quick || options_.policy == TunePolicy::full;
  if (!isMeasuring || askedCount_ >= most)
    return {};
  size_t begin = options_.random ? most : std::min(options_.quickCount, most);
  if (askedCount_ >= begin)
    return options_.policy == TunePolicy::quick ? std::vector<size_t>()
                                                : learned(std::min(options_.batch, most - askedCount_));
  std::vector<size_t> batch;
  auto take = [&](size_t candidate) {
    asked_[candidate] = true;
    ++askedCount_;
    batch.push_back(candidate);
  };
  size_t atRandom = options_.policy == TunePolicy::full && !options_.random ? begin / 4 : 0;
  for (size_t candidate : order_)
    if (!asked_[candidate] && askedCount_ < begin - atRandom)
      take(candidate);
  while (askedCount_ < begin)
    take(drawn());
  return batch;
}

/// Of those not asked for yet, each as likely as the other.
size_t Strategy::drawn() {
  size_t which = nextRandom(random_) % (candidates_.size() - askedCount_);
  for (size_t i = 0;; ++i)
    if (!asked_[i] && which-- == 0)
      return i;
}

void Strategy::tell(size_t candidate, std::optional<double> seconds) { told_[candidate] = seconds; }

bool Strategy::isNeighbour(size_t a, size_t b) const {
  const std::vector<int> &from = candidates_[a].place, &to = candidates_[b].place;
  int steps = 0;
  for (size_t d = 0; d < from.size(); ++d)
    steps += std::abs(from[d] - to[d]);
  return steps == 1;
}

std::vector<size_t> Strategy::learned(size_t count) {
  std::vector<double> times;
  for (const auto &[candidate, seconds] : told_)
    if (seconds)
      times.push_back(*seconds);
  std::sort(times.begin(), times.end());
  // Of what was tried, not of the space: what was tried is mostly good, and so the line is drawn among the good. At
  // least three are above it, or there is nothing to learn.
  double line = times.empty() ? 0 : times[std::min(std::max<size_t>(times.size() / 10, 2), times.size() - 1)];
  std::vector<BoostedTrees::Sample> samples;
  for (const auto &[candidate, seconds] : told_)
    samples.push_back({candidates_[candidate].features, seconds && *seconds <= line, 1});
  // What was good elsewhere counts less than what was seen here, the less the more was seen.
  double weight = experience_.empty() ? 0 : 10.0 / static_cast<double>(experience_.size());
  for (const Experience &one : experience_)
    samples.push_back({one.features, one.good, std::min(one.weight * weight, one.weight)});
  BoostedTrees trees;
  trees.fit(samples);

  size_t best = SIZE_MAX;
  for (const auto &[candidate, seconds] : told_)
    if (seconds && (best == SIZE_MAX || *seconds < *told_[best]))
      best = candidate;
  std::vector<std::pair<double, size_t>> likely;
  for (size_t candidate : order_)
    if (!asked_[candidate])
      likely.push_back({trees.probability(candidates_[candidate].features), candidate});
  std::stable_sort(likely.begin(), likely.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
  std::vector<size_t> batch;
  auto take = [&](size_t candidate) {
    if (!asked_[candidate] && batch.size() < count) {
      asked_[candidate] = true;
      ++askedCount_;
      batch.push_back(candidate);
    }
  };
  for (const auto &[probability, candidate] : likely)
    if (best != SIZE_MAX && isNeighbour(best, candidate)) {
      take(candidate);
      break;
    }
  if (!likely.empty() && askedCount_ < candidates_.size() && randomUnit() < 0.25)
    take(drawn());
  for (const auto &[probability, candidate] : likely)
    take(candidate);
  return batch;
}

} // namespace tuning
} // namespace tenon
