// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "MatmulCases.h"

#include "tenon/model/Ceilings.h"

namespace tenon::tool {

/// The best tilings of the tuner's space for the case by the tuner's model, the first of which is what it would choose.
std::vector<Tiling> bestTilings(const MatmulCase &one, const model::Ceilings &ceilings, size_t most = 24);

} // namespace tenon::tool
