// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests of what is recorded: two kernels, a CUDA device and a CUPTI of the tests' own, and how to find
// events and findings.
#pragma once

#include "../runtime/CudaFixture.h"
#include "FakeCupti.h"

#include "tenon/profile/Recorder.h"
#include "tenon/profile/Summary.h"
#include "tenon/runtime/LaunchGraph.h"
#include "tenon/tenon.h"

namespace tenon::test {

using Kind = ProfileEvent::Kind;

inline Kernel twice("twice(x, y, width=64)", [](View x, View y, Param width) {
  Index i = grid(cdiv(x.size(0), width));
  y.store({i * width}, x.load({i * width}, {width}) * 2);
});

inline Kernel plusOne("plus_one(x, y, width=64)", [](View x, View y, Param width) {
  Index i = grid(cdiv(x.size(0), width));
  y.store({i * width}, x.load({i * width}, {width}) + 1);
});

class ProfileTest : public Cuda {};

inline std::vector<const ProfileEvent *> eventsOf(const ProfileData &data, Kind kind) {
  std::vector<const ProfileEvent *> found;
  for (const ProfileEvent &event : data.events)
    if (event.kind == kind)
      found.push_back(&event);
  return found;
}

inline const ProfileSummary::Finding *findingOf(const ProfileSummary &summary, const std::string &kind) {
  for (const ProfileSummary::Finding &finding : summary.findings)
    if (finding.kind == kind)
      return &finding;
  return nullptr;
}

inline LaunchOptions onCuda(Stream *stream) {
  LaunchOptions options;
  options.target = Target::cuda;
  options.stream = stream;
  return options;
}

} // namespace tenon::test
