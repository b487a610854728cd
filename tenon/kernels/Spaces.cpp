// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/Spaces.h"

#include "tenon/kernels/Problems.h"
#include "tenon/measure/Machine.h"

#include <algorithm>
#include <bit>

namespace tenon::zoo {

void addCpuOptions(Space &space, bool threads) {
  std::vector<int64_t> bits;
  for (const std::string &level : thisMachine().isaLevels)
    bits.push_back(level == "avx512" ? 512 : level == "avx2" ? 256 : 128);
  space.option("vector_bits", bits);
  if (threads)
    space.option("threads", {0, 1});
}

std::vector<int64_t> useful(std::vector<int64_t> values, int64_t size) {
  std::vector<int64_t> kept;
  for (int64_t value : values)
    if (value < 2 * size || kept.empty())
      kept.push_back(value);
  return kept;
}

Space rowSpace(const Tensor &x, Target target, double tilesAlive) {
  int64_t rows = std::max<int64_t>(x.size(0), 1), cols = std::max<int64_t>(x.size(1), 1);
  auto elementBytes = static_cast<double>(std::max<size_t>(sizeOf(x.dtype()), 4)); // computed in f32 at least
  Space space;
  auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(cols)));
  if (isGpu(target)) {
    space.param("rows", useful({1, 2, 4, 8, 16, 32, 64}, rows));
    space.param("cols", {power, roundUp(cols, 16), roundUp(cols, 128)});
    space.option("warps", {1, 2, 4, 8, 16, 32}).option("cluster", {1, 2, 4, 8});
  } else {
    space.param("rows", useful({1,  2,  3,  4,  5,  6,  7,  8,  10, 12, 14, 16,  20,
                                24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 192, 256},
                               rows));
    int64_t least = roundUp(cols, 16);
    space.param("cols", {least, least + 16, least + 32, least + 64, roundUp(cols, 64), roundUp(cols, 128), power});
    addCpuOptions(space);
  }
  space.footprint([=](const Configuration &c) {
    double bytes = static_cast<double>(c["rows"] * c["cols"]) * elementBytes * tilesAlive;
    Footprint footprint;
    footprint.registerBytes = footprint.cacheBytes = bytes;
    return footprint;
  });
  return space;
}

Space tileSpace(const Problem &problem, Target target) {
  Space space;
  int64_t rows = 1, cols = 1;
  for (const Argument &argument : problem.arguments)
    if (argument.isTensor() && argument.tensor().rank() == 2) {
      rows = std::max(rows, argument.tensor().size(0));
      cols = std::max(cols, argument.tensor().size(1));
    }
  if (problem.params.contains("rows"))
    space.param("rows", useful({1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64}, rows));
  if (problem.params.contains("cols"))
    space.param("cols", useful({64, 128, 256, 512, 768, 1024, 1536, 2048, 4096, 8192}, cols));
  for (const char *name : {"bm", "bn", "bk"}) // around what suits the shape
    if (auto block = problem.params.find(name); block != problem.params.end())
      space.param(name, {block->second / 2, block->second, 2 * block->second});
  if (isGpu(target))
    space.option("warps", {1, 2, 4, 8, 16});
  else
    addCpuOptions(space);
  space.require("a tile of more than 128 Ki elements", [](const Configuration &c) {
    return c.get("rows", 1) * c.get("cols", 1) <= 131072;
  });
  return space;
}

namespace {

/// Kernels whose tile must span the row.
bool spansRows(const Entry &entry) { return entry.name == "rms_norm"; }

} // namespace

Space spaceOf(const Entry &entry, const Problem &problem, Target target) {
  if (&entry.kernel == &matmul)
    return matmulSpace(problem, target);
  if (&entry.kernel == &attention)
    return attentionSpace(problem, target);
  if (&entry.kernel == &softmax)
    return softmaxSpace(problem, target);
  if (&entry.kernel == &layerNorm)
    return layerNormSpace(problem, target);
  if (&entry.kernel == &dequantMatmul)
    return dequantMatmulSpace(problem, target);
  if (&entry.kernel == &gatedMlp)
    return gatedMlpSpace(problem, target);
  if (&entry.kernel == &groupedMatmul)
    return groupedMatmulSpace(problem, target);
  if (spansRows(entry))
    return rowSpace(problem.arguments[0].tensor(), target, 2);
  return tileSpace(problem, target);
}

} // namespace tenon::zoo
