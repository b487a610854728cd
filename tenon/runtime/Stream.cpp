// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/Stream.h"

#include "tenon/base/Error.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace tenon {

using Clock = std::chrono::steady_clock;

struct Event::Moment {
  void reach(std::exception_ptr failure) {
    std::lock_guard lock(mutex);
    time = Clock::now();
    error = std::move(failure);
    reached.notify_all();
  }

  std::exception_ptr await() {
    std::unique_lock lock(mutex);
    reached.wait(lock, [&] { return time.has_value(); });
    return error;
  }

  std::mutex mutex;
  std::condition_variable reached;
  std::optional<Clock::time_point> time; ///< set once reached
  std::exception_ptr error;              ///< of the stream, when work before the event failed
};

void Event::synchronize() const {
  if (!moment_)
    return;
  if (std::exception_ptr error = moment_->await())
    std::rethrow_exception(error);
}

bool Event::query() const {
  if (!moment_)
    return true;
  std::lock_guard lock(moment_->mutex);
  return moment_->time.has_value();
}

double elapsedMilliseconds(const Event &start, const Event &end) {
  auto timeOf = [](const Event &event, const char *which) {
    if (!event.moment_)
      throw Error(std::string("the ") + which + " event of a time was never recorded; record both events on a stream");
    std::lock_guard lock(event.moment_->mutex);
    if (!event.moment_->time)
      throw Error(std::string("the ") + which + " event of a time is not reached yet; synchronize() it first");
    return *event.moment_->time;
  };
  Clock::time_point from = timeOf(start, "start");
  return std::chrono::duration<double, std::milli>(timeOf(end, "end") - from).count();
}

struct Stream::Impl {
  /// Events are reached and waited for even after a failure: others depend on them.
  struct Item {
    std::function<std::exception_ptr(std::exception_ptr current)> run; ///< given the stream's error, returns a new one
    bool evenAfterFailure;
  };

  std::mutex mutex;
  std::condition_variable changed; ///< something queued, something finished, or closing
  std::deque<Item> queue;
  uint64_t queued = 0, finished = 0;
  bool closing = false;
  std::exception_ptr error;
  std::thread worker;

  void push(Item item) {
    std::lock_guard lock(mutex);
    queue.push_back(std::move(item));
    if (!worker.joinable()) {
      try {
        worker = std::thread([this] { work(); });
      } catch (const std::system_error &failure) {
        queue.pop_back();
        throw Error(std::string("cannot start the thread of a stream (") + failure.what() + "); use fewer streams");
      }
    }
    ++queued;
    changed.notify_all();
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return closing || !queue.empty(); });
      if (queue.empty())
        return;
      {
        Item item = std::move(queue.front());
        queue.pop_front();
        std::exception_ptr current = error, failure;
        lock.unlock();
        if (!current || item.evenAfterFailure)
          failure = item.run(std::move(current));
        // What the item holds (tensors, events) is let go before anyone is told that it is done.
        item.run = nullptr;
        lock.lock();
        // Only a new failure is stored: a synchronize() elsewhere may have reported the old one meanwhile.
        if (failure && !error)
          error = std::move(failure);
      }
      ++finished;
      changed.notify_all();
    }
  }

  bool onWorker() const { return worker.get_id() == std::this_thread::get_id(); }
};

Stream::Stream() : impl_(std::make_unique<Impl>()) {}
Stream::Stream(Stream &&) noexcept = default;

Stream &Stream::operator=(Stream &&other) noexcept {
  // The old work is finished first, by the destructor of what is swapped out.
  Stream old(std::move(other));
  std::swap(impl_, old.impl_);
  return *this;
}

Stream::~Stream() {
  if (!impl_)
    return;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->closing = true;
    impl_->changed.notify_all();
  }
  if (impl_->worker.joinable())
    impl_->worker.join();
}

Stream::Impl &Stream::impl() const {
  if (!impl_)
    throw Error("a stream that was moved from cannot be used; use the one it was moved to");
  return *impl_;
}

void Stream::enqueue(std::function<void()> work) {
  if (!work)
    throw Error("an empty function cannot be queued on a stream; give it something to call");
  impl().push({[work = std::move(work)](std::exception_ptr) -> std::exception_ptr {
                 try {
                   work();
                   return nullptr;
                 } catch (...) {
                   return std::current_exception();
                 }
               },
               /*evenAfterFailure=*/false});
}

void Stream::synchronize() {
  Impl &stream = impl();
  std::unique_lock lock(stream.mutex);
  if (stream.onWorker())
    throw Error("a stream cannot be synchronized from its own work, which would wait for itself; do it after the work");
  uint64_t target = stream.queued;
  stream.changed.wait(lock, [&] { return stream.finished >= target; });
  if (std::exception_ptr error = std::exchange(stream.error, nullptr)) {
    lock.unlock();
    std::rethrow_exception(error);
  }
}

bool Stream::idle() const {
  std::lock_guard lock(impl().mutex);
  return impl_->finished == impl_->queued;
}

void Stream::record(Event &event) {
  auto moment = std::make_shared<Event::Moment>();
  impl().push({[moment](std::exception_ptr current) {
                 moment->reach(std::move(current));
                 return std::exception_ptr();
               },
               /*evenAfterFailure=*/true});
  event.moment_ = std::move(moment);
}

void Stream::wait(const Event &event) {
  if (!event.moment_)
    return;
  impl().push({[moment = event.moment_](std::exception_ptr current) {
                 std::exception_ptr theirs = moment->await();
                 return current ? std::exception_ptr() : theirs;
               },
               /*evenAfterFailure=*/true});
}

} // namespace tenon
