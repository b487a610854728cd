// SPDX-License-Identifier: Apache-2.0
//
// Internal to jit/: from a kernel and its specialisation to something that runs.
#pragma once

#include "tenon/jit/Executable.h"
#include "tenon/jit/Jit.h"
#include "tenon/lang/trace/Tracer.h"

#include <functional>
#include <memory>
#include <vector>

namespace tenon::jit {

/// Of one argument of a launch in which some overlap.
struct Overlaps {
  std::vector<int64_t> with; ///< arguments
  int sameAs = -1;           ///< the first argument that is the same view, or -1
};

/// What the generated code depends on besides the kernel itself and the options.
struct Specialization {
  std::vector<ArgumentSpec> arguments;
  bool noOverlap = false; ///< no two tensors overlap (found out at each launch)
  std::vector<Overlaps> overlaps; ///< by argument: which of them do, where some do and that is known; else empty
  Target target = Target::cpu;
};

/// Stops compilation after a phase and hands its text over.
struct EmitRequest {
  std::string phase;
  std::string text;
  bool assembles = false; ///< after phase "ptx" the assembler is asked too, for its remark
  bool withLines = false; ///< the text tells the source line of everything: loc(...) or .loc
};

/// What a pipeline makes.
struct GeneratedCode {
  lower::KernelInfo info;
  llvm::SmallVector<char, 0> host; ///< object code: the whole kernel, or its launch plan alone
  llvm::SmallVector<char, 0> device; ///< for GPU targets
};
/// From Tile IR, phase by phase; nothing when a phase was to be printed.
std::optional<GeneratedCode> generateCpuCode(mlir::MLIRContext &context, mlir::ModuleOp module,
                                             const CompileOptions &options, CompileReport &report, EmitRequest *emit);
std::optional<GeneratedCode> generateGpuCode(mlir::MLIRContext &context, mlir::ModuleOp module, Target target,
                                             const CompileOptions &options, CompileReport &report, EmitRequest *emit);

bool isGpu(Target target);
/// Without what only an assembler knows.
CompileReport::Gpu gpuReport(const lower::KernelInfo::Gpu &info);
/// What GPU code depends on besides the architecture.
std::string gpuOptionsText(const CompileOptions &options);

/// The kernel's Tile IR, which says as well which of the tensors overlap where that is known.
mlir::OwningOpRef<mlir::ModuleOp> traceSpecialized(const Kernel &kernel, const Specialization &specialization,
                                                   mlir::MLIRContext &context);

/// Traces and compiles, or loads from the disk cache. With `emit`, only as far as the phase asked for, and the result is
/// null.
std::shared_ptr<Executable> compileKernel(const Kernel &kernel, const Specialization &specialization,
                                          const CompileOptions &options, CompileReport &report, EmitRequest *emit);

/// The same from Tile IR on: what the fuzzer starts from.
std::shared_ptr<Executable> compileTileIr(std::unique_ptr<mlir::MLIRContext> context,
                                          mlir::OwningOpRef<mlir::ModuleOp> module, Target target,
                                          const CompileOptions &options, CompileReport &report, EmitRequest *emit);

/// One launch of it: plans, adds workspaces to the words, runs. Throws Error where the plan refuses.
void runNow(const Executable &executable, llvm::SmallVectorImpl<int64_t> &words,
            const Executable::RunOptions &options);

} // namespace tenon::jit
