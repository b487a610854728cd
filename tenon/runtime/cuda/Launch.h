// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace tenon::cuda {

class CudaStream;
class Function;

struct LaunchShape {
  std::array<uint32_t, 3> grid{1, 1, 1};    ///< in blocks
  std::array<uint32_t, 3> block{1, 1, 1};   ///< in threads
  std::array<uint32_t, 3> cluster{1, 1, 1}; ///< in blocks; must divide the grid
  uint32_t sharedBytes = 0;                 ///< dynamic, at most what the Function was made with
};

/// Queues a kernel; `words` are its parameters, each one 64-bit word, copied before this returns. An empty grid is no
/// work. Neither allocates nor locks (the driver aside), and may be called from several threads at once. Memory that is
/// released after the launch stays until the kernel is done (Memory.h). Throws Error when the driver refuses; what goes
/// wrong while it runs is thrown by the stream's synchronize().
void launch(const Function &function, const LaunchShape &shape, CudaStream &stream, std::span<const uint64_t> words);

} // namespace tenon::cuda
