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

} // namespace tenon::sim
