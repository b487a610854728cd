// SPDX-License-Identifier: Apache-2.0
//
// What the fake driver is made of; for FakeCuda.cpp alone.
#pragma once

#include "FakeCuda.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>

namespace {

using Result = int;
constexpr Result ok = 0, invalidValue = 1, outOfMemory = 2, notInitialized = 3, invalidDevice = 101,
                 invalidContext = 201, invalidPtx = 218, invalidHandle = 400, notFound = 500, notReady = 600,
                 captureUnsupported = 900, captureInvalidated = 901, capturedEvent = 907;

using Operation = std::function<void()>;

struct Context {
  int device = 0;
  Result sticky = ok;
};

struct Graph {
  std::vector<Operation> nodes;
  bool spoilt = false;
};

struct Stream {
  Context *context;
  std::deque<Operation> queue;
  uint64_t queued = 0, done = 0;
  Graph *capture = nullptr;
};

struct Event {
  Context *context;
  bool timing;
  Stream *stream = nullptr;
  uint64_t place = 0;
  Graph *capture = nullptr;
  double time = 0;
};

struct Allocation {
  size_t bytes;
  bool ready = false, freed = false;
};

struct Parameter {
  size_t offset, bytes, alignment;
};

struct Function {
  std::string name;
  std::vector<Parameter> parameters;
  std::map<int, int> set;
};

struct Module {
  std::string text;
  std::map<std::string, Function *> functions;
};

struct Link {
  std::map<int, void *> options;
  std::vector<char> image;
};

struct Failure {
  std::string function;
  Result result;
  bool sticky;
  int after;
};

struct Driver {
  std::recursive_mutex mutex;
  bool lazy = false, initialized = false;
  int deviceCount = fake::devices;
  Result initResult = ok;
  size_t memoryLimit = size_t(1) << 32, used = 0;
  std::vector<Failure> failures;
  std::map<std::string, int, std::less<>> calls;
  std::array<fake::Launch, 64> launches;
  uint64_t launchCount = 0;
  int violations = 0;
  double clock = 0;
  int blocksOfMultiprocessor = 2, clusters = 60;
  Context contexts[fake::devices];
  std::map<uintptr_t, Allocation> memory;
  std::map<int, uint64_t> poolAttributes;
  std::map<int, void *> jitOptions;
  std::deque<Function> functions;                ///< never destroyed
  std::map<std::string, Function *> lastOfName; ///< of all modules
  std::set<Stream *> streams, destroyed; ///< kept in memory: events refer to them
  std::set<Module *> modules;
};

Driver &driver() {
  static auto &instance = *new Driver;
  return instance;
}

thread_local Context *currentContext = nullptr;

/// Locks, counts the call, and answers with a failure that was asked for.
struct Call {
  Driver &d = driver();
  std::lock_guard<std::recursive_mutex> lock{d.mutex};
  Result result = ok;

  explicit Call(const char *name, bool needsContext = true) {
    auto count = d.calls.find(std::string_view(name));
    if (count == d.calls.end())
      d.calls.emplace(name, 1);
    else
      ++count->second;
    for (size_t i = 0; i < d.failures.size(); ++i) {
      Failure &failure = d.failures[i];
      if (failure.function != name || failure.after-- > 0)
        continue;
      result = failure.result;
      if (failure.sticky && currentContext)
        currentContext->sticky = result;
      d.failures.erase(d.failures.begin() + static_cast<long>(i));
      return;
    }
    if (!d.initialized)
      result = notInitialized;
    else if (needsContext)
      result = currentContext ? currentContext->sticky : invalidContext;
  }
};

void runUntil(Stream &stream, uint64_t place) {
  while (stream.done < place) {
    Operation operation = std::move(stream.queue.front());
    stream.queue.pop_front();
    operation();
    ++stream.done;
    driver().clock += 1;
  }
}

template <typename Work> Result submit(Stream *stream, Work work) {
  if (stream->context != currentContext)
    return invalidHandle;
  if (stream->capture) {
    stream->capture->nodes.push_back(work);
    return ok;
  }
  if (!driver().lazy && stream->queue.empty()) {
    work();
    ++stream->queued;
    ++stream->done;
    driver().clock += 1;
    return ok;
  }
  stream->queue.push_back(work);
  ++stream->queued;
  return ok;
}

/// Memory that was never allocated here is somebody else's.
void touch(uintptr_t address, size_t bytes) {
  auto &memory = driver().memory;
  auto next = memory.upper_bound(address);
  if (next == memory.begin())
    return;
  auto &[begin, allocation] = *std::prev(next);
  if (address - begin >= allocation.bytes)
    return;
  if (!allocation.ready || allocation.freed || bytes > allocation.bytes - (address - begin))
    ++driver().violations;
}

void *pointer(uint64_t address) { return reinterpret_cast<void *>(static_cast<uintptr_t>(address)); }

void runStrided(const uint64_t *words) {
  const uint64_t *sizes = words + 5;
  auto strides = [&](size_t first, size_t d) { return static_cast<int64_t>(words[first + d]); };
  uint64_t bytes = words[3];
  for (uint64_t i = 0; i < words[4]; ++i) {
    uint64_t rest = i;
    int64_t to = 0, from = 0;
    for (size_t d = 5; d-- > 0;) {
      auto at = static_cast<int64_t>(d ? rest % sizes[d - 1] : rest);
      rest = d ? rest / sizes[d - 1] : 0;
      to += at * strides(9, d);
      from += at * strides(14, d);
    }
    auto *target = static_cast<char *>(pointer(words[0])) + to;
    touch(reinterpret_cast<uintptr_t>(target), bytes);
    if (words[1]) {
      touch(words[1] + static_cast<uint64_t>(from), bytes);
      std::memcpy(target, static_cast<char *>(pointer(words[1])) + from, bytes);
    } else {
      std::memcpy(target, &words[2], bytes);
    }
  }
}

void runKernel(const char *name, const uint64_t *words) {
  if (!std::strcmp(name, "tenon_strided"))
    return runStrided(words);
  if (!std::strcmp(name, "add_one")) {
    touch(words[0], words[1] * 4);
    for (uint64_t i = 0; i < words[1]; ++i)
      static_cast<uint32_t *>(pointer(words[0]))[i] += 1;
  }
  if (!std::strcmp(name, "report"))
    *static_cast<uint64_t *>(pointer(words[0])) = words[1];
}

void takeParameters(const Function &function, const char *block, size_t bytes, fake::Launch &launch) {
  launch.aligned = true;
  for (auto [offset, size, alignment] : function.parameters) {
    if (offset + size > bytes)
      break;
    launch.aligned &= alignment > 8 || (reinterpret_cast<uintptr_t>(block) + offset) % alignment == 0;
    if (size == 8 && launch.wordCount < std::size(launch.words))
      std::memcpy(&launch.words[launch.wordCount++], block + offset, size);
    if (size == sizeof(fake::TensorMap) && launch.mapCount < std::size(launch.maps))
      std::memcpy(&launch.maps[launch.mapCount++], block + offset, size);
  }
}

Result launchFunction(Function *function, const unsigned *grid, const unsigned *block, const unsigned *cluster,
                      unsigned sharedBytes, Stream *stream, void **extra, int startsEarly = 0) {
  fake::Launch launch{};
  launch.startsEarly = startsEarly;
  std::strncpy(launch.name, function->name.c_str(), sizeof launch.name - 1);
  for (int d = 0; d < 3; ++d) {
    launch.grid[d] = grid[d];
    launch.block[d] = block[d];
    launch.cluster[d] = cluster[d];
    if (!grid[d] || !block[d] || grid[d] % cluster[d])
      return invalidValue;
  }
  if (block[0] * block[1] * block[2] > 1024)
    return invalidValue;
  int allowed = function->set.count(8) ? function->set[8] : 49152;
  if (sharedBytes > static_cast<unsigned>(allowed))
    return invalidValue;
  launch.sharedBytes = sharedBytes;
  launch.stream = stream;
  const char *parameters = nullptr;
  size_t bytes = 0;
  for (; extra && *extra; extra += 2) {
    if (extra[0] == reinterpret_cast<void *>(1))
      parameters = static_cast<const char *>(extra[1]);
    if (extra[0] == reinterpret_cast<void *>(2))
      bytes = *static_cast<size_t *>(extra[1]);
  }
  takeParameters(*function, parameters, bytes, launch);
  Driver &d = driver();
  d.launches[d.launchCount++ % d.launches.size()] = launch;
  return submit(stream, [launch] { runKernel(launch.name, launch.words); });
}

/// Of ".param .u64 a, .param .align 64 .b8 b[128]": all that are no arrays have 8 bytes.
std::vector<Parameter> parametersOf(std::string_view text) {
  std::vector<Parameter> parameters;
  size_t end = 0;
  for (size_t at = text.find(".param"); at != text.npos; at = text.find(".param", at + 1)) {
    std::string one(text.substr(at, text.find(".param", at + 1) - at));
    auto numberAfter = [&](const char *mark, size_t otherwise) {
      size_t found = one.find(mark);
      return found == one.npos ? otherwise : std::strtoul(one.c_str() + found + std::strlen(mark), nullptr, 10);
    };
    size_t bytes = numberAfter("[", 8), alignment = numberAfter(".align", bytes == 8 ? 8 : 1);
    // As an H200 has them: parameters begin 0x210 bytes into the memory of constants, where alignment counts.
    constexpr size_t begin = 0x210;
    size_t offset = (begin + end + alignment - 1) / alignment * alignment - begin;
    parameters.push_back({offset, bytes, alignment});
    end = offset + bytes;
  }
  return parameters;
}

Result checkPtx(const std::string &text, std::map<int, void *> &options) {
  if (text.find("syntax error") == std::string::npos)
    return ok;
  if (options.count(5))
    std::strncpy(static_cast<char *>(options[5]),
                 "ptxas application ptx input, line 7; error   : Unexpected 'syntax'\n",
                 reinterpret_cast<size_t>(options[6]));
  return invalidPtx;
}

std::map<int, void *> collect(unsigned count, const int *options, void **values) {
  std::map<int, void *> result;
  for (unsigned i = 0; i < count; ++i)
    result[options[i]] = values[i];
  return result;
}

constexpr size_t elfBytes = 64;

} // namespace
