// SPDX-License-Identifier: Apache-2.0
//
// Tile IR to machine code of this processor, top to bottom.
#include "tenon/compiler/target/cpu/CpuTarget.h"
#include "tenon/compiler/target/nvidia/ptx/LineInformation.h"
#include "tenon/compiler/transform/Passes.h"
#include "tenon/jit/Compiler.h"
#include "tenon/jit/Phases.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <limits>

using namespace mlir;

namespace tenon::jit {

std::optional<GeneratedCode> generateCpuCode(MLIRContext &context, ModuleOp module, const CompileOptions &options,
                                             CompileReport &report, EmitRequest *emit) {
  cpu::Isa isa = cpu::selectIsa(options.isa);
  auto stops = [&](const char *phase) { return emit && emit->phase == phase; };
  Diagnostics diagnostics(context);
  {
    PhaseTimer timer(report, "simplify");
    if (failed(simplifyTileIr(module, RandomBits::keep)))
      diagnostics.raise("simplify");
  }
  if (stops("simplified")) {
    printTo(*emit, module);
    return std::nullopt;
  }
  GeneratedCode code;
  lower::KernelInfo &info = code.info;
  OwningOpRef<ModuleOp> loops;
  {
    PhaseTimer timer(report, "loops");
    loops = cpu::lowerToLoops(module, isa, info);
    if (!loops)
      diagnostics.raise("loops");
    if (info.scratchBytes > std::numeric_limits<int32_t>::max())
      throw Error("the tiles of this kernel need " + std::to_string(info.scratchBytes) +
                  " bytes of scratch memory at once, and the limit is 2 GiB: use smaller ones");
  }
  report.remarks = info.remarks;
  if (stops("loops")) {
    printTo(*emit, *loops);
    return std::nullopt;
  }
  {
    PhaseTimer timer(report, "llvm-dialect");
    if (failed(cpu::lowerToLlvmDialect(*loops)))
      diagnostics.raise("llvm-dialect");
  }
  if (stops("llvm-dialect")) {
    printTo(*emit, *loops);
    return std::nullopt;
  }
  if (emit && emit->withLines)
    nvidia::attachLines(*loops); // nothing of a GPU's: lines of the llvm dialect
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule;
  {
    PhaseTimer timer(report, "llvm");
    llvmModule = cpu::translateToLlvm(*loops, isa, llvmContext);
    if (!llvmModule)
      diagnostics.raise("llvm");
  }
  auto printLlvm = [&] {
    llvm::raw_string_ostream stream(emit->text);
    llvmModule->print(stream, nullptr);
  };
  if (stops("llvm")) {
    printLlvm();
    return std::nullopt;
  }
  {
    PhaseTimer timer(report, "optimize");
    cpu::optimize(*llvmModule, isa);
  }
  if (stops("optimized")) {
    printLlvm();
    return std::nullopt;
  }
  if (stops("asm")) {
    emit->text = cpu::emitAssembly(*llvmModule, isa);
    return std::nullopt;
  }
  PhaseTimer timer(report, "object");
  code.host = cpu::emitObject(*llvmModule, isa);
  return code;
}

} // namespace tenon::jit
