// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/cuda/Module.h"

#include "tenon/base/Error.h"
#include "tenon/runtime/cuda/Gpu.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>

namespace tenon::cuda {
namespace {

/// The options of the driver's assembler as it wants them: two arrays, with room for what it says. They and this object
/// must stay where they are until the assembler is done.
class AssemblerCall {
public:
  explicit AssemblerCall(const AssembleOptions *options) {
    add(jit_option::infoLogBuffer, info_.data());
    add(jit_option::infoLogBytes, number(info_.size()));
    add(jit_option::errorLogBuffer, error_.data());
    add(jit_option::errorLogBytes, number(error_.size()));
    if (!options)
      return;
    add(jit_option::optimizationLevel, number(static_cast<unsigned>(options->optimization)));
    if (options->lineInfo)
      add(jit_option::generateLineInfo, number(1));
    if (options->verbose)
      add(jit_option::logVerbose, number(1));
    if (options->maxRegisters > 0)
      add(jit_option::maxRegisters, number(static_cast<unsigned>(options->maxRegisters)));
  }
  AssemblerCall(const AssemblerCall &) = delete;
  AssemblerCall &operator=(const AssemblerCall &) = delete;

  unsigned count() const { return count_; }
  int *options() { return options_.data(); }
  void **values() { return values_.data(); }

  std::string log() const { return text(info_); }

  [[noreturn]] void fail(Gpu &gpu, Result failure, const char *doing) const {
    std::string words = text(error_);
    if (words.empty() || gpu.isLost())
      gpu.fail(failure, doing);
    try {
      gpu.fail(failure, doing);
    } catch (const Error &error) {
      throw Error(std::string(error.what()) + "\n" + words);
    }
  }

private:
  using Text = std::array<char, 16384>;

  void add(int option, void *value) {
    options_[count_] = option;
    values_[count_++] = value;
  }
  static void *number(size_t value) { return reinterpret_cast<void *>(value); }
  static std::string text(const Text &buffer) {
    std::string_view all(buffer.data(), strnlen(buffer.data(), buffer.size()));
    while (!all.empty() && (all.back() == '\n' || all.back() == ' '))
      all.remove_suffix(1);
    return std::string(all);
  }

  Text info_{}, error_{};
  std::array<int, 8> options_{};
  std::array<void *, 8> values_{};
  unsigned count_ = 0;
};

/// Names are part of error texts long after a module may be gone.
const char *intern(const std::string &name) {
  static std::mutex mutex;
  static auto &names = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

/// The driver is given no size and believes the header: one that was cut short would send it past the end.
void checkWhole(std::span<const std::byte> cubin) {
  struct Header { // of 64-bit ELF
    unsigned char identity[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, programs, sections;
    uint32_t flags;
    uint16_t headerBytes, programBytes, programCount, sectionBytes, sectionCount, names;
  } header;
  static_assert(sizeof header == 64);
  bool whole = cubin.size() >= sizeof header;
  if (whole) {
    std::memcpy(&header, cubin.data(), sizeof header);
    uint64_t sections = uint64_t(header.sectionBytes) * header.sectionCount;
    uint64_t programs = uint64_t(header.programBytes) * header.programCount;
    whole = std::memcmp(header.identity, "\x7f\x45LF\x02", 5) == 0 && header.sections <= cubin.size() &&
            sections <= cubin.size() - header.sections && header.programs <= cubin.size() &&
            programs <= cubin.size() - header.programs;
  }
  if (!whole)
    throw Error("loading a kernel failed: its " + std::to_string(cubin.size()) +
                " bytes are not a whole cubin; if they came from a cache, delete the entry");
}

} // namespace

Cubin assemble(Gpu &gpu, const std::string &ptx, const AssembleOptions &options) {
  const char *doing = "assembling a kernel";
  gpu.checkUsable();
  CurrentContext current(gpu);
  const DriverApi &api = gpu.api();
  AssemblerCall call(&options);
  LinkHandle link = nullptr;
  if (Result failure = api.cuLinkCreate(call.count(), call.options(), call.values(), &link))
    call.fail(gpu, failure, doing);
  struct Guard {
    const DriverApi &api;
    LinkHandle link;
    ~Guard() { api.cuLinkDestroy(link); }
  } guard{api, link};
  // With its terminating zero, as the driver wants it.
  auto *text = const_cast<char *>(ptx.c_str());
  size_t size = ptx.size() + 1;
  if (Result failure = api.cuLinkAddData(link, jit_option::inputPtx, text, size, "kernel", 0, nullptr, nullptr))
    call.fail(gpu, failure, doing);
  void *bytes = nullptr;
  size_t count = 0;
  if (Result failure = api.cuLinkComplete(link, &bytes, &count))
    call.fail(gpu, failure, doing);
  // The bytes belong to the link.
  auto *begin = static_cast<const std::byte *>(bytes);
  return {std::vector<std::byte>(begin, begin + count), call.log()};
}

AssemblerStart::AssemblerStart(int device) {
  static std::atomic<bool> isStarted = false;
  if (isStarted.exchange(true))
    return;
  try {
    thread_ = std::thread([device] {
      try {
        (void)assemble(Gpu::get(device),
                       ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry start() { ret; }\n");
      } catch (const std::exception &) {
      }
    });
  } catch (const std::system_error &) { // no thread: it starts when it is needed
  }
}

AssemblerStart::~AssemblerStart() {
  if (thread_.joinable())
    thread_.join();
}

std::shared_ptr<Module> Module::load(Gpu &gpu, const void *image, const AssembleOptions *options, const char *doing) {
  gpu.checkUsable();
  CurrentContext current(gpu);
  AssemblerCall call(options);
  ModuleHandle handle = nullptr;
  if (Result failure = gpu.api().cuModuleLoadDataEx(&handle, image, call.count(), call.options(), call.values()))
    call.fail(gpu, failure, doing);
  return std::shared_ptr<Module>(new Module(gpu, handle, call.log()));
}

std::shared_ptr<Module> Module::fromPtx(Gpu &gpu, const std::string &ptx, const AssembleOptions &options) {
  return load(gpu, ptx.c_str(), &options, "assembling a kernel");
}

std::shared_ptr<Module> Module::fromCubin(Gpu &gpu, std::span<const std::byte> cubin) {
  checkWhole(cubin);
  return load(gpu, cubin.data(), nullptr, "loading a kernel");
}

Module::~Module() {
  if (gpu_.isLost())
    return;
  gpu_.awaitQueuedWork();
  CurrentContext current(gpu_);
  gpu_.note(gpu_.api().cuModuleUnload(handle_), "unloading a kernel");
}

Function::Function(std::shared_ptr<Module> module, const std::string &name, uint32_t sharedBytes,
                   uint32_t clusterBlocks, size_t parameters)
    : module_(std::move(module)), name_(intern(name)) {
  Gpu &gpu = module_->gpu();
  const DriverApi &api = gpu.api();
  CurrentContext current(gpu);
  if (Result failure = api.cuModuleGetFunction(&handle_, module_->handle(), name_))
    gpu.fail(failure, "finding kernel '" + name + "'");
  auto ask = [&](int attribute) {
    int value = 0;
    gpu.check(api.cuFuncGetAttribute(&value, attribute, handle_), "asking for a kernel's resources");
    return value;
  };
  attributes_.registers = ask(function_attribute::registers);
  attributes_.localBytes = ask(function_attribute::localBytes);
  attributes_.staticSharedBytes = ask(function_attribute::sharedBytes);
  attributes_.maxThreads = ask(function_attribute::maxThreadsPerBlock);
  measureParameters(parameters);
  allowSharedBytes(sharedBytes);
  allowCluster(clusterBlocks);
}

void Function::measureParameters(size_t count) {
  Gpu &gpu = module_->gpu();
  if (count == 0 || !gpu.api().cuFuncGetParamInfo)
    return;
  // The last alone: asking for one that is not there is an error that tools which watch the driver would tell.
  size_t offset = 0, bytes = 0;
  Result failure = gpu.api().cuFuncGetParamInfo(handle_, count - 1, &offset, &bytes);
  if (failure == result::invalidValue)
    throw InternalError(std::string("kernel '") + name_ + "' has fewer than " + std::to_string(count) + " parameters");
  gpu.check(failure, "asking for a kernel's parameters");
  parameterBytes_ = static_cast<int64_t>(offset + bytes);
}

int64_t Function::blocksAtOnce(uint32_t blockThreads, uint32_t sharedBytes, uint32_t clusterBlocks) const {
  Gpu &gpu = module_->gpu();
  const DriverApi &api = gpu.api();
  CurrentContext current(gpu);
  const char *doing = "asking how many blocks of a kernel fit";
  int64_t cluster = std::max<int64_t>(clusterBlocks, 1);
  if (cluster > 1 && api.cuOccupancyMaxActiveClusters) {
    LaunchAttribute attribute{launch_attribute::clusterDimension, {}, {clusterBlocks, 1, 1}};
    RawLaunchConfig config{{clusterBlocks, 1, 1}, {blockThreads, 1, 1}, sharedBytes, nullptr, &attribute, 1};
    int clusters = 0;
    gpu.check(api.cuOccupancyMaxActiveClusters(&clusters, handle_, &config), doing);
    return std::max<int64_t>(clusters, 1) * cluster;
  }
  int blocks = 0;
  gpu.check(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, handle_, static_cast<int>(blockThreads),
                                                            sharedBytes),
            doing);
  return std::max<int64_t>(int64_t(blocks) * gpu.properties().multiprocessors / cluster, 1) * cluster;
}

int clustersAtOnce(Gpu &gpu, int blocks) {
  if (!gpu.properties().hasClusters || !gpu.api().cuOccupancyMaxActiveClusters)
    return 0;
  static std::mutex mutex;
  static auto &known = *new std::map<std::pair<int, int>, int>; // by device and blocks
  std::lock_guard lock(mutex);
  if (auto found = known.find({gpu.ordinal(), blocks}); found != known.end())
    return found->second;
  // The question is one of a kernel. This one leaves no other block on a multiprocessor enough shared memory.
  constexpr const char *text = ".version 7.8\n.target sm_90\n.address_size 64\n"
                               ".visible .entry tenon_nothing() { ret; }\n";
  auto shared = static_cast<uint32_t>(gpu.properties().sharedBytesPerMultiprocessor / 2);
  auto size = static_cast<uint32_t>(blocks);
  constexpr uint32_t warpgroup = 128;
  Function kernel(Module::fromPtx(gpu, text), "tenon_nothing", shared, size);
  return known[{gpu.ordinal(), blocks}] = static_cast<int>(kernel.blocksAtOnce(warpgroup, shared, size) / blocks);
}

void Function::allowSharedBytes(uint32_t bytes) {
  Gpu &gpu = module_->gpu();
  int64_t total = int64_t(bytes) + attributes_.staticSharedBytes;
  if (total <= gpu.properties().sharedBytesPerBlock)
    return;
  if (total > gpu.properties().sharedBytesPerBlockOptin)
    throw Error(std::string("kernel '") + name_ + "' needs " + std::to_string(total) +
                " bytes of shared memory a block, and " + gpu.device().str() + " has " +
                std::to_string(gpu.properties().sharedBytesPerBlockOptin) + "; use smaller tiles or fewer stages");
  gpu.check(gpu.api().cuFuncSetAttribute(handle_, function_attribute::maxDynamicSharedBytes, static_cast<int>(bytes)),
            "asking for more shared memory");
}

void Function::allowCluster(uint32_t blocks) {
  Gpu &gpu = module_->gpu();
  if (blocks <= 1)
    return;
  if (!gpu.properties().hasClusters)
    throw Error(std::string("kernel '") + name_ + "' runs in clusters of " + std::to_string(blocks) +
                " blocks, which " + gpu.device().str() + " or its driver does not have; compile it without clusters");
  constexpr uint32_t everywhere = 8; // a larger cluster is possible on some devices only
  if (blocks > everywhere)
    gpu.check(gpu.api().cuFuncSetAttribute(handle_, function_attribute::nonPortableClusterSizeAllowed, 1),
              "asking for a large cluster");
}

} // namespace tenon::cuda
