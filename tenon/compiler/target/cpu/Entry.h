// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/Isa.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tenon::cpu {

/// Emits `tenon_run`: a range of program instances, calling `instance` for each. The last axis runs fastest, as the last
/// dimension of memory does: neighbours in time are neighbours in memory.
void emitRunFunction(mlir::ModuleOp target, const Isa &isa);

} // namespace tenon::cpu
