// SPDX-License-Identifier: Apache-2.0
//
// The order of things at the end of a program decides whether it ends well. CUPTI and the driver leave destructors behind
// when they are opened and started, which exit() runs before anything that was registered earlier: a profile that began
// when the program was loaded would ask CUPTI for its records when there is no CUPTI any more. So the last records are
// taken by a handler of our own that is registered after both.
#include "tenon/profile/Cupti.h"

#include "tenon/profile/CuptiRecords.h"
#include "tenon/profile/Profile.h"
#include "tenon/profile/Recorder.h"

#include <cstdlib>
#include <dlfcn.h>

namespace tenon::profile {
namespace {

using namespace cupti;

constexpr int success = 0;
constexpr ActivityKind wanted[] = {memcpyActivity, memsetActivity, kernelActivity};
constexpr uint32_t flushForced = 1;

using RequestBuffer = void(uint8_t **buffer, size_t *bytes, size_t *maxRecords);
using BufferCompleted = void(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

struct Functions {
  int (*registerCallbacks)(RequestBuffer *, BufferCompleted *);
  int (*enable)(uint32_t kind);
  int (*disable)(uint32_t kind);
  int (*flushAll)(uint32_t flag);
  int (*nextRecord)(uint8_t *buffer, size_t valid, uint8_t **record);
  int (*timestamp)(uint64_t *nanoseconds);
  int (*version)(uint32_t *version);
  int (*resultString)(int result, const char **text);
};
Functions api;

/// Our clock minus CUPTI's; both count nanoseconds.
std::atomic<int64_t> offset{0};

void synchroniseClocks() {
  // The reading that took least is the one to trust.
  int64_t best = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    int64_t before = now();
    uint64_t theirs = 0;
    if (api.timestamp(&theirs) != success)
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

template <class Record>
void addRecord(const Record &record, Kind kind, std::string_view name, uint64_t bytes, uint64_t graphNode = 0) {
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
  event.launch = record.correlation;
  event.graph = graphNode;
  event.detail = graphNode ? intern(ProfileEvent::ofGraph) : 0;
  addForeign(event);
}

constexpr size_t bufferBytes = size_t(1) << 20;

void requestBuffer(uint8_t **buffer, size_t *bytes, size_t *maxRecords) {
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(64, bufferBytes));
  *bytes = *buffer ? bufferBytes : 0;
  *maxRecords = 0;
}

/// On a thread of CUPTI's own, mostly; an empty buffer may come as late as in its destructors.
void bufferCompleted(void *, uint32_t, uint8_t *buffer, size_t, size_t valid) {
  uint8_t *record = nullptr;
  while (valid && api.nextRecord(buffer, valid, &record) == success) {
    switch (*reinterpret_cast<const uint32_t *>(record)) {
    case kernelActivity: {
      const auto &kernel = *reinterpret_cast<const KernelRecord *>(record);
      addRecord(kernel, Kind::run, kernel.name ? kernel.name : "?", 0, kernel.graphNode);
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

std::string resultText(int result) {
  const char *text = nullptr;
  if (api.resultString(result, &text) == success && text)
    return text;
  return "error " + std::to_string(result);
}

/// Makes a library that is open ready; why it cannot be used, or "".
std::string use(void *library, const std::string &name) {
  Functions found{};
  const char *missing = nullptr;
  auto find = [&](auto *&slot, const char *symbol) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(::dlsym(library, symbol));
    if (!slot)
      missing = symbol;
  };
  find(found.registerCallbacks, "cuptiActivityRegisterCallbacks");
  find(found.enable, "cuptiActivityEnable");
  find(found.disable, "cuptiActivityDisable");
  find(found.flushAll, "cuptiActivityFlushAll");
  find(found.nextRecord, "cuptiActivityGetNextRecord");
  find(found.timestamp, "cuptiGetTimestamp");
  find(found.version, "cuptiGetVersion");
  find(found.resultString, "cuptiGetResultString");
  if (missing)
    return name + " has no " + missing;
  uint32_t version = 0;
  if (found.version(&version) != success || !isKnown(version))
    return name + " is of version " + std::to_string(version) +
           ", whose records are not known (those of CUDA 11.0 to 13.0 are)";
  api = found;
  if (int failure = api.registerCallbacks(requestBuffer, bufferCompleted))
    return "CUPTI does not start: " + resultText(failure) + " (another profiler may be using it)";
  int failure = api.enable(kernelActivity); // tells a library that is too new for the driver
  if (failure == success)
    failure = api.disable(kernelActivity);
  return failure ? "CUPTI records nothing: " + resultText(failure) + " (another profiler may be using it)" : "";
}

} // namespace

Cupti &Cupti::instance() {
  static Cupti &only = *new Cupti();
  return only;
}

Cupti::Cupti() : reason_(open()) {}

std::string Cupti::open() {
  std::string reason = "no libcupti is found (it comes with the CUDA toolkit; TENON_CUPTI names one)";
  for (const std::string &candidate : cuptiCandidates()) {
    void *library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      continue;
    reason = use(library, candidate);
    if (reason.empty()) {
      std::atexit([] { instance().finish(); });
      break;
    }
  }
  return reason;
}

bool Cupti::start() {
  std::lock_guard lock(mutex_);
  if (!reason_.empty() || isOver_)
    return false;
  if (users_++)
    return true;
  synchroniseClocks();
  for (ActivityKind kind : wanted)
    if (int failure = api.enable(kind)) {
      reason_ = "CUPTI records nothing: " + resultText(failure) + " (another profiler may be using it)";
      return false;
    }
  return true;
}

void Cupti::flush() {
  std::lock_guard lock(mutex_);
  if (reason_.empty() && users_ && !isOver_)
    api.flushAll(flushForced);
}

void Cupti::stop() {
  std::lock_guard lock(mutex_);
  if (!reason_.empty() || users_ == 0 || --users_ || isOver_)
    return;
  for (ActivityKind kind : wanted)
    api.disable(kind);
}

void Cupti::finish() {
  std::lock_guard lock(mutex_);
  isOver_ = true;
  if (users_ == 0)
    return;
  api.flushAll(flushForced);
  for (ActivityKind kind : wanted)
    api.disable(kind);
}

} // namespace tenon::profile
