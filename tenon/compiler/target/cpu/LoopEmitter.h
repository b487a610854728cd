// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/target/cpu/Isa.h"
#include "tenon/compiler/target/cpu/PairedTiles.h"
#include "tenon/compiler/target/cpu/Placement.h"
#include "tenon/compiler/target/cpu/Prefetch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

/// Emits one kernel as loops around vectors. The pieces:
///   LoopEmitter   walks the program, keeps scalars, views and buffers, decides what becomes one loop nest
///   Nest          emits one loop nest: pulls elements, stores, accumulates (Nest.h)
///   DotEmitter    matrix products: operands packed, a block of the result in registers (Dot.h)
namespace tenon::cpu {

using namespace lower; // element arithmetic

/// Bytes between the rows of what a dot reads, so that they do not fall on the same cache sets.
constexpr int64_t operandPadding = 64;

/// A tile in scratch memory (or in a view of the same bytes).
struct Buffer {
  mlir::Value pointer;
  llvm::SmallVector<int64_t> shape, strides; ///< strides in elements
  mlir::Type element;                        ///< of the tile; memory holds scratchType(element)
};

/// The same memory in another shape, rows without anything between them.
Buffer withShape(const Buffer &buffer, llvm::ArrayRef<int64_t> shape);

/// A view taken apart.
struct ViewParts {
  mlir::Value pointer;
  llvm::SmallVector<mlir::Value> sizes, strides; ///< index
  int unitStride = -1;
  mlir::Type element;
};

/// One thing a loop nest does for every element of its iteration space.
struct NestRoot {
  mlir::Operation *op = nullptr; ///< store, scatter, reduce, assert, atomic; null: write `value` to `buffer`
  mlir::Value value;             ///< the tile written to `buffer`
  Buffer buffer;
  bool stays = false; ///< other instances read the result too (DotKept.cpp)
  const ViewParts *tally = nullptr; ///< of an atomic addition: where this thread adds up by itself (Tallies.cpp)
};

/// Roots that share one loop nest.
struct NestGroup {
  llvm::SmallVector<int64_t> shape;
  int reduceDim = -1;
  bool scalarOnly = false;
  llvm::SmallVector<NestRoot> roots;
  bool isInterleaved = false; ///< the roots are the columns of one buffer, in order
  /// Random numbers that nothing but the roots uses: drawn inside of the nest's loops, a lump at a time (Random.cpp).
  llvm::SmallVector<NestRoot> drawn = {};
};

class LoopEmitter {
public:
  LoopEmitter(mlir::func::FuncOp kernel, const Isa &isa, mlir::ModuleOp target);

  /// Emits `instance`, one program instance: (args: ptr, pid0, pid1, pid2: i64, scratch: ptr, context: ptr).
  mlir::LogicalResult run();
  /// Emits `tenon_plan` (use an emitter of its own).
  mlir::LogicalResult runPlan();
  int64_t scratchBytes() const { return peakScratch_; }
  /// At the end of scratch, the notes of what is kept from instance to instance (DotKept.h).
  int64_t noteBytes() const { return noteBytes_; }
  /// "file:line: ..." for everything worth telling the user.
  std::vector<std::string> remarks() const { return remarks_; }
  void remark(mlir::Location where, const std::string &text);

  //--- For the nests ---
  mlir::ImplicitLocOpBuilder &builder() { return b_; }
  const Isa &isa() const { return isa_; }
  mlir::func::FuncOp kernel() { return kernel_; }
  mlir::Value scalar(mlir::Value tileScalar);
  const ViewParts &view(mlir::Value view) { return views_.find(view)->second; }
  /// Null before the program has come to it.
  const ViewParts *knownView(mlir::Value view) {
    auto found = views_.find(view);
    return found == views_.end() ? nullptr : &found->second;
  }
  const Buffer *buffer(mlir::Value tile);
  mlir::Value index(int64_t value);
  mlir::Value scratchPointer() { return scratch_; }
  mlir::Value contextPointer() { return context_; }
  llvm::ArrayRef<mlir::Value> programIds() { return pids_; }
  Buffer allocate(llvm::ArrayRef<int64_t> shape, mlir::Type element, int64_t rowPadding = 0);
  /// Memory that nothing else uses, not even in the next instance, and where it is noted what is there.
  struct Kept {
    mlir::LLVM::GEPOp place, note;
    int64_t bytes;
  };
  Kept allocateKept(int64_t bytes);
  /// The branch for what has to be made there, since what is there was not made of a load with these offsets. It ends
  /// with notes that it is.
  mlir::scf::IfOp unlessKept(Kept kept, mlir::ValueRange offsets);
  mlir::Value stringConstant(llvm::StringRef text);
  /// A result of so many bytes is better written past the cache: i64, known when the code is loaded (Loader.cpp).
  mlir::Value streamingThreshold();
  Prefetch &prefetch() { return prefetch_; }
  const PairedTiles &pairedTiles() const { return pairedTiles_; }
  bool isOnlyStored(mlir::Value view) const { return placement_.isOnlyStored(view); }
  /// Calls a function of the runtime by name, declaring it on first use.
  void callRuntime(llvm::StringRef name, llvm::ArrayRef<mlir::Value> arguments);

private:
  friend class DotEmitter; // Dot.h

  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitOp(mlir::Operation &op);
  mlir::LogicalResult emitFor(mlir::scf::ForOp loop);
  mlir::LogicalResult emitIf(mlir::scf::IfOp branch);
  mlir::LogicalResult emitScalarOp(mlir::Operation &op);
  void emitPrint(tile::PrintOp op);
  void emitConcat(tile::ConcatOp op);
  void emitDot(tile::DotOp op);
  bool emitTallied(tile::AtomicRMWOp op); // Tallies.cpp
  void pourTally(const ViewParts &tally, const ViewParts &view, llvm::SmallVector<mlir::Value> place);
  tile::LoadOp keptLoadOf(tile::ReduceOp op); // DotKept.cpp
  void emitKept(tile::ReduceOp op, tile::LoadOp load);
  void bindArguments();
  ViewParts readView(mlir::Value args, int64_t &word, tile::ViewType type, int unitStride);

  /// Adds a root to the nest in the making, or finishes that and starts another.
  void addRoot(llvm::ArrayRef<int64_t> shape, int reduceDim, bool scalarOnly, NestRoot root);
  bool canJoin(llvm::ArrayRef<int64_t> shape, int reduceDim, bool scalarOnly, const NestRoot &root);
  void flush();
  bool isOnlyFor(const NestGroup &group, mlir::Value tile);

  /// Computes a tile into its buffer at this place in the program (joining the nest in the making).
  void materialize(mlir::Value tile, const Buffer &buffer);
  /// A constant with different elements: read from the program's data.
  Buffer constantBuffer(mlir::arith::ConstantOp constant);
  /// The buffer to put a value into: one chosen for it beforehand (a loop-carried one) or a new one.
  Buffer bufferFor(mlir::Value tile);
  mlir::LLVM::GEPOp scratchAddress(int64_t at);
  bool computes(const NestRoot &root);
  void forEachSource(const NestRoot &root, llvm::function_ref<void(mlir::Value, mlir::Operation *, bool)> visit);
  bool mayUpdateInPlace(mlir::Value carried, mlir::Value next, mlir::Block &body);

  mlir::func::FuncOp kernel_;
  const Isa &isa_;
  mlir::ModuleOp target_;
  mlir::ImplicitLocOpBuilder b_;
  Placement placement_;
  PairedTiles pairedTiles_;
  mlir::Value args_, scratch_, context_;
  llvm::SmallVector<mlir::Value> pids_;
  llvm::DenseMap<mlir::Value, mlir::Value> scalars_;
  llvm::DenseMap<mlir::Value, ViewParts> views_;
  llvm::DenseMap<mlir::Value, Buffer> buffers_;
  llvm::DenseMap<mlir::Value, Buffer> destinations_;
  llvm::DenseSet<mlir::Value>
      unwritten_; ///< carried sums of a dot that are zero in the first iteration: it reads nothing
  std::optional<NestGroup> pending_;
  llvm::SmallVector<NestRoot> undrawn_; ///< random numbers that wait for whoever uses them
  Prefetch prefetch_;
  std::vector<std::string> remarks_;
  int64_t usedScratch_ = 64, peakScratch_ = 64; ///< the first 64 bytes take accesses that are switched off
  llvm::SmallVector<Kept> kept_;                ///< placed at the end
  int64_t noteBytes_ = 0;
  int64_t nextWorkspaceWord_ = 0, nextConstant_ = 0;
};

} // namespace tenon::cpu
