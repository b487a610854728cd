// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/LoopEmitter.h"

#include <map>
#include <set>

namespace tenon::cpu {

/// Where along one dimension: base, or base + 0, 1, 2, ... in the lanes of a vector.
struct Coord {
  mlir::Value base;
  bool lanes = false;
};
using Coords = llvm::SmallVector<Coord, 5>;

/// One loop nest. The dimension whose elements fill a vector is the last one with more than one element; a reduced
/// dimension is the innermost loop. `checked` nests test every access against its view's bounds; the unchecked twin runs
/// when the whole window is inside (tested once, before the loops).
///
///     scf.if %inside { for i { for j step 32 { vectors, plain loads } } } else { the same, masked }
///
/// What writes large results has a third one, whose stores go past the cache (Streaming.cpp).
///
/// Values are emitted at the depth of the loops they depend on, so a row's maximum is loaded once per row.
class Nest {
public:
  Nest(LoopEmitter &emitter, const NestGroup &group) : e_(emitter), b_(emitter.builder()), group_(group) {}
  void emit();
  /// Outside any loop: one element of a tile as a scalar.
  mlir::Value emitScalar(mlir::Value tile);
  /// At the insertion point: `lanes` elements of a tile of what lies in scratch.
  mlir::Value emitVector(mlir::Value tile, const Coords &coords, unsigned lanes);
  void emitScan(tile::ScanOp op, llvm::ArrayRef<Buffer> results);
  /// Whether rows of random numbers are whole lumps, of as many as are drawn at once.
  static bool drawsInLumps(const Isa &isa, tile::RandomBitsOp op);
  /// Whether columns become one tile of narrow rows, vectors of which are shuffled into one another.
  static bool interleaves(tile::ConcatOp op);

private:
  struct Level {
    explicit Level(mlir::Block *block) : block(block) {}
    mlir::Block *block;
    mlir::Operation *anchor = nullptr; ///< the inner loop, once there is one: values go before it
    std::map<std::pair<void *, std::vector<std::pair<void *, bool>>>, mlir::Value> memo;
  };

  /// Part of a view that is read or written.
  struct Window {
    mlir::Operation *op;
    const ViewParts *view;
    mlir::OperandRange offsets;
    llvm::ArrayRef<int64_t> shape;
  };

  void emitScanLoops(tile::ScanOp op, llvm::ArrayRef<Buffer> results);
  bool reducesLongRows() const;
  void start(); ///< at the builder's insertion point
  void emitLoops();
  void emitDims(size_t position, Coords coords);
  int64_t stepOf(int dim) const;
  int64_t wholeSteps(int dim) const;
  /// What whole steps leave of a dimension: calls `body` with the place and the lanes of each piece.
  void forPieces(int dim, llvm::function_ref<void(mlir::Value, unsigned)> body);
  void emitReduction(int dim, Coords coords);
  /// A loop over the first `whole` elements of a row, in `parts` parts at once, in turns: calls `body` with the place.
  llvm::SmallVector<mlir::Value>
  loopOverParts(int64_t begin, mlir::Value end, int64_t whole, int64_t parts, int64_t step,
                llvm::ArrayRef<mlir::Value> inits,
                llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
  /// Opens a loop, calls `body` with its counter, closes it. Carries `inits`.
  llvm::SmallVector<mlir::Value>
  loop(int64_t begin, mlir::Value end, int64_t step, llvm::ArrayRef<mlir::Value> inits,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
  /// The group's work for one vector of elements; returns what the reductions take in.
  llvm::SmallVector<mlir::Value> body(const Coords &coords);
  void noteLoop(const Coords &coords);
  llvm::SmallVector<mlir::Value> combineAll(llvm::ArrayRef<mlir::Value> left, llvm::ArrayRef<mlir::Value> right);
  llvm::SmallVector<mlir::Value> cut(llvm::ArrayRef<mlir::Value> values, int64_t offset, int64_t size);
  /// `part` has at most the lanes of `totals`: combined with the first of them.
  llvm::SmallVector<mlir::Value> combineInto(llvm::SmallVector<mlir::Value> totals, llvm::ArrayRef<mlir::Value> part);
  /// `extremes`: those among the values whose NaNs are known otherwise (OrderedExtremes.cpp).
  llvm::SmallVector<mlir::Value> horizontal(llvm::SmallVector<mlir::Value> values, llvm::ArrayRef<size_t> extremes);
  // OrderedExtremes.cpp
  llvm::SmallVector<size_t> extremesOfLanes();
  /// For every two registers of the vector, the lanes in which neither has a NaN.
  llvm::SmallVector<mlir::Value> orderedLanes(mlir::Value vector);
  llvm::SmallVector<mlir::Value> combineOrdered(llvm::ArrayRef<mlir::Value> carried, llvm::ArrayRef<mlir::Value> values,
                                                llvm::ArrayRef<size_t> extremes, llvm::ArrayRef<size_t> halves);
  void dropNans(llvm::ArrayRef<mlir::Value> combined, llvm::ArrayRef<size_t> extremes);
  void restoreNans(llvm::MutableArrayRef<mlir::Value> values, llvm::ArrayRef<mlir::Value> carried,
                   llvm::ArrayRef<size_t> extremes);
  void storeReduced(llvm::ArrayRef<mlir::Value> values, Coords coords);
  // HalfExtremes.cpp
  tile::LoadOp loadOfHalves(tile::ReduceOp reduce);
  llvm::SmallVector<size_t> takeHalves(llvm::SmallVectorImpl<size_t> &extremes, llvm::MutableArrayRef<mlir::Value> inits);
  mlir::Value loadHalves(tile::LoadOp load, const Coords &coords);
  mlir::Value combineHalves(tile::ReduceOp reduce, mlir::Value carried, mlir::Value value);
  mlir::Value widenHalves(mlir::Value halves);
  void reduceAgain(llvm::ArrayRef<size_t> halves, llvm::ArrayRef<mlir::Value> values, llvm::ArrayRef<mlir::Value> masks,
                   const Coords &coords);

  mlir::Value compute(mlir::Value tile, Coords coords);
  mlir::Value computeHere(mlir::Value tile, const Coords &coords);
  void setInsertion(unsigned depth);
  unsigned depthOf(const Coords &coords);
  mlir::Value offsetBase(mlir::Value base, int64_t offset);

  void findLiveRows(); // LiveRows.cpp
  // InsideSteps.cpp
  void findInside();
  /// How what a load reads comes to the nest: element by element, with its dimensions elsewhere, or in part.
  enum class Place { same, moved, unknown };
  void findPlaces(mlir::Value tile, Place place, llvm::DenseMap<mlir::Operation *, Place> &places,
                  std::set<std::pair<void *, Place>> &seen) const;
  int dimOf(const Window &window, size_t dim, Place place) const;
  llvm::SmallVector<mlir::Value> eitherStep(Coords coords, mlir::TypeRange results,
                                            llvm::function_ref<llvm::SmallVector<mlir::Value>(const Coords &)> body);

  // Access.cpp
  llvm::SmallVector<Window> windows();
  mlir::Value both(mlir::Value x, mlir::Value y); ///< either may be null
  mlir::Value isInside(const Window &window, size_t dim);
  mlir::Value inBounds();
  void collectWindows(mlir::Value tile, llvm::SmallVectorImpl<mlir::Operation *> &windows, llvm::DenseSet<mlir::Value> &seen);
  mlir::Value bufferPointer(const Buffer &buffer, const Coords &coords); ///< of the first lane
  mlir::Value loadBuffer(const Buffer &buffer, const Coords &coords);
  void storeBuffer(const Buffer &buffer, const Coords &coords, mlir::Value value);
  mlir::Value loadWindow(tile::LoadOp op, const Coords &coords);
  void storeWindow(tile::StoreOp op, const Coords &coords);
  mlir::Value gather(tile::GatherOp op, const Coords &coords);
  void scatter(tile::ScatterOp op, const Coords &coords, mlir::Value value);
  void atomic(mlir::Operation *op, const Coords &coords, const Buffer *result);
  void addTo(const ViewParts &tally, tile::AtomicRMWOp op, const Coords &coords); // Tallies.cpp
  void check(tile::AssertOp op, const Coords &coords);
  struct Address {
    mlir::Value pointer;   ///< of the first lane, or of all of them
    mlir::Value first;     ///< of the first lane
    int laneDim = -1;
    mlir::Value ok;        ///< null: known to be inside; scalar or per lane
    bool contiguous = true;
  };
  Address windowAddress(const ViewParts &view, mlir::OperandRange offsets, const Coords &coords);
  Address indexedAddress(const ViewParts &view, mlir::OperandRange indices, mlir::Value mask, const Coords &coords);
  /// The same where lanes are neighbours in memory; null where that is not known (IndexedRows.cpp).
  std::optional<Address> rowAddress(const ViewParts &view, mlir::OperandRange indices, mlir::Value mask,
                                    const Coords &coords);
  /// Which lanes are inside of 0 to `size`, the first of them being at `at`; none where `ok` (or null) is false.
  mlir::Value lanesInside(mlir::Value at, mlir::Value size, mlir::Value ok);
  mlir::Value loadElements(const Address &address, mlir::Type element, mlir::Value padding);
  void storeElements(const Address &address, mlir::Type element, mlir::Value value, mlir::Value keeps = {});
  mlir::Value orZero(mlir::Value raw, mlir::Value keeps);
  unsigned lanesIn(const Coords &coords) const;
  mlir::Value laneIota(mlir::Type element);

  /// Whether the masks that choose between tiles hold everywhere; null when there is none that can be told (Masks.cpp).
  mlir::Value masksHold();

  // Streaming.cpp
  bool storesWholeVectors(tile::StoreOp op, unsigned lanes);
  mlir::Value streams();
  int64_t partsOfRow(int64_t extent, int64_t step);
  // Quotients.cpp
  mlir::Value byReciprocal(mlir::arith::DivFOp op, mlir::Value dividend, mlir::Value divisor);
  mlir::Value relaxedByReciprocal(mlir::Value dividend, mlir::Value divisor);
  mlir::Value exactByReciprocal(mlir::Value dividend, mlir::Value divisor);
  // PairLanes.cpp
  bool pairsLanes();
  bool isPaired(unsigned lanes) const;
  mlir::Value placesOfLanes(mlir::Type element);
  mlir::Value unpackPairs(mlir::Value raw);
  mlir::Value packPairs(mlir::Value halves);
  // Interleave.cpp
  mlir::Value interleaved(llvm::ArrayRef<mlir::Value> columns);
  void storeColumns(const Coords &coords);
  bool loadsColumns(mlir::Type element, int64_t stride) const;
  /// Of rows of `stride` elements that follow each other: the one that the pointer points to, and those below it.
  mlir::Value loadColumn(mlir::Value pointer, mlir::Type element, int64_t stride);
  std::optional<NestGroup> asLongRow(llvm::SmallVectorImpl<const ViewParts *> &views);
  void emitLongRow();
  // TransposedBlocks.cpp
  void findBlocks();
  mlir::Value storesWholeLines();
  void loopOverBlocks(llvm::function_ref<void(mlir::Value)> inner);
  void emitBlock(Coords coords);
  llvm::SmallVector<mlir::Value> transposedBlock(tile::LoadOp op, Coords coords);
  mlir::Value loadFromBlock(tile::LoadOp op, const Coords &coords);
  // PackBf16.cpp
  mlir::Value roundedByStore(tile::StoreOp op, const Coords &coords);
  mlir::Value packBf16(mlir::Value value);
  mlir::Value packTiesAway(mlir::Value value, bool underMask);
  /// The same for what is kept as a dot's operand (KeepOperands.h).
  mlir::Value roundedByOperand(mlir::Value bits, const Coords &coords);
  mlir::Value roundOperand(mlir::Value value);
  // Random.cpp
  mlir::Value randomBits(tile::RandomBitsOp op, const Coords &coords);
  static int64_t lanesOfDraw(const Isa &isa, tile::RandomBitsOp op, int dim);
  static int64_t lanesOfDrawLoop(const Isa &isa, tile::RandomBitsOp op, int dim);
  void drawNumbers(Coords coords, mlir::Value place);

  LoopEmitter &e_;
  mlir::ImplicitLocOpBuilder &b_;
  const NestGroup &group_;
  bool checked_ = false, streaming_ = false;
  /// Of a nest that is checked, whether steps may be inside (InsideSteps.cpp); null: they are not asked.
  mlir::Value inside_;
  llvm::SmallVector<mlir::Value> first_, reach_; ///< then, of each dimension, from where and how far; null: all along it
  size_t insideDepth_ = 0; ///< of the branch for a step that is inside; 0: this is none
  bool isAgain_ = false;     ///< a row that was reduced by its halves in vain (HalfExtremes.cpp)
  llvm::DenseSet<mlir::Operation *> byHalves_; ///< the reductions that the loop being emitted takes in as they lie
  bool isLongRow_ = false;   ///< several rows as one (Interleave.cpp)
  bool paired_ = false;      ///< vectors of 32 lanes, or a multiple, have them in pairs (PairLanes.cpp)
  unsigned vectorLanes_ = 0; ///< of a whole step along vectorDim_
  int64_t drawnLanes_ = 0;   ///< random numbers that are drawn at once, inside of the loops; 0: none are
  unsigned lanes_ = 0; ///< of the body being emitted; 0: scalar code
  llvm::DenseSet<mlir::Value> holding_; ///< the masks of masksHold()
  int vectorDim_ = -1;
  llvm::SmallVector<int> loopDims_; ///< outermost first
  llvm::SmallVector<mlir::Value> live_; ///< of each dimension, how far it is needed; null: all of it (LiveRows.cpp)
  llvm::SmallVector<Level> levels_;
  llvm::DenseMap<mlir::Value, unsigned> depths_;
  int blockDim_ = -1;     ///< along which rows of memory lie that lanes lie across (TransposedBlocks.cpp); -1: none
  int64_t blockRows_ = 0; ///< iterations of that dimension's loop that are one
  bool takesBlocks_ = true; ///< in the loops that are being emitted
  llvm::SmallVector<mlir::Value> blockPlaces_; ///< theirs, while they are emitted
  /// What loads bring in at each of them.
  std::map<std::vector<std::pair<void *, bool>>, llvm::SmallVector<mlir::Value>> blocks_;
  std::map<std::pair<void *, int64_t>, mlir::Value> offsets_; ///< of offsetBase
  bool isBlocked_ = false; ///< the load whose address is being computed, in loops that take blocks
};

/// Lanes of a vector of the widest element used: two registers' worth of f32, so that two chains overlap.
unsigned preferredLanes(const Isa &isa);

} // namespace tenon::cpu
