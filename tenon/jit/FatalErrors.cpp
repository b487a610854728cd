// SPDX-License-Identifier: Apache-2.0
#include "tenon/jit/FatalErrors.h"

#include "tenon/base/Error.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <pthread.h>

namespace tenon::jit {
namespace {

constexpr size_t stackBytes = 64 << 20; // address space; pages are had when they are touched

} // namespace

/// How a piece of guarded work ended. Shared with its thread, which may stay for ever.
struct GuardedWork::Outcome {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr thrown;
  std::optional<std::string> fatal;

  void finish(std::exception_ptr exception, std::optional<std::string> message) {
    std::lock_guard lock(mutex);
    done = true;
    thrown = std::move(exception);
    fatal = std::move(message);
    changed.notify_one();
  }
};

thread_local GuardedWork::Outcome *GuardedWork::current = nullptr;

struct GuardedWork::Task {
  std::shared_ptr<Outcome> outcome;
  std::function<void()> work;

  void operator()() const {
    std::exception_ptr thrown;
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    outcome->finish(std::move(thrown), std::nullopt);
  }
  static void *run(void *argument) {
    std::unique_ptr<Task> task(static_cast<Task *>(argument));
    current = task->outcome.get();
    (*task)();
    return nullptr;
  }
};

void onFatalError(void *, const char *reason, bool) {
  if (!GuardedWork::current) { // not ours: as if no handler were installed
    llvm::errs() << "LLVM ERROR: " << reason << "\n";
    return;
  }
  GuardedWork::current->finish(nullptr, reason);
  while (true)
    std::this_thread::sleep_for(std::chrono::hours(24));
}

GuardedWork::GuardedWork(std::function<void()> work) : outcome_(std::make_shared<Outcome>()) {
  static const bool installed = [] {
    llvm::install_fatal_error_handler(onFatalError);
    return true;
  }();
  (void)installed;
  auto task = std::make_unique<Task>(Task{outcome_, std::move(work)});
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stackBytes);
  running_ = pthread_create(&thread_, &attributes, Task::run, task.get()) == 0;
  pthread_attr_destroy(&attributes);
  if (running_)
    task.release(); // the thread's now
  else
    (*task)(); // better unguarded than not at all
}

GuardedWork::~GuardedWork() { join(); }

void GuardedWork::join() {
  if (!running_)
    return;
  running_ = false;
  bool stays = false;
  {
    std::unique_lock lock(outcome_->mutex);
    outcome_->changed.wait(lock, [&] { return outcome_->done; });
    stays = outcome_->fatal.has_value();
  }
  stays ? pthread_detach(thread_) : pthread_join(thread_, nullptr);
}

void GuardedWork::wait() {
  join();
  if (outcome_->fatal)
    throw InternalError("LLVM gave up: " + *outcome_->fatal);
  if (outcome_->thrown)
    std::rethrow_exception(outcome_->thrown);
}

void guardFatalErrors(llvm::function_ref<void()> work) { GuardedWork([work] { work(); }).wait(); }

} // namespace tenon::jit
