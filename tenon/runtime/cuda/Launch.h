// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace tenon::cuda {

class CudaStream;
class Function;
struct TensorMap;

struct LaunchShape {
  std::array<uint32_t, 3> grid{1, 1, 1};    ///< in blocks
  std::array<uint32_t, 3> block{1, 1, 1};   ///< in threads
  std::array<uint32_t, 3> cluster{1, 1, 1}; ///< in blocks; must divide the grid
  uint32_t sharedBytes = 0;                 ///< dynamic, at most what the Function was made with
  bool startsEarly = false;                 ///< may overlap the kernel before: see below
};

/// Queues a kernel; its parameters are `words`, each one 64 bits, and behind them `maps`, by value. Both are copied
/// before this returns. An empty grid is no work. Neither allocates nor locks (the driver aside), and may be called
/// from several threads at once. Memory that is released after the launch stays until the kernel is done (Memory.h).
/// Throws Error when the driver refuses; what goes wrong while it runs is thrown by the stream's synchronize().
///
/// A kernel that `startsEarly` is put on the device as soon as every block of the kernel before it in the stream has
/// said so (griddepcontrol.launch_dependents) or ended; all its threads wait for that kernel's end and writes
/// (griddepcontrol.wait) before they touch global memory. Nobody else notices:
///   - A kernel before that never says so, such as another library's: the driver waits for its end.
///   - Three in a row: the second is not done before it has waited for the first, so the third waits for both.
///   - What the kernel before still reads is written only after the wait.
///   - Memory released after one kernel and handed to the next is not touched before the wait either.
///   - A fill or copy in between, such as the zeroing of a workspace, is waited for as ever: only neighbouring kernels
///     overlap.
///   - Reports of asserts and prints are read when the stream is done, which is after its last kernel, hence after all.
///   - A graph keeps the overlap from CUDA 12.3 on; before, kernels are captured without.
/// A driver that cannot be told (before CUDA 11.8) launches the kernel as any other.
void launch(const Function &function, const LaunchShape &shape, CudaStream &stream, std::span<const uint64_t> words,
            std::span<const TensorMap> maps = {});

} // namespace tenon::cuda
