// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace tenon::nvidia {

/// What layout selection may choose from.
struct LayoutOptions {
  int64_t warps = 4;
  int64_t cluster = 1;
};

/// Marks f32 operations whose result is only ever seen rounded to 16 bits or fewer.
std::unique_ptr<mlir::Pass> createRelaxPrecisionPass();
/// Gives every tile type its layout, and puts nvidia.convert where an op's operands do not agree.
std::unique_ptr<mlir::Pass> createChooseLayoutsPass(const LayoutOptions &options = {});
/// Marks the loads of loops that become asynchronous copies (PipelineLoads.h).
std::unique_ptr<mlir::Pass> createPipelineLoadsPass(int64_t stages = 3, int architecture = 90);
/// On thread functions: a barrier between conflicting accesses of shared memory.
std::unique_ptr<mlir::Pass> createInsertBarriersPass();

/// For tenon-opt.
void registerThreadPasses();

} // namespace tenon::nvidia
