// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Report.h"

#include <chrono>
#include <regex>
#include <string>
#include <vector>

/// What the suites of `tenon bench gpu` share.
namespace tenon::tool {

struct GpuRequest {
  std::string suite = "memory", regime = "both", cases, json, peerScript, without, probe, probeCache;
  std::vector<std::string> tilings; ///< instead of those of the cases
  bool peers = false, quick = false, sweep = false, noVerify = false;
  double seconds = 0; ///< 0: what the suite takes
};

class StopWatch {
public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// What --cases asks for; throws Error for no regular expression.
std::regex wantedCases(const GpuRequest &request);
/// The device, the program and the request; throws Error where there is no device.
void describeGpuRun(Report &report, const GpuRequest &request, double seconds);

/// `--suite matmul`
int benchMatmul(const GpuRequest &request);

} // namespace tenon::tool
