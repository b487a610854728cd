// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/Device.h"

#include <cstddef>
#include <functional>
#include <memory>

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

class EventMoment;
class StreamImpl;
namespace cuda {
class CudaStream;
}

/// A moment in the work of a stream: the most recent Stream::record() of it. Before the first record it counts as
/// reached. A handle: copies made after a record refer to the same moment. Recording again gives the event a new moment
/// and does not disturb those that wait for the old one. An event is used by one thread at a time; copy it for another.
class Event {
public:
  /// Waits until it is reached; throws the error of the stream if work before it failed.
  void synchronize() const;
  /// Whether it is reached, without waiting.
  bool query() const;

private:
  friend class Stream;
  friend double elapsedMilliseconds(const Event &start, const Event &end);
  std::shared_ptr<EventMoment> moment_;
};

/// The time between two events of one device that were recorded and reached; throws Error if one was not. On a CUDA
/// device it is measured by the device.
double elapsedMilliseconds(const Event &start, const Event &end);

/// Work in the order it was queued, beside the thread that queues it, on the CPU or on a CUDA device. Destroying a
/// stream finishes its work first. Work may be queued from several threads at once.
///
/// On the CPU: one thread of its own, started with the first work. An item fails by throwing. The items queued after it
/// are then skipped, up to the next synchronize(), which rethrows the error. A stream that waits for an event of a
/// failed stream fails with the same error.
///
/// On a CUDA device: a stream of the driver that does not wait for the default stream. Kernels behind a failed
/// device_assert still run; synchronize() throws what failed first. A CPU stream can wait for events of a CUDA stream;
/// the other way round, wait() blocks the caller until the CPU's event is reached, since a device cannot wait for a
/// thread.
class Stream {
public:
  /// On the CPU.
  Stream();
  /// Throws Error when the device cannot be used.
  explicit Stream(Device device);
  ~Stream();
  Stream(Stream &&) noexcept;
  Stream &operator=(Stream &&) noexcept;

  Device device() const;

  /// On a CUDA stream the function runs on a thread of the driver's and must not call CUDA, nor anything here that does
  /// (device tensors may be held, but not made, copied or read); it is skipped when an earlier one threw. What it holds
  /// is let go by a later call on the stream. Not while the stream is captured.
  void enqueue(std::function<void()> work);
  /// Waits for everything queued so far; rethrows the first error since the last synchronize() and forgets it, unless
  /// the device itself is lost.
  void synchronize();
  /// Whether nothing is queued or running.
  bool idle() const;

  /// `event` becomes the moment when everything queued so far is done.
  void record(Event &event);
  /// What is queued from here on runs after `event` as last recorded now; recording it again later changes nothing.
  void wait(const Event &event);

private:
  friend class cuda::CudaStream;
  StreamImpl &impl() const;
  std::unique_ptr<StreamImpl> impl_;
};

} // namespace tenon
#pragma GCC visibility pop
