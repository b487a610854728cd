// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/Isa.h"
#include "tenon/compiler/target/cpu/Overlap.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tenon::cpu {

/// The place in the grid, by axis, of the program instance with this number in the kernel's order of axes (DotKept.h).
llvm::SmallVector<mlir::Value> idsOf(mlir::ImplicitLocOpBuilder &b, mlir::func::FuncOp kernel, mlir::Value number,
                                     mlir::Value extents);

/// Emits `tenon_run`: a range of program instances, calling `instance` for each, or `overlapped` for some at a time.
/// `noteBytes`: at the end of scratch, which whoever calls has to know (CpuTarget.h).
void emitRunFunction(mlir::func::FuncOp kernel, mlir::ModuleOp target, const Isa &isa, int64_t noteBytes,
                     std::optional<Overlap> overlap);

} // namespace tenon::cpu
