// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/cuda/Gpu.h"

#include "tenon/base/Error.h"
#include "tenon/runtime/cuda/CudaStream.h"
#include "tenon/runtime/cuda/Errors.h"
#include "tenon/runtime/cuda/Memory.h"
#include "tenon/runtime/cuda/StatusWords.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tenon::cuda {

namespace {

constexpr int most = 64;
std::array<std::atomic<Gpu *>, most> gpus{};

} // namespace

Gpu *Gpu::opened(int ordinal) noexcept {
  return ordinal >= 0 && ordinal < most ? gpus[static_cast<size_t>(ordinal)].load(std::memory_order_acquire) : nullptr;
}

Gpu &Gpu::get(int ordinal) {
  static std::mutex creation;
  if (Gpu *gpu = opened(ordinal)) [[likely]]
    return *gpu;
  cudaProperties(ordinal); // checks the number
  if (ordinal >= most)
    throw Error("cuda:" + std::to_string(ordinal) + " cannot be used; the first " + std::to_string(most) +
                " devices can");
  std::lock_guard lock(creation);
  auto &slot = gpus[static_cast<size_t>(ordinal)];
  if (!slot)
    slot.store(new Gpu(ordinal), std::memory_order_release);
  return *slot;
}

Gpu::Gpu(int ordinal) : api_(driverApi()), ordinal_(ordinal), properties_(cudaProperties(ordinal)) {
  DeviceNumber device = 0;
  check(api_.cuDeviceGet(&device, ordinal), "opening the device");
  check(api_.cuDevicePrimaryCtxRetain(&context_, device), "opening the device");
  CurrentContext current(*this);
  check(api_.cuStreamCreate(&transferStream_, streamNonBlocking), "creating a stream");
  memory_ = std::make_unique<Memory>(*this);
  statusWords_ = std::make_unique<StatusWords>(*this);
}

std::string Gpu::recentLaunches() {
  std::vector<const char *> names;
  {
    std::lock_guard lock(streamMutex_);
    for (CudaStream *stream : streams_)
      stream->addRecentLaunches(names);
  }
  if (names.empty())
    return "";
  if (names.size() == 1)
    return std::string("; the kernel that ran was '") + names.front() + "'";
  std::string text = "; one of these kernels was the cause: ";
  for (size_t i = 0; i < names.size(); ++i)
    text += std::string(i ? ", '" : "'") + names[i] + "'";
  return text;
}

std::string Gpu::lostText(Result failure, const std::string &doing) {
  return doing + " on " + device().str() + " failed with " + describe(api_, failure) + recentLaunches() +
         "; the device cannot be used any more in this process, which must be restarted";
}

void Gpu::fail(Result failure, const std::string &doing) {
  if (isLost())
    throwLost();
  if (!isSticky(failure))
    throw Error(doing + " on " + device().str() + " failed with " + describe(api_, failure));
  std::string text = lostText(failure, doing);
  {
    std::lock_guard lock(lostMutex_);
    if (!isLost()) {
      lostSince_ = nameOf(api_, failure) + " while " + doing + recentLaunches();
      lost_.store(true, std::memory_order_release);
      throw Error(text);
    }
  }
  throwLost();
}

void Gpu::note(Result failure, const char *doing) noexcept {
  if (!isSticky(failure) || isLost())
    return;
  try {
    std::string text = lostText(failure, doing), since = nameOf(api_, failure) + " while " + doing + recentLaunches();
    std::lock_guard lock(lostMutex_);
    if (isLost())
      return;
    lostInFull_ = std::move(text);
    lostSince_ = std::move(since);
    lost_.store(true, std::memory_order_release);
  } catch (...) { // no memory for the text; the next call meets the same error
  }
}

void Gpu::throwLost() {
  std::lock_guard lock(lostMutex_);
  if (std::string text = std::exchange(lostInFull_, ""); !text.empty())
    throw Error(text);
  throw Error(device().str() + " is unusable since an earlier failure (" + lostSince_ + "); restart the process");
}

Result Gpu::tryTakeEvent(EventHandle &event, bool timing) noexcept {
  {
    std::lock_guard lock(eventMutex_);
    if (auto &spare = events_[timing]; !spare.empty()) {
      event = spare.back();
      spare.pop_back();
      return result::success;
    }
  }
  return api_.cuEventCreate(&event, timing ? eventWithTiming : eventWithoutTiming);
}

EventHandle Gpu::takeEvent(bool timing) {
  EventHandle event = nullptr;
  check(tryTakeEvent(event, timing), "creating an event");
  return event;
}

void Gpu::giveBack(EventHandle event, bool timing) noexcept {
  try {
    std::lock_guard lock(eventMutex_);
    events_[timing].push_back(event);
  } catch (...) {
    api_.cuEventDestroy(event);
  }
}

void Gpu::addStream(CudaStream *stream) {
  std::lock_guard lock(streamMutex_);
  streams_.push_back(stream);
}

void Gpu::removeStream(CudaStream *stream) noexcept {
  std::lock_guard lock(streamMutex_);
  std::erase(streams_, stream);
}

std::vector<EventHandle> Gpu::markQueuedWork() {
  CurrentContext current(*this);
  std::vector<EventHandle> events;
  Result failure = result::success;
  {
    std::lock_guard lock(streamMutex_); // a failure is told without it: the text names the streams' kernels
    events.reserve(streams_.size());
    for (size_t i = 0; i < streams_.size() && failure == result::success; ++i) {
      EventHandle event = nullptr;
      failure = streams_[i]->markQueuedWork(event);
      if (event)
        events.push_back(event);
    }
  }
  if (failure != result::success) {
    for (EventHandle event : events)
      giveBack(event, /*timing=*/false);
    fail(failure, "asking for queued work");
  }
  return events;
}

void Gpu::orderAfterQueuedWork(StreamHandle stream) {
  CurrentContext current(*this);
  Result failure = result::success;
  for (EventHandle event : markQueuedWork()) {
    if (failure == result::success)
      failure = api_.cuStreamWaitEvent(stream, event, 0);
    giveBack(event, /*timing=*/false); // the wait is for what is recorded now
  }
  check(failure, "waiting for queued work");
}

void Gpu::awaitQueuedWork() noexcept {
  try {
    CurrentContext current(*this);
    for (EventHandle event : markQueuedWork()) {
      note(api_.cuEventSynchronize(event), "waiting for queued work");
      giveBack(event, /*timing=*/false);
    }
  } catch (...) { // the device is lost, and nothing runs on it any more
  }
}

} // namespace tenon::cuda
