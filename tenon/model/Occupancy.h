// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// How many blocks of a kernel a multiprocessor of an NVIDIA GPU holds at once, and what stops the next one.
///
/// A block takes, each rounded up to what the hardware hands out at a time:
///
///     registers      of a warp: registers a thread x 32, in units of 256; of a block: its warps, in units of 4
///     shared memory  what it asks for, plus what the system takes of each block, in units of 128 or 256 bytes
///     threads        its warps
///     a slot         of the blocks that a multiprocessor can hold
namespace tenon::model {

/// Of a multiprocessor.
struct GpuLimits {
  std::string architecture; ///< "sm_90"
  int warps = 64, blocks = 32;
  int registers = 65536, registersPerThread = 255;
  int64_t sharedBytes = 0, sharedBytesPerBlock = 0; ///< that kernels may use; at most, of one block
  int64_t reservedSharedBytes = 1024;               ///< of each block, for the system
  int64_t sharedUnit = 128;
  int warpSchedulers = 4;
};
/// Of a compute capability, for example "sm_90a"; nothing for one that is not in the table (7.0 to 12.0).
std::optional<GpuLimits> gpuLimits(std::string_view architecture);

struct BlockShape {
  int threads = 128, registersPerThread = 32;
  int64_t sharedBytes = 0;
};

struct Occupancy {
  int blocks = 0; ///< on a multiprocessor; 0: it does not fit at all
  int warps = 0;
  double fraction = 0; ///< of the warps that it could hold
  /// "registers", "shared memory", "threads" or "blocks": what the next block lacks. When several are equal, the first
  /// of these.
  std::string limiter;
};
Occupancy occupancy(const GpuLimits &limits, const BlockShape &block);

/// The grid in rounds of as many blocks as run at once. The last round may be nearly empty: wave quantisation.
struct Waves {
  double blocks = 0, perWave = 0;
  double waves = 0;        ///< blocks / perWave
  double rounds = 0;       ///< the same, rounded up
  double efficiency = 1;   ///< waves / rounds: the part of the device's time that is used when all blocks are alike
  double tailBlocks = 0;   ///< of the last round; 0 when it is full
};
Waves waves(double blocks, double multiprocessors, double blocksPerMultiprocessor);

} // namespace tenon::model
