// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

/// Tile IR to code for NVIDIA GPUs, or for the simulator of one. The steps, each printable:
///
///     chooseLayouts   which instructions; every tile type says which thread holds which element             (threads/ChooseLayouts.cpp)
///     lowerToThreads  the function that one thread runs, in the nvidia dialect          (threads/ThreadEmitter.h)
///     emitPtx         LLVM's NVPTX back end                                             (ptx/)
///     lowerToSim      the same thread function as calls of the simulator, for the CPU   (sim/)
namespace tenon::nvidia {

struct TargetOptions {
  std::string architecture = "sm_90a";
  int64_t warps = 0;   ///< per block; 0: chosen from the sizes of the tiles; 12: three warpgroups (refuseThreeGroups)
  int64_t cluster = 0; ///< blocks per program instance, or that share loads of dots; 0: chosen
};

/// Throws Error for what no kernel can have.
void checkOptions(const TargetOptions &options);

/// What a launch needs to know besides the code.
struct BlockShape {
  int64_t threads = 128, cluster = 1, sharedBytes = 0; ///< threads: that hold the tiles of one program instance
  int64_t teams = 1;          ///< so many times those, which take program instances in turns
  int64_t sharers = 1;        ///< blocks of a cluster that share loads, each with a program instance of its own
  int64_t producers = 0;      ///< threads beyond those, which load for them
  bool hasWarpgroups = false; ///< the architecture can multiply by warpgroup (sm_90a)

  int64_t allThreads() const { return teams * threads + producers; }
};

/// How many threads and blocks share one program instance. Throws Error when the options are impossible.
BlockShape chooseBlock(mlir::func::FuncOp kernel, const TargetOptions &options);

/// Why the dots of a kernel do not run on the three warpgroups of a block; "" when they do. Nothing else runs on three.
std::string refuseThreeGroups(mlir::ModuleOp module, const BlockShape &block, const Steps &steps);

/// The block whose warpgroups take program instances in turns, or why there is none: what each warpgroup has to hold is
/// then a whole program instance. `warps`: that were asked for, 0 for any.
struct PingPong {
  std::optional<BlockShape> block;
  std::string refusal;
};
PingPong pingPongBlock(mlir::ModuleOp module, const BlockShape &block, int64_t warps, const Steps &steps);

/// In place, on simplified Tile IR.
mlir::LogicalResult chooseLayouts(mlir::ModuleOp module, const BlockShape &block, const Steps &steps = {});

struct ThreadProgram {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< one thread function
  BlockShape block;
  std::vector<std::string> remarks;
  std::vector<ThreadEmitter::Assert> asserts;
  std::vector<ThreadEmitter::Print> prints;
  std::vector<ThreadEmitter::TensorMap> tensorMaps;
  int64_t stages = 1;      ///< slots of the loads that run ahead of their loop
  bool persistent = false; ///< a block takes one program instance after the other
  bool sharesTail = false; ///< blocks beyond the program instances have work, too
  bool startsEarly = false; ///< it may be launched while the kernel before it still runs: it waits by itself
};

struct LoweringOptions {
  int64_t stages = 0;  ///< loads of loops that feed dots run so many - 1 iterations ahead; 0: as suits the kind of copy
  Steps steps = {};
  bool isSplit = false; ///< program instances share loops: there are enough of them for two on a multiprocessor
};

/// From Tile IR with layouts. Stages are fewer where shared memory does not suffice. Throws Error when the kernel needs more shared memory or registers than the architecture
/// has; returns a null module after a diagnostic.
ThreadProgram lowerToThreads(mlir::ModuleOp module, const BlockShape &block, const std::string &architecture,
                             const LoweringOptions &lowering = {});

/// Shared memory that one block can have.
int64_t sharedBytesOf(const std::string &architecture);

} // namespace tenon::nvidia
