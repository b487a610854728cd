// SPDX-License-Identifier: Apache-2.0
//
// Internal to jit/: from a kernel and its specialisation to something that runs.
#pragma once

#include "tenon/compiler/target/cpu/CpuTarget.h"
#include "tenon/compiler/target/cpu/Loader.h"
#include "tenon/jit/Jit.h"
#include "tenon/lang/Tracer.h"

#include <functional>
#include <memory>
#include <vector>

namespace tenon::jit {

/// Everything that the generated code depends on besides the kernel itself.
struct Specialization {
  std::vector<ArgumentSpec> arguments;
  bool noOverlap = false; ///< no two tensors overlap (found out at each launch)
  Target target = Target::cpu;
  std::string isa;

  /// Equal for equal specialisations of one kernel; the in-memory cache is keyed by it.
  std::string text() const;
};

/// A kernel ready to run: machine code, or Tile IR for the interpreter.
class Executable {
public:
  virtual ~Executable() = default;
  struct Plan {
    int64_t grid[3] = {1, 1, 1};
    std::string refusal; ///< why the launch must not happen, or empty
    std::vector<std::vector<int64_t>> workspaces;
  };
  virtual Plan plan(std::span<const int64_t> words) const = 0;
  /// `words` include the workspaces'.
  virtual void run(const Plan &plan, std::span<const int64_t> words, int threads) const = 0;

  cpu::KernelInfo info;
};

/// Stops compilation after a phase and hands its text over.
struct EmitRequest {
  std::string phase;
  std::string text;
};

/// Traces and compiles, or loads from the disk cache. With `emit`, only as far as the phase asked for, and the result is
/// null.
std::shared_ptr<Executable> compileKernel(const Kernel &kernel, const Specialization &specialization,
                                          const CompileOptions &options, CompileReport &report, EmitRequest *emit);

/// The same from Tile IR on: what the fuzzer starts from.
std::shared_ptr<Executable> compileTileIr(std::unique_ptr<mlir::MLIRContext> context,
                                          mlir::OwningOpRef<mlir::ModuleOp> module, Target target,
                                          const CompileOptions &options, CompileReport &report, EmitRequest *emit);

} // namespace tenon::jit
