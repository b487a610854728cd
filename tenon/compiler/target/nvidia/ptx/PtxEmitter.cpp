// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/ptx/PtxEmitter.h"

#include "tenon/base/Error.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/target/nvidia/ptx/LineInformation.h"
#include "tenon/compiler/target/nvidia/ptx/PtxBuilder.h"
#include "tenon/compiler/target/nvidia/ptx/ThreadsToLlvm.h"

#include "tenon/compiler/lower/ToLlvm.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

namespace tenon::nvidia {

void registerBackEnd() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    // Shared memory is addressed with 32 bits, and its arithmetic should be.
    auto &options = llvm::cl::getRegisteredOptions();
    if (auto found = options.find("nvptx-short-ptr"); found != options.end())
      *static_cast<llvm::cl::opt<bool> *>(found->second) = true;
    // f32 division within 2 ulp over the whole range, without the branch that correct rounding costs.
    if (auto found = options.find("nvptx-prec-divf32"); found != options.end())
      found->second->addOccurrence(0, "nvptx-prec-divf32", "1");
  });
}

namespace {

constexpr const char *triple = "nvptx64-nvidia-cuda";

std::unique_ptr<llvm::TargetMachine> targetMachine(const Architecture &architecture) {
  registerBackEnd();
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    throw InternalError("LLVM has no NVPTX back end: " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // add.rn and mul.rn, which ptxas leaves apart
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, architecture.name, architecture.ptxFeature, options, std::nullopt, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

/// What MLIR cannot say of an asm statement. Convergent: all lanes that would execute it must still do so together, so
/// that no pass may make it depend on more conditions than it was written under.
void markAssembly(llvm::Module &module) {
  for (llvm::Function &function : module) {
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      if (!call || !call->isInlineAsm())
        continue;
      auto *assembly = llvm::cast<llvm::InlineAsm>(call->getCalledOperand());
      call->setDoesNotThrow();
      if (!assembly->hasSideEffects()) {
        call->setDoesNotAccessMemory();
        call->addFnAttr(llvm::Attribute::WillReturn);
      } else if (!llvm::StringRef(assembly->getConstraintString()).contains("~{memory}")) {
        call->setOnlyAccessesInaccessibleMemory();
      }
      if (assembly->hasSideEffects() || llvm::StringRef(assembly->getAsmString()).contains(".sync"))
        call->setConvergent();
    }
  }
}

bool changesRegisters(mlir::LLVM::LLVMFuncOp function) {
  auto isChange = [](mlir::LLVM::InlineAsmOp assembly) { return assembly.getAsmString().starts_with(setMaxRegisters); };
  return function.walk([&](mlir::LLVM::InlineAsmOp op) {
           return isChange(op) ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
         }).wasInterrupted();
}

/// Parameters by value are never written, so that their address can be taken where they lie instead of of a copy.
void annotateTensorMaps(llvm::Function &kernel, llvm::NamedMDNode &annotations) {
  llvm::LLVMContext &context = kernel.getContext();
  llvm::SmallVector<llvm::Metadata *> numbers; // from 1
  for (llvm::Argument &argument : kernel.args())
    if (argument.hasByValAttr())
      numbers.push_back(llvm::ConstantAsMetadata::get(
          llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), argument.getArgNo() + 1)));
  if (!numbers.empty())
    annotations.addOperand(
        llvm::MDNode::get(context, {llvm::ValueAsMetadata::get(&kernel), llvm::MDString::get(context, "grid_constant"),
                                    llvm::MDNode::get(context, numbers)}));
}

/// How the kernels are to be launched, for ptxas to know.
void annotateKernels(llvm::Module &module, mlir::ModuleOp source, const PtxOptions &options) {
  llvm::LLVMContext &context = module.getContext();
  llvm::NamedMDNode *annotations = module.getOrInsertNamedMetadata("nvvm.annotations");
  for (auto function : source.getOps<mlir::LLVM::LLVMFuncOp>()) {
    llvm::Function *kernel = module.getFunction(function.getName());
    if (!kernel || kernel->isDeclaration())
      continue;
    auto threads = function->getAttrOfType<mlir::IntegerAttr>(threadsAttr);
    if (!threads) {
      kernel->setLinkage(llvm::Function::InternalLinkage);
      continue;
    }
    auto annotate = [&](const char *name, int64_t value) {
      llvm::Type *i32 = llvm::Type::getInt32Ty(context);
      annotations->addOperand(llvm::MDNode::get(
          context, {llvm::ValueAsMetadata::get(kernel), llvm::MDString::get(context, name),
                    llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(i32, value))}));
    };
    kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
    kernel->addFnAttr(llvm::Attribute::Convergent);
    kernel->addFnAttr(llvm::Attribute::NoUnwind);
    annotate("kernel", 1);
    annotate("reqntidx", threads.getInt());
    // One block fixes the registers at the start, without which the assembler ignores changes of their number (C7508).
    auto wanted = function->getAttrOfType<mlir::IntegerAttr>(minimumBlocksAttr);
    int64_t otherwise = wanted ? wanted.getInt() : changesRegisters(function);
    if (int64_t blocks = options.minimumBlocks ? options.minimumBlocks : otherwise)
      annotate("minctasm", blocks);
    annotateTensorMaps(*kernel, *annotations);
  }
}

} // namespace

std::unique_ptr<llvm::Module> translateThreads(mlir::ModuleOp threads, const PtxOptions &options,
                                               llvm::LLVMContext &context) {
  Architecture architecture = architectureOf(options.architecture);
  std::string diagnostics;
  mlir::ScopedDiagnosticHandler handler(threads.getContext(), [&](mlir::Diagnostic &diagnostic) {
    llvm::raw_string_ostream(diagnostics) << "\n  " << diagnostic.getLocation() << ": " << diagnostic.str();
    return mlir::success();
  });
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  threads.getContext()->appendDialectRegistry(registry);
  mlir::OwningOpRef<mlir::ModuleOp> lowered = threads.clone();
  if (mlir::failed(lowerThreadsToNvvm(*lowered, architecture)))
    throw InternalError("a thread function cannot be lowered for " + architecture.name + ":" + diagnostics);
  if (options.lines)
    attachLines(*lowered);
  auto module = mlir::translateModuleToLLVMIR(*lowered, context, "tenon");
  if (!module)
    throw InternalError("translation to LLVM IR failed:" + diagnostics);
  module->setTargetTriple(triple);
  module->setDataLayout(targetMachine(architecture)->createDataLayout());
  markAssembly(*module);
  annotateKernels(*module, *lowered, options);
  return module;
}

void optimizeThreads(llvm::Module &module, const PtxOptions &options) {
  auto machine = targetMachine(architectureOf(options.architecture));
  lower::optimizeLlvm(module, *machine, llvm::OptimizationLevel::O3);
}

std::string writePtx(llvm::Module &module, const PtxOptions &options) {
  auto machine = targetMachine(architectureOf(options.architecture));
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    throw InternalError("the NVPTX back end cannot write PTX");
  passes.run(module);
  return std::string(text.begin(), text.end());
}

PtxModule emitPtx(mlir::ModuleOp threads, const PtxOptions &options) {
  llvm::LLVMContext context;
  auto module = translateThreads(threads, options, context);
  optimizeThreads(*module, options);
  bool movesRegisters =
      threads.walk([](SetMaxRegistersOp) { return mlir::WalkResult::interrupt(); }).wasInterrupted();
  return {writePtx(*module, options), movesRegisters};
}

} // namespace tenon::nvidia
