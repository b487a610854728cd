// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/MeasuredCeilings.h"

#include "tenon/base/Error.h"
#include "tenon/jit/Jit.h"
#include "tenon/measure/Bench.h"
#include "tenon/measure/GpuCeilings.h"
#include "tenon/measure/Machine.h"
#include "tenon/measure/Roofline.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Module.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <unistd.h>

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;
constexpr int ceilingsSchema = 2; // 2: of GPUs also the L2 cache and products are measured

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

//===--- Bandwidth ------------------------------------------------------------------------------------------------===//

/// Goes over `bytes` (a multiple of 512) from `from`; a copy writes them to `to`.
using Sweep = void (*)(const char *from, char *to, size_t bytes);

#if defined(__x86_64__)

__attribute__((target("avx512f"))) void read512(const char *from, char *, size_t bytes) {
  __m512i sums[4] = {};
  for (size_t i = 0; i < bytes; i += 256)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      sums[j] = _mm512_or_si512(sums[j], _mm512_load_si512(from + i + 64 * j));
#pragma unroll
  for (__m512i &sum : sums)
    asm volatile("" : "+v"(sum));
}
__attribute__((target("avx512f"))) void copy512(const char *from, char *to, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 256)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      _mm512_store_si512(to + i + 64 * j, _mm512_load_si512(from + i + 64 * j));
  asm volatile("" ::: "memory");
}
__attribute__((target("avx2"))) void read256(const char *from, char *, size_t bytes) {
  __m256i sums[4] = {};
  for (size_t i = 0; i < bytes; i += 128)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      sums[j] = _mm256_or_si256(sums[j], _mm256_load_si256(reinterpret_cast<const __m256i *>(from + i + 32 * j)));
#pragma unroll
  for (__m256i &sum : sums)
    asm volatile("" : "+x"(sum));
}
#endif

void readPlain(const char *from, char *, size_t bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes; i += 64) {
    uint64_t words[8];
    std::memcpy(words, from + i, 64);
    for (uint64_t word : words)
      sum |= word;
  }
  asm volatile("" : "+r"(sum));
}
void copyPlain(const char *from, char *to, size_t bytes) {
  std::memcpy(to, from, bytes);
  asm volatile("" ::: "memory");
}

Sweep widestRead() {
#if defined(__x86_64__)
  const std::vector<std::string> &levels = thisMachine().isaLevels;
  if (levels.front() == "avx512")
    return read512;
  if (levels.front() == "avx2")
    return read256;
#endif
  return readPlain;
}
Sweep widestCopy() {
#if defined(__x86_64__)
  if (thisMachine().isaLevels.front() == "avx512")
    return copy512;
#endif
  return copyPlain;
}

class Buffer {
public:
  explicit Buffer(size_t bytes) : memory_(static_cast<char *>(std::aligned_alloc(4096, bytes))) {
    if (!memory_)
      throw std::bad_alloc();
    std::memset(memory_, 1, bytes); // touched by the thread that will use it
  }
  ~Buffer() { std::free(memory_); }
  Buffer(const Buffer &) = delete;
  char *get() const { return memory_; }

private:
  char *memory_;
};

/// Bytes a second of all threads, each going over its own `bytes`; of a copy, read plus written.
double sweepRate(Sweep sweep, bool isCopy, size_t bytes, int threads) {
  size_t part = std::max<size_t>((isCopy ? bytes / 2 : bytes) / 4096 * 4096, 4096);
  double best = 0;
  std::vector<double> ends(static_cast<size_t>(threads));
  double start = 0;
  int rounds = static_cast<int>(std::clamp<size_t>((size_t(32) << 20) / part, 1, 20000));
  std::barrier ready(threads, [&]() noexcept { start = now(); });
  std::barrier finished(threads, [&]() noexcept {
    double seconds = *std::max_element(ends.begin(), ends.end()) - start;
    best = std::max(best, static_cast<double>(part) * rounds * threads * (isCopy ? 2 : 1) / std::max(seconds, 1e-9));
  });
  std::vector<std::jthread> workers;
  for (int thread = 0; thread < threads; ++thread)
    workers.emplace_back([&, thread] {
      Buffer from(part), to(isCopy ? part : 4096);
      sweep(from.get(), to.get(), part);
      for (int attempt = 0; attempt < 5; ++attempt) {
        ready.arrive_and_wait();
        for (int round = 0; round < rounds; ++round)
          sweep(from.get(), to.get(), part);
        ends[static_cast<size_t>(thread)] = now();
        finished.arrive_and_wait();
      }
    });
  workers.clear();
  return best;
}

//===--- What needs Tenon's own code ------------------------------------------------------------------------------===//

/// exp as the compiler makes it: results a second.
double specialRate(int threads) {
  static const Kernel exponentials("exponentials(x, y, rounds=64)", [](View x, View y, Param rounds) {
    Index i = grid(x.size(0));
    Tile t = x.load({i, 0}, {1, 1024});
    for ([[maybe_unused]] Index k : range(0, rounds))
      t = exp(t * -0.5);
    y.store({i, 0}, t);
  });
  int64_t rows = 8 * threads;
  Arguments arguments = {Tensor::zeros(DType::f32, {rows, 1024}), Tensor::zeros(DType::f32, {rows, 1024})};
  LaunchOptions options;
  options.threads = threads;
  BenchOptions bench;
  bench.budgetSeconds = 0.2;
  Comparison found = compare({{"exp", [&] { launch(exponentials, arguments, options); }}}, bench);
  return static_cast<double>(rows) * 1024 * 64 / std::max(found.timings[0].fastest, 1e-9);
}

double launchSeconds(int threads) {
  static const Kernel tiny("tiny_copy(x, y)", [](View x, View y) {
    Index i = grid(1);
    y.store({i}, x.load({i}, {16}));
  });
  Arguments arguments = {Tensor::zeros(DType::f32, {16}), Tensor::zeros(DType::f32, {16})};
  LaunchOptions options;
  options.threads = threads;
  BenchOptions bench;
  bench.budgetSeconds = 0.05;
  return compare({{"launch", [&] { launch(tiny, arguments, options); }}}, bench).timings[0].seconds.median;
}

model::Ceilings measureCpu(int threads) {
  const Machine &machine = thisMachine();
  model::Ceilings ceilings;
  ceilings.device = machine.cpu + " (" + std::to_string(threads) + (threads == 1 ? " thread)" : " threads)");
  ceilings.measured = true;
  ceilings.processors = threads;
  for (const Machine::Cache &cache : machine.caches) {
    if (cache.type == "Instruction")
      continue;
    int copies = (threads + cache.sharedBy - 1) / std::max(cache.sharedBy, 1);
    double total = static_cast<double>(cache.bytes) * copies;
    auto part = static_cast<size_t>(total / 2 / threads);
    ceilings.levels.push_back({"L" + std::to_string(cache.level), total, sweepRate(widestRead(), false, part, threads),
                               sweepRate(widestCopy(), true, part, threads)});
  }
  size_t memory = std::clamp<size_t>(4 * machine.lastLevelCacheBytes(), size_t(64) << 20, size_t(1) << 30);
  if (machine.availableBytes)
    memory = std::min<size_t>(memory, machine.availableBytes / 4);
  double read = sweepRate(widestRead(), false, memory / static_cast<size_t>(threads), threads);
  Tensor from = Tensor::zeros(DType::u8, {static_cast<int64_t>(memory / 2)}), to = from.to(Device::cpu());
  HostCopy copy({{from.data(), to.data()}}, memory / 2, threads);
  double best = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    double start = now();
    copy();
    best = std::max(best, static_cast<double>(memory) / (now() - start));
  }
  // What memory does both ways it does one way: a slower reading was somebody else's doing.
  ceilings.levels.push_back({"memory", 0, std::max(read, best), best});

  Peaks peaks = measurePeaks(threads);
  auto set = [&](model::Precision precision, double vector, double matrix) {
    ceilings.vector[static_cast<size_t>(precision)] = vector;
    ceilings.matrix[static_cast<size_t>(precision)] = matrix;
  };
  using enum model::Precision;
  double single = peaks.f32.operationsPerSecond;
  double products = peaks.f32Products.operationsPerSecond, ofBf16 = peaks.bf16.operationsPerSecond;
  // Tiles multiply f32, tf32 and f16 as 6, 3 and 4 products of bf16; vectors compute them in f32.
  bool isInPieces = products > single;
  set(f32, single, products);
  set(tf32, single, isInPieces ? 2 * products : single);
  set(f64, single / 2, single / 2); // half as many fit a register
  set(f16, single, isInPieces ? 1.5 * products : single);
  set(f8, single, ofBf16);
  set(bf16, single, ofBf16);
  set(i8, single, peaks.int8.operationsPerSecond);
  set(other, single, single);
  ceilings.integer = single / 2; // a multiply-add counts as two
  ceilings.special = specialRate(threads);
  ceilings.launchSeconds = launchSeconds(threads);
  return ceilings;
}

//===--- The file -------------------------------------------------------------------------------------------------===//

int threadsOf(const CeilingOptions &options) { return options.threads ? options.threads : thisMachine().processors; }

std::string cpuIdentity(int threads) {
  const Machine &machine = thisMachine();
  std::string text = machine.cpu + "|" + std::to_string(machine.processors) + "|" + std::to_string(threads) + "|" +
                     machine.tenonVersion + "|";
  for (const auto *names : {&machine.isaLevels, &machine.isaExtras})
    for (const std::string &name : *names)
      text += name + ",";
  for (const Machine::Cache &cache : machine.caches)
    text += "|" + std::to_string(cache.level) + ":" + std::to_string(cache.bytes);
  return text;
}

std::filesystem::path fileOf(const std::string &identity, const CeilingOptions &options) {
  std::string directory = options.directory;
  if (directory.empty() && thisMachine().kernelCache.enabled)
    directory = thisMachine().kernelCache.directory;
  if (directory.empty())
    return {};
  uint64_t hash = 14695981039346656037ull; // FNV-1a: only tells files apart, the identity inside decides
  for (unsigned char byte : identity)
    hash = (hash ^ byte) * 1099511628211ull;
  char name[40];
  std::snprintf(name, sizeof name, "ceilings-%016llx.json", static_cast<unsigned long long>(hash));
  return std::filesystem::path(directory) / name;
}

std::optional<model::Ceilings> load(const std::filesystem::path &file, const std::string &identity) {
  std::ifstream stream(file);
  if (!stream)
    return std::nullopt;
  Json json = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("schema", Json()) != Json(ceilingsSchema) ||
      json.value("identity", Json()) != Json(identity) || !json.contains("ceilings"))
    return std::nullopt;
  return ceilingsFromJson(json["ceilings"]);
}

/// Complete or not at all, and not worth an error: it can be measured again.
void store(const std::filesystem::path &file, const std::string &identity, const model::Ceilings &ceilings) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  std::filesystem::path aside = file.string() + "." + std::to_string(::getpid());
  {
    std::ofstream stream(aside);
    Json json = {{"schema", ceilingsSchema}, {"identity", identity}, {"ceilings", toJson(ceilings)}};
    stream << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    if (!stream.flush()) {
      std::filesystem::remove(aside, ignored);
      return;
    }
  }
  std::filesystem::rename(aside, file, ignored);
  if (ignored)
    std::filesystem::remove(aside, ignored);
}

/// A ceiling is the most that was seen.
model::Ceilings fasterOf(model::Ceilings a, const model::Ceilings &b) {
  for (size_t i = 0; i < std::min(a.levels.size(), b.levels.size()); ++i) {
    a.levels[i].readBytesPerSecond = std::max(a.levels[i].readBytesPerSecond, b.levels[i].readBytesPerSecond);
    a.levels[i].copyBytesPerSecond = std::max(a.levels[i].copyBytesPerSecond, b.levels[i].copyBytesPerSecond);
  }
  for (size_t i = 0; i < a.vector.size(); ++i) {
    a.vector[i] = std::max(a.vector[i], b.vector[i]);
    a.matrix[i] = std::max(a.matrix[i], b.matrix[i]);
  }
  a.integer = std::max(a.integer, b.integer);
  a.special = std::max(a.special, b.special);
  a.launchSeconds = std::min(a.launchSeconds, b.launchSeconds);
  return a;
}

template <class Measure>
model::Ceilings cached(const std::string &identity, const CeilingOptions &options, Measure measure) {
  std::filesystem::path file = fileOf(identity, options);
  if (!options.remeasure && !file.empty())
    if (auto known = load(file, identity))
      return *known;
  model::Ceilings ceilings = measure();
  for (int again = 0; again < 2 && !isPlausible(ceilings); ++again)
    ceilings = fasterOf(std::move(ceilings), measure());
  if (!file.empty())
    store(file, identity, ceilings);
  return ceilings;
}

} // namespace

bool isPlausible(const model::Ceilings &ceilings) {
  for (size_t i = 1; i < ceilings.levels.size(); ++i)
    if (2 * ceilings.levels[i - 1].readBytesPerSecond < ceilings.levels[i].readBytesPerSecond)
      return false;
  return true;
}

model::Ceilings cpuCeilings(const CeilingOptions &options) {
  int threads = threadsOf(options);
  return cached(cpuIdentity(threads), options, [&] { return measureCpu(threads); });
}

std::optional<model::Ceilings> knownCpuCeilings(const CeilingOptions &options) {
  std::string identity = cpuIdentity(threadsOf(options));
  std::filesystem::path file = fileOf(identity, options);
  return file.empty() ? std::nullopt : load(file, identity);
}

void keepCpuCeilings(const model::Ceilings &ceilings, const CeilingOptions &options) {
  std::string identity = cpuIdentity(threadsOf(options));
  if (std::filesystem::path file = fileOf(identity, options); !file.empty())
    store(file, identity, ceilings);
}

model::Ceilings gpuCeilings(int device, const CeilingOptions &options) {
  const CudaProperties &properties = cudaProperties(device);
  std::string identity = properties.name + "|" + std::to_string(properties.multiprocessors) + "|" +
                         std::to_string(cudaDriverVersion()) + "|" + thisMachine().tenonVersion;
  return cached(identity, options, [&] { return measureGpuCeilings(device); });
}

model::Ceilings withClusters(model::Ceilings ceilings, int device) {
  try {
    for (size_t i = 0; i < ceilings.clusters.size(); ++i)
      ceilings.clusters[i] = cuda::clustersAtOnce(cuda::Gpu::get(device), 2 << i);
  } catch (const Error &) { // what is assumed without a device stays: it only orders candidates
  }
  return ceilings;
}

Json toJson(const model::Ceilings &ceilings) {
  Json levels = Json::array(), matrix = Json::object(), vector = Json::object();
  for (const model::Ceilings::Level &level : ceilings.levels)
    levels.push_back({{"name", level.name},
                      {"bytes", level.bytes},
                      {"read_bytes_per_s", level.readBytesPerSecond},
                      {"copy_bytes_per_s", level.copyBytesPerSecond}});
  for (size_t i = 0; i < model::precisions; ++i) {
    std::string name(nameOf(static_cast<model::Precision>(i)));
    matrix[name] = ceilings.matrix[i];
    vector[name] = ceilings.vector[i];
  }
  return {{"device", ceilings.device},
          {"is_gpu", ceilings.isGpu},
          {"measured", ceilings.measured},
          {"processors", ceilings.processors},
          {"clock_hz", ceilings.clockHertz},
          {"levels", levels},
          {"matrix_flop_per_s", matrix},
          {"vector_flop_per_s", vector},
          {"special_per_s", ceilings.special},
          {"integer_per_s", ceilings.integer},
          {"launch_s", ceilings.launchSeconds},
          {"clusters", ceilings.clusters},
          {"architecture", ceilings.limits ? Json(ceilings.limits->architecture) : Json(nullptr)}};
}

std::optional<model::Ceilings> ceilingsFromJson(const Json &json) {
  try {
    model::Ceilings ceilings;
    ceilings.device = json.at("device").get<std::string>();
    ceilings.isGpu = json.at("is_gpu").get<bool>();
    ceilings.measured = json.at("measured").get<bool>();
    ceilings.processors = json.at("processors").get<int>();
    ceilings.clockHertz = json.at("clock_hz").get<double>();
    for (const Json &level : json.at("levels"))
      ceilings.levels.push_back({level.at("name").get<std::string>(), level.at("bytes").get<double>(),
                                 level.at("read_bytes_per_s").get<double>(),
                                 level.at("copy_bytes_per_s").get<double>()});
    for (size_t i = 0; i < model::precisions; ++i) {
      std::string name(nameOf(static_cast<model::Precision>(i)));
      ceilings.matrix[i] = json.at("matrix_flop_per_s").at(name).get<double>();
      ceilings.vector[i] = json.at("vector_flop_per_s").at(name).get<double>();
    }
    ceilings.special = json.at("special_per_s").get<double>();
    ceilings.integer = json.at("integer_per_s").get<double>();
    ceilings.launchSeconds = json.at("launch_s").get<double>();
    if (json.contains("clusters")) // younger than some files
      ceilings.clusters = json["clusters"].get<std::array<int, 3>>();
    if (json.at("architecture").is_string())
      ceilings.limits = model::gpuLimits(json["architecture"].get<std::string>());
    if (ceilings.levels.empty() || ceilings.processors < 1 ||
        std::any_of(ceilings.levels.begin(), ceilings.levels.end(),
                    [](const auto &level) { return !(level.readBytesPerSecond > 0); }))
      return std::nullopt;
    return ceilings;
  } catch (const Json::exception &) {
    return std::nullopt;
  }
}

} // namespace tenon
