// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/Isa.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tenon::cpu {

/// Emits `tenon_run`: a range of program instances, calling `instance` for each, in the kernel's order of axes
/// (DotKept.h). `notes`: where in scratch a word says whether something was kept; it is cleared.
void emitRunFunction(mlir::func::FuncOp kernel, mlir::ModuleOp target, const Isa &isa, llvm::ArrayRef<int64_t> notes);

} // namespace tenon::cpu
