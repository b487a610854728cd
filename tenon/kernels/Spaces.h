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

//===--- What spaces share ----------------------------------------------------------------------------------------===//

inline bool isGpu(Target target) { return target == Target::cuda || target == Target::sim; }

/// Threads, and the vector widths that this processor has.
void addCpuOptions(Space &space, bool threads = true);
/// Of the values, those that are not more than twice what there is: beyond, a tile is mostly padding.
std::vector<int64_t> useful(std::vector<int64_t> values, int64_t size);
/// Tiles that span rows of `cols` elements, each row with some padding or none: parameters rows and cols.
Space rowSpace(const Tensor &x, Target target, double tilesAlive);

} // namespace tenon::zoo
