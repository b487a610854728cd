// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace tenon::test {

/// Those of these instruction sets that this machine has.
inline std::vector<std::string> levelsAmong(std::initializer_list<const char *> names) {
  std::vector<std::string> found;
  const Kernel nothing("nothing(x)", [](View x) { x.store({0}, x.load({0}, {1})); });
  for (const char *name : names) {
    LaunchOptions options;
    options.compile.isa = name;
    try {
      launch(nothing, {Tensor::zeros(f32, {1})}, options);
      found.push_back(name);
    } catch (const Error &) { // not on this processor
    }
  }
  return found;
}

} // namespace tenon::test
