// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests that look at PTX.
#pragma once

#include <string>

namespace tenon::test {

/// How often a piece of text is in another.
inline size_t count(const std::string &text, const std::string &what) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at)
    ++found;
  return found;
}

} // namespace tenon::test
