// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tenon::tool {

/// Throws Error unless a file of that name could be written now: asked before the work, not after it.
void checkWritable(const std::string &file);
/// Complete or not at all: written aside and renamed. Devices and pipes are written as they are.
void writeFile(const std::string &file, const std::string &text);

} // namespace tenon::tool
