// SPDX-License-Identifier: Apache-2.0
//
// Tile IR to code for an NVIDIA GPU, or for the simulator of one, top to bottom.
#include "tenon/compiler/target/cpu/CpuTarget.h"
#include "tenon/compiler/target/nvidia/NvidiaTarget.h"
#include "tenon/compiler/target/nvidia/ptx/Architecture.h"
#include "tenon/compiler/target/nvidia/ptx/Assembler.h"
#include "tenon/compiler/target/nvidia/ptx/ExpandMath.h"
#include "tenon/compiler/target/nvidia/ptx/PtxEmitter.h"
#include "tenon/compiler/target/nvidia/sim/ThreadsToSim.h"
#include "tenon/compiler/target/nvidia/threads/Passes.h"
#include "tenon/compiler/transform/Passes.h"
#include "tenon/compiler/transform/SplitReduction.h"
#include "tenon/jit/Compiler.h"
#include "tenon/jit/FatalErrors.h"
#include "tenon/jit/Phases.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Module.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace tenon::jit {
namespace {

/// An MLIR module in the llvm dialect as an object file of this processor. Once it is LLVM's, which the constructor sees
/// to, nothing of the MLIR context is needed any more, and the rest happens on a thread of its own.
class HostObject {
public:
  HostObject(ModuleOp module, const cpu::Isa &isa, Diagnostics &diagnostics) : made_(std::make_shared<Made>()) {
    made_->module = cpu::translateToLlvm(module, isa, made_->context);
    if (!made_->module)
      diagnostics.raise("host");
    nvidia::registerBackEnd(); // what is registered later would be a change of what the thread looks at
    work_.emplace([made = made_, isa] {
      cpu::optimize(*made->module, isa);
      made->object = cpu::emitObject(*made->module, isa);
    });
  }
  llvm::SmallVector<char, 0> take() {
    work_->wait();
    return std::move(made_->object);
  }

private:
  struct Made { ///< the thread's as well, which keeps it where LLVM gives up
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module;
    llvm::SmallVector<char, 0> object;
  };
  std::shared_ptr<Made> made_;
  std::optional<GuardedWork> work_;
};

/// For the GPU and its simulator alike.
LogicalResult expandMath(ModuleOp module, bool sinks) {
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  pm.addPass(nvidia::createExpandMathPass());
  pm.addPass(createCSEPass());
  bool hasMatrices = module
                         .walk([](Operation *op) {
                           bool isMatrix = llvm::isa<nvidia::MmaOp, nvidia::WgmmaOp>(op);
                           return isMatrix ? WalkResult::interrupt() : WalkResult::advance();
                         })
                         .wasInterrupted();
  if (sinks && hasMatrices) // others have been put in order before (tenon-nvidia-shorten-lives)
    pm.addNestedPass<func::FuncOp>(nvidia::createSinkToUsesPass());
  return pm.run(module);
}

/// As many instances as can share a loop: to add up more parts would be no small thing to do at the end.
constexpr int mostShares = 256;

/// On simplified Tile IR, which it leaves so. Returns what became of it.
std::string splitLoop(ModuleOp module, int factor, Diagnostics &diagnostics) {
  SplitOutcome outcome = splitReduction(lower::kernelOf(module), factor);
  if (outcome.isSplit && failed(simplifyTileIr(module, RandomBits::keep)))
    diagnostics.raise("simplify");
  std::string place = lower::placeOf(outcome.where);
  return place.empty() ? outcome.remark : place + ": " + outcome.remark;
}

std::string shareLastInstances(ModuleOp module, Diagnostics &diagnostics) {
  nvidia::TailOutcome outcome = nvidia::shareTail(lower::kernelOf(module));
  if (outcome.isShared && failed(simplifyTileIr(module, RandomBits::keep)))
    diagnostics.raise("simplify");
  std::string place = lower::placeOf(outcome.where);
  return place.empty() ? outcome.remark : place + ": " + outcome.remark;
}

/// The place of a kernel's threads, in words.
std::string describeBlock(const std::string &name, const nvidia::BlockShape &block) {
  std::string text = name + " runs in blocks of " + std::to_string(block.teams * block.threads) + " threads";
  if (block.teams > 1)
    text += ", " + std::to_string(block.threads) + " to a program instance,";
  if (block.producers)
    text += " and " + std::to_string(block.producers) + " that load for them";
  if (block.cluster > 1)
    text += ", " + std::to_string(block.cluster) + " of them a cluster for one program instance,";
  return text + " with " + std::to_string(block.sharedBytes) + " bytes of shared memory";
}

/// What the assembler says of the PTX; nothing where there is none.
void tellAssembly(const std::string &ptx, const std::string &architecture, CompileReport &report) {
  std::optional<nvidia::AssemblyReport> assembly = nvidia::assemble(ptx, architecture);
  if (!assembly)
    return;
  report.gpu->registers = static_cast<int>(assembly->registers);
  report.gpu->spillBytes = static_cast<int64_t>(assembly->spillStoreBytes + assembly->spillLoadBytes);
  std::string spills = "no spills";
  if (assembly->spillStoreBytes || assembly->spillLoadBytes)
    spills = "spills: " + std::to_string(assembly->spillStoreBytes) + " bytes of stores, " +
             std::to_string(assembly->spillLoadBytes) + " of loads";
  report.remarks.push_back("ptxas for " + architecture + ": " + std::to_string(assembly->registers) +
                           " registers a thread, " + spills);
  for (const std::string &warning : assembly->warnings)
    report.remarks.push_back("ptxas for " + architecture + ": " + warning);
}

} // namespace

CompileReport::Gpu gpuReport(const lower::KernelInfo::Gpu &info) {
  CompileReport::Gpu gpu;
  gpu.threads = static_cast<int>(info.threads);
  gpu.cluster = static_cast<int>(info.cluster);
  gpu.stages = static_cast<int>(info.stages);
  gpu.sharedBytes = info.sharedBytes;
  return gpu;
}

std::optional<GeneratedCode> generateGpuCode(MLIRContext &context, ModuleOp module, Target target,
                                             const CompileOptions &options, CompileReport &report, EmitRequest *emit) {
  auto stops = [&](const char *phase) { return emit && emit->phase == phase; };
  (void)nvidia::architectureOf(options.gpu); // refuses unknown ones
  if (options.stages < 0 || options.stages > 16)
    throw Error("a loop's copies have 1 to 16 stages, not " + std::to_string(options.stages));
  if (options.split < 0 || options.split > mostShares)
    throw Error("a loop can be split among 1 to " + std::to_string(mostShares) + " program instances, not " +
                std::to_string(options.split));
  if (options.shareTail && options.split > 1)
    throw Error("a loop is split among program instances, or the last instances are shared by all blocks, not both");
  nvidia::Steps steps = nvidia::Steps::without(options.without);
  std::vector<std::string> remarks;
  Diagnostics diagnostics(context);
  {
    PhaseTimer timer(report, "simplify");
    if (failed(simplifyTileIr(module, RandomBits::keep)))
      diagnostics.raise("simplify");
    if (options.split > 1) // changes the grid, so before anybody looks at it
      remarks.push_back(splitLoop(module, options.split, diagnostics));
    if (options.shareTail)
      remarks.push_back(shareLastInstances(module, diagnostics));
    nvidia::countInstances(module, options.gpu);
  }
  if (stops("simplified")) {
    printTo(*emit, module);
    return std::nullopt;
  }
  std::optional<cuda::AssemblerStart> assembler;
  if (target == Target::cuda && !emit)
    assembler.emplace(options.device);
  cpu::Isa isa = cpu::selectIsa(options.isa);
  std::optional<HostObject> host;
  auto takeHost = [&] {
    PhaseTimer timer(report, "host"); // what is left of it
    return host->take();
  };
  GeneratedCode code;
  code.info = lower::describeKernel(module);
  if (!emit) { // grid, preconditions and workspaces are the host's business
    PhaseTimer timer(report, "plan");
    OwningOpRef<ModuleOp> plan = cpu::lowerPlan(module, isa);
    if (!plan || failed(cpu::lowerToLlvmDialect(*plan)))
      diagnostics.raise("plan");
    host.emplace(*plan, isa, diagnostics);
  }
  nvidia::BlockShape block;
  {
    PhaseTimer timer(report, "layouts");
    block = nvidia::chooseBlock(lower::kernelOf(module), {options.gpu, options.warps, options.cluster});
    if (nvidia::isOfThree(options.warps)) {
      std::string refusal = nvidia::refuseThreeGroups(module, block, steps);
      if (!refusal.empty()) {
        block = nvidia::chooseBlock(lower::kernelOf(module), {options.gpu, 0, options.cluster});
        remarks.push_back("no block of three warpgroups: " + refusal);
      }
    }
    if (options.pingPong) {
      nvidia::PingPong turns = nvidia::pingPongBlock(module, block, options.warps, steps);
      block = turns.block.value_or(block);
      remarks.push_back(turns.block ? "two warpgroups take program instances in turns (ping-pong)"
                                    : "warpgroups do not take turns (no ping-pong): " + turns.refusal);
    }
    if (failed(nvidia::chooseLayouts(module, block, steps)))
      diagnostics.raise("layouts");
  }
  if (stops("layouts")) {
    printTo(*emit, module);
    return std::nullopt;
  }
  nvidia::ThreadProgram program;
  {
    PhaseTimer timer(report, "threads");
    program = nvidia::lowerToThreads(module, block, options.gpu, {options.stages, steps, options.split > 1});
    if (!program.module || failed(expandMath(*program.module, steps.sinking)))
      diagnostics.raise("threads");
  }
  remarks.insert(remarks.begin(), describeBlock(code.info.name, program.block));
  llvm::append_range(remarks, program.remarks);
  report.remarks = code.info.remarks = remarks;
  code.info.gpu.threads = program.block.allThreads();
  code.info.gpu.cluster = program.block.cluster;
  code.info.gpu.sharedBytes = program.block.sharedBytes;
  code.info.gpu.stages = program.stages;
  report.gpu = gpuReport(code.info.gpu);
  code.info.gpu.asserts = program.asserts;
  code.info.gpu.prints = program.prints;
  code.info.gpu.tensorMaps = program.tensorMaps;
  code.info.gpu.persistent = program.persistent;
  code.info.gpu.sharesTail = program.persistent && program.sharesTail;
  code.info.gpu.startsEarly = program.startsEarly;
  if (stops("threads")) {
    printTo(*emit, *program.module);
    return std::nullopt;
  }
  if (target == Target::sim && !emit) {
    {
      PhaseTimer timer(report, "simulator code");
      if (failed(nvidia::lowerThreadsToSim(*program.module)))
        diagnostics.raise("simulator code");
      code.device = HostObject(*program.module, isa, diagnostics).take();
    }
    code.host = takeHost();
    return code;
  }
  nvidia::PtxModule made;
  {
    PhaseTimer timer(report, "ptx");
    nvidia::PtxOptions ptxOptions;
    ptxOptions.architecture = options.gpu;
    made = nvidia::emitPtx(*program.module, ptxOptions);
  }
  const std::string &ptx = made.text;
  if (stops("ptx")) {
    emit->text = ptx;
    if (emit->assembles) {
      PhaseTimer timer(report, "assemble");
      tellAssembly(ptx, options.gpu, report);
    }
    return std::nullopt;
  }
  if (stops("sass")) {
    std::optional<nvidia::AssemblyReport> assembly = nvidia::assemble(ptx, options.gpu);
    if (!assembly || assembly->sass.empty())
      throw Error("machine code can be shown only where NVIDIA's assembler and disassembler are installed: " +
                  (assembly ? assembly->noSass : "there is no ptxas"));
    emit->text = assembly->sass;
    return std::nullopt;
  }
  if (emit)
    throw Error("phase '" + emit->phase + "' is the CPU's: compile for target cpu to see it");
  if (made.movesRegisters) {
    // The driver's linker assembles parts of programs. It does not know then how many registers a kernel begins with, and
    // leaves out what moves them. Of a whole program, which is what it is when it is loaded as PTX, nothing is left out.
    code.device.assign(ptx.c_str(), ptx.c_str() + ptx.size() + 1);
  } else {
    PhaseTimer timer(report, "assemble");
    cuda::Cubin cubin = cuda::assemble(cuda::Gpu::get(options.device), ptx);
    auto bytes = std::as_bytes(std::span(cubin.bytes));
    code.device.assign(reinterpret_cast<const char *>(bytes.data()),
                       reinterpret_cast<const char *>(bytes.data()) + bytes.size());
  }
  code.host = takeHost();
  return code;
}

} // namespace tenon::jit

const std::vector<std::string> &tenon::gpuSteps() { return tenon::nvidia::Steps::names(); }
