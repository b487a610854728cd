// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "MatmulCases.h"

namespace tenon::tool {

/// How long a case should take with a tiling on an H200, by the model that the tuner chooses by (model/GpuCost.h).
double predictedSeconds(const MatmulCase &one, const Tiling &tiling);

} // namespace tenon::tool
