// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tenon::cpu {

struct Isa;

/// On the bits of a dot's operand: they are kept in scratch, and nothing but dots sees them.
inline constexpr llvm::StringLiteral operandAttr = "cpu.operand";

/// Scratch holds bf16 as f32, which every loop but a dot's can use as it is. Where the left operand of a dot would be kept
/// for other reasons, because a reduction needs the same numbers before they are rounded or because a loop around the dot
/// uses it again and again, its bits are kept instead, in the form in which the dot reads them: half the memory, and no
/// pass that converts.
///
///     %w = math.exp2 ...                             %w = math.exp2 ...
///     %s = tile.reduce %w                            %s = tile.reduce %w
///     ...                                            %h = tile.cast %w
///     %h = tile.cast %w : f32 -> bf16           ->   %k = arith.bitcast %h : bf16 -> i16 {cpu.operand}
///     %d = tile.dot %h, %v                           ...
///                                                    %d = tile.dot (arith.bitcast %k), %v
void keepOperands(mlir::func::FuncOp kernel, const Isa &isa);

} // namespace tenon::cpu
