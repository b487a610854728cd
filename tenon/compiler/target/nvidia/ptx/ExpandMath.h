// SPDX-License-Identifier: Apache-2.0
//
// tenon-nvidia-expand-math: the functions of the math dialect as a GPU thread computes them. exp, exp2, tanh, erf and
// rsqrt of f32 (and of f16 and bf16, by way of f32) use the special function unit through nvidia.approx, see
// GpuFunctions.h; all others are those of every target (transform/ExpandMath.h). For the GPU and for the simulator.
#pragma once

#include <memory>

namespace mlir {
class Pass;
} // namespace mlir

namespace tenon::nvidia {

std::unique_ptr<mlir::Pass> createExpandMathPass();

/// For tenon-opt: this pass and tenon-nvidia-lower-to-llvm=architecture=sm_90a.
void registerPtxPasses();

} // namespace tenon::nvidia
