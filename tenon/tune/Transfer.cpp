// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Transfer.h"

#include "tenon/tune/Features.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tenon::tuning {
namespace {

constexpr double modelShare = 0.25, reach = 0.3;
constexpr double mostSlowness = 4; ///< in doublings: beyond, and failing, is all the same

/// A configuration as a point: the logarithm of each value, and its place among the values of the dimension.
struct Points {
  size_t dimensions;
  std::vector<double> logs, places;

  Points(const std::vector<const std::vector<float> *> &features, size_t dimensions) : dimensions(dimensions) {
    for (const std::vector<float> *one : features)
      logs.insert(logs.end(), one->begin(), one->begin() + static_cast<ptrdiff_t>(dimensions));
    places.resize(logs.size());
    for (size_t d = 0; d < dimensions; ++d) {
      std::vector<double> values;
      for (size_t i = d; i < logs.size(); i += dimensions)
        values.push_back(logs[i]);
      std::sort(values.begin(), values.end());
      values.erase(std::unique(values.begin(), values.end()), values.end());
      for (size_t i = d; i < logs.size(); i += dimensions)
        places[i] = static_cast<double>(std::lower_bound(values.begin(), values.end(), logs[i]) - values.begin()) /
                    static_cast<double>(std::max<size_t>(values.size() - 1, 1));
    }
  }

  static double distance(const Points &a, size_t i, const Points &b, size_t j) {
    double sum = 0;
    for (size_t d = 0; d < a.dimensions; ++d) {
      size_t x = i * a.dimensions + d, y = j * b.dimensions + d;
      sum += std::min(std::abs(a.logs[x] - b.logs[y]), 4 * std::abs(a.places[x] - b.places[y]));
    }
    return sum;
  }
};

double predictedOf(const std::vector<float> &features, size_t dimensions) {
  return std::min<double>(features[dimensions], mostSlowness);
}

double shapeDistance(const std::vector<float> &a, const std::vector<float> &b) {
  double sum = 0;
  for (size_t i = 1; i <= shapeFeatureCount; ++i)
    sum += std::abs(a[a.size() - i] - b[b.size() - i]);
  return sum;
}

} // namespace

std::vector<double> slownessFrom(const std::vector<Experience> &experience, const std::vector<Candidate> &candidates) {
  if (candidates.empty())
    return {};
  size_t dimensions = candidates[0].place.size(), width = candidates[0].features.size();
  std::map<size_t, std::vector<const Experience *>> groups;
  for (const Experience &one : experience)
    if (one.features.size() == width && width > dimensions + shapeFeatureCount)
      groups[one.group].push_back(&one);
  if (groups.empty())
    return {};
  std::vector<const std::vector<float> *> own;
  for (const Candidate &candidate : candidates)
    own.push_back(&candidate.features);
  Points here(own, dimensions);
  std::vector<double> sums(candidates.size());
  double weights = 0;
  for (const auto &[number, group] : groups) {
    std::vector<const std::vector<float> *> theirs;
    for (const Experience *one : group)
      theirs.push_back(&one->features);
    Points there(theirs, dimensions);
    double weight = std::exp(-shapeDistance(*own[0], *theirs[0]) / 2) + 1e-6;
    weights += weight;
    for (size_t i = 0; i < candidates.size(); ++i) {
      double sum = 0, all = 0;
      for (size_t j = 0; j < group.size(); ++j) {
        double d = Points::distance(here, i, there, j);
        // The second part is for those that have no neighbour: then the nearest decide, however far.
        double near = std::exp(-(d / reach) * (d / reach)) + 1e-9 * std::exp(-d);
        sum += near * (std::min(group[j]->slowness, mostSlowness) - modelShare * predictedOf(*theirs[j], dimensions));
        all += near;
      }
      sums[i] += weight * sum / all;
    }
  }
  for (size_t i = 0; i < candidates.size(); ++i)
    sums[i] = sums[i] / weights + modelShare * predictedOf(candidates[i].features, dimensions);
  return sums;
}

} // namespace tenon::tuning
