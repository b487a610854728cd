// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/cuda/CudaStream.h"

#include "tenon/base/Error.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Memory.h"
#include "tenon/runtime/cuda/StatusWords.h"

#include <algorithm>
#include <utility>

namespace tenon::cuda {

/// A driver's event, given back when the last handle is gone. A wait refers to what was recorded when it was queued, so
/// that the event may be recorded anew meanwhile.
class CudaStream::Moment : public EventMoment {
public:
  Moment(Gpu &gpu, EventHandle event, bool captured, size_t status, std::shared_ptr<Outcome> outcome)
      : gpu_(gpu), event_(event), captured_(captured), status_(status), outcome_(std::move(outcome)) {}
  ~Moment() override { gpu_.giveBack(event_, /*timing=*/true); }

  Gpu &gpu() const { return gpu_; }
  EventHandle handle() const { return event_; }
  bool captured() const { return captured_; }

  Device device() const override { return gpu_.device(); }

  std::exception_ptr await() override {
    try {
      CurrentContext current(gpu_);
      gpu_.check(gpu_.api().cuEventSynchronize(event_), "waiting for an event");
    } catch (...) {
      return std::current_exception();
    }
    if (uint64_t status = gpu_.statusWords().peek(status_))
      return std::make_exception_ptr(Error(statusText(status)));
    return outcome_->get();
  }

  bool reached() override {
    CurrentContext current(gpu_);
    Result result = gpu_.api().cuEventQuery(event_);
    if (result == result::notReady)
      return false;
    gpu_.check(result, "asking for an event");
    return true;
  }

  double millisecondsSince(EventMoment &start) override {
    CurrentContext current(gpu_);
    float milliseconds = 0;
    gpu_.check(gpu_.api().cuEventElapsedTime(&milliseconds, static_cast<Moment &>(start).event_, event_),
               "reading the time between two events");
    return milliseconds;
  }

private:
  Gpu &gpu_;
  EventHandle event_;
  bool captured_;
  size_t status_;
  std::shared_ptr<Outcome> outcome_;
};

/// A function that the stream runs on the host. The driver's thread only marks it done: letting go of what it holds may
/// call CUDA, which that thread must not.
struct CudaStream::HostWork {
  std::function<void()> function;
  std::shared_ptr<Outcome> outcome;
  std::atomic<bool> done{false};

  static void run(void *data) {
    auto &work = *static_cast<HostWork *>(data);
    if (!work.outcome->get()) {
      try {
        work.function();
      } catch (...) {
        std::lock_guard lock(work.outcome->mutex);
        work.outcome->error = std::current_exception();
      }
    }
    work.done.store(true, std::memory_order_release);
  }
};

template <typename Calls> Result CudaStream::underCaptureLock(Calls calls) {
  std::lock_guard lock(captureMutex_);
  int capturing = 0;
  Result failure = gpu_.api().cuStreamIsCapturing(handle_, &capturing);
  return failure ? failure : calls(capturing != 0);
}

CudaStream::CudaStream(Gpu &gpu) : gpu_(gpu), outcome_(std::make_shared<Outcome>()) {
  gpu.checkUsable();
  CurrentContext current(gpu);
  gpu.check(gpu.api().cuStreamCreate(&handle_, streamNonBlocking), "creating a stream");
  status_ = gpu.statusWords().acquire();
  gpu.addStream(this);
}

CudaStream::~CudaStream() {
  CurrentContext current(gpu_);
  gpu_.note(gpu_.api().cuStreamSynchronize(handle_), "finishing a stream's work");
  gpu_.removeStream(this);
  gpu_.api().cuStreamDestroy(handle_);
  if (beforeCapture_)
    gpu_.giveBack(beforeCapture_, /*timing=*/false);
  gpu_.statusWords().release(status_);
  gpu_.memory().collect();
}

CudaStream &CudaStream::of(const Stream &stream) {
  StreamImpl &impl = stream.impl();
  if (!impl.device().isCuda())
    throw Error("this needs a stream of a CUDA device, and the stream is the CPU's; make it with "
                "Stream(Device::cuda())");
  return static_cast<CudaStream &>(impl);
}

Device CudaStream::device() const { return gpu_.device(); }

void CudaStream::enqueue(std::function<void()> work) {
  gpu_.checkUsable();
  if (isCapturing())
    throw Error("a function cannot be queued on a stream that is being captured: a graph repeats kernels only");
  letGoOfFinished();
  CurrentContext current(gpu_);
  std::lock_guard lock(hostMutex_);
  HostWork &item = hostWork_.emplace_back();
  item.function = std::move(work);
  item.outcome = outcome_;
  if (Result failure = gpu_.api().cuLaunchHostFunc(handle_, HostWork::run, &item)) {
    hostWork_.pop_back();
    gpu_.fail(failure, "queueing a function");
  }
}

void CudaStream::letGoOfFinished() {
  std::list<HostWork> finished; // destroyed without the lock
  std::lock_guard lock(hostMutex_);
  while (!hostWork_.empty() && hostWork_.front().done.load(std::memory_order_acquire))
    finished.splice(finished.end(), hostWork_, hostWork_.begin());
}

void CudaStream::synchronize() {
  gpu_.checkUsable();
  if (isCapturing())
    throw Error("a stream cannot be synchronized while it is being captured; do it after the graph is made");
  {
    CurrentContext current(gpu_);
    unsigned launched = launches_.load(std::memory_order_relaxed);
    gpu_.check(gpu_.api().cuStreamSynchronize(handle_), "running the work of a stream");
    // Forgotten only if nobody launched meanwhile.
    launches_.compare_exchange_strong(launched, 0, std::memory_order_relaxed);
  }
  letGoOfFinished();
  gpu_.memory().collect();
  std::exception_ptr error;
  {
    std::lock_guard lock(outcome_->mutex);
    error = std::exchange(outcome_->error, nullptr);
  }
  if (uint64_t status = takeStatus())
    throw Error(statusText(status));
  if (error)
    std::rethrow_exception(error);
}

bool CudaStream::idle() {
  gpu_.checkUsable();
  CurrentContext current(gpu_);
  if (isCapturing())
    return false;
  Result result = gpu_.api().cuStreamQuery(handle_);
  if (result == result::notReady)
    return false;
  gpu_.check(result, "asking whether a stream is idle");
  return true;
}

std::shared_ptr<EventMoment> CudaStream::record() {
  gpu_.checkUsable();
  CurrentContext current(gpu_);
  EventHandle event = gpu_.takeEvent(/*timing=*/true);
  std::shared_ptr<Moment> moment;
  try {
    moment = std::make_shared<Moment>(gpu_, event, isCapturing(), status_, outcome_);
  } catch (...) {
    gpu_.giveBack(event, /*timing=*/true);
    throw;
  }
  gpu_.check(gpu_.api().cuEventRecord(event, handle_), "recording an event");
  return moment;
}

void CudaStream::wait(const std::shared_ptr<EventMoment> &moment) {
  gpu_.checkUsable();
  if (moment->device().isCpu()) {
    if (std::exception_ptr error = moment->await())
      std::rethrow_exception(error);
    return;
  }
  auto &theirs = static_cast<Moment &>(*moment);
  CurrentContext current(gpu_);
  Result result = underCaptureLock([&](bool capturing) {
    // Waiting for a captured event makes this stream part of the capture.
    Result failure = theirs.captured() && !capturing ? markBeforeCapture() : result::success;
    return failure ? failure : gpu_.api().cuStreamWaitEvent(handle_, theirs.handle(), 0);
  });
  gpu_.check(result, "waiting for an event");
}

DevicePointer CudaStream::statusPointer() const { return gpu_.statusWords().devicePointer(status_); }
uint64_t CudaStream::takeStatus() { return gpu_.statusWords().take(status_); }

thread_local Capture *CudaStream::capture = nullptr;

CudaStream::Workspace CudaStream::workspace(size_t zero, size_t anything, size_t restored) {
  gpu_.checkUsable();
  CurrentContext current(gpu_);
  Workspace workspace{std::unique_lock(workspaceMutex_)};
  bool capturing = isCapturing();
  if (capturing && !capture)
    throw Error("a kernel with a workspace can be captured only by the thread that captures the graph");
  // Memory that is kept, and large enough, or new.
  auto have = [&](std::optional<Tensor> &kept, size_t bytes, auto allocate) -> void * {
    if (bytes == 0)
      return nullptr;
    auto size = static_cast<int64_t>(bytes);
    if (capturing) {
      auto own = std::make_shared<Tensor>(allocate(DType::u8, {size}, gpu_.device()));
      capture->kept.push_back(own);
      return own->data();
    }
    if (!kept || kept->bufferBytes() < bytes) {
      kept.reset(); // first, so that the old and the new are not needed at once if nothing is queued
      kept = allocate(DType::u8, {size}, gpu_.device());
    }
    return kept->data();
  };
  workspace.data_ = have(workspace_, zero + anything, Tensor::empty);
  workspace.restored_ = have(restored_, restored, Tensor::zeros);
  if (zero)
    gpu_.check(gpu_.api().cuMemsetD8Async(reinterpret_cast<uintptr_t>(workspace.data_), 0, zero, handle_),
               "zeroing a workspace");
  return workspace;
}

void CudaStream::addRecentLaunches(std::vector<const char *> &names) const {
  size_t count = std::min<size_t>(launches_.load(std::memory_order_relaxed), recent_.size());
  for (size_t i = 0; i < count; ++i) {
    const char *name = recent_[i].load(std::memory_order_relaxed);
    if (name && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
}

bool CudaStream::isCapturing() const {
  CurrentContext current(gpu_);
  int status = 0;
  gpu_.check(gpu_.api().cuStreamIsCapturing(handle_, &status), "asking whether a stream is captured");
  return status != 0;
}

Result CudaStream::markBeforeCapture() noexcept {
  if (!beforeCapture_)
    if (Result failure = gpu_.tryTakeEvent(beforeCapture_, /*timing=*/false))
      return failure;
  return gpu_.api().cuEventRecord(beforeCapture_, handle_);
}

void CudaStream::beginCapture() {
  gpu_.checkUsable();
  CurrentContext current(gpu_);
  bool already = false;
  Result result = underCaptureLock([&](bool capturing) {
    already = capturing;
    if (capturing)
      return result::success;
    Result failure = markBeforeCapture();
    // Relaxed: allocating, loading a kernel or asking for an event meanwhile, in any thread, is no offence; what it
    // does is done at once and is not part of the graph.
    return failure ? failure : gpu_.api().cuStreamBeginCapture(handle_, captureRelaxed);
  });
  gpu_.check(result, "beginning to capture a stream");
  if (already)
    throw Error("a stream that is being captured cannot be captured again; finish the first graph before");
}

Result CudaStream::endCapture(GraphHandle &graph) noexcept {
  CurrentContext current(gpu_);
  std::lock_guard lock(captureMutex_);
  return gpu_.api().cuStreamEndCapture(handle_, &graph);
}

Result CudaStream::markQueuedWork(EventHandle &event) noexcept {
  const DriverApi &api = gpu_.api();
  return underCaptureLock([&](bool capturing) -> Result {
    StreamHandle recordOn = handle_;
    if (capturing) {
      // Nothing may be recorded here now without becoming part of the graph; what ran before has its own event.
      recordOn = gpu_.transferStream();
      if (Result failure = api.cuStreamWaitEvent(recordOn, beforeCapture_, 0))
        return failure;
    } else if (Result busy = api.cuStreamQuery(handle_); busy != result::notReady) {
      return busy;
    }
    EventHandle taken = nullptr;
    if (Result failure = gpu_.tryTakeEvent(taken, /*timing=*/false))
      return failure;
    if (Result failure = api.cuEventRecord(taken, recordOn)) {
      gpu_.giveBack(taken, /*timing=*/false);
      return failure;
    }
    event = taken;
    return result::success;
  });
}

std::unique_ptr<StreamImpl> makeCudaStream(int ordinal) { return std::make_unique<CudaStream>(Gpu::get(ordinal)); }

} // namespace tenon::cuda
