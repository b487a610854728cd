// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/Error.h"
#include "tenon/runtime/StreamImpl.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

class CpuMoment : public EventMoment {
public:
  void reach(std::exception_ptr failure) {
    std::lock_guard lock(mutex_);
    time_ = Clock::now();
    error_ = std::move(failure);
    reached_.notify_all();
  }

  Device device() const override { return Device::cpu(); }

  std::exception_ptr await() override {
    std::unique_lock lock(mutex_);
    reached_.wait(lock, [&] { return time_.has_value(); });
    return error_;
  }

  bool reached() override {
    std::lock_guard lock(mutex_);
    return time_.has_value();
  }

  double millisecondsSince(EventMoment &start) override {
    return std::chrono::duration<double, std::milli>(time() - static_cast<CpuMoment &>(start).time()).count();
  }

private:
  Clock::time_point time() {
    std::lock_guard lock(mutex_);
    return *time_;
  }

  std::mutex mutex_;
  std::condition_variable reached_;
  std::optional<Clock::time_point> time_; ///< set once reached
  std::exception_ptr error_;              ///< of the stream, when work before the event failed
};

class CpuStream : public StreamImpl {
public:
  ~CpuStream() override {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
      changed_.notify_all();
    }
    if (worker_.joinable())
      worker_.join();
  }

  Device device() const override { return Device::cpu(); }

  void enqueue(std::function<void()> work) override {
    push({[work = std::move(work)](std::exception_ptr) -> std::exception_ptr {
            try {
              work();
              return nullptr;
            } catch (...) {
              return std::current_exception();
            }
          },
          /*evenAfterFailure=*/false});
  }

  void synchronize() override {
    std::unique_lock lock(mutex_);
    if (worker_.get_id() == std::this_thread::get_id())
      throw Error(
          "a stream cannot be synchronized from its own work, which would wait for itself; do it after the work");
    uint64_t target = queued_;
    changed_.wait(lock, [&] { return finished_ >= target; });
    if (std::exception_ptr error = std::exchange(error_, nullptr)) {
      lock.unlock();
      std::rethrow_exception(error);
    }
  }

  bool idle() override {
    std::lock_guard lock(mutex_);
    return finished_ == queued_;
  }

  std::shared_ptr<EventMoment> record() override {
    auto moment = std::make_shared<CpuMoment>();
    push({[moment](std::exception_ptr current) {
            moment->reach(std::move(current));
            return std::exception_ptr();
          },
          /*evenAfterFailure=*/true});
    return moment;
  }

  void wait(const std::shared_ptr<EventMoment> &moment) override {
    push({[moment](std::exception_ptr current) {
            std::exception_ptr theirs = moment->await();
            return current ? std::exception_ptr() : theirs;
          },
          /*evenAfterFailure=*/true});
  }

private:
  /// Events are reached and waited for even after a failure: others depend on them.
  struct Item {
    std::function<std::exception_ptr(std::exception_ptr current)> run; ///< given the stream's error, returns a new one
    bool evenAfterFailure;
  };

  void push(Item item) {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(item));
    if (!worker_.joinable()) {
      try {
        worker_ = std::thread([this] { work(); });
      } catch (const std::system_error &failure) {
        queue_.pop_back();
        throw Error(std::string("cannot start the thread of a stream (") + failure.what() + "); use fewer streams");
      }
    }
    ++queued_;
    changed_.notify_all();
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
      if (queue_.empty())
        return;
      {
        Item item = std::move(queue_.front());
        queue_.pop_front();
        std::exception_ptr current = error_, failure;
        lock.unlock();
        if (!current || item.evenAfterFailure)
          failure = item.run(std::move(current));
        // What the item holds (tensors, events) is let go before anyone is told that it is done.
        item.run = nullptr;
        lock.lock();
        // Only a new failure is stored: a synchronize() elsewhere may have reported the old one meanwhile.
        if (failure && !error_)
          error_ = std::move(failure);
      }
      ++finished_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_; ///< something queued, something finished, or closing
  std::deque<Item> queue_;
  uint64_t queued_ = 0, finished_ = 0;
  bool closing_ = false;
  std::exception_ptr error_;
  std::thread worker_;
};

} // namespace

std::unique_ptr<StreamImpl> makeCpuStream() { return std::make_unique<CpuStream>(); }

} // namespace tenon
