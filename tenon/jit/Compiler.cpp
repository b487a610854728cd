// SPDX-License-Identifier: Apache-2.0
//
// From a kernel to something that runs: trace, look into the disk cache, or generate code (CpuPipeline.cpp,
// GpuPipeline.cpp). Each phase is timed, can be printed, and leaves its name in the error when it fails.
#include "tenon/jit/Compiler.h"

#include "tenon/compiler/dialect/Overlaps.h"
#include "tenon/compiler/target/cpu/CpuTarget.h"
#include "tenon/jit/BuildId.h"
#include "tenon/jit/DiskCache.h"
#include "tenon/jit/FatalErrors.h"
#include "tenon/jit/Object.h"
#include "tenon/jit/Phases.h"

#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>

using namespace mlir;

namespace tenon::jit {
namespace {

/// The hash of what decides the code: Tile IR with its locations (they end up in assert messages), target, options, build.
/// Never the kernel's name alone: lambdas capture.
std::string cacheKey(const std::string &tileIr, Target target, const CompileOptions &options) {
  llvm::SHA256 hash;
  cpu::Isa isa = cpu::selectIsa(options.isa); // GPU kernels have a part on the host, and the simulator's run there
  hash.update(buildId());
  hash.update(nameOf(target));
  hash.update(isa.name + "|" + isa.cpu + "|" + isa.features);
  if (isGpu(target))
    hash.update("|" + options.gpu + "|" + gpuOptionsText(options) + "|" + std::to_string(cudaDriverVersion()));
  hash.update(tileIr);
  std::string key;
  for (uint8_t byte : hash.final()) {
    key += "0123456789abcdef"[byte >> 4];
    key += "0123456789abcdef"[byte & 15];
  }
  return key;
}

DiskCache &diskCache() {
  static DiskCache &cache = *new DiskCache(); // never destroyed: streams may compile until the process ends
  return cache;
}

/// Leaves the Tile IR of a failed compilation where it can be found, and says where; a new file, since a name that
/// others can guess may be their link.
[[noreturn]] void raiseWithReproducer(const InternalError &error, const std::string &tileIr, const std::string &how) {
  std::error_code noFolder;
  std::filesystem::path folder = diskCache().enabled() ? std::filesystem::path(diskCache().directory())
                                                       : std::filesystem::temp_directory_path(noFolder);
  constexpr std::string_view ending = ".mlir";
  std::string path = (folder / "reproducer-XXXXXX").string() + std::string(ending);
  int file = noFolder ? -1 : ::mkostemps(path.data(), static_cast<int>(ending.size()), O_CLOEXEC);
  if (file < 0)
    throw error;
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/true);
  stream << "// " << how << "\n" << tileIr;
  stream.close();
  bool written = !stream.has_error();
  stream.clear_error();
  throw InternalError(error, written ? "; the program that shows it: " + path : "");
}

} // namespace

bool isGpu(Target target) { return target == Target::sim || target == Target::cuda; }

std::string gpuOptionsText(const CompileOptions &options) {
  return "w" + std::to_string(options.warps) + "c" + std::to_string(options.cluster) + "s" +
         std::to_string(options.stages) + "k" + std::to_string(options.split) + (options.shareTail ? "t" : "") +
         (options.pingPong ? "p" : "") + "-" + options.without;
}

namespace {

std::shared_ptr<Executable> makeExecutable(Target target, const CompileOptions &options, lower::KernelInfo info,
                                           std::span<const char> host, std::span<const char> device) {
  switch (target) {
  case Target::cpu:
    return makeCpuExecutable(std::move(info), host);
  case Target::sim:
    return makeSimExecutable(std::move(info), host, device);
  case Target::cuda:
    return makeCudaExecutable(std::move(info), host, device, options.device);
  case Target::interpreter:
    break;
  }
  throw InternalError("the interpreter runs Tile IR, not code");
}

void setOverlaps(func::FuncOp kernel, ArrayRef<Overlaps> overlaps) {
  Builder b(kernel.getContext());
  for (auto [number, one] : llvm::enumerate(overlaps)) {
    if (!llvm::isa<tile::ViewType>(kernel.getArgument(number).getType()))
      continue;
    kernel.setArgAttr(number, tile::overlapsAttr, b.getDenseI64ArrayAttr(one.with));
    if (one.sameAs >= 0)
      kernel.setArgAttr(number, tile::sameAsAttr, b.getI64IntegerAttr(one.sameAs));
  }
}

} // namespace

OwningOpRef<ModuleOp> traceSpecialized(const Kernel &kernel, const Specialization &specialization,
                                       MLIRContext &context) {
  OwningOpRef<ModuleOp> module = traceKernel(kernel, specialization.arguments, specialization.noOverlap, context);
  setOverlaps(lower::kernelOf(*module), specialization.overlaps);
  return module;
}

std::shared_ptr<Executable> compileKernel(const Kernel &kernel, const Specialization &specialization,
                                          const CompileOptions &options, CompileReport &report, EmitRequest *emit) {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module;
  {
    PhaseTimer timer(report, "trace");
    module = traceSpecialized(kernel, specialization, *context);
  }
  return compileTileIr(std::move(context), std::move(module), specialization.target, options, report, emit);
}

std::shared_ptr<Executable> compileTileIr(std::unique_ptr<MLIRContext> context, OwningOpRef<ModuleOp> module,
                                          Target target, const CompileOptions &options, CompileReport &report,
                                          EmitRequest *emit) {
  auto stops = [&](const char *phase) { return emit && emit->phase == phase; };
  if (stops("tile")) {
    printTo(*emit, *module);
    return nullptr;
  }
  if (target == Target::interpreter && !emit)
    return makeInterpretedExecutable(std::move(context), std::move(module));

  std::string tileIr;
  {
    PhaseTimer timer(report, "key");
    tileIr = print(*module, /*withLocations=*/true);
    report.key = cacheKey(tileIr, target, options);
  }
  if (options.useDiskCache && !emit) {
    PhaseTimer timer(report, "load");
    if (auto entry = diskCache().load(report.key))
      if (auto object = decodeObject(*entry)) {
        report.fromDisk = true;
        report.remarks = object->info.remarks;
        if (isGpu(target))
          report.gpu = gpuReport(object->info.gpu);
        return makeExecutable(target, options, std::move(object->info), object->code, object->device);
      }
  }

  std::optional<GeneratedCode> code;
  try {
    guardFatalErrors([&] {
      code = isGpu(target) ? generateGpuCode(*context, *module, target, options, report, emit)
                           : generateCpuCode(*context, *module, options, report, emit);
    });
  } catch (const InternalError &error) {
    raiseWithReproducer(error, tileIr,
                        "Compiled for " + std::string(nameOf(target)) + ", instruction set " + options.isa +
                            (isGpu(target) ? ", " + options.gpu + ", options " + gpuOptionsText(options) : ""));
  }
  if (!code)
    return nullptr;
  if (options.useDiskCache)
    diskCache().store(report.key, encodeObject(code->info, code->host, code->device));
  PhaseTimer timer(report, "link");
  return makeExecutable(target, options, std::move(code->info), code->host, code->device);
}

} // namespace tenon::jit
