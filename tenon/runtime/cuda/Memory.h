// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/Device.h"
#include "tenon/runtime/cuda/DriverApi.h"

#include <mutex>
#include <vector>

namespace tenon::cuda {

class Gpu;

/// Device memory from a stream-ordered pool of Tenon's own that gives nothing back to the system until asked, so that
/// allocating is cheap.
///
/// Memory belongs to no stream: what allocate() returns may be used on every stream at once. release() does not wait,
/// and may be called while kernels that use the memory are still queued: it is given back to the pool once everything
/// that was queued on the device's streams at that time is done. A graph that was captured with the memory is not
/// "queued": its owner keeps the memory.
class Memory {
public:
  explicit Memory(Gpu &gpu);

  /// At least 256-byte aligned, not initialised; throws Error when there is none left. Null for 0 bytes.
  void *allocate(size_t bytes);
  void release(void *pointer) noexcept;
  /// Returns what is no longer in use to the pool.
  void collect() noexcept;

  CudaMemoryInfo info();

private:
  struct Pending {
    DevicePointer pointer;
    std::vector<EventHandle> events; ///< all must be reached
  };

  Result tryAllocate(DevicePointer &pointer, size_t bytes);
  void collectLocked(bool wait) noexcept;
  void freeNow(DevicePointer pointer) noexcept;

  Gpu &gpu_;
  PoolHandle pool_ = nullptr;     ///< null where the device has no pools: then memory comes from cuMemAlloc
  StreamHandle stream_ = nullptr; ///< of allocations and frees alone, hence idle almost always
  std::mutex mutex_;
  std::vector<Pending> pending_;
};

/// Copies and fills. Each is ordered after everything queued on the device's streams and complete on return.
void copyToDevice(Gpu &gpu, void *to, const void *from, size_t bytes);
void copyToHost(Gpu &gpu, void *to, const void *from, size_t bytes);
/// Within a device or from one to another.
void copyOnDevice(Gpu &toGpu, void *to, Gpu &fromGpu, const void *from, size_t bytes);
void fillBytes(Gpu &gpu, void *to, uint8_t value, size_t bytes);

} // namespace tenon::cuda
