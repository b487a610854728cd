// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/cuda/DriverApi.h"

#include <string>

namespace tenon::cuda {

/// "CUDA_ERROR_X (the driver's own words): what it means for the user and what to do"; the last part for those that a
/// user meets.
std::string describe(const DriverApi &api, Result result);

/// "CUDA_ERROR_X" alone.
std::string nameOf(const DriverApi &api, Result result);

/// Whether the device's context is lost: every later call in this process fails too.
bool isSticky(Result result);

/// 13000 as "13.0".
std::string versionText(int version);

} // namespace tenon::cuda
