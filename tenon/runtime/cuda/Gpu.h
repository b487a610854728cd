// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/Device.h"
#include "tenon/runtime/cuda/Driver.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace tenon::cuda {

class CudaStream;
class Memory;
class StatusWords;

/// A device in use: its primary context (the one that other libraries of the process use too), its streams, its memory,
/// and whether it still works. Made at first use and kept to the end of the process.
class Gpu {
public:
  /// Throws Error when there is no driver or no such device, or when it cannot be opened.
  static Gpu &get(int ordinal);
  /// Null when it was not used so far.
  static Gpu *opened(int ordinal) noexcept;

  int ordinal() const { return ordinal_; }
  Device device() const { return Device::cuda(ordinal_); }
  const DriverApi &api() const { return api_; }
  ContextHandle context() const { return context_; }
  const CudaProperties &properties() const { return properties_; }
  Memory &memory() const { return *memory_; }
  StatusWords &statusWords() const { return *statusWords_; }
  /// For copies and fills, which are complete when they return.
  StreamHandle transferStream() const { return transferStream_; }

  /// Throws what `failure` of a call means. `doing` starts the sentence: "allocating 12 bytes". An error that costs the
  /// context is told in full once, with the kernels that may have caused it; from then on every failure says that the
  /// device is unusable since.
  [[noreturn]] void fail(Result failure, const std::string &doing);
  void check(Result result, const char *doing) {
    if (result != result::success) [[unlikely]]
      fail(result, doing);
  }
  /// For what must not throw: only notes the loss of the context, to be told by the next that can.
  void note(Result failure, const char *doing) noexcept;
  bool isLost() const { return lost_.load(std::memory_order_acquire); }
  /// Throws if the context is lost.
  void checkUsable() {
    if (isLost()) [[unlikely]]
      throwLost();
  }

  /// Events are recorded and given back often, and creating one costs as much as a launch.
  EventHandle takeEvent(bool timing);
  Result tryTakeEvent(EventHandle &event, bool timing) noexcept;
  void giveBack(EventHandle event, bool timing) noexcept;

  void addStream(CudaStream *stream);
  void removeStream(CudaStream *stream) noexcept;
  /// Events (without timing; the caller gives them back) behind everything queued so far on streams that are not idle.
  std::vector<EventHandle> markQueuedWork();
  /// What is queued on `stream` from now on runs after everything queued so far on the device's streams.
  void orderAfterQueuedWork(StreamHandle stream);
  /// Waits for it instead. Does not throw: an error is noted.
  void awaitQueuedWork() noexcept;

private:
  explicit Gpu(int ordinal);
  ~Gpu() = delete;
  [[noreturn]] void throwLost();
  std::string recentLaunches();
  std::string lostText(Result failure, const std::string &doing);

  const DriverApi &api_;
  int ordinal_;
  const CudaProperties &properties_;
  ContextHandle context_ = nullptr;
  StreamHandle transferStream_ = nullptr;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<StatusWords> statusWords_;

  std::atomic<bool> lost_{false};
  std::mutex lostMutex_;
  std::string lostSince_, lostInFull_; ///< the second until it has been told

  std::mutex eventMutex_;
  std::vector<EventHandle> events_[2]; ///< spare, without and with timing
  std::mutex streamMutex_;
  std::vector<CudaStream *> streams_;
};

/// Makes the device's context current in this thread, as the driver's calls need. One that was current before becomes
/// so again; a thread that had none keeps ours, so that the next call finds it there.
class CurrentContext {
public:
  explicit CurrentContext(const Gpu &gpu) : api_(gpu.api()) {
    ContextHandle now = nullptr;
    api_.cuCtxGetCurrent(&now);
    if (now == gpu.context()) [[likely]]
      return;
    api_.cuCtxSetCurrent(gpu.context());
    before_ = now;
  }
  ~CurrentContext() {
    if (before_)
      api_.cuCtxSetCurrent(before_);
  }
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

private:
  const DriverApi &api_;
  ContextHandle before_ = nullptr;
};

} // namespace tenon::cuda
