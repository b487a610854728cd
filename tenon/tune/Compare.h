// SPDX-License-Identifier: Apache-2.0
//
// Internal to tune/: whether what candidates left behind is alike, found out where it lies. What a device holds is
// compared there, by kernels of Tenon's own: fetching hundreds of megabytes for each candidate would take longer than
// timing it.
#pragma once

#include "tenon/jit/Jit.h"

#include <optional>

namespace tenon::tuning {

/// The first byte that differs between two vectors of u8 of one length, both on the host or both on one device.
std::optional<size_t> firstDifferentByte(const Tensor &a, const Tensor &b);

/// The largest |a - b| - relative * |b| of two contiguous vectors of floats, at least 0; infinite where just one of
/// them is not a number, or an infinity stands against something else.
double mostApart(const Tensor &a, const Tensor &b, double relative);

/// The kernels behind these, on any target. Nothing when they did not run.
std::optional<double> differentBytesBy(const LaunchOptions &options, const Tensor &a, const Tensor &b);
std::optional<double> mostApartBy(const LaunchOptions &options, const Tensor &a, const Tensor &b, double relative);

} // namespace tenon::tuning
