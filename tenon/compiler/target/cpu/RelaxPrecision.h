// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tenon::cpu {

/// Sets tile.relaxed on operations of a kernel in Tile IR.
void relaxPrecision(mlir::func::FuncOp kernel);

} // namespace tenon::cpu
