// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/Isa.h"
#include "tenon/compiler/target/cpu/Placement.h"

#include <map>
#include <optional>

namespace tenon::cpu {

/// Lanes of bf16 that are loaded as pairs at once, and so the elements among which the order changes.
constexpr unsigned pairedLanes = 32;

/// Which tiles in scratch may have their elements in pairs (PairLanes.cpp): of each 32 along the last dimension first
/// those at even places, then those at odd ones. All loops that write or read such a tile have their lanes in that
/// order, so it is decided for the whole kernel, before any of them is emitted.
///
///     %t = x + residual          bf16, loaded in pairs       kept in scratch, in pairs
///     sum(%t)                    any order will do
///     y = norm(%t) * weight      bf16, loaded in pairs       stored in pairs
///
/// A loop that needs the order for another reason (it loads or stores f32, gathers, feeds a dot) keeps the tile in
/// order and all loops that the tile goes through. Loops of one shape in one block may become one (Grouping.cpp), so
/// they count as one here.
class PairedTiles {
public:
  PairedTiles(mlir::func::FuncOp kernel, const Placement &placement, const Isa &isa);

  bool contains(mlir::Value tile) const { return tiles_.contains(tile); }

  /// What a loop, with lanes along `dim` of its tiles, does with pairs.
  struct Loop {
    int dim;
    bool loads = false;                       ///< numbers that come in pairs
    llvm::DenseSet<mlir::Value> touched = {}; ///< tiles that are kept in pairs
    bool keepsPlaces = true;                  ///< each of these is read where the loop is
    std::map<std::tuple<void *, int, bool>, bool> known = {};
  };
  /// Whether the order of lanes is nobody's business in a root: a reduction, a store of bf16, or (op is null) a tile
  /// that is computed into scratch.
  bool allows(Loop &loop, mlir::Operation *op, mlir::Value computed) const;
  /// Whether a store, with lanes along `dim`, rounds f32 to bf16 by the instruction for two registers (PackBf16.cpp).
  bool takes(tile::StoreOp store, int dim) const;

  /// A number or 0, by a condition of which everything that is not one for all lanes is kept in order (random numbers):
  /// the last thing before such a store. Made of what the store writes, in the order of memory, it leaves the numbers
  /// free to come in pairs, and is one operation for both registers.
  struct Choice {
    mlir::Value condition, number;
    bool isZeroWhereTrue;
  };
  std::optional<Choice> lastChoice(tile::StoreOp store, int dim) const;

private:
  bool isInOrder(mlir::Value tile) const;
  bool comes(Loop &loop, mlir::Value tile, int dim, bool inPlace) const;
  bool comesFrom(Loop &loop, mlir::Operation *op, int dim, bool inPlace) const;
  bool isKept(mlir::Value tile) const;
  int unitStride(mlir::Value view) const;

  mlir::func::FuncOp kernel_;
  const Placement &placement_;
  const Isa &isa_;
  llvm::DenseSet<mlir::Value> tiles_;
};

} // namespace tenon::cpu
