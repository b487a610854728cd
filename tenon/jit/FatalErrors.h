// SPDX-License-Identifier: Apache-2.0
//
// Internal to jit/: what LLVM cannot go on from becomes an exception instead of the end of the process.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

namespace tenon::jit {

/// Runs `work` and returns when it is done. Throws what it throws, or InternalError with LLVM's words when
/// llvm::report_fatal_error is called in it.
///
/// The work runs on a thread of its own, with a stack that LLVM's recursions fit in whatever the caller's is: a fatal
/// error may not return, LLVM's frames cannot be unwound (it is compiled without exceptions), and jumping over them is
/// undefined, but a thread can be left asleep. That keeps what the work had allocated, so it is not for errors that are
/// expected.
void guardFatalErrors(llvm::function_ref<void()> work);

} // namespace tenon::jit
