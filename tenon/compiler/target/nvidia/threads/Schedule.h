// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

namespace tenon::nvidia {

/// Whether blocks take the kernel's instances when they are free.
bool takesInstances(mlir::func::FuncOp kernel);

/// Instances that blocks take when they are free (Schedule.cpp).
struct ThreadEmitter::Schedule {
  mlir::Value counter;                                     ///< i64: its address
  int64_t records = 0, slotBytes = 0, full = 0, empty = 0; ///< in shared memory: instances handed over, their barriers
  int64_t sent = 0; ///< in clusters: the number that their first block sends to the others, and its barriers
  int group = 0;
  llvm::DenseSet<mlir::Operation *> found; ///< what the loading thread computes for the others
  mlir::Operation *lastFound = nullptr;    ///< null: nothing is
  llvm::SmallVector<mlir::Value> findings; ///< and what of it they need
  mlir::Operation *lastLoop = nullptr;     ///< in which an instance's last transfers are started; null: in none

  // While the loading thread's code is made:
  mlir::Value slot, phase, number; ///< i32: of the instance at hand
  mlir::Value next; ///< i32: the instance after it, -1 if it was not asked for yet; null: nobody asks ahead
};

} // namespace tenon::nvidia
