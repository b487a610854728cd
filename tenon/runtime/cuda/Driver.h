// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/cuda/DriverApi.h"

#include <string>

namespace tenon::cuda {

/// The NVIDIA driver, opened at run time. Opening it never throws: a machine without one is no error until a device is
/// asked for.
class Driver {
public:
  /// Opens the library of that name or path; "none" is no driver.
  explicit Driver(const std::string &library);
  Driver(const Driver &) = delete;
  Driver &operator=(const Driver &) = delete;

  bool available() const { return reason_.empty(); }
  /// Why no device can be used; empty when one can.
  const std::string &reason() const { return reason_; }
  int version() const { return version_; }
  int devices() const { return devices_; }
  /// Only when available().
  const DriverApi &api() const { return api_; }

private:
  std::string open(const std::string &library);

  DriverApi api_{};
  int version_ = 0, devices_ = 0;
  std::string reason_;
};

/// The driver of this process, opened by the first call: libcuda.so.1, or what TENON_CUDA_DRIVER names.
const Driver &driver();

/// Its functions; throws Error with the reason when there are none.
const DriverApi &driverApi();

} // namespace tenon::cuda
