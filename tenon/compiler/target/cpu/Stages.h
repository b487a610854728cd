// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

/// An instance as the loops along its row, for those that may be run for several instances at a time: see Overlap.cpp.
namespace tenon::cpu {

/// The arguments of `instance`.
constexpr unsigned argsArgument = 0, idsArgument = 1, scratchArgument = 4, contextArgument = 5;

/// One loop of an instance, with what stands around it, where everything is inside and results go past the cache.
struct Stage {
  mlir::scf::IfOp nest;
  llvm::SmallVector<mlir::Value> conditions;
  mlir::Block *block = nullptr;
  mlir::scf::ForOp loop;  ///< in the block
  mlir::scf::ForOp parts; ///< inside of the loop, where this goes over several pages at once; else null
  llvm::SmallVector<mlir::Operation *> tail; ///< what follows the nest and is not for all stages, in order

  bool isJoined = true; ///< it is part of the one loop of a step; else it runs behind that, by itself
  int64_t lag = 0;      ///< it is that of the instance so many before the newest one

  mlir::scf::ForOp innermost() { return parts ? parts : loop; }
  int64_t step();
  int64_t extent();
  int64_t part(); ///< of the extent, one of which `loop` goes along
};

/// The loops of an instance, if they, single numbers behind them and what needs no memory but its arguments are all
/// there is of it; none otherwise.
llvm::SmallVector<Stage> stagesOf(mlir::func::FuncOp instance);

/// Decides which stages are one loop, and how far behind each is; false if that does not pay, or is not possible.
bool chooseJoined(llvm::MutableArrayRef<Stage> stages);

/// How many instances have something in scratch memory at a time; 0: it is not known.
int64_t copiesOf(mlir::func::FuncOp instance, llvm::MutableArrayRef<Stage> stages);

} // namespace tenon::cpu
