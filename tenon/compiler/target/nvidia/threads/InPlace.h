// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace tenon::nvidia {

/// Whether the kernel writes memory that may be the view's, or reads it, by other operations than those left out.
using LeavesOut = llvm::function_ref<bool(mlir::Operation *)>;
bool mayBeWritten(mlir::Value view, LeavesOut leavesOut = {});
bool mayBeRead(mlir::Value view, LeavesOut leavesOut = {});
/// Whether an operation stores a tile just where the load took one from, each element computed from the one that was
/// there.
bool replaces(mlir::Operation *op, tile::LoadOp load);

} // namespace tenon::nvidia
