// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace tenon::cuda {

class Gpu;

/// Elements in device memory: five dimensions, the unused ones of size 1. Strides in bytes.
struct StridedElements {
  void *data;
  std::array<int64_t, 5> strides;
};

/// Copies or fills elements wherever they are, on the device; `elementBytes` is 1, 2, 4 or 8. Ordered after everything
/// queued on the device's streams and complete on return. `pattern` holds the element in its low bytes.
void copyStrided(Gpu &gpu, const std::array<int64_t, 5> &sizes, const StridedElements &to, const StridedElements &from,
                 uint64_t elementBytes);
void fillStrided(Gpu &gpu, const std::array<int64_t, 5> &sizes, const StridedElements &to, uint64_t pattern,
                 uint64_t elementBytes);

} // namespace tenon::cuda
