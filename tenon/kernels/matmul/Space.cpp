// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/Problems.h"
#include "tenon/kernels/Spaces.h"

#include <algorithm>
#include <numeric>

namespace tenon::zoo {
namespace {

/// Tiles that whole warpgroups can multiply: 64 rows of them each, or 64 columns where there are few rows, in multiples
/// of 64 and 8, with at most 128 sums a thread. What they cannot is computed in other ways, at half the speed.
bool suitsWarpgroups(const Configuration &c) {
  int64_t rows = c["bm"], columns = c["bn"], groups = c["warps"] / 4;
  if (rows < 64)
    std::swap(rows, columns);
  if (rows % 64 || columns % 8 || c["warps"] % 4)
    return false;
  int64_t overRows = std::gcd(rows / 64, groups), overColumns = groups / overRows;
  bool isPower = (columns & (columns - 1)) == 0;
  return (overColumns == 1 || (isPower && columns / overColumns >= 8)) && rows * columns <= 128 * 32 * c["warps"];
}

Space gpuSpace(int64_t m, int64_t n, int64_t k, double bytes, double resultBytes) {
  // With fewer tiles than two rounds of a large device, sharing the loop over k keeps more of it busy.
  bool isSkinny = m <= 64, hasFew = ((m + 127) / 128) * ((n + 127) / 128) < 2 * 132;
  Space space;
  if (isSkinny) {
    space.param("bm", {16, 32, 64}).param("bn", useful({32, 64, 128}, n)).param("bk", useful({64, 128, 256}, k));
    space.option("warps", {4, 8}).option("stages", {0, 4}).option("split", {1, 2, 4, 8, 16});
  } else if (hasFew) {
    space.param("bm", useful({64, 128, 256}, m)).param("bn", useful({32, 64, 96, 112, 128, 160, 192, 224, 256}, n));
    space.param("bk", useful({64, 128}, k));
    space.option("warps", {4, 8}).option("stages", {0, 3}).option("split", {1, 2, 4, 8});
  } else {
    space.param("bm", useful({64, 128, 256}, m)).param("bn", useful({32, 64, 96, 112, 128, 160, 192, 224, 256}, n));
    space.param("bk", useful({32, 64, 128}, k));
    space.option("warps", {4, 8}).option("stages", {0, 3}).option("split", {1});
  }
  space.option("cluster", {1, 2});
  space.footprint([=](const Configuration &c) {
    auto bm = static_cast<double>(c["bm"]), bn = static_cast<double>(c["bn"]), bk = static_cast<double>(c["bk"]);
    Footprint footprint;
    // The ring of operands, and the result on its way out. Stages that are not said are as many as fit, two at least.
    auto stages = static_cast<double>(c["stages"] ? c["stages"] : 2);
    footprint.sharedBytes = stages * (bm + bn) * bk * bytes + bm * bn * resultBytes;
    footprint.registerBytes = bm * bn * 4; // the accumulator
    return footprint;
  });
  space.require("tiles that the warpgroups cannot share", suitsWarpgroups);
  space.require("a loop shared by more than its steps",
                [k](const Configuration &c) { return c["split"] == 1 || c["split"] * c["bk"] <= k; });
  space.require("few slots or a cluster for a loop that is shared",
                [](const Configuration &c) { return c["split"] == 1 || (c["stages"] == 0 && c["cluster"] == 1); });
  space.require("two slots of half the shared memory", [](const Configuration &c) {
    return c["bk"] < 128 || c["bm"] + c["bn"] <= 256;
  });
  return space;
}

} // namespace

Space matmulSpace(const Problem &problem, Target target) {
  const Tensor &a = problem.arguments[0].tensor(), &b = problem.arguments[1].tensor();
  int64_t m = std::max<int64_t>(a.size(0), 1), n = std::max<int64_t>(b.size(1), 1), k = std::max<int64_t>(a.size(1), 1);
  auto bytes = static_cast<double>(sizeOf(a.dtype()));
  Space space;
  if (isGpu(target))
    return gpuSpace(m, n, k, bytes, static_cast<double>(sizeOf(problem.arguments[3].tensor().dtype())));
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
