// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/Problems.h"
#include "tenon/kernels/Spaces.h"

#include <algorithm>

namespace tenon::zoo {

Space attentionSpace(const Problem &problem, Target target) {
  const Tensor &q = problem.arguments[0].tensor(), &k = problem.arguments[1].tensor();
  int64_t queries = std::max<int64_t>(q.size(2), 1), keys = std::max<int64_t>(k.size(2), 1);
  int64_t dim = std::max<int64_t>(roundUp(q.size(3), 16), 16);
  auto bytes = static_cast<double>(sizeOf(q.dtype()));
  Space space;
  auto tiles = [=](const Configuration &c) { // of keys and values, of queries and the result, of scores
    auto bm = static_cast<double>(c["bm"]), bn = static_cast<double>(c["bn"]), d = static_cast<double>(c["dim"]);
    return std::array{2 * bn * d * bytes, 2 * bm * d * 4, bm * bn * 4};
  };
  if (isGpu(target)) {
    space.param("bm", useful({64, 128, 256}, queries));
    space.param("bn", useful({16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256}, keys));
    space.param("dim", {dim}).option("warps", {4, 8, 16}).option("stages", {1, 2, 3, 4, 5});
    space.footprint([=](const Configuration &c) {
      auto [shared, result, scores] = tiles(c);
      Footprint footprint;
      footprint.sharedBytes = shared * static_cast<double>(c["stages"]);
      footprint.registerBytes = result / 2 + scores;
      return footprint;
    });
    space.require("warps without a part of the tile",
                  [](const Configuration &c) { return c["bm"] * c["bn"] >= c["warps"] * 128; });
    return space;
  }
  space.param("bm", useful({8, 16, 24, 32, 48, 64, 96, 128}, queries));
  space.param("bn", useful({16, 32, 48, 64, 96, 128, 192, 256}, keys));
  space.param("dim", {dim, dim + 16});
  addCpuOptions(space);
  space.footprint([=](const Configuration &c) {
    auto [shared, result, scores] = tiles(c);
    Footprint footprint;
    footprint.cacheBytes = shared + result + scores;
    return footprint;
  });
  return space;
}

} // namespace tenon::zoo
