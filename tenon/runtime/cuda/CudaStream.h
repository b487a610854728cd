// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/StreamImpl.h"
#include "tenon/runtime/Tensor.h"
#include "tenon/runtime/cuda/DriverApi.h"

#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace tenon::cuda {

class Gpu;

/// What a graph is made of while it is captured.
struct Capture {
  /// Of what is launched, for profiles: the graph's runs are told by a device without their work.
  struct Kernel {
    const char *name;              ///< lives for ever
    double bytes = 0, flops = 0; ///< at least; 0: not known
  };
  std::vector<std::shared_ptr<const void>> kept; ///< memory and code that the graph needs
  std::vector<Kernel> kernels;                   ///< in the order of their launches
};

/// A Stream on a CUDA device.
class CudaStream : public StreamImpl {
public:
  explicit CudaStream(Gpu &gpu);
  ~CudaStream() override;

  /// The one behind a Stream; throws Error when that is the CPU's.
  static CudaStream &of(const Stream &stream);

  Gpu &gpu() const { return gpu_; }
  StreamHandle handle() const { return handle_; }

  Device device() const override;
  void enqueue(std::function<void()> work) override;
  void synchronize() override;
  bool idle() override;
  std::shared_ptr<EventMoment> record() override;
  void wait(const std::shared_ptr<EventMoment> &moment) override;

  /// Where kernels of this stream report a failure (StatusWords.h); synchronize() throws what is found there.
  DevicePointer statusPointer() const;
  /// Reads and clears it; only after the kernel is done.
  uint64_t takeStatus();

  /// Memory for one launch on this stream. Hold it until the launch is queued, and no longer: other threads that want
  /// the stream's workspace wait.
  class Workspace {
  public:
    void *data() const { return data_; }
    void *restored() const { return restored_; }

  private:
    friend class CudaStream;
    explicit Workspace(std::unique_lock<std::mutex> lock) : lock_(std::move(lock)) {}
    std::unique_lock<std::mutex> lock_;
    void *data_ = nullptr, *restored_ = nullptr;
  };
  /// data(): so many bytes that the stream zeroes before what is queued on it next, and `anything` more that nobody
  /// does. restored(): bytes that are zero as long as every kernel leaves them so. The stream keeps the memory for the
  /// next launch; while it is being captured, the graph gets memory of its own.
  Workspace workspace(size_t zero, size_t anything, size_t restored);
  /// The graph that this thread captures; null when it captures none.
  static thread_local Capture *capture;

  /// Remembered for the text of an error. `name` lives for ever. Costs nothing: part of every launch.
  void noteLaunch(const char *name) noexcept {
    unsigned at = launches_.fetch_add(1, std::memory_order_relaxed);
    recent_[at % recent_.size()].store(name, std::memory_order_relaxed);
  }
  /// Of those launched since the last synchronize(), the last few, each name once.
  void addRecentLaunches(std::vector<const char *> &names) const;

  /// An event (from the device's, to be given back) behind everything queued so far, or null when there is nothing.
  Result markQueuedWork(EventHandle &event) noexcept;

  bool isCapturing() const;
  void beginCapture();
  /// Null when the capture was spoilt; the reason is the result.
  Result endCapture(GraphHandle &graph) noexcept;

private:
  struct HostWork;
  class Moment;
  /// What outlives the stream in its events.
  struct Outcome {
    std::mutex mutex;
    std::exception_ptr error; ///< of a function that ran on the host
    std::exception_ptr get() {
      std::lock_guard lock(mutex);
      return error;
    }
  };

  void letGoOfFinished();
  Result markBeforeCapture() noexcept;
  /// calls(bool capturing) while no other thread begins a capture. No failure is thrown under the lock: its text asks
  /// the device for the kernels of all its streams.
  template <typename Calls> Result underCaptureLock(Calls calls);

  Gpu &gpu_;
  StreamHandle handle_ = nullptr;
  size_t status_ = 0;
  std::shared_ptr<Outcome> outcome_;
  std::array<std::atomic<const char *>, 4> recent_{};
  std::atomic<unsigned> launches_{0};
  std::mutex hostMutex_;
  std::list<HostWork> hostWork_;
  std::mutex workspaceMutex_;
  std::optional<Tensor> workspace_, restored_;
  std::mutex captureMutex_;
  EventHandle beforeCapture_ = nullptr; ///< behind what was queued when the capture began
};

std::unique_ptr<StreamImpl> makeCudaStream(int ordinal);

} // namespace tenon::cuda
