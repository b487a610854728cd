// SPDX-License-Identifier: Apache-2.0
//
// A kernel's PTX, and the order of instructions in it.
#pragma once

#include "tenon/tenon.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace tenon {

/// Where each of some instructions first stands in a text; all must be there, in that order.
inline void expectInOrder(const std::string &text, std::initializer_list<const char *> instructions) {
  size_t last = 0;
  for (const char *instruction : instructions) {
    size_t at = text.find(instruction);
    EXPECT_NE(at, std::string::npos) << instruction << " in\n" << text;
    EXPECT_LE(last, at) << instruction << " in\n" << text;
    last = at;
  }
}

inline std::string ptxOf(const Kernel &kernel, const Arguments &arguments, const std::string &gpu) {
  LaunchOptions options;
  options.target = Target::sim; // the views' alignment matters
  options.compile.gpu = gpu;
  return emit(kernel, arguments, "ptx", options);
}

} // namespace tenon
