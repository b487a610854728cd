// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

namespace tenon::nvidia {

/// One asynchronous load of a loop: a matrix whose elements in a row are neighbours in memory.
struct ThreadEmitter::Copy {
  tile::LoadOp load;
  OperandTile tile;
  int64_t rowDim, columnDim; ///< of the load; rowDim is -1 when there is one row
  int64_t begin;             ///< in a slot
  int64_t width;             ///< bytes that one copy moves
  llvm::SmallVector<mlir::Operation *> offsets; ///< the ops that compute the offsets
};

/// The asynchronous loads of a loop: a ring of slots, each with the tiles of one iteration.
struct ThreadEmitter::Pipeline {
  mlir::scf::ForOp loop;
  llvm::SmallVector<Copy> copies;
  int64_t stages, slotBytes = 0;
  SharedWindow window;
  int before, inside; ///< groups of the copies before the loop and of all accesses in it
};

} // namespace tenon::nvidia
