// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/cuda/Memory.h"

#include "tenon/base/Error.h"
#include "tenon/profile/Recorder.h"
#include "tenon/runtime/cuda/Gpu.h"

namespace tenon::cuda {
namespace {

DevicePointer address(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer); }

/// Runs `transfer(stream)` after all queued work and waits for it. `what` is its name in a profile.
template <typename Transfer>
void runTransfer(Gpu &gpu, const char *doing, profile::Kind kind, const char *what, size_t bytes, Transfer transfer) {
  profile::Span span(kind, what);
  if (span) {
    span->bytes = bytes;
    span->device = static_cast<int8_t>(gpu.ordinal());
    span.findSite();
  }
  gpu.checkUsable();
  CurrentContext current(gpu);
  StreamHandle stream = gpu.transferStream();
  gpu.orderAfterQueuedWork(stream);
  gpu.check(transfer(stream), doing);
  gpu.check(gpu.api().cuStreamSynchronize(stream), doing);
}

} // namespace

Memory::Memory(Gpu &gpu) : gpu_(gpu) {
  const DriverApi &api = gpu.api();
  CurrentContext current(gpu);
  gpu.check(api.cuStreamCreate(&stream_, streamNonBlocking), "creating a stream");
  if (!gpu.properties().hasMemoryPools)
    return;
  // Not the device's default pool, which other libraries may use under their own settings.
  PoolProperties properties;
  properties.locationId = gpu.ordinal();
  gpu.check(api.cuMemPoolCreate(&pool_, &properties), "creating a memory pool");
  uint64_t everything = UINT64_MAX;
  gpu.check(api.cuMemPoolSetAttribute(pool_, pool_attribute::releaseThreshold, &everything), "creating a memory pool");
}

Result Memory::tryAllocate(DevicePointer &pointer, size_t bytes) {
  const DriverApi &api = gpu_.api();
  if (!pool_)
    return api.cuMemAlloc(&pointer, bytes);
  if (Result failure = api.cuMemAllocFromPoolAsync(&pointer, bytes, pool_, stream_))
    return failure;
  // Any stream may use it from here on.
  return api.cuStreamSynchronize(stream_);
}

void *Memory::allocate(size_t bytes) {
  if (bytes == 0)
    return nullptr;
  gpu_.checkUsable();
  CurrentContext current(gpu_);
  std::lock_guard lock(mutex_);
  collectLocked(/*wait=*/false);
  DevicePointer pointer = 0;
  Result result = tryAllocate(pointer, bytes);
  if (result == result::outOfMemory) {
    // What is on its way back to the pool, and then what the pool keeps in pieces of the wrong size.
    collectLocked(/*wait=*/true);
    gpu_.api().cuStreamSynchronize(stream_);
    if (pool_)
      gpu_.api().cuMemPoolTrimTo(pool_, 0);
    result = tryAllocate(pointer, bytes);
  }
  if (result != result::success) {
    size_t free = 0, total = 0;
    std::string doing = "allocating " + std::to_string(bytes) + " bytes";
    if (result == result::outOfMemory && gpu_.api().cuMemGetInfo(&free, &total) == result::success)
      doing += " (" + std::to_string(free) + " of " + std::to_string(total) + " are free)";
    gpu_.fail(result, doing);
  }
  return reinterpret_cast<void *>(pointer);
}

void Memory::freeNow(DevicePointer pointer) noexcept {
  const DriverApi &api = gpu_.api();
  gpu_.note(pool_ ? api.cuMemFreeAsync(pointer, stream_) : api.cuMemFree(pointer), "freeing memory");
}

void Memory::release(void *pointer) noexcept {
  if (!pointer || gpu_.isLost()) // a lost context has no memory to give back
    return;
  try {
    CurrentContext current(gpu_);
    std::lock_guard lock(mutex_);
    collectLocked(/*wait=*/false);
    pending_.reserve(pending_.size() + 1);
    std::vector<EventHandle> events = gpu_.markQueuedWork();
    if (events.empty())
      freeNow(address(pointer));
    else
      pending_.push_back({address(pointer), std::move(events)});
  } catch (...) { // lost just now, or the program is ending: the driver frees it with the context
  }
}

void Memory::collect() noexcept {
  std::lock_guard lock(mutex_);
  if (pending_.empty() || gpu_.isLost())
    return;
  CurrentContext current(gpu_);
  collectLocked(/*wait=*/false);
}

void Memory::collectLocked(bool wait) noexcept {
  const DriverApi &api = gpu_.api();
  std::erase_if(pending_, [&](Pending &one) {
    while (!one.events.empty()) {
      Result result = wait ? api.cuEventSynchronize(one.events.back()) : api.cuEventQuery(one.events.back());
      if (result == result::notReady)
        return false;
      gpu_.note(result, "waiting for queued work");
      gpu_.giveBack(one.events.back(), /*timing=*/false);
      one.events.pop_back();
    }
    freeNow(one.pointer);
    return true;
  });
}

CudaMemoryInfo Memory::info() {
  gpu_.checkUsable();
  collect();
  CurrentContext current(gpu_);
  CudaMemoryInfo info;
  const DriverApi &api = gpu_.api();
  gpu_.check(api.cuMemGetInfo(&info.freeBytes, &info.totalBytes), "asking for free memory");
  if (pool_) {
    uint64_t used = 0, reserved = 0;
    gpu_.check(api.cuMemPoolGetAttribute(pool_, pool_attribute::usedNow, &used), "asking for free memory");
    gpu_.check(api.cuMemPoolGetAttribute(pool_, pool_attribute::reservedNow, &reserved), "asking for free memory");
    info.poolUsedBytes = used;
    info.poolReservedBytes = reserved;
  }
  return info;
}

void copyToDevice(Gpu &gpu, void *to, const void *from, size_t bytes) {
  if (bytes == 0)
    return;
  runTransfer(gpu, "copying from the host", profile::Kind::copy, "host to device", bytes, [&](StreamHandle stream) {
    return gpu.api().cuMemcpyHtoDAsync(address(to), from, bytes, stream);
  });
}

void copyToHost(Gpu &gpu, void *to, const void *from, size_t bytes) {
  if (bytes == 0)
    return;
  runTransfer(gpu, "copying to the host", profile::Kind::copy, "device to host", bytes, [&](StreamHandle stream) {
    return gpu.api().cuMemcpyDtoHAsync(to, address(from), bytes, stream);
  });
}

void copyOnDevice(Gpu &toGpu, void *to, Gpu &fromGpu, const void *from, size_t bytes) {
  if (bytes == 0)
    return;
  if (&toGpu == &fromGpu)
    return runTransfer(toGpu, "copying memory", profile::Kind::copy, "on the device", bytes, [&](StreamHandle stream) {
      return toGpu.api().cuMemcpyDtoDAsync(address(to), address(from), bytes, stream);
    });
  fromGpu.awaitQueuedWork();
  fromGpu.checkUsable();
  auto transfer = [&](StreamHandle stream) {
    return toGpu.api().cuMemcpyPeerAsync(address(to), toGpu.context(), address(from), fromGpu.context(), bytes, stream);
  };
  runTransfer(toGpu, "copying from another device", profile::Kind::copy, "device to device", bytes, transfer);
}

void fillBytes(Gpu &gpu, void *to, uint8_t value, size_t bytes) {
  if (bytes == 0)
    return;
  runTransfer(gpu, "filling memory", profile::Kind::fill, "fill", bytes, [&](StreamHandle stream) {
    return gpu.api().cuMemsetD8Async(address(to), value, bytes, stream);
  });
}

} // namespace tenon::cuda
