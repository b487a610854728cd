// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/DotPlan.h"
#include "tenon/compiler/target/cpu/LoopEmitter.h"

/// tile.dot, in four pieces:
///   DotPlan      the instruction and the register block
///   DotLimits    how much of the tiles is needed: not what lies past the edges of the views
///   DotPack      brings the operands into scratch, in the order in which the register block reads them
///   DotKernel    the loops around the register block; DotTiles, the block in AMX's tiles; DotThin, the loops where there
///                are only a few rows
namespace tenon::cpu {

/// Rows of elements in memory, contiguous along one dimension of the tile.
struct RawRows {
  mlir::Value pointer;
  mlir::Value stride;       ///< from row to row, in elements (index)
  bool alongDepth = false;  ///< a row runs along K (and there is one for each row of A or column of B), or across it
  mlir::Type element;       ///< as it lies in memory
  int64_t paddedStride = 0; ///< the stride, where it is a copy made for the dot; otherwise 0
};

/// What a view's bytes hold and a copy of them can: the bits of a small float as an integer.
mlir::Type rawType(mlir::Type tileElement);

/// A packed operand. Unit (i, k), for i a row of A or a column of B, is at i / panel * panelStride + i % panel *
/// itemStride + k * depthStride, in units.
struct PackedOperand {
  mlir::Value pointer;
  int64_t itemStride = 1, depthStride = 1, panelStride = 0;
};

/// How much of the result is needed, and of K; null: all. (index)
struct DotLimits {
  mlir::Value rows, columns, depth;
};

class DotEmitter {
public:
  DotEmitter(LoopEmitter &emitter, tile::DotOp op);
  /// Emits the dot and returns the buffer that holds its result.
  Buffer emit();

private:
  // DotLimits.cpp
  DotLimits findLimits();
  mlir::Value scalarHere(mlir::Value scalar, int depth);
  mlir::Value storedExtent(unsigned dim);
  mlir::Value loadedExtent(mlir::Value tile, unsigned dim);

  // DotPack.cpp
  struct LoadBehind {
    tile::LoadOp load;
    int dims[2]; ///< the load's dimensions that are dimensions 0 and 1 of the tile; -1: one element
  };
  std::optional<LoadBehind> loadBehind(mlir::Value tile);
  /// Where a tile's elements come from, and in which order they lie there.
  struct Origin {
    mlir::Value base; ///< the tile without the transposes in front of it
    bool isTransposed = false;
    std::optional<LoadBehind> source;
    int contiguous = 1; ///< the dimension of the tile along which neighbours lie side by side
  };
  Origin originOf(mlir::Value tile);
  /// The rows of an origin in its view, and whether the tile lies inside that.
  struct Window {
    mlir::Value inside, pointer, stride;
  };
  Window windowOf(const Origin &origin);
  /// The tile's elements where they lie, or a copy in scratch in the packed type. `items`: the dimension that is not K.
  RawRows rawRows(mlir::Value tile, int items, mlir::Type element);
  Buffer copyOf(mlir::Value tile, mlir::Type element, bool transposed);
  Buffer copyRows(mlir::Value tile, const Origin &origin);
  /// The tile as an op whose elements have that type: converted, or the bits of a small float.
  mlir::Value inType(mlir::Value tile, mlir::Type element);
  PackedOperand packA();
  PackedOperand packB();
  PackedOperand pack(const RawRows &from, int64_t items, int64_t panel);
  void packAcross(const RawRows &from, int64_t items, int64_t panel, const PackedOperand &to);
  void packAlong(const RawRows &from, int64_t items, int64_t panel, const PackedOperand &to);
  void transpose(llvm::SmallVectorImpl<mlir::Value> &rows);
  PackedOperand turned(const PackedOperand &panel);
  void padDepth(int64_t items, int64_t panel, const PackedOperand &to);
  void zeroRowEnds(const Buffer &buffer, int64_t begin, int64_t end);
  mlir::Value addCorrection(const PackedOperand &b);

  // DotKernel.cpp
  void emitBlocks(const PackedOperand &a, const PackedOperand &b, const Buffer &c);
  /// A panel of B and the columns of the result that it makes.
  struct Columns {
    mlir::Value panel, first;
    int64_t width, depthStride;
  };
  void emitRows(const PackedOperand &a, const Buffer &c, const Columns &columns);
  void emitBlock(const PackedOperand &a, const Buffer &c, mlir::Value row, int64_t rows, const Columns &columns);
  mlir::Value multiplyAdd(mlir::Value unitOfA, mlir::Value vectorOfB, mlir::Value sum);
  // DotTiles.cpp
  void emitTileRows(const PackedOperand &a, const Buffer &c, const Columns &columns);
  void emitTileBlock(const PackedOperand &a, const Buffer &c, mlir::Value row, int64_t tiles, mlir::Value rows,
                     const Columns &columns);
  // DotThin.cpp
  void emitThin(const Buffer &c);

  //--- Small things ---
  void forRange(mlir::Value begin, mlir::Value end, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  void forRange(int64_t begin, int64_t end, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  mlir::Value times(mlir::Value index, int64_t factor);
  mlir::Value plus(mlir::Value index, mlir::Value other);
  mlir::Value minimum(mlir::Value index, mlir::Value other);
  mlir::Value dividedUp(mlir::Value index, int64_t divisor); ///< of a number that is not negative, rounded up
  mlir::Value at(mlir::Value pointer, mlir::Value offset, mlir::Type element); ///< offset in elements (index)
  mlir::Value at(mlir::Value pointer, int64_t offset, mlir::Type element);
  mlir::Type vectorOf(mlir::Type element, int64_t lanes);
  /// `count` neighbours, followed by zeros up to `lanes`; and the first `count` of them to memory.
  mlir::Value load(mlir::Value pointer, mlir::Type element, int64_t count, int64_t lanes);
  void store(mlir::Value value, mlir::Value pointer, int64_t count);
  mlir::Value zero(mlir::Type type);
  mlir::Type unitType(); ///< an integer (or f32, f64) of a unit's size

  LoopEmitter &e_;
  mlir::ImplicitLocOpBuilder &b_;
  tile::DotOp op_;
  DotPlan plan_;
  int64_t m_, n_, k_;
  int64_t units_; ///< of K
  bool startsAtZero_ = false, unsignedBytes_ = false;
  DotLimits limits_;
  mlir::Value correction_; ///< for each column, what to add to the accumulators; null: nothing
  Buffer edge_;            ///< a block of the result that is not all there, for tiles
  llvm::SmallVector<mlir::Operation *> temporaries_;
};

} // namespace tenon::cpu
