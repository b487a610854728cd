// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/Isa.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tenon::cpu {

/// Sets tile.relaxed, tile.coarse and tile.tabulated on operations of a kernel in Tile IR.
void relaxPrecision(mlir::func::FuncOp kernel, const Isa &isa);

} // namespace tenon::cpu
