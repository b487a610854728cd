// SPDX-License-Identifier: Apache-2.0
//
// Internal to measure/: what gpuCeilings measures.
#pragma once

#include "tenon/lang/Kernel.h"
#include "tenon/model/Ceilings.h"

namespace tenon {

/// The datasheet of the device, or what its driver tells, with every rate that was measured lower in its place:
///
///     memory, L2   a copy of 512 MiB, and of a quarter of the cache, over and over
///     vector f32   chains of fused multiply-adds in registers
///     matrix       products of tiles that all blocks share, so that they come from the L2 cache, by Tenon's own code:
///                  what it cannot do in a type is not measured
model::Ceilings measureGpuCeilings(int device);

/// `(a, b, c)`: as many tiles of c as it has; each the product of all of a [rows, k] and all of b [k, cols].
extern const Kernel matrixRateKernel;

} // namespace tenon
