// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/ptx/Architecture.h"

#include "mlir/IR/BuiltinOps.h"

namespace tenon::nvidia {

/// From thread functions (nvidia, scf, cf, arith, math, vector ops on scalars and short vectors) to the llvm dialect,
/// in place. Functions of math still there are expanded first. Reports and fails on an op that the architecture lacks.
mlir::LogicalResult lowerThreadsToNvvm(mlir::ModuleOp module, const Architecture &architecture);

} // namespace tenon::nvidia
