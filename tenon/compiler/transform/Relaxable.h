// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

namespace tenon {

/// On what is marked relaxed: it is only ever seen rounded to bf16 or less, whose significand has 8 bits, where others
/// may see the 11 of f16.
inline constexpr llvm::StringLiteral coarseAttr = "tile.coarse";
/// On an exponential of f32: all that becomes of it is a summand of many.
inline constexpr llvm::StringLiteral summedAttr = "tile.summed";
inline constexpr unsigned bitsOfF16 = 11, bitsOfBf16 = 8;

/// Which values reach memory only after rounding to 16 bits or fewer, on ways that carry a relative error through
/// unchanged, so that their computation may be less exact.
///
///     %e = math.exp %x                        relaxable
///     %s = tile.reduce %e ... addf
///     %q = arith.divf %e, broadcast(%s)       relaxable
///     %y = tile.cast %q : f32 -> bf16
///
/// What carries a relative error: products, quotients, choosing, moving, sums of numbers that are known not to be
/// negative (nothing cancels), whether a number is zero. What does not: differences, other comparisons, exponentials,
/// stores of f32.
///
/// `throughLoops`: a sum that a loop carries is one too, where all that the loop does to it is scale it, by something
/// that does not depend on it, and add (the running sum of attention). What it is scaled by is not relaxable: an error
/// there would grow with each iteration.
///
/// `bits`: the longest significand that a value may be rounded to.
class Relaxable {
public:
  explicit Relaxable(bool throughLoops = false, unsigned bits = bitsOfF16) : throughLoops_(throughLoops), bits_(bits) {}

  /// Whether every use of the value carries a relative error to a rounding and no further.
  bool operator()(mlir::Value value) { return reaches(value, /*isScaled=*/false); }

private:
  /// `isScaled`: a product stands between this and the value that was asked about.
  bool reaches(mlir::Value value, bool isScaled);
  bool carries(mlir::Value value, mlir::Operation *user, bool isScaled);
  bool carriesThroughLoop(mlir::Value value, mlir::scf::YieldOp yield);
  bool isOnlySummedUp(mlir::Value value, mlir::BlockArgument carried, mlir::scf::YieldOp yield);
  bool isNonNegative(mlir::Value value);
  bool decideNonNegative(mlir::Value value);

  bool throughLoops_;
  unsigned bits_;
  llvm::DenseMap<mlir::Value, bool> nonNegative_;
  llvm::SmallVector<mlir::Value> assumed_; ///< carried values that are taken not to be negative at the moment
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, bool> relaxable_;
};

/// Moves elements without touching them.
bool isMovement(mlir::Operation *op);

/// 1 + erf(x) and 1 + tanh(x) are one function each: the error of the sum counts, not that of erf, which cancels where
/// erf is close to -1.
bool isSumWith(mlir::Operation *op, llvm::StringRef functionName);

} // namespace tenon
