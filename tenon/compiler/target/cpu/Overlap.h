// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/Isa.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>

/// The loops of several instances as one: see Overlap.cpp.
namespace tenon::cpu {

constexpr const char *overlapSymbol = "overlapped", *holdsSymbol = "holds";

struct Overlap {
  int64_t rows;   ///< instances that are worked on at a time
  int64_t copies; ///< of scratch memory
};

/// Emits `overlapped`, a step of that many instances: (args: ptr, number, begin, end: i64, extents of the grid,
/// scratch, context: ptr), and `holds`, whether an instance has the loops for it: (args: ptr, pid0, pid1, pid2: i64) ->
/// i1. Gives `instance` an argument more, which of its loops to run; -1: all. None: nothing is changed.
std::optional<Overlap> overlapInstances(mlir::func::FuncOp kernel, mlir::ModuleOp target, const Isa &isa,
                                        int64_t scratchBytes);

} // namespace tenon::cpu
