// SPDX-License-Identifier: Apache-2.0
//
// A CUPTI that records what the tests tell it. The places of the fields are written out here a second time, as bytes
// from the beginning of a record (CUDA's documentation of CUpti_ActivityKernel9, CUpti_ActivityMemcpy5). Like the real
// one it does not survive its own destructors: a call after them ends the program.
#include "FakeCupti.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace {

constexpr size_t recordBytes = 256;

struct State {
  std::mutex mutex;
  std::vector<std::vector<unsigned char>> records;
  void (*request)(unsigned char **, size_t *, size_t *) = nullptr;
  void (*completed)(void *, uint32_t, unsigned char *, size_t, size_t) = nullptr;
  int enabled = 0, flushes = 0, refusal = 0;
};
State &state() {
  static State &only = *new State();
  return only;
}

bool isGone = false;
struct Ending {
  ~Ending() { isGone = true; }
} ending;

void expectAlive() {
  if (!isGone)
    return;
  std::fputs("CUPTI was called after its destructors\n", stderr);
  std::abort();
}

template <class T> void put(std::vector<unsigned char> &record, size_t at, T value) {
  std::memcpy(record.data() + at, &value, sizeof value);
}

} // namespace

#pragma GCC visibility push(default)
namespace fakecupti {

uint64_t now() { // another clock than the library's, far from it
  constexpr std::chrono::hours ahead(100'000);
  return static_cast<uint64_t>((std::chrono::steady_clock::now().time_since_epoch() + ahead).count());
}

void addKernel(const char *name, uint64_t start, uint64_t end, uint32_t stream, uint32_t correlation,
               uint64_t graphNode) {
  std::vector<unsigned char> record(recordBytes);
  put(record, 0, uint32_t(10));
  put(record, 16, start);
  put(record, 24, end);
  put(record, 40, uint32_t(0)); // device
  put(record, 48, stream);
  put(record, 92, correlation);
  put(record, 104, name);
  put(record, 144, graphNode);
  std::lock_guard lock(state().mutex);
  state().records.push_back(std::move(record));
}

void addCopy(unsigned char kind, uint64_t bytes, uint64_t start, uint64_t end) {
  std::vector<unsigned char> record(recordBytes);
  put(record, 0, uint32_t(1));
  put(record, 4, kind);
  put(record, 8, bytes);
  put(record, 16, start);
  put(record, 24, end);
  put(record, 32, uint32_t(0));
  put(record, 40, uint32_t(7));
  std::lock_guard lock(state().mutex);
  state().records.push_back(std::move(record));
}

int enabledKinds() { return state().enabled; }
void refuse(int result) { state().refusal = result; }

} // namespace fakecupti

extern "C" {

int cuptiActivityRegisterCallbacks(decltype(State::request) request, decltype(State::completed) completed) {
  state().request = request;
  state().completed = completed;
  return 0;
}

int cuptiGetVersion(uint32_t *version) {
  const char *said = std::getenv("FAKE_CUPTI_VERSION");
  *version = said ? static_cast<uint32_t>(std::atoi(said)) : 130001;
  return 0;
}

/// For programs that find this library when they run.
void fakecuptiAddKernel(const char *name) { fakecupti::addKernel(name, fakecupti::now(), fakecupti::now() + 1000, 7); }

int cuptiActivityEnable(uint32_t) {
  expectAlive();
  if (state().refusal)
    return state().refusal;
  ++state().enabled;
  return 0;
}

int cuptiActivityDisable(uint32_t) {
  expectAlive();
  --state().enabled;
  return 0;
}

int cuptiGetTimestamp(uint64_t *time) {
  *time = fakecupti::now();
  return 0;
}

int cuptiGetResultString(int, const char **text) {
  *text = "CUPTI_ERROR_FAKE";
  return 0;
}

int cuptiActivityFlushAll(uint32_t) {
  expectAlive();
  std::lock_guard lock(state().mutex);
  unsigned char *buffer = nullptr;
  size_t bytes = 0, most = 0, used = 0;
  state().request(&buffer, &bytes, &most);
  for (const auto &record : state().records) {
    std::memcpy(buffer + used, record.data(), recordBytes);
    used += recordBytes;
  }
  state().records.clear();
  state().completed(nullptr, 0, buffer, bytes, used);
  return 0;
}

int cuptiActivityGetNextRecord(unsigned char *buffer, size_t valid, unsigned char **record) {
  *record = *record ? *record + recordBytes : buffer;
  return *record >= buffer + valid ? 12 : 0; // CUPTI_ERROR_MAX_LIMIT_REACHED
}

/// The tool's side of NVTX: counts what it is told.
static int pushes = 0, pops = 0;
static char lastName[64];
static int push(const char *name) {
  std::strncpy(lastName, name, sizeof lastName - 1);
  return pushes++;
}
static int pop() { return ++pops; }

int InitializeInjectionNvtx2(const void *(*exportTable)(uint32_t)) {
  struct Callbacks {
    size_t bytes;
    int (*functions)(int module, void ****table, unsigned *size);
  };
  const auto *callbacks = static_cast<const Callbacks *>(exportTable(1));
  void ***table = nullptr;
  unsigned size = 0;
  if (!callbacks || !callbacks->functions(1, &table, &size) || size < 12)
    return 0;
  *table[9] = reinterpret_cast<void *>(&push);
  *table[11] = reinterpret_cast<void *>(&pop);
  return 1;
}
}

namespace fakecupti {
int nvtxPushes() { return pushes; }
int nvtxPops() { return pops; }
std::string nvtxName() { return lastName; }
} // namespace fakecupti
#pragma GCC visibility pop
