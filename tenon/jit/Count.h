// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/model/Count.h"

#include <cstdint>
#include <vector>

namespace tenon::jit {

/// A kernel with its arguments and Params as the model counts it: traced, not compiled, nothing runs.
model::CountPlan countPlan(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options = {});
/// The argument words of the launch, which CountPlan::count takes.
std::vector<int64_t> argumentWords(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options = {});

} // namespace tenon::jit
