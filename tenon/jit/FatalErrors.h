// SPDX-License-Identifier: Apache-2.0
//
// Internal to jit/: what LLVM cannot go on from becomes an exception instead of the end of the process.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <memory>

#include <pthread.h>

namespace tenon::jit {

/// Runs `work` and returns when it is done. Throws what it throws, or InternalError with LLVM's words when
/// llvm::report_fatal_error is called in it.
///
/// The work runs on a thread of its own, with a stack that LLVM's recursions fit in whatever the caller's is: a fatal
/// error may not return, LLVM's frames cannot be unwound (it is compiled without exceptions), and jumping over them is
/// undefined, but a thread can be left asleep. That keeps what the work had allocated, so it is not for errors that are
/// expected.
void guardFatalErrors(llvm::function_ref<void()> work);

/// The same beside what the caller does meanwhile: the work begins at once. Without another thread to be had it is done
/// when this object is made. What the work owns is kept where LLVM gives up.
class GuardedWork {
public:
  explicit GuardedWork(std::function<void()> work);
  ~GuardedWork(); ///< waits; what the work throws is lost
  GuardedWork(const GuardedWork &) = delete;
  GuardedWork &operator=(const GuardedWork &) = delete;

  /// Returns when the work is done, or throws as guardFatalErrors does; to be called once at most.
  void wait();

private:
  struct Outcome;
  struct Task;
  friend void onFatalError(void *, const char *, bool);
  void join();

  std::shared_ptr<Outcome> outcome_;
  pthread_t thread_{};
  bool running_ = false;
  static thread_local Outcome *current; ///< of the work that this thread does
};

} // namespace tenon::jit
