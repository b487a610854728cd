// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "MatmulCases.h"

#include "tenon/model/Ceilings.h"

namespace tenon::tool {

/// How long a case should take with a tiling, by the model that the tuner chooses by (model/GpuCost.h).
double predictedSeconds(const MatmulCase &one, const Tiling &tiling, const model::Ceilings &ceilings);

} // namespace tenon::tool
