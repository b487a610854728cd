// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace tenon::nvidia {

/// The largest power of two (up to `most`) that an index is known to be a multiple of: constants, sums and products of
/// them, loop variables, and the facts of the specialisation (tile.divisible).
class Divisibility {
public:
  static constexpr int64_t most = 1 << 20;
  int64_t of(mlir::Value index);

private:
  int64_t compute(mlir::Value index);
  llvm::DenseMap<mlir::Value, int64_t> known_;
};

/// Whether an index is known not to be negative: sizes, the numbers of program instances, loops that begin so, and what is
/// made of them.
bool isNonNegative(mlir::Value index);

/// What `tile.divisible` says of a view argument; 1 where it says nothing.
struct ViewAlignment {
  int64_t bytes;                        ///< of the address
  llvm::SmallVector<int64_t> sizes, strides; ///< in elements
};
ViewAlignment alignmentOf(mlir::Value view);
/// The dimension whose elements are neighbours in memory, if one is known.
std::optional<int64_t> contiguousDim(mlir::Value view);

} // namespace tenon::nvidia
