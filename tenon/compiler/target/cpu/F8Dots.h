// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/Isa.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tenon::cpu {

/// Dots of f8 as dots of bf16, where the processor has an instruction for these. Every f8 is a normal bf16, and
/// products of two are exact in f32 either way; but f32 is one product a lane, pairs of bf16 are two, and AMX's tiles
/// many more.
///
///     tile.dot %a, %b, %acc : f8, f8, f32  ->  tile.dot (tile.cast %a), (tile.cast %b), %acc : bf16, bf16, f32
void widenF8Dots(mlir::func::FuncOp kernel, const Isa &isa);

} // namespace tenon::cpu
