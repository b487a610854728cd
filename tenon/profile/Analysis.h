// SPDX-License-Identifier: Apache-2.0
//
// Internal to profile/: what the tables, the findings and the flame graph are made from.
#pragma once

#include "tenon/profile/Summary.h"

#include <cstddef>
#include <vector>

namespace tenon::profile {

/// Which event lies inside which, on its thread.
struct Nesting {
  static constexpr size_t none = static_cast<size_t>(-1);
  explicit Nesting(const ProfileData &data);
  std::vector<size_t> parent;
  std::vector<int64_t> inside; ///< ns of the events directly inside each
};

/// Indices of events; `run` may be none.
struct Launch {
  size_t event, run;
  int64_t apart;     ///< ns of compilations and waits inside it
  int64_t graph = 0; ///< ns that the kernels of a graph ran, where this launched one
};
/// Without those that were captured into a graph or refused, which ran nothing.
std::vector<Launch> launchesOf(const ProfileData &data, const Nesting &nesting);

std::string placeOf(const ProfileEvent &event); ///< "cpu", "cuda:0"
/// "1.23 ms", "64.0 KiB"
std::string timeText(double seconds);
std::string bytesText(double bytes);
std::string percentText(double part);

void addFindings(const ProfileData &data, const std::vector<Launch> &launches, ProfileSummary &summary);

} // namespace tenon::profile
