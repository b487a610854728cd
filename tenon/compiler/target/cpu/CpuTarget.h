// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/lower/KernelInfo.h"
#include "tenon/compiler/target/cpu/Isa.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

/// Tile IR to machine code for this machine's processor. The steps, each printable:
///
///     lowerToLoops        loop nests over vectors: scf, arith, math, vector, llvm pointers       (LoopEmitter)
///     lowerToLlvmDialect  maths functions expanded, then everything in the llvm dialect
///     translateToLlvm     LLVM IR for the chosen instruction set
///     optimize            LLVM's scalar optimisations; vectors are already there
///     emitObject          an ELF object in memory, which Loader.h links into the process
namespace tenon::cpu {

using lower::KernelInfo;

/// What compiled code looks like to the launcher. `arguments` are 64-bit words: a view gives its address, sizes and
/// strides (in elements), a scalar its bits; then the views of the workspaces.
using RunFunction = void (*)(const int64_t *arguments, int64_t begin, int64_t end, const int64_t *grid, void *scratch,
                             void *context);
/// Writes the three grid extents, the number of the first requirement that does not hold (or -1), and the sizes of the
/// workspaces.
using PlanFunction = void (*)(const int64_t *arguments, int64_t *out);
/// How many bytes at the end of scratch are notes of what is there from one instance to the next (int64_t). They are
/// zeros where a thread begins.
inline constexpr const char *noteBytesSymbol = "tenon_note_bytes";
inline constexpr const char *runSymbol = "tenon_run";
inline constexpr const char *planSymbol = "tenon_plan";

/// Returns null after emitting a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> lowerToLoops(mlir::ModuleOp tileModule, const Isa &isa, KernelInfo &info);
/// `tenon_plan` alone: what other targets need of a kernel on the host. Returns null after emitting a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> lowerPlan(mlir::ModuleOp tileModule, const Isa &isa);
mlir::LogicalResult lowerToLlvmDialect(mlir::ModuleOp module);
std::unique_ptr<llvm::Module> translateToLlvm(mlir::ModuleOp module, const Isa &isa, llvm::LLVMContext &context);
void optimize(llvm::Module &module, const Isa &isa);
llvm::SmallVector<char, 0> emitObject(llvm::Module &module, const Isa &isa);
std::string emitAssembly(llvm::Module &module, const Isa &isa);

} // namespace tenon::cpu
