// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tenon::jit {

/// Identifies the compiler itself: the linker's hash of the library or program this code is in. Part of every cache key,
/// so that no change to Tenon ever meets code that an older Tenon generated.
const std::string &buildId();

} // namespace tenon::jit
