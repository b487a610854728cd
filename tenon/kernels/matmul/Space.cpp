// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/Problems.h"
#include "tenon/kernels/Spaces.h"

#include <algorithm>
#include <numeric>

namespace tenon::zoo {
namespace {

/// Tiles that whole warpgroups can multiply: 64 rows of them each, or 64 columns where there are few rows, in multiples
/// of 64 and 8, with at most 128 sums a thread, or 160 of one product. What they cannot is computed in other ways, at
/// half the speed. Two that take tiles in turns have 192 each, and everything else as it was measured to be worth it.
bool suitsWarpgroups(const Configuration &c, int64_t products, int64_t line) {
  int64_t rows = c["bm"], columns = c["bn"], groups = c["warps"] / 4;
  if (c.get("pingpong", 0))
    return c["warps"] == 8 && c["stages"] != 3 && c["cluster"] == 1 && c["bk"] == line && rows <= 128 &&
           products * columns >= 128 && rows * products * columns <= 192 * 128;
  if (rows < 64)
    std::swap(rows, columns);
  if (rows % 64 || columns % 8 || c["warps"] % 4)
    return false;
  int64_t overRows = std::gcd(rows / 64, groups), overColumns = groups / overRows;
  bool isPower = (columns & (columns - 1)) == 0;
  int64_t sums = products == 1 && line == 64 && groups == 2 ? 160 : 128; // f8 adds them up beside the accumulators
  return (overColumns == 1 || (isPower && columns / overColumns >= 8)) &&
         products * rows * columns <= sums * 32 * c["warps"];
}

/// Steps of 16, and what makes whole rounds: as many tiles as a large device has multiprocessors, or as clusters of
/// four can have, or two or three times as many.
std::vector<int64_t> widths(int64_t m, int64_t n) {
  std::vector<int64_t> widths = {32, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256};
  for (int64_t bm : {64, 128, 256})
    for (int64_t rounds : {1, 2, 3})
      for (int64_t processors : {120, 132}) {
        int64_t columns = rounds * processors / ((m + bm - 1) / bm);
        int64_t width = columns ? roundUp((n + columns - 1) / columns, 8) : 0;
        if (width >= 64 && width <= 256)
          widths.push_back(width);
      }
  std::sort(widths.begin(), widths.end());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  return useful(widths, n);
}

/// Of the steps along K, those that are useful and lie in one group; where none does, one that does.
std::vector<int64_t> stepsOf(const ProductSizes &sizes, std::vector<int64_t> steps) {
  steps = useful(std::move(steps), sizes.k);
  if (!sizes.group)
    return steps;
  int64_t shortest = steps.front();
  std::erase_if(steps, [&](int64_t step) { return sizes.group % step != 0; });
  return steps.empty() ? std::vector<int64_t>{std::gcd(sizes.group, shortest)} : steps;
}

} // namespace

Space productSpace(const ProductSizes &sizes) {
  auto [m, n, k, elementBytes, resultBytes, products, mayShare, mayTakeTurns, group] = sizes;
  auto bytes = static_cast<double>(elementBytes);
  // With fewer tiles than two rounds of a large device, sharing the loop over k keeps more of it busy.
  bool isSkinny = m <= 64, hasFew = mayShare && ((m + 127) / 128) * ((n + 127) / 128) < 2 * 132;
  int64_t line = 128 / elementBytes; // what a swizzled row of shared memory holds
  Space space;
  if (isSkinny) {
    // Where there are few rows, the warpgroups share the columns: 64 of them at least.
    space.param("bm", useful({8, 16, 32, 64}, m)).param("bn", useful({32, 64, 128}, std::max<int64_t>(n, 33)));
    // Longer steps where tiles of 64 columns are most of a large device's multiprocessors; others wait for the first.
    bool isWide = n > 64 * 66;
    space.param("bk", stepsOf(sizes, isWide ? std::vector<int64_t>{line, 2 * line, 4 * line}
                                            : std::vector<int64_t>{line, 2 * line}));
    space.option("warps", {4, 8}).option("stages", {0, 4});
    space.option("split", mayShare ? std::vector<int64_t>{1, 2, 4, 8, 16} : std::vector<int64_t>{1});
  } else if (hasFew) {
    space.param("bm", useful({64, 128, 256}, m)).param("bn", widths(m, n)).param("bk", stepsOf(sizes, {line, 2 * line}));
    space.option("warps", {4, 8}).option("stages", {0, 3}).option("split", {1, 2, 4, 8});
  } else {
    space.param("bm", useful({64, 128, 256}, m)).param("bn", widths(m, n));
    // Of a short loop that threads load, what is behind its end is a part.
    bool isShort = k * elementBytes % 16 && k < 4 * line;
    space.param("bk", stepsOf(sizes, isShort ? std::vector<int64_t>{line / 2}
                                             : std::vector<int64_t>{line / 2, line, 2 * line}));
    space.option("warps", {4, 8});
    // Of what is as good the first: two products would rather have four slots.
    space.option("stages", products == 1 ? std::vector<int64_t>{0, 3} : std::vector<int64_t>{4, 0, 3});
    space.option("split", {1});
    if (mayTakeTurns && elementBytes == 2 && k % 8 == 0) // by transfers
      space.option("pingpong", {0, 1});
  }
  // Of what is as good the first: eight read less than four.
  space.option("cluster", hasFew && !isSkinny ? std::vector<int64_t>{1, 2, 8, 4} : std::vector<int64_t>{1, 2, 4});
  space.footprint([=](const Configuration &c) {
    auto bm = static_cast<double>(c["bm"]), bn = static_cast<double>(c["bn"]), bk = static_cast<double>(c["bk"]);
    auto columns = static_cast<double>(products) * bn;
    Footprint footprint;
    // The ring of operands, and the result on its way out. Stages that are not said are as many as fit, two at least.
    auto stages = static_cast<double>(c["stages"] ? c["stages"] : 2);
    double result = bm * bn * static_cast<double>(resultBytes);
    if (elementBytes == 1 && c["bk"] == 2 * line) // in slices
      result = std::min(result, 32768.0);
    footprint.sharedBytes = stages * (bm + columns) * bk * bytes + result;
    footprint.registerBytes = bm * columns * 4 * (c.get("pingpong", 0) ? 2 : 1); // the accumulators
    return footprint;
  });
  // First what refuses most, and soonest.
  space.require("few slots or a cluster for a loop that is shared",
                [](const Configuration &c) { return c["split"] == 1 || (c["stages"] == 0 && c["cluster"] == 1); });
  space.require("tiles that the warpgroups cannot share",
                [products, line](const Configuration &c) { return suitsWarpgroups(c, products, line); });
  space.require("a loop shared by more than its steps",
                [k](const Configuration &c) { return c["split"] == 1 || c["split"] * c["bk"] <= k; });
  if (!isSkinny && m <= 128) // memory is the bound
    space.require("weights that two tiles of rows read each for itself",
                  [m](const Configuration &c) { return c["bm"] >= m || c["cluster"] > 1 || c["split"] > 1; });
  space.require("long steps of large tiles in a cluster", [line](const Configuration &c) {
    return c["cluster"] == 1 || c["bk"] <= line || (c["bk"] == 2 * line && c["bm"] + c["bn"] <= 128);
  });
  if (k * elementBytes % 16) // rows that no tensor map describes
    space.require("more than 36 registers of what a thread loads", [elementBytes](const Configuration &c) {
      return (c["bm"] + c["bn"]) * c["bk"] * elementBytes <= 36 * 4 * 32 * c["warps"];
    });
  // Steps of f8 that are twice as long have their sums added up half as often, which is worth it.
  space.require("two slots of half the shared memory", [=](const Configuration &c) {
    return c["bk"] < 2 * line || c["bm"] + products * c["bn"] <= (elementBytes == 1 && !isSkinny ? 384 : 256);
  });
  return space;
}

Space matmulSpace(const Problem &problem, Target target) {
  const Tensor &a = problem.arguments[0].tensor(), &b = problem.arguments[1].tensor();
  int64_t m = std::max<int64_t>(a.size(0), 1), n = std::max<int64_t>(b.size(1), 1), k = std::max<int64_t>(a.size(1), 1);
  auto bytes = static_cast<double>(sizeOf(a.dtype()));
  Space space;
  if (isGpu(target))
    return productSpace({m, n, k, static_cast<int64_t>(sizeOf(a.dtype())),
                         static_cast<int64_t>(sizeOf(problem.arguments[3].tensor().dtype()))});
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
