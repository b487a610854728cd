// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <functional>

namespace tenon::fuzz {

/// Makes a failing program smaller while `stillFails` says so: deletes ops, replaces values by constants or operands,
/// takes loops and branches apart, makes the grid 1, drops arguments. What would leave a result undefined (see
/// ProgramGenerator.h) is not tried. Stops after `attempts` calls.
mlir::OwningOpRef<mlir::ModuleOp> shrink(mlir::ModuleOp program, std::function<bool(mlir::ModuleOp)> stillFails,
                                         int attempts);

} // namespace tenon::fuzz
