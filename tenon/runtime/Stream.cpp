// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/Stream.h"

#include "tenon/base/Error.h"
#include "tenon/profile/Recorder.h"
#include "tenon/runtime/StreamImpl.h"
#include "tenon/runtime/cuda/CudaStream.h"

#include <string>
#include <utility>

namespace tenon {

void Event::synchronize() const {
  if (!moment_)
    return;
  profile::Wait wait("an event");
  if (std::exception_ptr error = moment_->await())
    std::rethrow_exception(error);
}

bool Event::query() const { return !moment_ || moment_->reached(); }

double elapsedMilliseconds(const Event &start, const Event &end) {
  auto check = [](const Event &event, const char *which) {
    if (!event.moment_)
      throw Error(std::string("the ") + which + " event of a time was never recorded; record both events on a stream");
    if (!event.moment_->reached())
      throw Error(std::string("the ") + which + " event of a time is not reached yet; synchronize() it first");
  };
  check(start, "start");
  check(end, "end");
  Device from = start.moment_->device(), to = end.moment_->device();
  if (from != to)
    throw Error("there is no time between an event of " + from.str() + " and one of " + to.str() +
                ", which have different clocks; record both on one device");
  return end.moment_->millisecondsSince(*start.moment_);
}

Stream::Stream() : impl_(makeCpuStream()) {}
Stream::Stream(Device device) : impl_(device.isCpu() ? makeCpuStream() : cuda::makeCudaStream(device.ordinal)) {}
Stream::Stream(Stream &&) noexcept = default;
Stream::~Stream() = default;

Stream &Stream::operator=(Stream &&other) noexcept {
  // The old work is finished first, by the destructor of what is swapped out.
  Stream old(std::move(other));
  std::swap(impl_, old.impl_);
  return *this;
}

StreamImpl &Stream::impl() const {
  if (!impl_)
    throw Error("a stream that was moved from cannot be used; use the one it was moved to");
  return *impl_;
}

Device Stream::device() const { return impl().device(); }

void Stream::enqueue(std::function<void()> work) {
  if (!work)
    throw Error("an empty function cannot be queued on a stream; give it something to call");
  impl().enqueue(std::move(work));
}

void Stream::synchronize() {
  profile::Wait wait("a stream");
  impl().synchronize();
}
bool Stream::idle() const { return impl().idle(); }
void Stream::record(Event &event) { event.moment_ = impl().record(); }

void Stream::wait(const Event &event) {
  StreamImpl &stream = impl();
  if (event.moment_)
    stream.wait(event.moment_);
}

} // namespace tenon
