// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::sim {

/// What a tensor map of the driver says, for a simulated kernel: its parameter is the address of one. Dimensions are
/// counted from the innermost, which is contiguous.
struct TensorMap {
  int64_t address = 0; ///< of element (0, 0, ...): a multiple of 16
  int32_t elementBytes = 0;
  int32_t rank = 0;         ///< 1 to 5
  int64_t sizes[5] = {};    ///< in elements
  int64_t strides[4] = {};  ///< in bytes, of dimensions 1 to 4: multiples of 16
  int32_t box[5] = {};      ///< in elements: 1 to 256
  int32_t swizzleBytes = 0; ///< 0: none; 32, 64, 128: as many as the box has along dimension 0
};

} // namespace tenon::sim
