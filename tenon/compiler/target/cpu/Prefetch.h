// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"

namespace tenon::cpu {

/// What the next program instance (or the next iteration of a loop) reads is brought in while this one still works on
/// what it has: see Prefetch.cpp.
class Prefetch {
public:
  /// A window of a view that a nest reads, its offsets and strides as values of the target program.
  struct Window {
    mlir::Operation *load; ///< a tile::LoadOp
    mlir::Value pointer;
    llvm::SmallVector<mlir::Value> offsets, strides; ///< index
    int unitStride = -1;
    int64_t elementBytes = 0;

    tile::LoadOp op() const { return llvm::cast<tile::LoadOp>(load); }
    mlir::RankedTensorType type() const { return op().getType(); }
  };

  /// A nest begins in `block`.
  void beginNest(mlir::Block *block, llvm::ArrayRef<int64_t> shape, int vectorDim, int64_t step);
  void reads(Window window) { nests_[current_].back().windows.push_back(std::move(window)); }
  /// One of its innermost loops, and where along each dimension its body is.
  void addLoop(mlir::scf::ForOp loop, llvm::ArrayRef<mlir::Value> coords);
  /// Once all loops are there. `always`: also where there is no later loop.
  void emit(mlir::ImplicitLocOpBuilder &b, bool always) const;

private:
  struct Loop {
    mlir::Block *body;
    llvm::SmallVector<mlir::Value> coords;
  };
  struct Nest {
    llvm::SmallVector<int64_t> shape;
    int vectorDim = -1;
    int64_t step = 0; ///< elements of one iteration
    llvm::SmallVector<Window> windows;
    llvm::SmallVector<Loop> loops;
  };

  static bool isShared(llvm::ArrayRef<Nest> nests);

  mlir::Block *current_ = nullptr;
  llvm::MapVector<mlir::Block *, std::vector<Nest>> nests_; ///< in the order of the program
};

} // namespace tenon::cpu
