// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>
#include <string>

/// Which loads of a loop run ahead of it, as asynchronous copies into a ring of buffers in shared memory.
namespace tenon::nvidia {

/// On a tile.load (unit): it is copied asynchronously.
inline constexpr llvm::StringLiteral asyncAttr = "nvidia.async";
/// On a tile.load that feeds a dot in a loop (string): why it is not.
inline constexpr llvm::StringLiteral notAsyncAttr = "nvidia.not_async";

/// An operand of a dot that is a loaded tile, but for transpositions and dimensions of size 1.
struct LoadedOperand {
  tile::LoadOp load;
  int64_t dims[2]; ///< of the operand: which dimension of the load, or -1 for one of size 1 that is none of the load's
};
std::optional<LoadedOperand> traceToLoad(mlir::Value operand);

/// A dot that reads a load.
struct DotUse {
  tile::DotOp dot;
  int64_t kDim; ///< of the operand: 1 for A, 0 for B
  LoadedOperand operand;

  /// Whether K runs along this dimension of the load.
  bool isK(int64_t loadDim) const { return operand.dims[kDim] == loadDim; }
};
/// All of them. `other` becomes a user that is no dot, if there is one.
llvm::SmallVector<DotUse> dotUses(tile::LoadOp load, mlir::Operation *&other);

/// What an asynchronous copy can pad with: zero bits. Null is no padding of the load's own, which is zero.
bool isZeroPadding(mlir::Value padding);

/// The ops in the loop's body, in order, that compute the offsets of a load from the loop's variable and values from
/// outside; nothing when the offsets need more than that.
std::optional<llvm::SmallVector<mlir::Operation *>> offsetSlice(tile::LoadOp load, mlir::scf::ForOp loop);

/// Sets one of the attributes on every load of a loop that feeds a dot, and removes them everywhere else. With fewer
/// than two stages nothing is asynchronous.
void markAsyncLoads(mlir::func::FuncOp kernel, int64_t stages, int architecture);

} // namespace tenon::nvidia
