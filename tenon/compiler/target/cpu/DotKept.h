// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/target/cpu/Isa.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

/// Operands that stay packed from instance to instance: see DotKept.cpp.
namespace tenon::cpu {

/// Of each place where something is kept: the 64-bit words of what it was made of. The first is 0: of nothing.
constexpr int64_t keptNoteBytes = 64;

/// Chooses the order of the grid's axes in which what a dot keeps serves most instances.
void orderAxes(mlir::func::FuncOp kernel, const Isa &isa);
/// The axes, slowest first. Unless something was chosen, the last one is the fastest, as the last dimension of memory
/// is: neighbours in time are neighbours in memory.
llvm::SmallVector<int64_t> orderOfAxes(tile::GridOp grid);

} // namespace tenon::cpu
