// SPDX-License-Identifier: Apache-2.0
#include "tenon/jit/Executable.h"

#include "tenon/base/Error.h"
#include "tenon/compiler/interpret/Interpreter.h"
#include "tenon/compiler/target/cpu/Loader.h"
#include "tenon/runtime/CpuPool.h"

#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace mlir;

namespace tenon::jit {

void Reports::fail(const std::string &message) {
  std::lock_guard lock(mutex_);
  if (failure_.empty())
    failure_ = message;
}

void Reports::print(const std::string &text) {
  static std::mutex output; // of all launches
  std::lock_guard lock(output);
  llvm::outs() << text << "\n";
  llvm::outs().flush();
}

void Reports::raise() const {
  if (!failure_.empty())
    throw Error(failure_);
}

Executable::Plan readPlan(void (*function)(const int64_t *, int64_t *), const lower::KernelInfo &info,
                          std::span<const int64_t> words) {
  Executable::Plan plan;
  size_t count = 4;
  for (const auto &workspace : info.workspaces)
    count += workspace.rank;
  llvm::SmallVector<int64_t, 16> out(count);
  function(words.data(), out.data());
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

namespace {

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

struct Listener final : cpu::LaunchContext {
  void assertFailed(const std::string &message) override { reports.fail(message); }
  void print(const std::string &text) override { reports.print(text); }
  Reports reports;
};

class CpuExecutable final : public Executable {
public:
  CpuExecutable(lower::KernelInfo kernelInfo, std::span<const char> object)
      : Executable(std::move(kernelInfo)), code_(object) {}

  Plan plan(std::span<const int64_t> words) const override { return readPlan(code_.plan(), info, words); }

  void run(const Plan &plan, std::span<const int64_t> words, const RunOptions &options) const override {
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
    poolOf(options.threads).run(count, info.scratchBytes, &call, body, &pace_, code_.noteBytes());
    listener.reports.raise();
  }

private:
  cpu::LoadedObject code_;
  mutable CpuPool::Pace pace_;
};

class InterpretedExecutable final : public Executable {
public:
  InterpretedExecutable(std::unique_ptr<MLIRContext> context, OwningOpRef<ModuleOp> module)
      : Executable(describe(*module)), context_(std::move(context)), module_(std::move(module)) {}

  Plan plan(std::span<const int64_t> words) const override {
    std::lock_guard lock(mutex_);
    interpret::LaunchPlan found = interpret::planLaunch(kernel(), words);
    Plan plan;
    std::copy_n(found.grid, 3, plan.grid);
    plan.refusal = found.refusal;
    if (found.requirement >= 0)
      if (const auto &where = info.requirements[found.requirement].where; !where.empty())
        plan.refusal = where + ": " + plan.refusal;
    for (const std::vector<int64_t> &sizes : found.workspaces)
      for (int64_t size : sizes)
        if (size < 0 && plan.refusal.empty())
          plan.refusal = "kernel " + info.name + " asks for a workspace with a dimension of " + std::to_string(size) +
                         " elements, which cannot be had";
    return plan;
  }

  void run(const Plan &, std::span<const int64_t> words, const RunOptions &) const override {
    std::lock_guard lock(mutex_);
    Reports reports;
    interpret::Options options;
    options.print = [&](const std::string &text) { reports.print(text); };
    std::string error = interpret::interpretLaunch(kernel(), words, options);
    if (!error.empty())
      throw Error(error);
  }

private:
  static lower::KernelInfo describe(ModuleOp module) {
    lower::KernelInfo info = lower::describeKernel(module);
    info.workspaces.clear(); // the interpreter allocates its own
    return info;
  }
  func::FuncOp kernel() const { return *module_->getOps<func::FuncOp>().begin(); }

  std::unique_ptr<MLIRContext> context_;
  mutable OwningOpRef<ModuleOp> module_;
  mutable std::mutex mutex_; // a context is for one thread at a time
};

} // namespace

std::shared_ptr<Executable> makeCpuExecutable(lower::KernelInfo info, std::span<const char> code) {
  return std::make_shared<CpuExecutable>(std::move(info), code);
}

std::shared_ptr<Executable> makeInterpretedExecutable(std::unique_ptr<MLIRContext> context,
                                                      OwningOpRef<ModuleOp> module) {
  return std::make_shared<InterpretedExecutable>(std::move(context), std::move(module));
}

} // namespace tenon::jit
