// SPDX-License-Identifier: Apache-2.0
//
// Only what is used of CUPTI is declared here, and of its records the beginning, which has been the same since CUDA 9:
// later versions add fields behind it.
#include "tenon/profile/Cupti.h"

#include "tenon/profile/Recorder.h"

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

namespace tenon::profile {
namespace {

constexpr int success = 0;
enum ActivityKind : uint32_t { memcpyActivity = 1, memsetActivity = 2, kernelActivity = 10 };
constexpr ActivityKind wanted[] = {memcpyActivity, memsetActivity, kernelActivity};
constexpr uint32_t flushForced = 1;

struct __attribute__((packed)) KernelRecord {
  uint32_t kind;
  uint8_t cacheConfiguration, sharedConfiguration;
  uint16_t registers;
  uint32_t partitionedRequested, partitionedExecuted;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t staticShared, dynamicShared;
  uint32_t localPerThread, localTotal;
  uint32_t correlation;
  int64_t gridId;
  const char *name;
};

struct __attribute__((packed)) CopyRecord {
  uint32_t kind;
  uint8_t copyKind, from, to, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
};

struct __attribute__((packed)) FillRecord {
  uint32_t kind, value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
};

using RequestBuffer = void(uint8_t **buffer, size_t *bytes, size_t *maxRecords);
using BufferCompleted = void(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

struct Functions {
  int (*registerCallbacks)(RequestBuffer *, BufferCompleted *);
  int (*enable)(uint32_t kind);
  int (*disable)(uint32_t kind);
  int (*flushAll)(uint32_t flag);
  int (*nextRecord)(uint8_t *buffer, size_t valid, uint8_t **record);
  int (*timestamp)(uint64_t *nanoseconds);
  int (*resultString)(int result, const char **text);
};
Functions cupti;

/// Our clock minus CUPTI's; both count nanoseconds.
std::atomic<int64_t> offset{0};

void synchroniseClocks() {
  // The reading that took least is the one to trust.
  int64_t best = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    int64_t before = now();
    uint64_t theirs = 0;
    if (cupti.timestamp(&theirs) != success)
      return;
    int64_t after = now();
    if (after - before < best) {
      best = after - before;
      offset = before + (after - before) / 2 - static_cast<int64_t>(theirs);
    }
  }
}

const char *directionOf(uint8_t copyKind) {
  switch (copyKind) {
  case 1: return "host to device";
  case 2: return "device to host";
  case 8: return "on the device";
  case 10: return "device to device";
  default: return "copy";
  }
}

template <class Record> void addRecord(const Record &record, Kind kind, std::string_view name, uint64_t bytes) {
  if (record.start == 0 || record.end < record.start)
    return; // the device gave no time
  Event event{};
  event.begin = static_cast<int64_t>(record.start) + offset;
  event.end = static_cast<int64_t>(record.end) + offset;
  event.kind = kind;
  event.name = intern(name);
  event.device = static_cast<int8_t>(record.device);
  event.thread = record.stream;
  event.foreign = true;
  event.bytes = bytes;
  addForeign(event);
}

constexpr size_t bufferBytes = size_t(1) << 20;

void requestBuffer(uint8_t **buffer, size_t *bytes, size_t *maxRecords) {
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(64, bufferBytes));
  *bytes = *buffer ? bufferBytes : 0;
  *maxRecords = 0;
}

void bufferCompleted(void *, uint32_t, uint8_t *buffer, size_t, size_t valid) {
  uint8_t *record = nullptr;
  while (valid && cupti.nextRecord(buffer, valid, &record) == success) {
    switch (*reinterpret_cast<const uint32_t *>(record)) {
    case kernelActivity: {
      const auto &kernel = *reinterpret_cast<const KernelRecord *>(record);
      addRecord(kernel, Kind::run, kernel.name ? kernel.name : "?", 0);
      break;
    }
    case memcpyActivity: {
      const auto &copy = *reinterpret_cast<const CopyRecord *>(record);
      addRecord(copy, Kind::copy, directionOf(copy.copyKind), copy.bytes);
      break;
    }
    case memsetActivity: {
      const auto &fill = *reinterpret_cast<const FillRecord *>(record);
      addRecord(fill, Kind::fill, "fill", fill.bytes);
      break;
    }
    }
  }
  std::free(buffer);
}

/// Only the one that the user names: records of a library of another version cannot be told from these by looking.
void *openLibrary() {
  const char *chosen = std::getenv("TENON_CUPTI");
  return chosen && *chosen && std::string_view(chosen) != "none" ? ::dlopen(chosen, RTLD_NOW | RTLD_LOCAL) : nullptr;
}

std::string resultText(int result) {
  const char *text = nullptr;
  if (cupti.resultString && cupti.resultString(result, &text) == success && text)
    return text;
  return "error " + std::to_string(result);
}

} // namespace

Cupti &Cupti::instance() {
  static Cupti &only = *new Cupti();
  return only;
}

Cupti::Cupti() : reason_(open()) {}

std::string Cupti::open() {
  void *library = openLibrary();
  if (!library)
    return "no libcupti is named (it comes with the CUDA toolkit; TENON_CUPTI is for its path)";
  const char *missing = nullptr;
  auto find = [&](auto *&slot, const char *name) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(::dlsym(library, name));
    if (!slot)
      missing = name;
  };
  find(cupti.registerCallbacks, "cuptiActivityRegisterCallbacks");
  find(cupti.enable, "cuptiActivityEnable");
  find(cupti.disable, "cuptiActivityDisable");
  find(cupti.flushAll, "cuptiActivityFlushAll");
  find(cupti.nextRecord, "cuptiActivityGetNextRecord");
  find(cupti.timestamp, "cuptiGetTimestamp");
  find(cupti.resultString, "cuptiGetResultString");
  if (missing)
    return std::string("the libcupti found has no ") + missing;
  if (int failure = cupti.registerCallbacks(requestBuffer, bufferCompleted))
    return "CUPTI does not start: " + resultText(failure) + " (another profiler may be using it)";
  return "";
}

bool Cupti::start() {
  if (!reason_.empty())
    return false;
  if (users_++)
    return true;
  synchroniseClocks();
  for (ActivityKind kind : wanted)
    if (int failure = cupti.enable(kind)) {
      reason_ = "CUPTI records nothing: " + resultText(failure) + " (another profiler may be using it)";
      return false;
    }
  return true;
}

void Cupti::flush() {
  if (!reason_.empty() || !users_)
    return;
  cupti.flushAll(flushForced);
}

void Cupti::stop() {
  if (!reason_.empty() || users_ == 0 || --users_)
    return;
  for (ActivityKind kind : wanted)
    cupti.disable(kind);
}

} // namespace tenon::profile
