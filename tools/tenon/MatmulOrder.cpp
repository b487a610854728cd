// SPDX-License-Identifier: Apache-2.0
#include "MatmulOrder.h"

#include "tenon/kernels/Problems.h"
#include "tenon/kernels/Spaces.h"
#include "tenon/tune/Ranker.h"

#include <algorithm>

namespace tenon::tool {
namespace {

using Work = MatmulCase::Work;

/// Tensors of the case's sizes that nobody writes to: memory that is never touched is never there.
Arguments shapesOf(const MatmulCase &one) {
  DType out = zoo::productType(one.dtype);
  Tensor a = Tensor::empty(one.dtype, {one.m, one.k}), c = Tensor::empty(out, {one.m, one.n});
  if (one.work == Work::grouped) {
    auto experts = static_cast<int64_t>(one.experts.size());
    return {a, Tensor::empty(one.dtype, {experts, one.n, one.k}).transpose({0, 2, 1}),
            Tensor::empty(i32, {experts + 1}), c};
  }
  Tensor b = Tensor::empty(one.dtype, {one.n, one.k}).transpose({1, 0});
  if (one.work == Work::gated)
    return {a, b, b, c};
  return {a, b, Tensor::empty(out, {one.work == Work::biasGelu ? one.n : 0}), c};
}

Space spaceOf(const MatmulCase &one, const Arguments &arguments) {
  Problem problem;
  problem.arguments = arguments;
  auto space = one.work == Work::gated     ? zoo::gatedMlpSpace
               : one.work == Work::grouped ? zoo::groupedMatmulSpace
                                           : zoo::matmulSpace;
  return space(problem, Target::sim);
}

Tiling tilingOf(const Space &space, const Configuration &configuration) {
  Tiling tiling;
  for (const Space::Dimension &dimension : space.dimensions())
    if (!dimension.isOption)
      tiling.params[dimension.name] = configuration[dimension.name];
  auto option = [&](const char *name, int64_t none) { // what is as without it goes without saying
    int64_t value = configuration.get(name, none);
    return value == none ? 0 : static_cast<int>(value);
  };
  tiling.warps = option("warps", 0);
  tiling.cluster = option("cluster", 1);
  tiling.stages = option("stages", 0);
  tiling.split = option("split", 1);
  tiling.pingPong = option("pingpong", 0);
  return tiling;
}

} // namespace

std::vector<Tiling> bestTilings(const MatmulCase &one, const model::Ceilings &ceilings, size_t most) {
  Arguments arguments = shapesOf(one);
  Space space = spaceOf(one, arguments);
  LaunchOptions options = one.launchOptions({});
  options.target = Target::sim; // nothing runs, and no device is asked
  auto ranker = modelRanker(one.kernel(), space, arguments, options, ceilings);
  std::vector<std::pair<double, Configuration>> order;
  for (const Configuration &configuration : space.configurations(limitsOf(options)))
    order.emplace_back(ranker->predict(configuration).seconds, configuration);
  std::stable_sort(order.begin(), order.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<Tiling> tilings;
  for (size_t i = 0; i < std::min(most, order.size()); ++i)
    tilings.push_back(tilingOf(space, order[i].second));
  return tilings;
}

} // namespace tenon::tool
