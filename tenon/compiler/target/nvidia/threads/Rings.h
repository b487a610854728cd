// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

namespace tenon::nvidia {

/// A load that the tensor memory accelerator makes: a box per panel.
struct ThreadEmitter::Transfer {
  tile::LoadOp load;
  OperandTile tile;
  int64_t columnDim; ///< of the view, contiguous
  int64_t begin;     ///< in a slot
  int map;           ///< number of the tensor map
  int64_t rowDim;    ///< of the view; -1: one row
  bool isShared;     ///< each block of the cluster loads a part of the rows, for all, ...
  SharedLoads::Conditions sharedIf; ///< ... while these hold, else all for itself
  int mapOfAll = -1;                ///< with such conditions: of all rows
  int64_t rows = 0;  ///< of a box
  mlir::Value isReadOnce; ///< i1: no other instance reads it, and no cache can keep it; null: that is not known
  int mapOfRest = -1; ///< where blocks cannot have equally many: of the swizzled rows, eight, that the first ones load besides
};

/// One after the other of those that LateLoads.cpp makes: some panels of a transfer, by its number.
struct ThreadEmitter::LateStep {
  size_t transfer;
  int64_t panel, panels, apart; ///< the first, how many, and how far from one to the next
};

/// Slots of shared memory through which the tiles of some loads of one block of the program go, loads that a dot reads
/// together, or those that threads read. Each slot has two barriers: `full`, on which the transfers' bytes arrive, and
/// `empty`, on which each warpgroup that holds tiles arrives when it is done, or each of its warps where threads read.
/// Producer and consumers walk the same loops, each with its own count of which slot is next and in which round.
struct ThreadEmitter::Ring {
  mlir::Block *block;
  llvm::SmallVector<Transfer> transfers; ///< in program order
  int64_t stages = 1, slotBytes = 0;
  SharedWindow window;
  bool isShared = false; ///< one of the transfers is: a slot is free when all blocks of the cluster are done with it
  bool isRead = false;   ///< by threads, into registers
  /// Where tiles come panel by panel, a slot each; otherwise a slot holds all tiles.
  llvm::SmallVector<LateStep> steps;
  int64_t full = 0, empty = 0; ///< where the barriers are
  /// Ops of the block that read the tiles, or hold one that does; null where threads read.
  mlir::Operation *firstUse = nullptr, *lastUse = nullptr;

  // While the program is walked:
  mlir::Value slot, phase;           ///< i32: the next slot, and the parity of its round
  mlir::Value current, currentPhase; ///< those of the tiles at hand
  mlir::Value held;                  ///< i32: the slot that dots under way read, -1 for none; null: none
};

/// What a loop hands from iteration to iteration for the rings in it, in order.
struct ThreadEmitter::CarriedRings {
  llvm::SmallVector<Ring *> rings; ///< slot and phase
  llvm::SmallVector<Ring *> held;  ///< the slot that dots under way still read
  /// Those that are under way at the end of an iteration; of several that add to the same sums, the last.
  llvm::SmallVector<tile::DotOp> dots;
  /// Those that begin at zero and are started by the first dot of an iteration, that one in front. Where other dots
  /// are under way already, the assembler defines accumulators that hold nothing, and makes every dot wait for it.
  llvm::SmallVector<tile::DotOp> fromZero;
};

} // namespace tenon::nvidia
