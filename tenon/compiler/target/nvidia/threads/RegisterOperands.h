// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"

#include "llvm/ADT/DenseMap.h"

/// Dots on warpgroups whose right operand is computed, and multiplied out of the registers in which it is: as the left
/// one of the instruction, which computes the transpose (RegisterOperands.cpp).
namespace tenon::nvidia {

/// Sets registersAttr. What is read in slots is known.
void chooseRegisterOperands(llvm::ArrayRef<tile::DotOp> dots, int64_t warps);

/// The operand of such a dot that comes from registers.
mlir::OpOperand &registerOperand(tile::DotOp dot);

/// Of the result of a dot on warpgroups.
LayoutAttr warpgroupLayout(tile::DotOp dot, int64_t warps);
/// Of the operand that comes from registers.
LayoutAttr registerLayout(tile::DotOp dot, int64_t warps);
/// The layouts in which what such operands are computed from is best loaded.
llvm::DenseMap<mlir::Value, LayoutAttr> layoutsForRegisters(mlir::func::FuncOp kernel, int64_t warps);

} // namespace tenon::nvidia
