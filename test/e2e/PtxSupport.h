// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests that look at PTX.
#pragma once

#include "tenon/compiler/target/nvidia/ptx/Assembler.h"

#include <gtest/gtest.h>

#include <string>

namespace tenon::test {

/// How often a piece of text is in another.
inline size_t count(const std::string &text, const std::string &what) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at)
    ++found;
  return found;
}

/// Where ptxas is installed: it spills nothing, and has nothing to say of dots that it makes wait.
inline void expectAssembles(const std::string &ptx) {
  std::optional<nvidia::AssemblyReport> assembled = nvidia::assemble(ptx, "sm_90a");
  if (!assembled)
    return;
  EXPECT_EQ(assembled->spillStoreBytes, 0);
  for (const std::string &warning : assembled->warnings)
    ADD_FAILURE() << warning;
}

} // namespace tenon::test
