// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/CpuTarget.h"

#include "tenon/base/Error.h"
#include "tenon/compiler/lower/ToLlvm.h"
#include "tenon/compiler/target/cpu/ApproximateQuotients.h"
#include "tenon/compiler/target/cpu/DotKept.h"
#include "tenon/compiler/target/cpu/Entry.h"
#include "tenon/compiler/target/cpu/F8Dots.h"
#include "tenon/compiler/target/cpu/HoistReductions.h"
#include "tenon/compiler/target/cpu/KeepOperands.h"
#include "tenon/compiler/target/cpu/LoopEmitter.h"
#include "tenon/compiler/target/cpu/NonPositive.h"
#include "tenon/compiler/target/cpu/RangeExtremes.h"
#include "tenon/compiler/target/cpu/RangeMagnitudes.h"
#include "tenon/compiler/target/cpu/RelaxPrecision.h"
#include "tenon/compiler/target/cpu/ScalePowers.h"
#include "tenon/compiler/target/cpu/SplitRows.h"
#include "tenon/compiler/target/cpu/TabulateMath.h"
#include "tenon/compiler/target/cpu/TiesAway.h"
#include "tenon/compiler/target/cpu/WidenExtremes.h"
#include "tenon/compiler/transform/ExpandMath.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace mlir;

namespace tenon::cpu {
namespace {

std::unique_ptr<llvm::TargetMachine> targetMachine(const Isa &isa) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    // LLVM 19's store-forwarding pass asks for the size of a masked load, which has none, and aborts the process.
    auto &options = llvm::cl::getRegisteredOptions();
    if (auto found = options.find("x86-disable-avoid-SFB"); found != options.end())
      *static_cast<llvm::cl::opt<bool> *>(found->second) = true;
  });
  std::string triple = llvm::sys::getProcessTriple(), error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    throw InternalError("no code generator for " + triple + ": " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // a multiply-add is one only where the program says so
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, isa.cpu, isa.features, options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
}

} // namespace

OwningOpRef<ModuleOp> lowerToLoops(ModuleOp tileModule, const Isa &isa, KernelInfo &info) {
  MLIRContext *context = tileModule.getContext();
  context->loadDialect<LLVM::LLVMDialect, vector::VectorDialect, scf::SCFDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> target = ModuleOp::create(tileModule.getLoc());
  info = lower::describeKernel(tileModule);
  bool areApart = splitRows(lower::kernelOf(tileModule), isa);
  hoistReductions(lower::kernelOf(tileModule));
  relaxPrecision(lower::kernelOf(tileModule), isa);
  widenF8Dots(lower::kernelOf(tileModule), isa);
  keepOperands(lower::kernelOf(tileModule), isa);
  markNonPositive(lower::kernelOf(tileModule));
  allowTiesAway(lower::kernelOf(tileModule));
  orderAxes(lower::kernelOf(tileModule), isa);
  LoopEmitter instance(lower::kernelOf(tileModule), isa, *target);
  if (failed(instance.run()))
    return {};
  std::optional<Overlap> overlap = overlapInstances(lower::kernelOf(tileModule), *target, isa, instance.scratchBytes());
  info.scratchBytes = instance.scratchBytes() * (overlap ? overlap->copies : 1);
  assert((!overlap || !instance.noteBytes()) && "what is kept is of one instance after the other");
  info.remarks = instance.remarks();
  if (areApart)
    info.remarks.push_back("each row of a tile is a program instance of its own");
  if (overlap)
    info.remarks.push_back("the loops of " + std::to_string(overlap->rows) + " program instances run as one");
  if (failed(LoopEmitter(lower::kernelOf(tileModule), isa, *target).runPlan()))
    return {};
  emitRunFunction(lower::kernelOf(tileModule), *target, isa, instance.noteBytes(), overlap);
  return target;
}

OwningOpRef<ModuleOp> lowerPlan(ModuleOp tileModule, const Isa &isa) {
  tileModule.getContext()->loadDialect<LLVM::LLVMDialect, vector::VectorDialect>();
  OwningOpRef<ModuleOp> target = ModuleOp::create(tileModule.getLoc());
  if (failed(LoopEmitter(lower::kernelOf(tileModule), isa, *target).runPlan()))
    return {};
  return target;
}

LogicalResult lowerToLlvmDialect(ModuleOp module) {
  tabulateMath(module);
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  pm.addPass(createExpandMathPass());
  pm.addPass(createCSEPass());
  pm.addPass(createConvertSCFToCFPass());
  if (failed(pm.run(module)))
    return failure();
  return lower::convertToLlvm(module);
}

std::unique_ptr<llvm::Module> translateToLlvm(ModuleOp module, const Isa &isa, llvm::LLVMContext &context) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);
  auto llvmModule = translateModuleToLLVMIR(module, context, "tenon");
  if (!llvmModule)
    return nullptr;
  auto machine = targetMachine(isa);
  llvmModule->setTargetTriple(machine->getTargetTriple().str());
  llvmModule->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : *llvmModule) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", isa.cpu);
    function.addFnAttr("target-features", isa.features);
    function.addFnAttr("prefer-vector-width", std::to_string(8 * isa.vectorBytes));
    function.addFnAttr(llvm::Attribute::NoUnwind);
    bool isStep = function.getName() == overlapSymbol;
    if (isStep || function.getName() == "instance") {
      function.setLinkage(llvm::Function::InternalLinkage);
      function.addParamAttr(isStep ? 5 : 4, llvm::Attribute::NoAlias); // scratch
      // One that is called in several places is called for a loop at a time: see Overlap.cpp.
      function.addFnAttr(function.hasOneUse() ? llvm::Attribute::AlwaysInline : llvm::Attribute::NoInline);
    } else if (function.getName() == holdsSymbol) {
      function.setLinkage(llvm::Function::InternalLinkage);
    }
  }
  return llvmModule;
}

void optimize(llvm::Module &module, const Isa &isa) {
  auto machine = targetMachine(isa);
  scalePowers(module, isa);
  rangeMagnitudes(module, isa);
  lower::optimizeLlvm(module, *machine, llvm::OptimizationLevel::O2);
  widenExtremes(module);
  rangeExtremes(module, isa);
  approximateQuotients(module, isa);
}

namespace {

template <class Stream, class Buffer> void emitFile(llvm::Module &module, const Isa &isa, llvm::CodeGenFileType type,
                                                    Buffer &buffer) {
  auto machine = targetMachine(isa);
  llvm::legacy::PassManager passes;
  Stream stream(buffer);
  if (machine->addPassesToEmitFile(passes, stream, nullptr, type))
    throw InternalError("this LLVM cannot write object files");
  passes.run(module);
}

} // namespace

llvm::SmallVector<char, 0> emitObject(llvm::Module &module, const Isa &isa) {
  llvm::SmallVector<char, 0> object;
  emitFile<llvm::raw_svector_ostream>(module, isa, llvm::CodeGenFileType::ObjectFile, object);
  return object;
}

std::string emitAssembly(llvm::Module &module, const Isa &isa) {
  llvm::SmallVector<char, 0> text;
  emitFile<llvm::raw_svector_ostream>(module, isa, llvm::CodeGenFileType::AssemblyFile, text);
  return std::string(text.begin(), text.end());
}

} // namespace tenon::cpu
