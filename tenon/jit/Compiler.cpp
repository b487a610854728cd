// SPDX-License-Identifier: Apache-2.0
//
// The pipeline, top to bottom. Each phase is timed, can be printed, and leaves its name in the error when it fails.
#include "tenon/jit/Compiler.h"

#include "tenon/compiler/interpret/Interpreter.h"
#include "tenon/compiler/target/nvidia/Ptx.h"
#include "tenon/compiler/transform/Passes.h"
#include "tenon/jit/BuildId.h"
#include "tenon/jit/DiskCache.h"
#include "tenon/jit/Object.h"
#include "tenon/runtime/CpuPool.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>

using namespace mlir;

namespace tenon::jit {
namespace {

class PhaseTimer {
public:
  PhaseTimer(CompileReport &report, const char *name) : report_(report), name_(name) {}
  ~PhaseTimer() {
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start_;
    report_.phases.push_back({name_, elapsed.count()});
  }

private:
  CompileReport &report_;
  const char *name_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::string print(ModuleOp module, bool withLocations) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  if (withLocations)
    flags.enableDebugInfo(true, /*prettyForm=*/false);
  module.print(stream, flags);
  return text;
}

/// The hash of what decides the code: Tile IR with its locations (they end up in assert messages), target, options, build.
/// Never the kernel's name alone: lambdas capture.
std::string cacheKey(const std::string &tileIr, Target target, const cpu::Isa &isa) {
  llvm::SHA256 hash;
  hash.update(buildId());
  hash.update(nameOf(target));
  hash.update(isa.name + "|" + isa.cpu + "|" + isa.features);
  hash.update(tileIr);
  std::string key;
  for (uint8_t byte : hash.final()) {
    key += "0123456789abcdef"[byte >> 4];
    key += "0123456789abcdef"[byte & 15];
  }
  return key;
}

/// Collects MLIR diagnostics while it lives; throws the first error with its place.
class Diagnostics {
public:
  explicit Diagnostics(MLIRContext &context)
      : handler_(&context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error && text_.empty()) {
            if (auto loc = llvm::dyn_cast<FileLineColLoc>(diagnostic.getLocation())) {
              where_.file = loc.getFilename().str();
              where_.line = loc.getLine();
            }
            text_ = diagnostic.str();
          }
          return success();
        }) {}
  /// The user's mistakes are refused while tracing: whatever fails later is a defect of ours.
  [[noreturn]] void raise(const char *phase) {
    throw InternalError("phase " + std::string(phase) + " failed" +
                        (text_.empty() ? "" : ": " + (where_ ? where_.str() + ": " : "") + text_));
  }

private:
  ScopedDiagnosticHandler handler_;
  std::string text_;
  SourceLine where_;
};

DiskCache &diskCache() {
  static DiskCache &cache = *new DiskCache(); // never destroyed: streams may compile until the process ends
  return cache;
}

/// Leaves the Tile IR of a failed compilation where it can be found, and says where.
[[noreturn]] void raiseWithReproducer(const InternalError &error, const std::string &tileIr, const std::string &key) {
  std::filesystem::path directory =
      diskCache().enabled() ? std::filesystem::path(diskCache().directory()) : std::filesystem::temp_directory_path();
  std::filesystem::path path = directory / ("reproducer-" + key.substr(0, 16) + ".mlir");
  std::ofstream file(path);
  file << tileIr;
  file.close();
  throw InternalError(error, file ? "; the program that shows it: " + path.string() : "");
}

/// Pools are kept: making one costs more than many a launch.
CpuPool &poolOf(int threads) {
  if (threads == 0)
    return CpuPool::global();
  // Never destroyed, like the global one: a stream may still be draining when the process ends.
  static auto &mutex = *new std::mutex();
  static auto &pools = *new std::map<int, std::unique_ptr<CpuPool>>();
  std::lock_guard lock(mutex);
  auto &pool = pools[threads];
  if (!pool)
    pool = std::make_unique<CpuPool>(threads);
  return *pool;
}

//===--- Executables ----------------------------------------------------------------------------------------------===//

/// device_assert and device_print of one launch.
class Listener final : public cpu::LaunchContext {
public:
  void assertFailed(const std::string &message) override {
    std::lock_guard lock(mutex_);
    if (failure_.empty())
      failure_ = message;
  }
  void print(const std::string &text) override {
    static std::mutex output; // of all launches
    std::lock_guard lock(output);
    llvm::outs() << text << "\n";
    llvm::outs().flush();
  }
  void raise() {
    if (!failure_.empty())
      throw Error(failure_);
  }

private:
  std::mutex mutex_;
  std::string failure_;
};

class CpuExecutable final : public Executable {
public:
  CpuExecutable(cpu::KernelInfo kernelInfo, std::span<const char> object) : code_(object) {
    info = std::move(kernelInfo);
  }

  Plan plan(std::span<const int64_t> words) const override {
    Plan plan;
    size_t count = 4;
    for (const auto &workspace : info.workspaces)
      count += workspace.rank;
    llvm::SmallVector<int64_t, 16> out(count);
    code_.plan()(words.data(), out.data());
    std::copy_n(out.begin(), 3, plan.grid);
    if (out[3] >= 0) {
      const auto &requirement = info.requirements[out[3]];
      plan.refusal = (requirement.where.empty() ? "" : requirement.where + ": ") + requirement.message;
    }
    size_t at = 4;
    for (const auto &workspace : info.workspaces) {
      plan.workspaces.emplace_back(out.begin() + at, out.begin() + at + workspace.rank);
      at += workspace.rank;
    }
    return plan;
  }

  void run(const Plan &plan, std::span<const int64_t> words, int threads) const override {
    Listener listener;
    struct Call {
      cpu::RunFunction run;
      const int64_t *words, *grid;
      cpu::LaunchContext *listener;
    } call{code_.run(), words.data(), plan.grid, &listener};
    auto body = [](void *context, int64_t begin, int64_t end, void *scratch) {
      auto *c = static_cast<Call *>(context);
      c->run(c->words, begin, end, c->grid, scratch, c->listener);
    };
    int64_t count = plan.grid[0] * plan.grid[1] * plan.grid[2];
    poolOf(threads).run(count, info.scratchBytes, &call, body);
    listener.raise();
  }

private:
  cpu::LoadedObject code_;
};

class InterpretedExecutable final : public Executable {
public:
  InterpretedExecutable(std::unique_ptr<MLIRContext> context, OwningOpRef<ModuleOp> module)
      : context_(std::move(context)), module_(std::move(module)) {
    info = cpu::describeKernel(*module_);
    info.workspaces.clear(); // the interpreter allocates its own
  }

  Plan plan(std::span<const int64_t> words) const override {
    std::lock_guard lock(mutex_);
    interpret::LaunchPlan found = interpret::planLaunch(kernel(), words);
    Plan plan;
    std::copy_n(found.grid, 3, plan.grid);
    plan.refusal = found.refusal;
    for (const auto &requirement : info.requirements)
      if (!plan.refusal.empty() && requirement.message == plan.refusal && !requirement.where.empty()) {
        plan.refusal = requirement.where + ": " + requirement.message;
        break;
      }
    for (const std::vector<int64_t> &sizes : found.workspaces)
      for (int64_t size : sizes)
        if (size < 0 && plan.refusal.empty())
          plan.refusal = "a workspace with a dimension of " + std::to_string(size) + " elements cannot be had";
    return plan;
  }

  void run(const Plan &, std::span<const int64_t> words, int) const override {
    std::lock_guard lock(mutex_);
    Listener listener;
    interpret::Options options;
    options.print = [&](const std::string &text) { listener.print(text); };
    std::string error = interpret::interpretLaunch(kernel(), words, options);
    if (!error.empty())
      throw Error(error);
  }

private:
  func::FuncOp kernel() const { return *module_->getOps<func::FuncOp>().begin(); }

  std::unique_ptr<MLIRContext> context_;
  mutable OwningOpRef<ModuleOp> module_;
  mutable std::mutex mutex_; // a context is for one thread at a time
};

/// From Tile IR to machine code, phase by phase; null when a phase was to be printed.
std::shared_ptr<Executable> generateCode(MLIRContext &context, ModuleOp module, const cpu::Isa &isa,
                                         const CompileOptions &options, CompileReport &report, EmitRequest *emit) {
  auto stops = [&](const char *phase) { return emit && emit->phase == phase; };
  Diagnostics diagnostics(context);
  {
    PhaseTimer timer(report, "simplify");
    if (failed(simplifyTileIr(module)))
      diagnostics.raise("simplify");
  }
  if (stops("simplified")) {
    emit->text = print(module, false);
    return nullptr;
  }
  cpu::KernelInfo info;
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
    emit->text = print(*loops, false);
    return nullptr;
  }
  {
    PhaseTimer timer(report, "llvm-dialect");
    if (failed(cpu::lowerToLlvmDialect(*loops)))
      diagnostics.raise("llvm-dialect");
  }
  if (stops("llvm-dialect")) {
    emit->text = print(*loops, false);
    return nullptr;
  }
  if (stops("ptx")) {
    std::string name = (*module.getOps<func::FuncOp>().begin()).getName().str();
    emit->text = nvidia::emitPtx(*loops, name, info.scratchBytes, options.gpu);
    return nullptr;
  }
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
    return nullptr;
  }
  {
    PhaseTimer timer(report, "optimize");
    cpu::optimize(*llvmModule, isa);
  }
  if (stops("optimized")) {
    printLlvm();
    return nullptr;
  }
  if (stops("asm")) {
    emit->text = cpu::emitAssembly(*llvmModule, isa);
    return nullptr;
  }
  llvm::SmallVector<char, 0> object;
  {
    PhaseTimer timer(report, "object");
    object = cpu::emitObject(*llvmModule, isa);
  }
  if (options.useDiskCache)
    diskCache().store(report.key, encodeObject(info, object));
  PhaseTimer timer(report, "link");
  return std::make_shared<CpuExecutable>(std::move(info), std::span<const char>(object.data(), object.size()));
}

} // namespace

std::string Specialization::text() const {
  std::string text = std::string(nameOf(target)) + "|" + isa + (noOverlap ? "|n" : "|o");
  for (const ArgumentSpec &argument : arguments) {
    text += '|';
    text += static_cast<char>('0' + static_cast<int>(argument.kind));
    if (argument.kind == ParameterKind::view) {
      text += static_cast<char>('a' + static_cast<int>(argument.dtype));
      text += static_cast<char>('0' + argument.rank);
      text += static_cast<char>('1' + argument.unitStride);
      text += argument.distinct ? 'd' : 's';
    } else if (argument.kind == ParameterKind::param) {
      text += std::to_string(argument.value);
    }
  }
  return text;
}

std::shared_ptr<Executable> compileKernel(const Kernel &kernel, const Specialization &specialization,
                                          const CompileOptions &options, CompileReport &report, EmitRequest *emit) {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module;
  {
    PhaseTimer timer(report, "trace");
    module = traceKernel(kernel, specialization.arguments, specialization.noOverlap, *context);
  }
  return compileTileIr(std::move(context), std::move(module), specialization.target, options, report, emit);
}

std::shared_ptr<Executable> compileTileIr(std::unique_ptr<MLIRContext> context, OwningOpRef<ModuleOp> module,
                                          Target target, const CompileOptions &options, CompileReport &report,
                                          EmitRequest *emit) {
  auto stops = [&](const char *phase) { return emit && emit->phase == phase; };
  if (stops("tile")) {
    emit->text = print(*module, false);
    return nullptr;
  }
  if (target == Target::interpreter && !emit)
    return std::make_shared<InterpretedExecutable>(std::move(context), std::move(module));

  cpu::Isa isa = stops("ptx") ? cpu::presetIsa("scalar") : cpu::selectIsa(options.isa);
  std::string tileIr;
  {
    PhaseTimer timer(report, "key");
    tileIr = print(*module, /*withLocations=*/true);
    report.key = cacheKey(tileIr, target, isa);
  }
  if (options.useDiskCache && !emit) {
    PhaseTimer timer(report, "load");
    if (auto entry = diskCache().load(report.key))
      if (auto object = decodeObject(*entry)) {
        report.fromDisk = true;
        report.remarks = object->info.remarks;
        return std::make_shared<CpuExecutable>(std::move(object->info), object->code);
      }
  }

  try {
    return generateCode(*context, *module, isa, options, report, emit);
  } catch (const InternalError &error) {
    raiseWithReproducer(error, tileIr, report.key);
  }
}

} // namespace tenon::jit
