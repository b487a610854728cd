// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Report.h"

#include "tenon/profile/Summary.h"

#include <string>
#include <vector>

/// What the counters of an NVIDIA GPU say of each kernel. They are read by Nsight Compute (ncu), which runs a kernel as
/// often as its counters need passes, with memory as it was before each: that is a program of its own, and not one that
/// the times of a profile can come from.
namespace tenon::tool {

struct CounterRow {
  std::string kernel;
  size_t launches = 0;
  double seconds = 0;                 ///< of them together, under the GPU's base clock
  double bytesRead = 0, bytesWritten = 0; ///< of device memory
  /// In percent of the time that the multiprocessors were at work, on the average over the launches' time.
  double tensor = 0; ///< in which the matrix units were busy
  double issue = 0;  ///< of the slots for instructions
  double occupancy = 0; ///< warps of those that could be there
};

/// Runs the program once more, under ncu. Throws Error, one sentence, where there is no ncu or the counters are not for
/// this user.
std::vector<CounterRow> readCounters(const std::vector<std::string> &program);
/// What ncu wrote, kernels by their time.
std::vector<CounterRow> parseCounters(const std::string &log);

void printCounters(const std::vector<CounterRow> &rows, const ProfileSummary &summary);
Json toJson(const std::vector<CounterRow> &rows);

} // namespace tenon::tool
