// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/kernels/Zoo.h"
#include "tenon/tune/Space.h"

/// What the tuner may choose for the kernels of the zoo. A kernel with a space of its own has it in its folder, beside
/// the kernel (Space.cpp).
#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon::zoo {

/// The space for a problem of the entry's on a target.
Space spaceOf(const Entry &entry, const Problem &problem, Target target);

} // namespace tenon::zoo
#pragma GCC visibility pop

namespace tenon::zoo {

Space matmulSpace(const Problem &problem, Target target);
Space attentionSpace(const Problem &problem, Target target);
Space softmaxSpace(const Problem &problem, Target target);
Space layerNormSpace(const Problem &problem, Target target);
Space dequantMatmulSpace(const Problem &problem, Target target);
Space gatedMlpSpace(const Problem &problem, Target target);
Space groupedMatmulSpace(const Problem &problem, Target target);

//===--- What spaces share ----------------------------------------------------------------------------------------===//

inline bool isGpu(Target target) { return target == Target::cuda || target == Target::sim; }

/// Threads, and the vector widths that this processor has.
void addCpuOptions(Space &space, bool threads = true);
/// Of the values, those that are not more than twice what there is: beyond, a tile is mostly padding.
std::vector<int64_t> useful(std::vector<int64_t> values, int64_t size);
/// Tiles of a matrix product on a GPU: parameters bm, bn and bk.
struct ProductSizes {
  int64_t m, n, k;
  int64_t elementBytes, resultBytes;
  int64_t products = 1;  ///< that share their first operand, each with sums of its own
  bool mayShare = true;  ///< whether several instances may share the loop over k
  bool mayTakeTurns = true; ///< not where each tile's place is found in memory, which is on the way of its loads
  int64_t group = 0;        ///< rows of K that a step may not reach beyond; 0: it may be of any length
};
Space productSpace(const ProductSizes &sizes);
/// For element-wise kernels, reductions that walk along their rows, and whatever has no space of its own: any tile will
/// do.
Space tileSpace(const Problem &problem, Target target);
/// Tiles that span rows of `cols` elements, each row with some padding or none: parameters rows and cols.
Space rowSpace(const Tensor &x, Target target, double tilesAlive);

} // namespace tenon::zoo
