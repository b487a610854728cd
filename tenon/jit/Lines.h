// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"

namespace tenon::jit {

/// As emit(), with the source line of everything in the text: MLIR has loc(...) behind each op, assembly and PTX have
/// .loc before what follows. For those who show code beside its source.
std::string emitWithLines(const Kernel &kernel, const Arguments &arguments, std::string_view phase,
                          const LaunchOptions &options = {});

} // namespace tenon::jit
