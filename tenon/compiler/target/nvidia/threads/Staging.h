// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

/// Tiles that are written to memory by way of panels in shared memory: bulk stores (BulkStore.cpp) and scatters of whole
/// pieces (StagedScatter.cpp).
namespace tenon::nvidia {

/// How warpgroups divide a tile: into `rows` x `columns` parts of whole rows and panels, or 1 x 1 when they do not.
struct Parts {
  int64_t rows = 1, columns = 1;
  bool operator==(const Parts &) const = default;
};

/// How a stored tile lies in shared memory, and which of its dimensions are rows and columns there.
struct StoredTile {
  OperandTile tile;
  int64_t rowDim, columnDim;
};
StoredTile stagingOf(mlir::Value value, mlir::Value view);

/// How threads read a staged tile to write it to memory: pieces of 16 bytes, the neighbours of a panel's
/// row beside each other; each of two or three warpgroups has its rows.
LinearLayout piecesLayout(mlir::Value value, mlir::Value view, int64_t warps);

/// How one store goes.
struct ThreadEmitter::StorePlan {
  StoredTile stored;
  Parts parts;
  int64_t panels;          ///< of a slice, of one part
  int64_t slices, buffers; ///< buffers: of slices
  int64_t sliceBytes() const { return panels * parts.columns * stored.tile.panelSize(); }
  int64_t groups() const { return parts.rows * parts.columns; } ///< of threads that wait for each other only
  int64_t sliceColumns() const { return panels * stored.tile.panel / stored.tile.elementBytes; }
};

/// A tile that comes panel by panel where warpgroups take turns (LateLoads.cpp): a thread has more sums beside, so
/// panels have fewer columns.
OperandTile narrowed(const OperandTile &tile, int64_t threads);

} // namespace tenon::nvidia
