// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace tenon::nvidia {

/// Makes the source lines of the module's ops (llvm dialect) reach the PTX as .loc directives. An op without a line of
/// its own in the source has the function's.
void attachLines(mlir::ModuleOp module);

} // namespace tenon::nvidia
