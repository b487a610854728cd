// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Report.h"

#include <string>

/// The GPU a figure was measured on, and the program that measured it.
namespace tenon::tool {

std::string programPath();
std::string programDirectory();

/// What the driver tells: name, architecture, memory, cache, rates.
Json gpuProperties(int device);
/// What nvidia-smi tells now: driver, clocks, power, temperature; null where there is none.
Json gpuState(int device);
/// The commit that the program was built from, with "-dirty" where files had changed since; "unknown" without git.
std::string commitText();

} // namespace tenon::tool
