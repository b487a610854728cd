// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "RooflineFigures.h"

namespace tenon::tool {

/// `tenon roofline --all`: for every case what the model expects beside what is measured. The exit status.
int compareWithModel(const RooflineRequest &request, Report &report);

} // namespace tenon::tool
