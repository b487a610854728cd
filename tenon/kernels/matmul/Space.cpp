// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/Problems.h"
#include "tenon/kernels/Spaces.h"

#include <algorithm>

namespace tenon::zoo {

Space matmulSpace(const Problem &problem, Target target) {
  const Tensor &a = problem.arguments[0].tensor(), &b = problem.arguments[1].tensor();
  int64_t m = std::max<int64_t>(a.size(0), 1), n = std::max<int64_t>(b.size(1), 1), k = std::max<int64_t>(a.size(1), 1);
  auto bytes = static_cast<double>(sizeOf(a.dtype()));
  Space space;
  if (isGpu(target)) {
    space.param("bm", useful({16, 32, 64, 128, 256}, m));
    space.param("bn", useful({16, 32, 64, 128, 256}, n));
    space.param("bk", useful({16, 32, 64, 128}, k));
    space.option("warps", {2, 4, 8, 16}).option("stages", {1, 2, 3, 4, 5});
    space.footprint([=](const Configuration &c) {
      auto bm = static_cast<double>(c["bm"]), bn = static_cast<double>(c["bn"]), bk = static_cast<double>(c["bk"]);
      Footprint footprint;
      footprint.sharedBytes = static_cast<double>(c["stages"]) * (bm + bn) * bk * bytes;
      footprint.registerBytes = bm * bn * 4; // the accumulator
      return footprint;
    });
    // An instruction of the matrix units needs 16 x 8 elements of the result; a warp without any has nothing to do.
    space.require("warps without a part of the tile",
                  [](const Configuration &c) { return c["bm"] * c["bn"] >= c["warps"] * 128; });
    return space;
  }
  space.param("bm", useful({8, 16, 24, 32, 48, 64, 96, 128}, m));
  space.param("bn", useful({16, 32, 48, 64, 96, 128, 192, 256}, n));
  space.param("bk", useful({16, 32, 64, 128, 256, 512}, k));
  space.footprint([=](const Configuration &c) {
    auto bm = static_cast<double>(c["bm"]), bn = static_cast<double>(c["bn"]), bk = static_cast<double>(c["bk"]);
    Footprint footprint;
    footprint.cacheBytes = (bm * bk + bk * bn) * bytes + bm * bn * std::max(bytes, 4.0);
    return footprint;
  });
  return space;
}

} // namespace tenon::zoo
