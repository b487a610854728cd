// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"

#include "llvm/ADT/DenseMap.h"

namespace tenon {

/// Which values reach memory only after rounding to 16 bits or fewer, on ways that carry a relative error through
/// unchanged, so that their computation may be less exact.
///
///     %e = math.exp %x                        relaxable
///     %s = tile.reduce %e ... addf
///     %q = arith.divf %e, broadcast(%s)       relaxable
///     %y = tile.cast %q : f32 -> bf16
///
/// What carries a relative error: products, quotients, choosing, moving, sums of numbers that are known not to be negative
/// (nothing cancels). What does not: differences, comparisons, exponentials, carried tiles, stores of f32.
class Relaxable {
public:
  /// Whether every use of the value carries a relative error to a rounding and no further.
  bool operator()(mlir::Value value);

private:
  bool carries(mlir::Value value, mlir::Operation *user);
  bool isNonNegative(mlir::Value value);
  bool decideNonNegative(mlir::Value value);

  llvm::DenseMap<mlir::Value, bool> nonNegative_, relaxable_;
};

/// 1 + erf(x) and 1 + tanh(x) are one function each: the error of the sum counts, not that of erf, which cancels where
/// erf is close to -1.
bool isSumWith(mlir::Operation *op, llvm::StringRef functionName);

} // namespace tenon
