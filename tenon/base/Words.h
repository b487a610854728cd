// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

/// "1 dimension", "2 dimensions"; of a noun that takes an s.
inline std::string counted(int64_t number, std::string_view noun) {
  return std::to_string(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

} // namespace tenon
