// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

/// Arithmetic on the elements of tiles, one vector of them (or one scalar) at a time.
///
/// An element lives in three forms:
///   tile      what Tile IR says: f16, bf16, f8..., i1
///   register  what is computed with: f32 holding an exactly representable value for the small floats, i1, else the same
///   memory    what a view's bytes hold: i16 for bf16, i8 for f8 and i1, else the same
/// An operation on a small float is computed in f32 and rounded, which is the language's rule.
namespace tenon::lower {

mlir::Type registerType(mlir::Type tileElement);
mlir::Type memoryType(mlir::Type tileElement);
/// In a scratch buffer: the register form, with a byte for i1.
mlir::Type scratchType(mlir::Type tileElement);
unsigned byteSize(mlir::Type element);

/// `element`, as a vector when `like` is one.
mlir::Type typeLike(mlir::Value like, mlir::Type element);
mlir::Value constantLike(mlir::ImplicitLocOpBuilder &b, mlir::Type type, double value);
mlir::Value constantBits(mlir::ImplicitLocOpBuilder &b, mlir::Type type, int64_t value);
/// Brings a scalar to the length of a vector type; anything else is returned as it is.
mlir::Value splatTo(mlir::ImplicitLocOpBuilder &b, mlir::Value value, unsigned lanes);
unsigned lanesOf(mlir::Value value); ///< 0 for a scalar
/// Splats the scalars among values if any is a vector.
void unifyLanes(mlir::ImplicitLocOpBuilder &b, llvm::MutableArrayRef<mlir::Value> values);

mlir::Value fromMemory(mlir::ImplicitLocOpBuilder &b, mlir::Value raw, mlir::Type tileElement);
mlir::Value toMemory(mlir::ImplicitLocOpBuilder &b, mlir::Value value, mlir::Type tileElement);
/// Rounds an f32 register value to a small float; does nothing for other types.
mlir::Value roundTo(mlir::ImplicitLocOpBuilder &b, mlir::Value value, mlir::Type tileElement);
/// Rounds f32 to bf16, ties away from zero; the lower half of a NaN must be zero. In the upper half of the result, as
/// i32; the lower one is anything.
mlir::Value bitsTiesAway(mlir::ImplicitLocOpBuilder &b, mlir::Value value);

/// What happens to an f32 that must become a small float: rounded here, or left for the caller to round (to nearest, ties
/// to even, in one step: what is left is such that this is right).
enum class Rounding { now, later };

/// tile.cast on register values.
mlir::Value castElements(mlir::ImplicitLocOpBuilder &b, mlir::Value value, mlir::Type from, mlir::Type to,
                         bool isUnsigned, Rounding rounding = Rounding::now);

/// Any element-wise op of Tile IR (arith, math, tile.cast, tile.div, ...) on register values, scalars or vectors of one
/// length. Returns null for an op it does not know.
mlir::Value elementwise(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op, llvm::ArrayRef<mlir::Value> operands,
                        Rounding rounding = Rounding::now);
/// Whether its result is rounded to a small float at all: what only picks an operand or changes its sign is not.
bool roundsResult(mlir::Operation *op);
/// Whether `elementwise` takes it.
bool isElementwise(mlir::Operation *op);

/// The combine region of a reduce or scan on register values: n left ones, then n right ones.
llvm::SmallVector<mlir::Value> combineElements(mlir::ImplicitLocOpBuilder &b, mlir::Region &region,
                                               llvm::ArrayRef<mlir::Value> left, llvm::ArrayRef<mlir::Value> right);
/// The neutral elements when the region is one well-known operation per operand.
std::optional<llvm::SmallVector<mlir::TypedAttr>> neutralElements(mlir::Region &region);

} // namespace tenon::lower
