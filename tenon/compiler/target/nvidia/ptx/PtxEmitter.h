// SPDX-License-Identifier: Apache-2.0
//
// From thread functions to PTX text, through LLVM's NVPTX back end: no CUDA toolkit, no GPU needed.
//
//     nvidia, scf, arith, math, vector --ThreadsToLlvm--> llvm dialect --translateThreads--> LLVM IR --> PTX
//
// Numbers are what the program says: subnormals are kept, division and square root are correctly rounded, and a
// multiply and an add become one instruction only where they are one op.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace tenon::nvidia {

struct PtxOptions {
  std::string architecture = "sm_90a";
  bool lines = true;     // .loc directives: the source line of each instruction
  int minimumBlocks = 0; // per multiprocessor: caps the registers of a thread; 0: the assembler decides
};

struct PtxModule {
  std::string text;
  bool movesRegisters = false; // between its warps (setmaxnreg): it has to be assembled as a whole program
};

/// Makes LLVM's back end known to it, which whatever follows does too. LLVM's list of back ends may not change while
/// another thread looks into it.
void registerBackEnd();

/// Each function with attribute nvidia.threads becomes a kernel of the same name, one 64-bit parameter per argument and
/// then one of 128 bytes, aligned to 64, per tensor map; `threads` stays as it is. Throws Error for an unknown
/// architecture, InternalError with the diagnostics for anything that cannot be lowered.
PtxModule emitPtx(mlir::ModuleOp threads, const PtxOptions &options);

/// The first half: LLVM IR, not optimised, every asm and intrinsic marked with what it may do.
std::unique_ptr<llvm::Module> translateThreads(mlir::ModuleOp threads, const PtxOptions &options,
                                               llvm::LLVMContext &context);
/// The second half, in two steps.
void optimizeThreads(llvm::Module &module, const PtxOptions &options);
std::string writePtx(llvm::Module &module, const PtxOptions &options);

} // namespace tenon::nvidia
