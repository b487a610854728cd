// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

namespace tenon::nvidia {

/// Loads of a loop that threads make one iteration ahead, into one of two slots of shared memory (Ahead.cpp).
struct ThreadEmitter::Ahead {
  struct Load {
    tile::LoadOp op;
    llvm::SmallVector<mlir::Operation *> offsets; ///< the ops that compute its offsets
    OperandTile tile;
    int64_t rowDim, columnDim;
    int64_t begin; ///< in a slot
  };
  mlir::scf::ForOp loop;
  llvm::SmallVector<Load> loads;
  int64_t slotBytes = 0;
  SharedWindow window;
  int before, inside; ///< groups of the writes before the loop and in it
};

} // namespace tenon::nvidia
