// SPDX-License-Identifier: Apache-2.0
//
// Each thread appends to a chain of chunks of its own; the one reader takes from the front what is complete:
//
//     reader ->  [ full, read ]  ->  [ full ]  ->  [ half full ]  <- the thread
//
// A chunk's count is released after the event is in place, and a chunk is freed by the reader once the thread has gone
// on to the next one: no event is ever read and written at once, and nobody waits.
#include "tenon/profile/Recorder.h"

#include "tenon/profile/CallSite.h"
#include "tenon/profile/Nvtx.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace tenon::profile {

std::atomic<uint32_t> listeners{0};
thread_local const char *Implicit::current = nullptr;

namespace {

constexpr uint32_t perChunk = 256;
constexpr uint64_t maxChunks = 8192; ///< of all threads: about 300 MB

struct Chunk {
  Event events[perChunk];
  std::atomic<uint32_t> count{0};
  std::atomic<Chunk *> next{nullptr};
};

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using TextNumbers = std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>>;

struct ThreadBuffer {
  Chunk *writing = nullptr;
  Chunk *reading = nullptr; ///< the reader's, as is the next
  uint32_t read = 0;
  uint32_t thread = 0;
  std::atomic<uint64_t> dropped{0};
  std::atomic<bool> finished{false};
  TextNumbers known;                            ///< of this thread: found without a lock
  std::unordered_map<uint64_t, uint32_t> sites; ///< by the hash of a stack
};

/// What all threads share. Never destroyed: threads may outlive the statics.
struct Shared {
  std::mutex mutex; ///< of everything here but the counters
  std::vector<std::unique_ptr<ThreadBuffer>> buffers;
  uint32_t threads = 0;
  int users = 0;
  std::vector<Event> taken;
  uint64_t dropped = 0;
  std::vector<std::string> texts{""};
  TextNumbers numbers;
  std::map<uint64_t, std::vector<GraphKernel>> graphs;
  std::vector<uint64_t> goneGraphs; ///< which profiles may still ask for
  uint64_t lastGraph = 0;
  int graphReaders = 0; ///< profiles
  std::atomic<uint64_t> chunks{0}, launches{0};
};

Shared &shared() {
  static Shared &instance = *new Shared();
  return instance;
}

thread_local ThreadBuffer *ownBuffer = nullptr;

/// Tells the reader that no more will come from this thread.
struct ThreadEnd {
  bool isUsed = false;
  ~ThreadEnd() {
    if (isUsed && ownBuffer)
      ownBuffer->finished.store(true, std::memory_order_release);
    ownBuffer = nullptr;
  }
};
thread_local ThreadEnd threadEnd;

Chunk *newChunk() {
  if (shared().chunks.fetch_add(1, std::memory_order_relaxed) >= maxChunks) {
    shared().chunks.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  return new Chunk;
}

ThreadBuffer &buffer() {
  if (ownBuffer) [[likely]]
    return *ownBuffer;
  auto made = std::make_unique<ThreadBuffer>();
  made->writing = made->reading = new Chunk;
  Shared &all = shared();
  std::lock_guard lock(all.mutex);
  all.chunks.fetch_add(1, std::memory_order_relaxed);
  made->thread = ++all.threads;
  ownBuffer = made.get();
  threadEnd.isUsed = true;
  all.buffers.push_back(std::move(made));
  return *ownBuffer;
}

void append(ThreadBuffer &own, const Event &event) {
  uint32_t at = own.writing->count.load(std::memory_order_relaxed);
  if (at == perChunk) {
    Chunk *next = newChunk();
    if (!next) {
      own.dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    own.writing->next.store(next, std::memory_order_release);
    own.writing = next;
    at = 0;
  }
  own.writing->events[at] = event;
  own.writing->count.store(at + 1, std::memory_order_release);
}

/// Takes what is complete; under the lock.
void take(Shared &all, ThreadBuffer &from) {
  for (;;) {
    uint32_t count = from.reading->count.load(std::memory_order_acquire);
    for (; from.read < count; ++from.read)
      all.taken.push_back(from.reading->events[from.read]);
    Chunk *next = from.reading->next.load(std::memory_order_acquire);
    if (!next)
      break;
    if (from.reading->count.load(std::memory_order_acquire) > from.read)
      continue; // written between the two looks
    delete from.reading;
    all.chunks.fetch_sub(1, std::memory_order_relaxed);
    from.reading = next;
    from.read = 0;
  }
  all.dropped += from.dropped.exchange(0, std::memory_order_relaxed);
}

void takeAll(Shared &all) {
  std::erase_if(all.buffers, [&](std::unique_ptr<ThreadBuffer> &one) {
    bool finished = one->finished.load(std::memory_order_acquire); // before its last events are taken
    take(all, *one);
    if (finished) {
      delete one->reading;
      all.chunks.fetch_sub(1, std::memory_order_relaxed);
    }
    return finished;
  });
}

} // namespace

uint32_t intern(std::string_view text) {
  ThreadBuffer &own = buffer();
  if (auto found = own.known.find(text); found != own.known.end()) [[likely]]
    return found->second;
  Shared &all = shared();
  uint32_t number = 0;
  {
    std::lock_guard lock(all.mutex);
    auto [entry, isNew] = all.numbers.try_emplace(std::string(text), static_cast<uint32_t>(all.texts.size()));
    if (isNew)
      all.texts.emplace_back(text);
    number = entry->second;
  }
  own.known.emplace(text, number);
  return number;
}

std::string textOf(uint32_t number) {
  Shared &all = shared();
  std::lock_guard lock(all.mutex);
  return number < all.texts.size() ? all.texts[number] : std::string();
}

uint64_t addGraph(std::vector<GraphKernel> kernels) {
  Shared &all = shared();
  std::lock_guard lock(all.mutex);
  all.graphs.emplace(++all.lastGraph, std::move(kernels));
  return all.lastGraph;
}

void removeGraph(uint64_t number) noexcept {
  Shared &all = shared();
  std::lock_guard lock(all.mutex);
  if (all.graphReaders == 0)
    all.graphs.erase(number);
  else
    try {
      all.goneGraphs.push_back(number);
    } catch (const std::bad_alloc &) { // then it stays
    }
}

void releaseGraphs() {
  Shared &all = shared();
  std::lock_guard lock(all.mutex);
  if (--all.graphReaders > 0)
    return;
  for (uint64_t number : all.goneGraphs)
    all.graphs.erase(number);
  all.goneGraphs.clear();
}

size_t keptGraphs() {
  Shared &all = shared();
  std::lock_guard lock(all.mutex);
  return all.graphs.size();
}

std::vector<GraphKernel> graphKernels(uint64_t number) {
  Shared &all = shared();
  std::lock_guard lock(all.mutex);
  auto found = all.graphs.find(number);
  return found != all.graphs.end() ? found->second : std::vector<GraphKernel>();
}

uint64_t nextLaunch() { return shared().launches.fetch_add(1, std::memory_order_relaxed) + 1; }

void Span::begin(Kind kind, std::string_view name) {
  isOpen_ = true;
  event_.launch = event_.bytes = event_.graph = 0;
  event_.flops = 0;
  event_.name = intern(name);
  event_.detail = event_.site = 0;
  event_.kind = kind;
  event_.implicit = event_.foreign = false;
  event_.device = -1;
  event_.memories = 0;
  if (listeners.load(std::memory_order_relaxed) & nvtx && kind != Kind::submit) {
    pushNvtx(std::string(name).c_str());
    isPushed_ = true;
  }
  event_.begin = now();
}

void Span::end() noexcept {
  event_.end = now();
  if (isPushed_)
    popNvtx();
  if (!(listeners.load(std::memory_order_relaxed) & recording))
    return;
  ThreadBuffer &own = buffer();
  event_.thread = own.thread;
  append(own, event_);
}

void Span::addMemory(const void *address, uint64_t bytes, bool written) {
  event_.bytes += bytes;
  if (event_.memories == Event::maxMemory)
    return;
  Event::Memory &memory = event_.memory[event_.memories++];
  memory.address = reinterpret_cast<uintptr_t>(address);
  memory.bytes = bytes;
  memory.written = written;
}

void Span::findSite() {
  if (!(listeners.load(std::memory_order_relaxed) & recording))
    return;
  Stack stack = captureStack();
  ThreadBuffer &own = buffer();
  auto [entry, isNew] = own.sites.try_emplace(stack.hash(), 0);
  if (isNew)
    entry->second = intern(describeStack(stack));
  event_.site = entry->second;
}

void Wait::describe() {
  if (!Implicit::current)
    return;
  span_->implicit = true;
  span_.explain(Implicit::current);
  span_.findSite();
}

void addForeign(const Event &event) {
  Shared &all = shared();
  std::lock_guard lock(all.mutex);
  if (all.users)
    all.taken.push_back(event);
}

void startRecording() {
  Shared &all = shared();
  std::lock_guard lock(all.mutex);
  ++all.graphReaders;
  if (all.users++ == 0)
    listeners.fetch_or(recording, std::memory_order_relaxed);
}

std::vector<Event> stopRecording(int64_t since, uint64_t &dropped) {
  Shared &all = shared();
  std::lock_guard lock(all.mutex);
  takeAll(all);
  std::vector<Event> events;
  std::copy_if(all.taken.begin(), all.taken.end(), std::back_inserter(events),
               [&](const Event &event) { return event.begin >= since; });
  dropped = all.dropped;
  if (--all.users == 0) {
    listeners.fetch_and(~recording, std::memory_order_relaxed);
    all.taken = {};
    all.dropped = 0;
  }
  return events;
}

} // namespace tenon::profile
