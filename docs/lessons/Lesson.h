// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>

/// What the lessons share: each states what it expects, and exits with status 1 if it was wrong about anything.
namespace lesson {

inline int wrong = 0;

inline void expect(bool holds, const char *what) {
  std::printf("%s %s\n", holds ? "  ok   " : "  WRONG", what);
  wrong += !holds;
}

inline int finish() { return wrong ? 1 : 0; }

} // namespace lesson
