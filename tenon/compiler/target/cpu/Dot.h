// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/DotPlan.h"
#include "tenon/compiler/target/cpu/LoopEmitter.h"

/// tile.dot, in pieces:
///   DotPlan      the instruction and the register block
///   DotLimits    how much of the tiles is needed: not what lies past the edges of the views
///   DotPack      brings the operands into scratch, in the order in which the register block reads them
///   DotKept      what is packed of B stays there for the instances that follow
///   DotPieces    operands longer than bf16, taken apart for AMX's tiles
///   DotKernel    the loops around the register block; DotTiles, the block in AMX's tiles; DotThin, the loops for
///                a few rows
///   DotSums      the accumulator, where the block computes it that adds to it
///   DotNext      what the next iteration of a loop around the dot reads comes to L2 meanwhile
///   DotAhead     the same for blocks of AMX's tiles, and the lines that the result is stored to
namespace tenon::cpu {

/// Rows of elements in memory, contiguous along one dimension of the tile.
struct RawRows {
  mlir::Value pointer;
  mlir::Value stride;       ///< from row to row, in elements (index)
  bool alongDepth = false;  ///< a row runs along K (and there is one for each row of A or column of B), or across it
  mlir::Type element;       ///< as it lies in memory
  int64_t paddedStride = 0; ///< the stride, where it is a copy made for the dot; otherwise 0
  mlir::Type widenedFrom = {}; ///< the tile's type, where elements become longer when they are packed; null: they do not
  bool isUnsigned = false;  ///< of bytes that do
};

/// What a view's bytes hold and a copy of them can: the bits of a small float as an integer.
mlir::Type rawType(mlir::Type tileElement);

/// A packed operand. Unit (i, k), for i a row of A or a column of B, is at i / panel * panelStride + i % panel *
/// itemStride + k * depthStride, in units.
struct PackedOperand {
  mlir::Value pointer;
  int64_t itemStride = 1, depthStride = 1, panelStride = 0;
};

/// The rows of A that a row of blocks of tiles reads.
struct StripOfA {
  mlir::Value pointer, strideBytes; ///< stride: i64
};

/// The stores that everything made of `tile` ends in, element by element, or nothing if some of it ends elsewhere.
std::optional<llvm::SmallVector<tile::StoreOp>> storesOf(mlir::Value tile);

/// How much of the result is needed, and of K; null: all. (index)
struct DotLimits {
  mlir::Value rows, columns, depth;
};

/// Rows of memory that are needed soon.
struct AheadRows {
  mlir::Value pointer, strideBytes; ///< stride: index
  mlir::Value condition;            ///< whether they are needed; null: they are
  int64_t rows = 0, lines = 0;      ///< lines: of the cache, in a row
  int64_t linesAtOnce = 0;          ///< that one step of a block brings in
  bool isWritten = false;
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
  bool movesWhileSumsAreCarried(tile::StoreOp store, unsigned dim);
  mlir::Value storedExtent(unsigned dim);
  mlir::Value loadedExtent(mlir::Value tile, unsigned dim);

  // DotPack.cpp
  struct LoadBehind {
    tile::LoadOp load;
    int dims[2]; ///< the load's dimensions that are dimensions 0 and 1 of the tile; -1: one element
  };
  /// `throughCasts`: also where elements are converted on their way.
  std::optional<LoadBehind> loadBehind(mlir::Value tile, bool throughCasts = false);
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
    mlir::Value rowsThere; ///< from its first one to the last of the view
  };
  /// `neededRows`: so many have to lie inside, if not all; null: all.
  Window windowOf(const Origin &origin, mlir::Value neededRows = {});
  /// The tile's elements where they lie, or a copy in scratch in the packed type. `items`: the dimension that is not K.
  RawRows rawRows(mlir::Value tile, int items, mlir::Type element, mlir::Value neededRows = {});
  /// The same; in the type of their view, where they come from one.
  RawRows rowsToWiden(mlir::Value tile, int items, mlir::Value neededRows = {});
  Buffer copyOf(mlir::Value tile, mlir::Type element, bool transposed);
  Buffer copyRows(mlir::Value tile, const Origin &origin);
  void copyRowsOfA(mlir::Value begin, mlir::Value end, mlir::Value to);
  /// The tile as an op whose elements have that type: converted, or the bits of a small float.
  mlir::Value inType(mlir::Value tile, mlir::Type element);
  PackedOperand packA();
  PackedOperand packB();
  PackedOperand stridesOfPanels(int64_t panel);
  int64_t unitsOfPanels(const PackedOperand &to, int64_t count) const;
  PackedOperand placeForPanels(int64_t count, int64_t panel);
  PackedOperand pack(const RawRows &from, int64_t items, int64_t panel);
  void packInto(const RawRows &from, int64_t items, int64_t panel, const PackedOperand &to);
  /// A panel of B that was left as it is; `width` of its columns exist.
  void packPanel(mlir::Value number, int64_t width, const PackedOperand &to);
  /// Neighbours in a row as they are packed, followed by zeros.
  mlir::Value loadToPack(const RawRows &from, mlir::Value start, int64_t count, int64_t lanes);
  llvm::SmallVector<mlir::Value> transposedRows(const RawRows &from, mlir::Value item, int64_t count,
                                                mlir::Value first, int64_t depth, int64_t group);
  void packAcross(const RawRows &from, int64_t items, int64_t panel, const PackedOperand &to);
  void packAlong(const RawRows &from, int64_t items, int64_t panel, const PackedOperand &to);
  PackedOperand turned(const PackedOperand &panel);
  void padDepth(int64_t items, int64_t panel, const PackedOperand &to);
  void zeroRowEnds(const Buffer &buffer, int64_t begin, int64_t end);
  mlir::Value addCorrection(const PackedOperand &b);

  // DotPieces.cpp
  void noteSpecial(mlir::Value note, llvm::ArrayRef<mlir::Value> rests);
  using Pieces = llvm::SmallVector<mlir::Value, 3>; ///< of each a vector of units
  Pieces takeApart(mlir::Value low, mlir::Value high, llvm::SmallVectorImpl<mlir::Value> &rests);
  PackedOperand packPiecesOfB();
  mlir::Value noteBehind(const PackedOperand &b);
  void packPieces(const RawRows &from, int64_t items, const PackedOperand &to);
  void packPiecesAcross(const RawRows &from, int64_t items, const PackedOperand &to);
  void packPiecesAlong(const RawRows &from, int64_t items, const PackedOperand &to);
  void findRowsOfA();
  StripOfA takeStripApart(mlir::Value row, int64_t tiles, mlir::Value rows);
  void unlessSpecial(mlir::Value row, llvm::function_ref<void()> multiply);
  void multiplySpecial(const Buffer &c);

  // DotKept.cpp
  std::optional<PackedOperand> packKept();

  // DotNext.cpp
  static constexpr int64_t linesOfPiece = 8;
  /// Rows of a window that the next iteration reads, each in so many pieces.
  struct NextRows {
    mlir::Value pointer, stride; ///< in bytes
    int64_t pieces, end;         ///< of a row; the number of the first piece of what follows
  };
  /// `blocks`: how often a piece of each can be brought in.
  void findNext(int64_t blocks);
  /// Where the pieces begin that are brought in by the `block`th of them; and one line of each.
  llvm::SmallVector<mlir::Value> nextLines(mlir::Value block);
  void bringLine(llvm::ArrayRef<mlir::Value> lines, mlir::Value number);

  // DotSums.cpp
  /// Whether the accumulator is computed by the blocks that add to it.
  bool isComputedByBlocks(const Buffer &result);
  llvm::SmallVector<mlir::Value> computedAccumulator(mlir::Value row, mlir::Value column, int64_t columns);

  // DotKernel.cpp
  int64_t piecesOfDepth() const; ///< of K, during each of which a block brings in a piece of what is next
  void emitBlocks(const PackedOperand &a, const PackedOperand &b, const Buffer &c);
  /// A panel of B and the columns of the result that it makes.
  struct Columns {
    mlir::Value panel, number, first;
    int64_t width, depthStride;
  };
  void forEachPanel(const PackedOperand &b, llvm::function_ref<void(const Columns &)> body);
  void emitRows(const PackedOperand &a, const Buffer &c, const Columns &columns);
  /// Of a register block among all, panel by panel of B; of tiles, strip by strip of A.
  mlir::Value blockNumber(mlir::Value row, const Columns &columns);
  int64_t panels() const { return llvm::divideCeil(n_, plan_.panel()); }
  int64_t stepsOfBlock() const;
  /// `isRest`: it is one of several for what is left over.
  void emitBlock(const PackedOperand &a, const Buffer &c, mlir::Value row, int64_t rows, const Columns &columns,
                 bool isRest = false);
  mlir::Value multiplyAdd(mlir::Value unitOfA, mlir::Value vectorOfB, mlir::Value sum);
  // DotTiles.cpp
  void emitStrips(const PackedOperand &a, const PackedOperand &b, const Buffer &c);
  StripOfA stripOf(const PackedOperand &a, mlir::Value row, int64_t tiles, mlir::Value rows);
  void emitTileBlock(const StripOfA &a, const Buffer &c, mlir::Value row, int64_t tiles, mlir::Value rows,
                     const Columns &columns);
  void emitPartOfBlock(const StripOfA &a, const Buffer &c, mlir::Value row, int64_t tiles, mlir::Value rows,
                       const Columns &columns, mlir::Value begin, mlir::Value end, bool isFirst);
  void bringLines(mlir::Value pointer, int64_t begin, int64_t end);
  void emitStep(const StripOfA &a, mlir::Value below, mlir::Value k, int64_t tiles, const Columns &columns);
  void emitStepOfPieces(const StripOfA &a, mlir::Value below, mlir::Value k, int64_t tiles, const Columns &columns);
  // DotAhead.cpp
  mlir::Value isLastStep();
  mlir::Value nextMovesAlong(unsigned pace);
  void findAhead(mlir::Value operand, int64_t steps);
  void findResult(int64_t steps);
  void findAhead(int64_t steps);
  void findNextStrip(mlir::Value row);
  void bringAhead(const AheadRows &next, mlir::Value number);
  void bringAhead(mlir::Value block, mlir::Value panel, mlir::Value step);
  // DotThin.cpp
  void emitThin(const Buffer &c);
  void emitThinAlongDepth(const Buffer &a, const RawRows &rows, const Buffer &c);
  void bringIn(mlir::Value place, int64_t bytes);
  mlir::Value sum(mlir::Value x, mlir::Value y);
  mlir::Value addProduct(mlir::Value x, mlir::Value y, mlir::Value to);
  mlir::Value acrossLanes(mlir::Value vector);

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
  mlir::Value widened(mlir::Value vector, int64_t lanes); ///< with zeros
  /// Elements of a view as `to`, which is what they are computed with.
  mlir::Value elementsAs(mlir::Type to, mlir::Value raw, mlir::Type tileElement, bool isUnsigned);
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
  bool computesAccumulator_ = false; ///< where it is added to
  DotLimits limits_;
  mlir::Value correction_; ///< for each column, what to add to the accumulators; null: nothing
  /// Rows of A in a view, which are brought in ahead, and the place for a copy of them, if there is one (of operands that
  /// are taken apart there is not).
  struct RowsToCopy {
    Buffer copy;
    Window window;
  } unpackedA_;
  /// Operands that are taken apart: where they come from, one strip of A in pieces, and what is known of infinities.
  struct InPieces {
    RawRows rowsOfA;
    Buffer strip;
    mlir::Value noteOfA, noteOfB;     ///< a vector of numbers each, a NaN among them if an operand is not finite
    mlir::Value specialStrips, isAny; ///< a byte for each strip of A, and for all
    int64_t scratchBefore = 0;        ///< in use when B was packed
  } inPieces_;
  RawRows unpackedB_; ///< rows of B, where each panel is packed when its turn comes
  llvm::SmallVector<NextRows> next_;
  int64_t nextPieces_ = 0, nextAtOnce_ = 1; ///< in all, and of one block
  Buffer edge_;            ///< a block of the result that is not all there, for tiles
  llvm::SmallVector<AheadRows> ahead_;
  std::optional<AheadRows> nextStrip_; ///< of A, while blocks of tiles multiply this one
  mlir::Value isFirst_; ///< whether the accumulator is zero, not having been written yet; null: it never is
  llvm::SmallVector<mlir::Operation *> temporaries_;
};

} // namespace tenon::cpu
