// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace tenon::nvidia {

/// On a thread function (integer): how many of its threads hold tiles (of one team: those of each), where others load for them.
/// Counted from thread 0.
inline constexpr llvm::StringLiteral workersAttr = "nvidia.workers";

/// On a thread function (array of three integers), where threads form teams with program instances of their own: how many
/// there are, and which shared memory each has, from which byte on and how much: that of the first, others' behind it.
inline constexpr llvm::StringLiteral teamsAttr = "nvidia.teams";

/// What layout selection may choose from.
struct LayoutOptions {
  int64_t warps = 4;
  int64_t cluster = 1;
  bool groupExchange = true; ///< beside dots on warpgroups, each of these has all of a small tile
};

/// What instruction selection may choose from.
struct InstructionOptions {
  bool hasWarpgroups = true; ///< sm_90a
  int64_t warps = 4;         ///< that hold tiles
  bool bulkStores = true;    ///< stores by the tensor memory accelerator too
  int64_t mostAccumulators = 128; ///< of a thread, beyond which there are not registers for what comes with them
  bool operandsAhead = true;      ///< loads of what operands are computed from, too
  bool lateLoads = true;          ///< loads of what is needed with a dot's sums, too
  bool registerOperands = true;   ///< operands that are computed are multiplied out of registers
};

/// Marks dots that run on warpgroups, and loads and stores that are bulk copies (ChooseInstructions.h).
std::unique_ptr<mlir::Pass> createChooseInstructionsPass(const InstructionOptions &options = {});
/// Marks f32 operations whose result is only ever seen rounded to 16 bits or fewer.
std::unique_ptr<mlir::Pass> createRelaxPrecisionPass();
/// Gives every tile type its layout, and puts nvidia.convert where an op's operands do not agree.
std::unique_ptr<mlir::Pass> createChooseLayoutsPass(const LayoutOptions &options = {});
/// Moves small loads from behind a loop of dots to in front of it.
std::unique_ptr<mlir::Pass> createEarlyLoadsPass();
/// Values that live across a reduction and are cheap to compute from narrower loaded ones are computed again after it.
std::unique_ptr<mlir::Pass> createRecomputePass();
/// Marks the loads of loops that become asynchronous copies (PipelineLoads.h).
std::unique_ptr<mlir::Pass> createPipelineLoadsPass(int64_t stages = 3, int architecture = 90);
/// On thread functions: a barrier between conflicting accesses of shared memory.
std::unique_ptr<mlir::Pass> createInsertBarriersPass();

/// On thread functions whose threads form teams, when barriers stand: gives each team its memory and its barrier.
std::unique_ptr<mlir::Pass> createSeparateTeamsPass();

/// On thread functions without matrix instructions: pure operations right in front of their first use.
std::unique_ptr<mlir::Pass> createShortenLivesPass();
/// On thread functions: computes values where they are used, so that fewer are alive.
std::unique_ptr<mlir::Pass> createSinkToUsesPass();
/// On simplified Tile IR, before the launch is planned: where memory decides how long a program instance takes, a counter
/// from which blocks take the next one (Schedule.cpp).
void countInstances(mlir::ModuleOp module, const std::string &architecture);

/// On simplified Tile IR, before the launch is planned: the last program instances, fewer than there are blocks, are made
/// by all of them (ShareTail.cpp). In place; a kernel that is not made so stays as it is.
struct TailOutcome {
  bool isShared = false;
  std::string remark; ///< what was done, or why not
  mlir::Location where;
};
TailOutcome shareTail(mlir::func::FuncOp kernel);
/// The same as a pass, which says what became of the kernel in a remark.
std::unique_ptr<mlir::Pass> createShareTailPass();

/// For tenon-opt.
void registerThreadPasses();

} // namespace tenon::nvidia
