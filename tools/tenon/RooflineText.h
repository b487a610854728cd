// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "RooflineFigures.h"

#include <string>

namespace tenon::tool {

/// The roofline in words.
std::string textOf(const RooflineFigures &figures);

} // namespace tenon::tool
