// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/measure/Bench.h"
#include "tenon/runtime/Device.h"

#include <cstddef>

namespace tenon {

/// What a launch of a kernel that does next to nothing costs the host, in seconds. The kinds take turns, so that what
/// slows the machine slows them all.
struct LaunchCost {
  Estimate launch;   ///< the whole of launch()
  Estimate profiled; ///< the same while a profile records it
  Estimate added;    ///< by the profile: the difference within a round
  Estimate driver;   ///< the driver's call alone, of an empty kernel; on the CPU, where there is none, 0
  size_t launches = 0;
};
LaunchCost measureLaunchCost(size_t launches, Device device);

} // namespace tenon
