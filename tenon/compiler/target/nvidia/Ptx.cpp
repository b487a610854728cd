// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/Ptx.h"

#include "tenon/base/Error.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

namespace tenon::nvidia {
namespace {

/// A thread's local memory, as CUDA limits it on every architecture from sm_20 on.
constexpr int64_t maxLocalBytes = 512 * 1024;

std::unique_ptr<llvm::TargetMachine> targetMachine(const std::string &architecture) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  if (architecture != "sm_80" && architecture != "sm_86" && architecture != "sm_89" && architecture != "sm_90" &&
      architecture != "sm_90a")
    throw Error("unknown architecture \"" + architecture + "\": use sm_80, sm_86, sm_89, sm_90 or sm_90a");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget("nvptx64-nvidia-cuda", error);
  if (!target)
    throw InternalError("LLVM has no NVPTX back end: " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // fused only where the program says so: same bits as the CPU
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine("nvptx64-nvidia-cuda", architecture, "+ptx83", options, std::nullopt));
}

/// The entry: program ids from the block index, scratch on the stack, one call of `instance`.
void addEntry(llvm::Module &module, const std::string &name, int64_t scratchBytes) {
  llvm::LLVMContext &context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto *pointer = b.getPtrTy();
  auto *entry = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {pointer}, false),
                                       llvm::GlobalValue::ExternalLinkage, name, module);
  entry->setCallingConv(llvm::CallingConv::PTX_Kernel);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", entry));
  llvm::AllocaInst *scratch = b.CreateAlloca(llvm::ArrayType::get(b.getInt8Ty(), scratchBytes));
  scratch->setAlignment(llvm::Align(64));
  auto blockIndex = [&](llvm::Intrinsic::ID id) {
    return b.CreateZExt(b.CreateIntrinsic(b.getInt32Ty(), id, {}), b.getInt64Ty());
  };
  b.CreateCall(module.getFunction("instance"),
               {entry->getArg(0), blockIndex(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x),
                blockIndex(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y),
                blockIndex(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z), scratch,
                llvm::ConstantPointerNull::get(pointer)});
  b.CreateRetVoid();
  auto *node = llvm::MDNode::get(context, {llvm::ValueAsMetadata::get(entry), llvm::MDString::get(context, "kernel"),
                                           llvm::ConstantAsMetadata::get(b.getInt32(1))});
  module.getOrInsertNamedMetadata("nvvm.annotations")->addOperand(node);
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

} // namespace

std::string emitPtx(mlir::ModuleOp source, const std::string &kernelName, int64_t scratchBytes,
                    const std::string &architecture) {
  auto machine = targetMachine(architecture);
  if (scratchBytes > maxLocalBytes)
    throw Error("kernel " + kernelName + " needs " + std::to_string(scratchBytes) +
                " bytes of scratch, and a GPU thread has " + std::to_string(maxLocalBytes) + ": use smaller tiles");
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  source.getContext()->appendDialectRegistry(registry);
  llvm::LLVMContext context;
  auto module = mlir::translateModuleToLLVMIR(source, context, "tenon");
  if (!module)
    throw InternalError("translation to LLVM IR failed");
  module->setTargetTriple("nvptx64-nvidia-cuda");
  module->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : llvm::make_early_inc_range(*module)) {
    if (function.isDeclaration()) {
      if (function.getName().starts_with("tenon_"))
        throw Error("kernel " + kernelName + " prints or asserts, which is not available on NVIDIA GPUs yet");
      continue;
    }
    if (function.getName() == "instance")
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
    else
      function.eraseFromParent(); // the launcher's entry points on the CPU
  }
  addEntry(*module, kernelName, scratchBytes);
  optimize(*module, *machine);
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    throw InternalError("the NVPTX back end cannot write PTX");
  passes.run(*module);
  return std::string(text.begin(), text.end());
}

} // namespace tenon::nvidia
