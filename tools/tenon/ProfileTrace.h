// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/profile/Profile.h"

#include <string>

namespace tenon::tool {

/// A trace that the library wrote (traceJson), read again; throws Error, one sentence, for anything else.
ProfileData readTrace(const std::string &file);
ProfileData parseTrace(const std::string &text, const std::string &name);

} // namespace tenon::tool
