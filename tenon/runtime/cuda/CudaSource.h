// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

/// CUDA C++ brought along by the user, to be verified and measured beside Tenon's kernels. Compiled by NVIDIA's NVRTC,
/// which is opened when it is first wanted: libnvrtc, or what TENON_NVRTC names ("none": never).
namespace tenon::cuda {

/// Why CUDA C++ cannot be compiled here; empty if it can.
std::string whyNoNvrtc();

/// PTX of a source for an architecture ("sm_90a"). `name` is what errors call it: an Error has the compiler's words.
/// Headers of CUDA are not looked for: the source stands alone.
std::string compileCudaSource(const std::string &source, const std::string &name, const std::string &architecture);

} // namespace tenon::cuda
