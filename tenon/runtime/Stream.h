// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

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
  struct Moment;
  std::shared_ptr<Moment> moment_;
};

/// The time between two events that were recorded and reached; throws Error if one was not.
double elapsedMilliseconds(const Event &start, const Event &end);

/// Work on the CPU in the order it was queued, beside the thread that queues it: what a CUDA stream is on a GPU. One
/// thread of its own, started with the first work. Destroying a stream finishes its work first.
///
/// An item fails by throwing. The items queued after it are then skipped, up to the next synchronize(), which rethrows
/// the error. A stream that waits for an event of a failed stream fails with the same error.
///
/// Work may be queued from several threads at once.
class Stream {
public:
  Stream();
  ~Stream();
  Stream(Stream &&) noexcept;
  Stream &operator=(Stream &&) noexcept;

  void enqueue(std::function<void()> work);
  /// Waits for everything queued so far; rethrows the first error since the last synchronize() and forgets it.
  void synchronize();
  /// Whether nothing is queued or running.
  bool idle() const;

  /// `event` becomes the moment when everything queued so far is done.
  void record(Event &event);
  /// What is queued from here on runs after `event` as last recorded now; recording it again later changes nothing.
  void wait(const Event &event);

private:
  struct Impl;
  Impl &impl() const;
  std::unique_ptr<Impl> impl_;
};

} // namespace tenon
#pragma GCC visibility pop
