// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "tenon/compiler/dialect/TileDialect.h.inc"
#include "tenon/compiler/dialect/TileEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "tenon/compiler/dialect/TileTypes.h.inc"
#define GET_OP_CLASSES
#include "tenon/compiler/dialect/TileOps.h.inc"

namespace tenon::tile {

/// Largest number of dimensions of a tile or view.
inline constexpr int64_t maxRank = 5;
/// Largest number of elements of a tile: what every target can loop over within its scratch memory.
inline constexpr int64_t maxTileElements = int64_t(1) << 20;

/// Argument attributes: facts about a view that the specialisation may rely on and the launch checks.
/// `tile.unit_stride = d`: the stride of dimension d is 1.
inline constexpr llvm::StringLiteral unitStrideAttr = "tile.unit_stride";
/// `tile.distinct` (unit): different indices name different elements (no stride of zero, no rows that overlap).
inline constexpr llvm::StringLiteral distinctAttr = "tile.distinct";
/// `tile.divisible = array<i64: ...>`: powers of two that words of the argument are multiples of. For a view: its address
/// (in bytes), its sizes, its strides (in elements); for an index: itself.
inline constexpr llvm::StringLiteral divisibleAttr = "tile.divisible";
/// Function attribute (unit): no written view overlaps another view of the launch.
inline constexpr llvm::StringLiteral noOverlapAttr = "tile.no_overlap";
/// Function attribute (unit): the user promised the above; a launch that breaks it is refused.
inline constexpr llvm::StringLiteral promisesNoOverlapAttr = "tile.promises_no_overlap";
/// Argument attribute: the name the user gave it, for messages.
inline constexpr llvm::StringLiteral argumentNameAttr = "tile.name";
/// Of an operation: its f32 result is only ever seen rounded to 16 bits or fewer (transform/Relaxable.h).
inline constexpr llvm::StringLiteral relaxedAttr = "tile.relaxed";
/// Of a rounding to bf16: ties may go away from zero, and the lower half of a NaN is zero (target/cpu/TiesAway.h).
inline constexpr llvm::StringLiteral tiesAwayAttr = "tile.ties_away";
/// Of an exponential: its argument is not positive.
inline constexpr llvm::StringLiteral nonPositiveAttr = "tile.non_positive";

/// Why a value of this type cannot be a tile, or "" when it can: rank, extents and number of elements.
std::string refuseTileType(mlir::Type type);

/// Loads what Tile IR consists of: tile, arith, math, scf, func.
void loadTileDialects(mlir::MLIRContext &context);

} // namespace tenon::tile
