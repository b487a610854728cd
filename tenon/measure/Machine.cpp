// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Machine.h"

#include "tenon/base/Error.h"
#include "tenon/jit/DiskCache.h"
#include "tenon/runtime/CpuPool.h"
#include "tenon/runtime/Device.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <unistd.h>

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> firstLine(const fs::path &path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line))
    return std::nullopt;
  return line;
}

std::optional<uint64_t> number(const std::optional<std::string> &text) {
  if (!text || text->empty() || !std::isdigit(static_cast<unsigned char>(text->front())))
    return std::nullopt;
  char *end = nullptr;
  uint64_t value = std::strtoull(text->c_str(), &end, 10);
  return *end == 'K' ? value << 10 : *end == 'M' ? value << 20 : value;
}

std::string cpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown";
}

/// "0-3,8" is five processors.
int countProcessors(const std::string &list) {
  int count = 0;
  std::stringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) {
    size_t dash = part.find('-');
    int first = std::atoi(part.c_str());
    count += dash == std::string::npos ? 1 : std::atoi(part.c_str() + dash + 1) - first + 1;
  }
  return std::max(count, 1);
}

std::vector<Machine::Cache> cpuCaches() {
  std::vector<Machine::Cache> caches;
  for (int index = 0;; ++index) {
    fs::path folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    auto bytes = number(firstLine(folder / "size"));
    if (!bytes)
      break;
    Machine::Cache cache;
    cache.level = static_cast<int>(number(firstLine(folder / "level")).value_or(0));
    cache.type = firstLine(folder / "type").value_or("");
    cache.bytes = *bytes;
    cache.sharedBy = countProcessors(firstLine(folder / "shared_cpu_list").value_or("0"));
    caches.push_back(cache);
  }
  if (!caches.empty())
    return caches;
  // A container may hide sysfs; the C library reads the same numbers from cpuid.
  for (auto [level, name] :
       {std::pair(1, _SC_LEVEL1_DCACHE_SIZE), {2, _SC_LEVEL2_CACHE_SIZE}, {3, _SC_LEVEL3_CACHE_SIZE}})
    if (long bytes = sysconf(name); bytes > 0)
      caches.push_back({level, level == 1 ? "Data" : "Unified", static_cast<uint64_t>(bytes), 1});
  return caches;
}

/// The levels of CompileOptions::isa.
std::vector<std::string> isaLevels() {
  std::vector<std::string> levels;
#if defined(__x86_64__)
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    levels.push_back("avx512");
  if (avx2)
    levels.push_back("avx2");
#endif
  levels.push_back("baseline");
  return levels;
}

std::vector<std::string> isaExtras() {
  std::vector<std::string> extras;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags")) {
      std::stringstream words(line);
      for (std::string word; words >> word;)
        for (const char *known :
             {"avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16", "amx_int8"})
          if (word == known) {
            std::replace(word.begin(), word.end(), '_', '-');
            extras.push_back(word);
          }
      break;
    }
  return extras;
}

void readMemory(Machine &machine) {
  std::ifstream file("/proc/meminfo");
  for (std::string name, unit; file >> name;) {
    uint64_t kilobytes = 0;
    if (!(file >> kilobytes) || !std::getline(file, unit))
      break;
    if (name == "MemTotal:")
      machine.memoryBytes = kilobytes << 10;
    if (name == "MemAvailable:")
      machine.availableBytes = kilobytes << 10;
  }
  // A container's limit ("max" when there is none) counts as the machine.
  if (auto limit = number(firstLine("/sys/fs/cgroup/memory.max")); limit && *limit < machine.memoryBytes) {
    uint64_t used = number(firstLine("/sys/fs/cgroup/memory.current")).value_or(0);
    machine.memoryBytes = *limit;
    machine.availableBytes = std::min(machine.availableBytes, *limit - std::min(*limit, used));
  }
}

std::string findProgram(const std::string &name) {
  std::vector<std::string> folders;
  if (const char *path = std::getenv("PATH")) {
    std::stringstream stream(path);
    for (std::string folder; std::getline(stream, folder, ':');)
      folders.push_back(folder);
  }
  folders.push_back("/usr/local/cuda/bin");
  for (const std::string &folder : folders)
    if (std::string path = folder + "/" + name; !folder.empty() && access(path.c_str(), X_OK) == 0)
      return path;
  return "";
}

Machine::Gpu findGpu() {
  Machine::Gpu gpu;
  gpu.ptxas = findProgram("ptxas");
  gpu.reason = whyNoCuda();
  gpu.driver = cudaDriverVersion() > 0;
  try {
    for (int device = 0; device < cudaDeviceCount(); ++device)
      gpu.devices.push_back(cudaProperties(device).name);
  } catch (const Error &error) {
    gpu.reason = error.what();
    gpu.devices.clear();
  }
  return gpu;
}

Machine::KernelCache describeKernelCache() {
  DiskCache::Options options;
  options.warn = [](const std::string &) {}; // the reason is reported, not printed
  DiskCache cache(options);
  Machine::KernelCache state{cache.enabled(), cache.directory(), cache.reason(), 0, 0};
  if (!state.enabled)
    return state;
  std::error_code ignored;
  auto quietly = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator file(state.directory, quietly, ignored), end; file != end;
       file.increment(ignored))
    if (isCacheKey(file->path().filename().string())) {
      std::error_code failed;
      uint64_t bytes = file->file_size(failed);
      state.entries += !failed;
      state.bytes += failed ? 0 : bytes;
    }
  return state;
}

Machine look() {
  Machine machine;
  machine.tenonVersion = tenonVersion();
  machine.llvmVersion = TENON_LLVM_VERSION;
  machine.cpu = cpuModel();
  machine.processors = CpuPool::global().threads();
  machine.caches = cpuCaches();
  machine.isaLevels = isaLevels();
  machine.isaExtras = isaExtras();
  readMemory(machine);
  machine.gpu = findGpu();
  machine.kernelCache = describeKernelCache();
  return machine;
}

} // namespace

uint64_t Machine::lastLevelCacheBytes() const {
  uint64_t largest = 0;
  for (const Cache &cache : caches)
    largest = std::max(largest, cache.bytes);
  return largest ? largest : uint64_t(32) << 20;
}

const Machine &thisMachine() {
  static const Machine machine = look();
  return machine;
}

std::string tenonVersion() { return TENON_VERSION; }

} // namespace tenon
