// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/Stream.h"

#include <exception>

namespace tenon {

/// What an Event refers to: a place in the work of one stream.
class EventMoment {
public:
  virtual ~EventMoment() = default;
  virtual Device device() const = 0;
  /// Waits until it is reached; returns the error of the stream if work before it failed.
  virtual std::exception_ptr await() = 0;
  virtual bool reached() = 0;
  /// Of two that are reached, of the same device.
  virtual double millisecondsSince(EventMoment &start) = 0;
};

/// What a Stream is on one kind of device. Destroying it finishes its work.
class StreamImpl {
public:
  virtual ~StreamImpl() = default;
  virtual Device device() const = 0;
  virtual void enqueue(std::function<void()> work) = 0;
  virtual void synchronize() = 0;
  virtual bool idle() = 0;
  virtual std::shared_ptr<EventMoment> record() = 0;
  virtual void wait(const std::shared_ptr<EventMoment> &moment) = 0;
};

std::unique_ptr<StreamImpl> makeCpuStream();

} // namespace tenon
