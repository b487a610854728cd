// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"

namespace tenon::cpu {

inline constexpr int64_t lineBytes = 64; ///< of the caches

/// The dimension in which the window that the next iteration of a loop reads lies, one extent further; -1: none does.
int dimMovedByLoop(tile::LoadOp load);
/// How fast an offset changes: 0 not at all, then with the axes of the grid, then with loops from the outermost in.
unsigned paceOf(mlir::Value offset);

/// What the next program instance (or the next iteration of a loop) reads is brought in while this one still works on
/// what it has: see Prefetch.cpp.
class Prefetch {
public:
  /// A window of a view that a nest reads, its offsets and strides as values of the target program.
  struct Window {
    mlir::Operation *load; ///< a tile::LoadOp; of what is stored to, a tile::StoreOp
    mlir::Value pointer;
    llvm::SmallVector<mlir::Value> offsets, strides; ///< index
    int unitStride = -1;
    int64_t elementBytes = 0;
    mlir::Value isLarge = {}; ///< of what is stored to: whether it goes past the cache

    tile::LoadOp op() const { return llvm::cast<tile::LoadOp>(load); }
    mlir::RankedTensorType type() const { return op().getType(); }
  };

  /// A nest begins in `block`.
  void beginNest(mlir::Block *block, llvm::ArrayRef<int64_t> shape, int vectorDim, int64_t step);
  void reads(Window window) { nests_[current_].back().windows.push_back(std::move(window)); }
  /// Vectors that lie in scratch.
  void readsVectorOfScratch() {
    if (current_)
      nests_[current_].back().readsScratch = true;
  }
  /// A window that it only writes, a whole vector at a time.
  void writes(Window window) { nests_[current_].back().written.push_back(std::move(window)); }
  /// One of its innermost loops, and where along each dimension its body is. `streaming`: it stores past the cache.
  void addLoop(mlir::scf::ForOp loop, llvm::ArrayRef<mlir::Value> coords, bool streaming);
  /// Once all loops are there. `always`: also where there is no later loop, and what is written; `streaming`: then even
  /// in the only loop of a kernel whose results go past the cache.
  void emit(mlir::ImplicitLocOpBuilder &b, bool always, bool streaming) const;

private:
  struct Loop {
    mlir::Block *body;
    llvm::SmallVector<mlir::Value> coords;
    bool streaming;
  };
  struct Nest {
    llvm::SmallVector<int64_t> shape;
    int vectorDim = -1;
    int64_t step = 0; ///< elements of one iteration
    llvm::SmallVector<Window> windows, written;
    llvm::SmallVector<Loop> loops;
    bool readsScratch = false;
  };

  static bool isShared(llvm::ArrayRef<Nest> nests);
  static bool storesSomething(const Nest *nest);
  static bool readsBesides(const Nest &nest, const Window &window);
  static bool isKnownIn(const Window &window, const Nest &nest);
  static void setInsertionPoint(mlir::ImplicitLocOpBuilder &b, const Loop &loop, int vectorDim);
  static bool mayBringInFor(llvm::ArrayRef<Nest> nests, size_t number, const Window &written);
  static void emitWrites(mlir::ImplicitLocOpBuilder &b, llvm::ArrayRef<Nest> nests, size_t number);

  mlir::Block *current_ = nullptr;
  llvm::MapVector<mlir::Block *, std::vector<Nest>> nests_; ///< in the order of the program
};

} // namespace tenon::cpu
