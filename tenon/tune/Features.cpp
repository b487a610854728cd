// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Features.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace tenon::tuning {

std::vector<double> shapeFeatures(const Arguments &arguments) {
  std::vector<double> features;
  int64_t last = -1;
  for (const Argument &argument : arguments)
    if (argument.isTensor())
      for (int64_t size : argument.tensor().sizes()) {
        if (size != last)
          features.push_back(std::log2(static_cast<double>(size) + 1));
        last = size;
      }
  features.resize(shapeFeatureCount); // as many for every shape: runs of equal sizes differ from shape to shape
  return features;
}

std::vector<double> featuresOf(const Space &space, const Configuration &configuration, const Prediction &prediction,
                               double leastPredicted, const std::vector<double> &shape) {
  std::vector<double> features;
  for (const Space::Dimension &dimension : space.dimensions())
    features.push_back(std::log2(static_cast<double>(configuration[dimension.name]) + 1));
  bool known = std::isfinite(prediction.seconds) && leastPredicted > 0;
  features.push_back(known ? std::log2(prediction.seconds / leastPredicted) : 10);
  features.insert(features.end(), prediction.features.begin(), prediction.features.end());
  features.insert(features.end(), shape.begin(), shape.end());
  return features;
}

std::vector<int> placeOf(const Space &space, const Configuration &configuration) {
  std::vector<int> place;
  for (const Space::Dimension &dimension : space.dimensions()) {
    // By size, in whatever order the values were declared.
    int below = 0;
    int64_t own = configuration[dimension.name];
    for (int64_t value : dimension.values)
      below += value < own;
    place.push_back(below);
  }
  return place;
}

std::vector<float> asFloats(const std::vector<double> &values) { return {values.begin(), values.end()}; }

std::vector<Experience> experienceFrom(const std::vector<TuneRecord> &records, const TuneKey &except) {
  // The device and the compiler are part of it: times of two machines say nothing about each other, ranks do.
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const TuneRecord *>> groups;
  for (const TuneRecord &record : records)
    if (record.key.problem != except.problem || record.key.device != except.device)
      groups[{record.key.problem, record.key.device, record.key.compiler}].push_back(&record);
  std::vector<Experience> experience;
  size_t number = 0;
  for (const auto &[name, group] : groups) {
    std::vector<double> times;
    for (const TuneRecord *record : group)
      if (record->outcome.measured())
        times.push_back(record->outcome.seconds);
    if (times.size() < 4)
      continue; // too few to tell good from bad
    std::sort(times.begin(), times.end());
    double line = times[std::max<size_t>(times.size() / 10, 1) - 1] * 1.02;
    for (const TuneRecord *record : group) {
      bool isMeasured = record->outcome.measured();
      experience.push_back({asFloats(record->features), isMeasured && record->outcome.seconds <= line,
                            100.0 / static_cast<double>(group.size()),
                            isMeasured ? std::log2(record->outcome.seconds / times[0])
                                       : std::numeric_limits<double>::infinity(),
                            number});
    }
    ++number;
  }
  return experience;
}

} // namespace tenon::tuning
