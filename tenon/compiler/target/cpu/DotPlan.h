// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/target/cpu/Isa.h"

/// How a dot is computed on one processor: which instruction, and how much of the result is held in registers.
namespace tenon::cpu {

/// The instruction at the heart of a dot. The first four take a vector of B, a unit of A that is the same in all lanes,
/// and add to a vector of accumulators; a unit is what one lane takes in of K at once. The others do that for 16 rows and
/// 16 units of K with tiles (AmxTiles.h).
enum class DotFamily {
  multiplyAdd, ///< one element a lane, in the accumulator's type
  bf16Pairs,   ///< vdpbf16ps: two bf16 a lane, accumulated in f32; subnormal numbers count as zero
  bytePairs,   ///< vpmaddwd and an addition: two bytes a lane, widened to 16 bits when they are packed
  byteQuads,   ///< vpdpbusd: four bytes a lane, one side unsigned and the other signed, accumulated in i32
  bf16Tiles,   ///< tdpbf16ps: units of two bf16, or of pieces of longer numbers; subnormal numbers count as zero
  byteTiles,   ///< tdpb[su][su]d: units of four bytes, signed or not
};

/// A product of a piece of A and a piece of B; piece 0 is the largest (DotPieces.cpp). In a list of them each has a piece
/// in common with the one before.
struct PieceProduct {
  int a, b;
};

struct DotPlan {
  DotFamily family = DotFamily::multiplyAdd;
  mlir::Type packed;      ///< an element of an operand as the instruction reads it
  mlir::Type accumulator; ///< f32, f64 or i32
  int64_t group = 1;      ///< elements in a unit: neighbours along K
  int64_t lanes = 1;      ///< accumulators in a register
  int64_t rows = 1;       ///< the register block: rows x vectors registers of accumulators
  int64_t vectors = 1;
  int64_t rowStep = 1;   ///< rows of A that it takes in at once: so many can be read, whatever they hold
  int64_t depthStep = 1; ///< elements of K that the block takes in at once: operands are zero up to a multiple
  /// Numbers longer than bf16 are sums of pieces that are bf16, of which these are multiplied; empty: they are not.
  llvm::ArrayRef<PieceProduct> products;
  int64_t pieces = 1; ///< of an element
  /// Few rows: B is used about as often as it is read, so it is read where it lies and not packed.
  bool thin = false;
  /// Bytes of one signedness on both sides: A's top bit is flipped, which makes it the other, and what that adds is
  /// taken away again (128 times the sum of each column of B).
  bool flipsA = false;
  bool aIsUnsigned = false; ///< as the instruction sees it; B is the opposite

  mlir::Type operand() const; ///< what is packed: `packed`, or f32 that is taken apart on its way
  int64_t unitBytes() const; ///< 4, or 8 for f64
  int64_t wholeRows(int64_t count) const { return (count + rowStep - 1) / rowStep * rowStep; }
  bool usesTiles() const { return family == DotFamily::bf16Tiles || family == DotFamily::byteTiles; }
  int64_t panel() const { return vectors * lanes; } ///< columns of a panel of B
};

DotPlan planDot(tile::DotOp op, const Isa &isa);

} // namespace tenon::cpu
