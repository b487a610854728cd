// SPDX-License-Identifier: Apache-2.0
//
// Kernels lowered to GPU threads: run by the simulator, or by a CUDA device.
#include "tenon/base/Error.h"
#include "tenon/base/SimThread.h"
#include "tenon/compiler/target/cpu/Loader.h"
#include "tenon/jit/Executable.h"
#include "tenon/profile/Recorder.h"
#include "tenon/jit/MappedViews.h"
#include "tenon/runtime/Tensor.h"
#include "tenon/runtime/cuda/CudaStream.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Launch.h"
#include "tenon/runtime/cuda/Memory.h"
#include "tenon/runtime/cuda/Module.h"
#include "tenon/runtime/cuda/TensorMap.h"
#include "tenon/runtime/sim/Simulator.h"
#include "tenon/runtime/sim/TensorMap.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <array>
#include <cstdlib>

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

/// How many blocks to launch. A kernel that loops over the program instances itself gets `mostOfPersistent`, a
/// multiple of its cluster, or fewer.
int64_t blocksOf(const Executable::Plan &plan, const lower::KernelInfo &info, int64_t mostOfPersistent) {
  int64_t instances = plan.grid[0] * plan.grid[1] * plan.grid[2];
  constexpr int64_t most = (int64_t(1) << 31) - 1;
  if (instances > most / info.gpu.cluster)
    throw Error("a grid of " + std::to_string(instances) + " program instances is more than a GPU can launch at once (" +
                std::to_string(most / info.gpu.cluster) + "): use larger tiles");
  int64_t blocks = instances * info.gpu.cluster;
  if (info.gpu.sharesTail)
    return mostOfPersistent;
  return info.gpu.persistent ? std::min(blocks, mostOfPersistent) : blocks;
}

//===--- The simulator --------------------------------------------------------------------------------------------===//

std::vector<cpu::ExternalSymbol> simulatorSymbols() {
  std::vector<cpu::ExternalSymbol> symbols;
  for (const sim::SimSymbol &symbol : sim::simSymbols())
    symbols.push_back({symbol.name, symbol.address});
  return symbols;
}

/// TENON_SIM_SEED: not 0 for asynchronous work and threads in a random order instead of the latest and the first.
uint64_t simulatorSeed() {
  const char *text = std::getenv("TENON_SIM_SEED");
  uint64_t seed = 0;
  if (text && *text && llvm::StringRef(text).getAsInteger(10, seed))
    throw Error("TENON_SIM_SEED is '" + std::string(text) + "' and should be a number");
  return seed;
}

/// Throws for what would be refused on a device.
sim::TensorMap simulated(const cuda::TiledTensor &tensor) {
  if (!MappedViews::isEmpty(tensor))
    cuda::checkTensorMap(tensor);
  sim::TensorMap map;
  map.address = static_cast<int64_t>(tensor.address);
  map.elementBytes = static_cast<int32_t>(tensor.elementBytes);
  map.rank = static_cast<int32_t>(tensor.rank);
  map.swizzleBytes = static_cast<int32_t>(tensor.swizzleBytes);
  for (size_t d = 0; d < tensor.rank; ++d) {
    map.sizes[d] = tensor.sizes[d];
    map.box[d] = static_cast<int32_t>(tensor.box[d]);
    if (d > 0)
      map.strides[d - 1] = tensor.byteStrides[d];
  }
  return map;
}

class SimExecutable final : public Executable {
public:
  SimExecutable(lower::KernelInfo kernelInfo, std::span<const char> plan, std::span<const char> code)
      : Executable(std::move(kernelInfo)), plan_(plan), code_(code, simulatorSymbols()),
        program_(sim::simProgram(code_.address(sim::threadSymbol), code_.address(sim::placesSymbol),
                                 code_.address(sim::shapeSymbol))),
        views_(info) {}

  Plan plan(std::span<const int64_t> words) const override { return plan_(info, words); }

  void run(const Plan &plan, std::span<const int64_t> words, const RunOptions &) const override {
    DeviceReports reports(info);
    std::vector<int64_t> reported = reports.initialWords();
    std::vector<int64_t> all(words.begin(), words.end());
    all.push_back(reinterpret_cast<int64_t>(reported.data()));
    all.push_back(reinterpret_cast<int64_t>(reported.data() + DeviceReports::statusWords));
    std::array<sim::TensorMap, cuda::maxTensorMaps> maps;
    for (size_t i = 0; i < views_.size(); ++i) {
      maps[i] = simulated(views_.tensor(i, words));
      all.push_back(reinterpret_cast<int64_t>(&maps[i]));
    }
    sim::SimLaunch launch;
    launch.program = program_;
    launch.blocks = blocksOf(plan, info, persistentClusters * info.gpu.cluster);
    launch.words = all;
    launch.options.seed = simulatorSeed();
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
    checkRestored(words);
  }

private:
  /// Workspaces that the kernel promises to leave as it found them.
  void checkRestored(std::span<const int64_t> words) const {
    size_t word = 0;
    for (const auto &argument : info.arguments)
      word += argument.isView ? 1 + 2 * argument.rank : 1;
    for (const auto &workspace : info.workspaces) {
      size_t bytes = workspace.elementBytes;
      for (unsigned d = 0; d < workspace.rank; ++d)
        bytes *= static_cast<size_t>(words[word + 1 + d]);
      const auto *begin = reinterpret_cast<const char *>(words[word]);
      if (workspace.initial == tile::Initial::restored && std::any_of(begin, begin + bytes, [](char c) { return c; }))
        throw Error("kernel " + info.name + " leaves numbers in a workspace that it promises to leave zero");
      word += 1 + 2 * workspace.rank;
    }
  }

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

  /// As if the device had room for so few: small problems have their blocks loop, too.
  static constexpr int64_t persistentClusters = 3;

  HostPlan plan_;
  cpu::LinkedObject code_;
  sim::SimProgram program_;
  MappedViews views_;
};

//===--- A CUDA device --------------------------------------------------------------------------------------------===//

/// Of the kernel: words of arguments, of workspaces and of reports, then tensor maps.
size_t parameterCount(const lower::KernelInfo &info) {
  size_t count = 2 + info.gpu.tensorMaps.size();
  for (const auto &argument : info.arguments)
    count += argument.isView ? 1 + 2 * argument.rank : 1;
  for (const auto &workspace : info.workspaces)
    count += 1 + 2 * workspace.rank;
  return count;
}

/// TENON_OVERLAP_LAUNCHES: 0 for kernels that start only when the one before is done. Read when a kernel is loaded.
bool overlapLaunches() {
  const char *text = std::getenv("TENON_OVERLAP_LAUNCHES");
  llvm::StringRef choice = text ? text : "";
  if (!choice.empty() && choice != "0" && choice != "1")
    throw Error("TENON_OVERLAP_LAUNCHES is '" + choice.str() + "' and should be 0 or 1");
  return choice != "0";
}

/// A cubin, or PTX with its terminating zero, which the driver assembles now (and may remember for the next process).
std::shared_ptr<cuda::Module> loadCode(cuda::Gpu &gpu, std::span<const char> code) {
  bool isText = !code.empty() && code.front() != '\x7f' && code.back() == '\0';
  return isText ? cuda::Module::fromPtx(gpu, code.data()) : cuda::Module::fromCubin(gpu, std::as_bytes(code));
}

class CudaExecutable final : public Executable {
public:
  CudaExecutable(lower::KernelInfo kernelInfo, std::span<const char> plan, std::span<const char> code, int device)
      : Executable(std::move(kernelInfo)), plan_(plan), gpu_(cuda::Gpu::get(device)),
        function_(loadCode(gpu_, code), info.name,
                  static_cast<uint32_t>(info.gpu.sharedBytes), static_cast<uint32_t>(info.gpu.cluster),
                  parameterCount(info)),
        views_(info), maps_(std::make_unique<cuda::TensorMapCache[]>(views_.size())) {
    shape_.block[0] = static_cast<uint32_t>(info.gpu.threads);
    shape_.cluster[0] = static_cast<uint32_t>(info.gpu.cluster);
    shape_.sharedBytes = static_cast<uint32_t>(info.gpu.sharedBytes);
    shape_.startsEarly = info.gpu.startsEarly && overlapLaunches();
    if (info.gpu.persistent)
      blocksAtOnce_ = function_.blocksAtOnce(shape_.block[0], shape_.sharedBytes, shape_.cluster[0]);
    if (views_.size())
      zero_ = Tensor::zeros(DType::u8, {16}, gpu_.device());
  }

  Plan plan(std::span<const int64_t> words) const override { return plan_(info, words); }

  void run(const Plan &plan, std::span<const int64_t> words, const RunOptions &options) const override {
    Stream &stream = *options.stream;
    cuda::LaunchShape shape = shape_;
    shape.grid[0] = static_cast<uint32_t>(blocksOf(plan, info, blocksAtOnce_));
    std::array<cuda::TensorMap, cuda::maxTensorMaps> room;
    std::span<const cuda::TensorMap> maps = makeMaps(words, room);
    llvm::SmallVector<uint64_t, 256> all(words.begin(), words.end());
    DeviceReports reports(info);
    if (!reports.needed()) {
      all.append(2, 0);
      cuda::launch(function_, shape, cuda::CudaStream::of(stream), all, maps);
      if (options.wait) {
        profile::Implicit because("a launch without a stream waits for its kernel");
        stream.synchronize();
      }
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
    cuda::launch(function_, shape, cuda::CudaStream::of(stream), all, maps);
    profile::Implicit because("a kernel that asserts or prints is waited for");
    stream.synchronize();
    cuda::copyToHost(gpu_, reported.data(), device.data(), 8 * reported.size());
    reports.read(reported);
  }

private:
  std::span<const cuda::TensorMap> makeMaps(std::span<const int64_t> words, std::span<cuda::TensorMap> room) const {
    for (size_t i = 0; i < views_.size(); ++i) {
      cuda::TiledTensor tensor = views_.tensor(i, words);
      if (MappedViews::isEmpty(tensor)) [[unlikely]] {
        // There is no map of nothing, but one of a single zero: whatever is read through it is zero.
        tensor.address = reinterpret_cast<uint64_t>(zero_.data());
        tensor.sizes.fill(1);
        tensor.byteStrides.fill(16);
      }
      maps_[i].get(gpu_, tensor, room[i]);
    }
    return room.first(views_.size());
  }

  HostPlan plan_;
  cuda::Gpu &gpu_;
  cuda::Function function_;
  MappedViews views_;
  std::unique_ptr<cuda::TensorMapCache[]> maps_; ///< one for each map
  Tensor zero_;
  cuda::LaunchShape shape_; ///< but for the grid
  int64_t blocksAtOnce_ = 0;
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
