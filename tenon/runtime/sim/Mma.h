// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/base/SimThread.h"

namespace tenon::sim {

/// The registers of each lane of a warp, as mma.sync wants them; c is also the result.
struct MmaFragments {
  const void *a[32], *b[32];
  void *c[32];
};

/// mma.sync.aligned, row.col, of the shape that the operand types have (nvidia.mma lists them).
void multiplyFragments(OperandType a, OperandType b, const MmaFragments &fragments);

/// wgmma: 64 rows of `left` and n rows of `right`, each of 32 bytes of elements along k, into 64 x n accumulators (f32
/// or i32), which count as zero unless it accumulates.
void multiplyWarpgroup(OperandType a, OperandType b, int n, const uint8_t *left, const uint8_t *right,
                       bool accumulates, uint32_t *accumulators);

} // namespace tenon::sim
