// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tenon::cpu {

/// Emits `tenon_run`: a range of program instances, numbered with axis 0 fastest, calling `instance` for each.
void emitRunFunction(mlir::ModuleOp target);

} // namespace tenon::cpu
