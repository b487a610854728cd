// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/Isa.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tenon::cpu {

/// Makes an instance of each row of a tile, where the loops of several instances can be one (Stages.h): of a kernel
/// that goes over long rows more than once and has each of them for itself. How many rows a tile has is then nobody's
/// business.
///
///     %i = tile.grid cdiv(%rows, 4)               %i = tile.grid min(cdiv(%rows, 4) * 4, rows of what is stored)
///     %at = arith.muli %i, 4
///     %x = tile.load %v[%at, 0] -> 4x4096    ->   %x = tile.load %v[%i, 0] -> 1x4096
///     %m = tile.reduce %x dim 1 -> 4x1            %m = tile.reduce %x dim 1 -> 1x1
///     tile.store ..., %w[%at, 0]                  tile.store ..., %w[%i, 0]
///
/// Returns whether it did.
bool splitRows(mlir::func::FuncOp kernel, const Isa &isa);

} // namespace tenon::cpu
