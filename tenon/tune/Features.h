// SPDX-License-Identifier: Apache-2.0
//
// Internal to tune/: a configuration as the learner sees it.
#pragma once

#include "tenon/tune/Database.h"
#include "tenon/tune/Ranker.h"
#include "tenon/tune/Strategy.h"

namespace tenon::tuning {

constexpr size_t shapeFeatureCount = 12;

/// The shape: the logarithms of the sizes of all tensors, one after the other, each run of equal ones once.
std::vector<double> shapeFeatures(const Arguments &arguments);

/// The logarithm of every value of the configuration; of the predicted time over the least that is predicted; what the
/// model adds; the shape. Many tables of one kernel have the same features, whatever the shape.
std::vector<double> featuresOf(const Space &space, const Configuration &configuration, const Prediction &prediction,
                               double leastPredicted, const std::vector<double> &shape);

/// The configuration's place in the space.
std::vector<int> placeOf(const Space &space, const Configuration &configuration);

std::vector<float> asFloats(const std::vector<double> &values);

/// Records of other problems as experience: of each problem and device, what is within its best tenth is good.
std::vector<Experience> experienceFrom(const std::vector<TuneRecord> &records, const TuneKey &except);

} // namespace tenon::tuning
