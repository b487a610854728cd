// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/DType.h"

namespace tenon {

std::string_view nameOf(DType type) {
  static constexpr std::string_view names[] = {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32",
                                               "i16", "i8",  "u64", "u32",  "u16",    "u8",     "bool"};
  return names[static_cast<size_t>(type)];
}

std::optional<DType> parseDType(std::string_view name) {
  for (DType type : allDTypes)
    if (nameOf(type) == name)
      return type;
  return std::nullopt;
}

} // namespace tenon
