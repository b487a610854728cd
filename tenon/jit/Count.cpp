// SPDX-License-Identifier: Apache-2.0
#include "tenon/jit/Count.h"

#include "tenon/jit/Binding.h"
#include "tenon/jit/KernelCache.h"
#include "tenon/lang/trace/Tracer.h"

#include "mlir/IR/MLIRContext.h"

namespace tenon::jit {

model::CountPlan countPlan(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options) {
  Binding binding(kernel, KernelCache::of(kernel).signature, arguments, options, options.compile.device,
                  /*forGpu=*/false);
  // Loading the dialects takes longer than tracing: once a thread.
  thread_local mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Specialization specialization = binding.specialization();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      traceKernel(kernel, specialization.arguments, specialization.noOverlap, context, Verified::no);
  return model::CountPlan::fromTileIr(*module->getOps<mlir::func::FuncOp>().begin());
}

std::vector<int64_t> argumentWords(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options) {
  Binding binding(kernel, KernelCache::of(kernel).signature, arguments, options, options.compile.device,
                  /*forGpu=*/false);
  return {binding.words.begin(), binding.words.end()};
}

} // namespace tenon::jit
