// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

/// Who called the library.
namespace tenon::profile {

struct Stack {
  std::array<void *, 24> frames;
  int count = 0;
  uint64_t hash() const;
};
/// Of this thread, innermost first.
Stack captureStack();

/// "module+0x1234[ function];..." for the frames that lie outside the library, innermost first: what can be told
/// quickly, and without the program's debug information.
std::string describeStack(const Stack &stack);

/// The innermost frame of such a text in words: "main at train.cpp:42" where addr2line and debug information are at
/// hand, else the function's name or the module and offset. May take a moment: for reports, not while recording.
std::string describeSite(const std::string &stack);

} // namespace tenon::profile
