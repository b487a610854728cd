// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/Tensor.h"

/// What Tensor does when memory of a CUDA device is involved.
namespace tenon {

void *allocateOnDevice(Device device, size_t bytes);
void releaseOnDevice(Device device, void *data) noexcept;
/// Waits for everything queued on the device.
void awaitDevice(Device device) noexcept;

/// Copies all elements; same type and sizes, not overlapping, at least one of them on a device.
void copyDeviceTensor(const Tensor &to, const Tensor &from);
/// Every element becomes the low bytes of `pattern`.
void fillDeviceTensor(const Tensor &tensor, uint64_t pattern);

} // namespace tenon
