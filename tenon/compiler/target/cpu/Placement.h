// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/lower/KernelInfo.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

/// Which tile values get a buffer, and which are recomputed inside the loops that use them.
///
/// Most tile operations only say where an element comes from: element (i, j) of a + b, of a broadcast, of a load. Such a
/// value is *pulled*: the loop that needs the element computes it, and the tile never exists. A value gets a buffer when
///   1. it cannot be computed element by element: results of reduce, scan, dot, concat, atomics, loops and branches;
///   2. it is used inside a nested loop or branch and is not trivially cheap;
///   3. it is expensive and needed by loops that cannot be one loop because a reduction stands between them
///      (softmax's exp: its sum must be complete before the division starts);
///   4. it is a load, and memory it may read is written between the load and its last use;
///   5. it is reshaped in a way that mixes dimensions: the buffer is then seen in the other shape.
namespace tenon::cpu {

class Placement {
public:
  explicit Placement(mlir::func::FuncOp kernel);

  bool needsBuffer(mlir::Value tile) const { return buffered_.contains(tile); }
  void forceBuffer(mlir::Value tile) { buffered_.insert(tile); }
  /// The values that could have been pulled and were given a buffer all the same, and why.
  llvm::ArrayRef<std::pair<mlir::Value, std::string>> reasons() const { return reasons_; }

  /// Whether an access through one view may touch what an access through the other does.
  bool mayAlias(mlir::Value viewA, mlir::Value viewB) const;
  /// Whether the kernel writes the argument, by whole tiles, and neither reads it nor any other view of its memory.
  bool isOnlyStored(mlir::Value view) const;
  /// Whether the kernel reads the argument, by whole tiles, and writes no other view of its memory.
  bool isOnlyLoaded(mlir::Value view) const;

private:
  void visitBlock(mlir::Block &block);
  void keepFromOwnWrites(mlir::Operation &op);
  void dropIfCheap(mlir::Value value);
  bool writesBetween(mlir::Value view, int first, int last, mlir::Block &block);

  bool noOverlap_;
  llvm::DenseSet<mlir::Value> buffered_;
  llvm::DenseMap<mlir::Value, int> cost_;
  llvm::SmallVector<std::pair<mlir::Value, std::string>> reasons_;
};

/// An op whose result can be computed element by element.
bool isPulled(mlir::Operation *op);
/// An op that consumes whole tiles: it makes a loop nest (or several) at its place in the program.
bool isRoot(mlir::Operation *op);
/// A reshape that only adds or removes dimensions of size 1.
bool isUnitReshape(tile::ReshapeOp op);
/// Of such a one: where a dimension of more than one element was before it; -1 where there is none.
int beforeReshape(tile::ReshapeOp op, int dim);
/// Visits tiles and, where `visit` says so, what they are pulled from: each once for every way of being wanted, "in place"
/// (at the index the walk started with) or anywhere else.
void walkPulled(llvm::SmallVector<std::pair<mlir::Value, bool>> from,
                llvm::function_ref<bool(mlir::Value, bool inPlace)> visit);

/// Whether two windows (tile.load, tile.store) of one view have no element in common: in some dimension their offsets are
/// a known distance apart, at least the lower one's extent. Needs a view with distinct elements.
bool areDisjointWindows(mlir::Operation *a, mlir::Operation *b);
/// Whether a tile.load and a tile.store have the very same window of one view with distinct elements.
bool areSameWindow(mlir::Operation *load, mlir::Operation *store);
/// The view an op reads, or null.
mlir::Value viewReadBy(mlir::Operation *op);
using lower::viewWrittenBy;

} // namespace tenon::cpu
