// SPDX-License-Identifier: Apache-2.0
//
// Internal to tune/: one process at a time measures on a device.
#pragma once

#include "tenon/runtime/Device.h"

#include <functional>
#include <string>

namespace tenon::tuning {

/// While it lives, no other process of this user has the turn of that name. Compiling goes on beside it: several tables
/// or kernels can be tuned at once, and none is timed while another one runs. A process that dies gives its turn back.
/// Where the file behind it cannot be made, everybody has the turn; who is told to stop while waiting goes on without.
class Turn {
public:
  explicit Turn(const std::string &name, const std::function<bool()> &stop = {});
  ~Turn();
  Turn(const Turn &) = delete;
  Turn &operator=(const Turn &) = delete;

private:
  int file_ = -1;
};

/// The name of a CUDA device's turn: by its UUID, since processes may number devices differently
/// (CUDA_VISIBLE_DEVICES).
std::string turnOf(const CudaProperties &device, int ordinal);

} // namespace tenon::tuning
