// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/target/nvidia/threads/DotPlan.h"
#include "tenon/compiler/target/nvidia/threads/Layouts.h"
#include "tenon/compiler/target/nvidia/threads/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"

#include <string>

/// Which dots run on warpgroups (wgmma), which loads and stores the tensor memory accelerator makes, and what the warp
/// that starts those loads has to compute for them.
namespace tenon::nvidia {

/// On a tile.dot (unit): wgmma.
inline constexpr llvm::StringLiteral warpgroupAttr = "nvidia.warpgroup";
/// On a tile.dot that is not (string): why.
inline constexpr llvm::StringLiteral notWarpgroupAttr = "nvidia.not_warpgroup";
/// On a tile.load or tile.store (unit): made by the tensor memory accelerator.
inline constexpr llvm::StringLiteral bulkAttr = "nvidia.bulk";
/// On such a tile.load (unit): the threads read it where it arrives, into their registers (SlotReads.cpp). Otherwise
/// dots do.
inline constexpr llvm::StringLiteral readAttr = "nvidia.read";

/// On those of them (unit) that are needed behind a loop of dots, with its sums: they come in pieces (LateLoads.cpp).
inline constexpr llvm::StringLiteral lateAttr = "nvidia.late";

/// On a tile.scatter (unit): whole pieces of 16 bytes, written through the memory that bulk stores go through.
inline constexpr llvm::StringLiteral stagedAttr = "nvidia.staged";
/// Warpgroups each of which writes rows of its own of such a scatter; 1: all warps write all rows together.
inline int64_t scatteringGroups(int64_t warps) { return warps == 8 || isOfThree(warps) ? warps / 4 : 1; }

/// On a tile.dot on warpgroups (bool): its right operand is computed, and comes from registers, as the left one of the
/// instruction (RegisterOperands.cpp). True: a thread has neighbours of its columns.
inline constexpr llvm::StringLiteral registersAttr = "nvidia.registers";

/// On a tile.load (unit): made by the threads, an iteration ahead of the dots on warpgroups that read it (Ahead.cpp).
inline constexpr llvm::StringLiteral aheadAttr = "nvidia.ahead";

/// How a dot's result is divided among warpgroups. The instruction multiplies 64 rows; a dot of fewer rows is computed
/// as the transpose of (b transposed) * (a transposed), so that its columns are the instruction's rows.
struct WarpgroupShape {
  bool swapped = false;
  int64_t rows, columns;         ///< of the instruction's result, of the whole dot
  int64_t overRows, overColumns; ///< warpgroups
  int64_t n;                     ///< columns of one instruction
  bool neighbours = false;       ///< rows are numbered so that a thread has neighbours (registersAttr)

  int64_t rowBlocks() const { return rows / 64 / overRows; }               ///< of a warpgroup
  int64_t columnBlocks() const { return columns / overColumns / n; } ///< of a warpgroup
  int64_t accumulators() const { return rowBlocks() * columnBlocks() * n / 2; } ///< of a thread

  /// The row of the result that is this one of the instructions'.
  int64_t place(int64_t row) const;

  /// Where sums of a tile of K are kept beside the accumulators: whether there are registers for all of them at a time;
  /// otherwise they are computed in pieces of so many columns, one after the other.
  bool fitsTwice() const { return accumulators() <= 96; }
  int64_t pieceColumns() const { return n > 128 ? n / 2 : n; }
};
/// Columns of an instruction, at most. Three warpgroups begin with 128 registers a thread, and the assembler places the
/// accumulators of an instruction in those, behind 24 others.
inline int64_t widestInstruction(int64_t warps) { return isOfThree(warps) ? 192 : 256; }
/// Nothing when the dot's sizes do not fit.
std::optional<WarpgroupShape> warpgroupShape(tile::DotOp dot, int64_t warps);

/// Bytes of the box that one transfer moves along the contiguous dimension, which is also the swizzle: 128, 64 or 32.
/// `padded`: the tile may be filled up to a whole box.
int64_t panelBytes(int64_t contiguousBytes, bool padded);
/// The same for rows that are stored: also where they are an odd number of 16 bytes. `elements`: of the row.
int64_t storedPanelBytes(int64_t contiguousBytes, int64_t elements);
/// How a load's tile lies in a slot where threads read it: in panels as above, or in one that has whole rows. No panel:
/// it cannot be there.
OperandTile readTile(tile::LoadOp load);

/// The dot, itself or in a loop, behind which a load of a tile of the shape of its sums stands; null: there is none.
tile::DotOp dotBefore(tile::LoadOp load);
/// Whether such a load is worth transfers of its own, as far as sizes go; and how its tile lies in slots, panel by
/// panel.
bool mayBeLate(tile::LoadOp load, int64_t warps);
OperandTile lateTile(tile::LoadOp load);

/// Sets the attributes. Whole kernels or nothing: a kernel without a dot on warpgroups has no role to give away.
void chooseInstructions(mlir::func::FuncOp kernel, const InstructionOptions &options);

/// Makes loads of what threads read in slots ordinary ones again; whether there were any for which that can be done.
bool dropSlotReads(mlir::func::FuncOp kernel);

/// Whether an operation is a load that the tensor memory accelerator makes.
bool isTransfer(mlir::Operation *op);
/// Whether it is one or holds one. A kernel that does has a warp of its own for them.
bool hasTransfer(mlir::Operation *op);

/// What the warp that starts the transfers computes: everything their addresses, trip counts and conditions depend on.
struct ProducerSlice {
  llvm::DenseSet<mlir::Operation *> ops;  ///< loops and branches around transfers included
  llvm::DenseSet<mlir::Value> arguments;  ///< loop-carried scalars among that
  std::string refusal;                    ///< why there is none; "" when there is
};
ProducerSlice producerSlice(llvm::ArrayRef<tile::LoadOp> loads);

/// Of operands that others read too: each dot's load made twice (OwnLoads.cpp), and one again.
struct OwnLoad {
  tile::LoadOp ofDots, ofOthers;
};
llvm::SmallVector<OwnLoad> giveDotsLoadsOfTheirOwn(llvm::ArrayRef<tile::DotOp> dots);
void joinLoads(OwnLoad load);

/// A swizzle's pattern is so many rows high: where a part of a tile may begin.
inline constexpr int64_t swizzledRows = 8;

/// How the blocks of a cluster, each with a program instance of its own, share loads: their instances differ along one
/// axis of the grid, on which the addresses of some bulk loads do not depend. Each block then loads a part of such a
/// tile and sends it to all. Where an address depends on it under conditions only, which are the same in all blocks,
/// the load is shared while these are as they are to be.
struct SharedLoads {
  using Conditions = llvm::SmallVector<std::pair<mlir::Value, bool>, 1>; ///< i1, and what each is to be; none: always
  int64_t axis = -1;
  llvm::DenseMap<mlir::Operation *, Conditions> loads;
  std::string refusal; ///< "" when there are some
};
SharedLoads sharedLoads(mlir::func::FuncOp kernel, int64_t blocks);
/// The bulk loads that bring the same to all instances along an axis of the grid.
llvm::DenseSet<mlir::Operation *> loadsOfAll(mlir::func::FuncOp kernel, int64_t axis);

} // namespace tenon::nvidia
