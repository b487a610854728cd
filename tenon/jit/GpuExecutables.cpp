// SPDX-License-Identifier: Apache-2.0
//
// Kernels lowered to GPU threads: run by the simulator, or by a CUDA device.
#include "tenon/base/Error.h"
#include "tenon/base/SimThread.h"
#include "tenon/compiler/target/cpu/Loader.h"
#include "tenon/jit/Executable.h"
#include "tenon/runtime/Tensor.h"
#include "tenon/runtime/cuda/CudaStream.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Launch.h"
#include "tenon/runtime/cuda/Memory.h"
#include "tenon/runtime/cuda/Module.h"
#include "tenon/runtime/sim/Simulator.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace tenon::jit {
namespace {

/// The host's part of a GPU kernel.
class HostPlan {
public:
  explicit HostPlan(std::span<const char> code)
      : code_(code, {}), plan_(reinterpret_cast<cpu::PlanFunction>(code_.address(cpu::planSymbol))) {}
  Executable::Plan operator()(const lower::KernelInfo &info, std::span<const int64_t> words) const {
    return readPlan(plan_, info, words);
  }

private:
  cpu::LinkedObject code_;
  cpu::PlanFunction plan_;
};

int64_t blocksOf(const Executable::Plan &plan, const lower::KernelInfo &info) {
  int64_t instances = plan.grid[0] * plan.grid[1] * plan.grid[2];
  constexpr int64_t most = (int64_t(1) << 31) - 1;
  if (instances > most / info.gpu.cluster)
    throw Error("a grid of " + std::to_string(instances) + " program instances is more than a GPU can launch at once (" +
                std::to_string(most / info.gpu.cluster) + "): use larger tiles");
  return instances * info.gpu.cluster;
}

//===--- The simulator --------------------------------------------------------------------------------------------===//

std::vector<cpu::ExternalSymbol> simulatorSymbols() {
  std::vector<cpu::ExternalSymbol> symbols;
  for (const sim::SimSymbol &symbol : sim::simSymbols())
    symbols.push_back({symbol.name, symbol.address});
  return symbols;
}

class SimExecutable final : public Executable {
public:
  SimExecutable(lower::KernelInfo kernelInfo, std::span<const char> plan, std::span<const char> code)
      : plan_(plan), code_(code, simulatorSymbols()),
        program_(sim::simProgram(code_.address(sim::threadSymbol), code_.address(sim::placesSymbol),
                                 code_.address(sim::shapeSymbol))) {
    info = std::move(kernelInfo);
  }

  Plan plan(std::span<const int64_t> words) const override { return plan_(info, words); }

  void run(const Plan &plan, std::span<const int64_t> words, const RunOptions &) const override {
    DeviceReports reports(info);
    std::vector<int64_t> reported = reports.initialWords();
    std::vector<int64_t> all(words.begin(), words.end());
    all.push_back(reinterpret_cast<int64_t>(reported.data()));
    all.push_back(reinterpret_cast<int64_t>(reported.data() + DeviceReports::statusWords));
    sim::SimLaunch launch;
    launch.program = program_;
    launch.blocks = blocksOf(plan, info);
    launch.words = all;
    size_t word = 0;
    for (auto [i, argument] : llvm::enumerate(info.arguments)) {
      if (argument.isView)
        addRange(launch, words.subspan(word), argument.rank, argument.elementBytes, argument.name, info.written[i]);
      word += argument.isView ? 1 + 2 * argument.rank : 1;
    }
    for (const auto &workspace : info.workspaces) {
      addRange(launch, words.subspan(word), workspace.rank, workspace.elementBytes, "a workspace", true);
      word += 1 + 2 * workspace.rank;
    }
    launch.memory.push_back({reinterpret_cast<int64_t>(reported.data()), static_cast<int64_t>(8 * reported.size()),
                             "the kernel's reports", true});
    joinOverlapping(launch.memory);
    sim::SimReport found = sim::simulate(launch);
    if (!found.findings.empty())
      throw Error("the simulator found in kernel " + info.name + ":\n" + found.text());
    reports.read(reported);
  }

private:
  /// The bytes between a view's lowest and highest element.
  static void addRange(sim::SimLaunch &launch, std::span<const int64_t> words, unsigned rank, unsigned elementBytes,
                       const std::string &name, bool written) {
    int64_t low = 0, high = elementBytes;
    for (unsigned d = 0; d < rank; ++d) {
      int64_t size = words[1 + d], reach = (size - 1) * words[1 + rank + d] * elementBytes;
      if (size == 0)
        return;
      (reach < 0 ? low : high) += reach;
    }
    launch.memory.push_back({words[0] + low, high - low, name, written});
  }

  /// Views of one memory, of which some are written, count as one view.
  static void joinOverlapping(std::vector<sim::MemoryRange> &ranges) {
    llvm::stable_sort(ranges, [](auto &a, auto &b) { return a.address < b.address; });
    std::vector<sim::MemoryRange> joined;
    for (sim::MemoryRange &range : ranges) {
      if (joined.empty() || range.address >= joined.back().address + joined.back().bytes) {
        joined.push_back(std::move(range));
        continue;
      }
      sim::MemoryRange &last = joined.back();
      last.bytes = std::max(last.bytes, range.address + range.bytes - last.address);
      last.name += " and " + range.name;
      last.writable |= range.writable;
    }
    ranges = std::move(joined);
  }

  HostPlan plan_;
  cpu::LinkedObject code_;
  sim::SimProgram program_;
};

//===--- A CUDA device --------------------------------------------------------------------------------------------===//

class CudaExecutable final : public Executable {
public:
  CudaExecutable(lower::KernelInfo kernelInfo, std::span<const char> plan, std::span<const char> cubin, int device)
      : plan_(plan), gpu_(cuda::Gpu::get(device)),
        function_(cuda::Module::fromCubin(gpu_, std::as_bytes(cubin)), kernelInfo.name,
                  static_cast<uint32_t>(kernelInfo.gpu.sharedBytes), static_cast<uint32_t>(kernelInfo.gpu.cluster)) {
    info = std::move(kernelInfo);
  }

  Plan plan(std::span<const int64_t> words) const override { return plan_(info, words); }

  void run(const Plan &plan, std::span<const int64_t> words, const RunOptions &options) const override {
    Stream &stream = *options.stream;
    cuda::LaunchShape shape;
    shape.grid[0] = static_cast<uint32_t>(blocksOf(plan, info));
    shape.block[0] = static_cast<uint32_t>(info.gpu.threads);
    shape.cluster[0] = static_cast<uint32_t>(info.gpu.cluster);
    shape.sharedBytes = static_cast<uint32_t>(info.gpu.sharedBytes);
    llvm::SmallVector<uint64_t, 256> all(words.begin(), words.end());
    DeviceReports reports(info);
    if (!reports.needed()) {
      all.append(2, 0);
      cuda::launch(function_, shape, cuda::CudaStream::of(stream), all);
      if (options.wait)
        stream.synchronize();
      return;
    }
    // A kernel that asserts or prints is waited for: its reports are read when it is done.
    std::vector<int64_t> reported = reports.initialWords();
    int64_t size = static_cast<int64_t>(reported.size());
    Tensor device = Tensor::empty(DType::i64, {size}, gpu_.device());
    cuda::copyToDevice(gpu_, device.data(), reported.data(), 8 * reported.size());
    auto address = reinterpret_cast<uint64_t>(device.data());
    all.push_back(address);
    all.push_back(address + 8 * DeviceReports::statusWords);
    cuda::launch(function_, shape, cuda::CudaStream::of(stream), all);
    stream.synchronize();
    cuda::copyToHost(gpu_, reported.data(), device.data(), 8 * reported.size());
    reports.read(reported);
  }

private:
  HostPlan plan_;
  cuda::Gpu &gpu_;
  cuda::Function function_;
};

} // namespace

Stream &defaultStream(int device) {
  // One per device, never destroyed.
  static auto &mutex = *new std::mutex();
  static auto &streams = *new std::vector<std::unique_ptr<Stream>>();
  std::lock_guard lock(mutex);
  if (streams.size() <= static_cast<size_t>(device))
    streams.resize(device + 1);
  if (!streams[device])
    streams[device] = std::make_unique<Stream>(Device::cuda(device));
  return *streams[device];
}

std::shared_ptr<Executable> makeSimExecutable(lower::KernelInfo info, std::span<const char> plan,
                                              std::span<const char> code) {
  return std::make_shared<SimExecutable>(std::move(info), plan, code);
}

std::shared_ptr<Executable> makeCudaExecutable(lower::KernelInfo info, std::span<const char> plan,
                                               std::span<const char> cubin, int device) {
  return std::make_shared<CudaExecutable>(std::move(info), plan, cubin, device);
}

} // namespace tenon::jit
