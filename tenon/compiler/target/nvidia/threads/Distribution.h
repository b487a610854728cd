// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/target/nvidia/layout/LinearLayout.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

/// A tile of a given shape in a given layout, seen from one thread: which registers it has and what they hold.
///
/// Every basis of a register layout moves along one dimension by a power of two that no other basis uses, so the
/// coordinate of a thread's register r is (what lane, warp and block contribute) + offset(r), and registers past the
/// tile's edge for every thread are known at compile time: they do not exist. That is how a tile of 96 columns costs 96
/// columns of registers although its layout covers 128.
namespace tenon::nvidia {

class Distribution {
public:
  /// `warps`: that there are, of those whose numbers the layout has bits for; 0: all (Layouts.h: layoutWarps).
  Distribution(LayoutAttr layout, llvm::ArrayRef<int64_t> shape, int64_t warps = 0);
  /// Of a tile value after layout selection.
  explicit Distribution(mlir::RankedTensorType type, int64_t warps = 0);

  llvm::ArrayRef<int64_t> shape() const { return shape_; }
  int64_t rank() const { return shape_.size(); }
  int registers() const { return static_cast<int>(offsets_.size()); }
  const Coords &offset(int reg) const { return offsets_[reg]; }
  /// Whether some thread's register holds an element of the tile.
  bool exists(int reg) const { return exists_[reg]; }
  /// Whether some thread's register, though it exists, lies past the edge of dimension `dim`.
  bool isPartial(int reg, int64_t dim) const { return offsets_[reg][dim] + span_[dim] >= shape_[dim]; }
  bool isPartial() const;

  /// One bit of the thread's number (lane bits 0-4, then warp bits) or, from blockBit on, of its block's rank in the
  /// cluster, and the step it makes along each dimension. Bits of no step hold duplicates.
  struct ThreadBit {
    int bit;
    int64_t dim, step; ///< dim < 0: a duplicate
  };
  static constexpr int blockBit = 16;
  llvm::ArrayRef<ThreadBit> threadBits() const { return threadBits_; }

  /// The register at an offset (see offset()), or -1.
  int registerAt(llvm::ArrayRef<int64_t> offset) const;

  /// How many consecutive registers, from any multiple of that many, hold consecutive elements along `dim`.
  int64_t consecutive(int64_t dim) const;

private:
  void add(llvm::ArrayRef<int64_t> bases, int firstBit, int64_t count = 0);

  llvm::SmallVector<int64_t, 5> shape_, span_; // span: the largest coordinate a thread's number contributes
  llvm::SmallVector<Coords> offsets_;
  llvm::SmallVector<bool> exists_;
  llvm::SmallVector<ThreadBit> threadBits_;
  llvm::DenseMap<int64_t, int> byOffset_; // keyed by the offset in row-major order of the padded extents
  llvm::SmallVector<int64_t, 5> extents_;
  int64_t key(llvm::ArrayRef<int64_t> offset) const;
};

} // namespace tenon::nvidia
