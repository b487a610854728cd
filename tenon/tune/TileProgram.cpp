// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/TileProgram.h"

#include "tenon/base/Error.h"
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/jit/KernelCache.h"
#include "tenon/jit/Phases.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;

namespace tenon::tuning {

TileText traceToText(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options) {
  jit::Binding binding(kernel, jit::KernelCache::of(kernel).signature, arguments, options, options.compile.device,
                       jit::isGpu(options.target));
  jit::Specialization specialization = binding.specialization();
  MLIRContext context(MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = jit::traceSpecialized(kernel, specialization, context);
  TileText text;
  text.ir = jit::print(*module, /*withLocations=*/true);
  llvm::SHA256 hash;
  hash.update(jit::print(*module));
  for (uint8_t byte : hash.final()) {
    text.hash += "0123456789abcdef"[byte >> 4];
    text.hash += "0123456789abcdef"[byte & 15];
  }
  return text;
}

struct TileProgram::Impl {
  std::shared_ptr<jit::Executable> executable;
  Target target;
  int device;
};

TileProgram::TileProgram(const std::string &ir, Target target, const CompileOptions &options, CompileReport *report)
    : impl_(std::make_unique<Impl>()) {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  tile::loadTileDialects(*context);
  OwningOpRef<ModuleOp> module;
  {
    jit::Diagnostics diagnostics(*context);
    module = parseSourceString<ModuleOp>(ir, context.get());
    if (!module)
      diagnostics.raise("parse");
  }
  CompileReport unused;
  impl_->executable =
      jit::compileTileIr(std::move(context), std::move(module), target, options, report ? *report : unused, nullptr);
  impl_->target = target;
  impl_->device = options.device;
}

TileProgram::~TileProgram() = default;
TileProgram::TileProgram(TileProgram &&) noexcept = default;

void TileProgram::run(std::span<const int64_t> words, int threads, Stream *stream) const {
  jit::Executable::RunOptions options;
  options.threads = threads;
  if (impl_->target == Target::cuda) {
    options.stream = stream ? stream : &jit::defaultStream(impl_->device);
    options.wait = !stream;
  }
  llvm::SmallVector<int64_t, 256> all(words.begin(), words.end());
  jit::runNow(*impl_->executable, all, options);
}

} // namespace tenon::tuning
