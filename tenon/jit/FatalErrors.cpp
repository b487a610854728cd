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

/// How a piece of guarded work ended. Shared with its thread, which may stay for ever.
struct Outcome {
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

thread_local Outcome *current = nullptr; ///< of the work that this thread does

struct Task {
  std::shared_ptr<Outcome> outcome;
  llvm::function_ref<void()> work;

  static void *run(void *argument) {
    std::unique_ptr<Task> task(static_cast<Task *>(argument));
    current = task->outcome.get();
    std::exception_ptr thrown;
    try {
      task->work();
    } catch (...) {
      thrown = std::current_exception();
    }
    task->outcome->finish(std::move(thrown), std::nullopt);
    return nullptr;
  }
};

void onFatalError(void *, const char *reason, bool) {
  if (!current) { // not ours: as if no handler were installed
    llvm::errs() << "LLVM ERROR: " << reason << "\n";
    return;
  }
  current->finish(nullptr, reason);
  while (true)
    std::this_thread::sleep_for(std::chrono::hours(24));
}

} // namespace

void guardFatalErrors(llvm::function_ref<void()> work) {
  static const bool installed = [] {
    llvm::install_fatal_error_handler(onFatalError);
    return true;
  }();
  (void)installed;
  auto outcome = std::make_shared<Outcome>();
  auto task = std::make_unique<Task>(Task{outcome, work});
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stackBytes);
  pthread_t thread;
  bool started = pthread_create(&thread, &attributes, Task::run, task.get()) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) // better unguarded than not at all
    return work();
  task.release(); // the thread's now
  {
    std::unique_lock lock(outcome->mutex);
    outcome->changed.wait(lock, [&] { return outcome->done; });
  }
  if (outcome->fatal) {
    pthread_detach(thread);
    throw InternalError("LLVM gave up: " + *outcome->fatal);
  }
  pthread_join(thread, nullptr);
  if (outcome->thrown)
    std::rethrow_exception(outcome->thrown);
}

} // namespace tenon::jit
