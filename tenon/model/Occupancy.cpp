// SPDX-License-Identifier: Apache-2.0
#include "tenon/model/Occupancy.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace tenon::model {
namespace {

constexpr int64_t kilobyte = 1024;

struct Row {
  int capability; ///< 90 is 9.0
  int warps, blocks;
  int64_t sharedKilobytes, perBlockKilobytes, reservedBytes, sharedUnit;
};
/// From the compute capabilities in NVIDIA's programming guide.
constexpr Row table[] = {
    {70, 64, 32, 96, 96, 0, 256},      {72, 64, 32, 96, 96, 0, 256},      {75, 32, 16, 64, 64, 0, 256},
    {80, 64, 32, 164, 163, 1024, 128}, {86, 48, 16, 100, 99, 1024, 128},  {87, 48, 16, 164, 163, 1024, 128},
    {89, 48, 24, 100, 99, 1024, 128},  {90, 64, 32, 228, 227, 1024, 128}, {100, 64, 32, 228, 227, 1024, 128},
    {120, 48, 24, 100, 99, 1024, 128},
};

int64_t roundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

} // namespace

std::optional<GpuLimits> gpuLimits(std::string_view architecture) {
  if (!architecture.starts_with("sm_"))
    return std::nullopt;
  int capability = 0;
  const char *end = architecture.data() + architecture.size();
  auto [rest, error] = std::from_chars(architecture.data() + 3, end, capability);
  if (error != std::errc() || (rest != end && std::string_view(rest, end) != "a"))
    return std::nullopt;
  for (const Row &row : table)
    if (row.capability == capability) {
      GpuLimits limits;
      limits.architecture = architecture;
      limits.warps = row.warps;
      limits.blocks = row.blocks;
      limits.sharedBytes = row.sharedKilobytes * kilobyte;
      limits.sharedBytesPerBlock = row.perBlockKilobytes * kilobyte;
      limits.reservedSharedBytes = row.reservedBytes;
      limits.sharedUnit = row.sharedUnit;
      return limits;
    }
  return std::nullopt;
}

Occupancy occupancy(const GpuLimits &limits, const BlockShape &block) {
  int64_t warps = std::max((block.threads + 31) / 32, 1);
  int64_t registersOfWarp = roundUp(static_cast<int64_t>(std::max(block.registersPerThread, 1)) * 32, 256);
  // Each scheduler has a quarter of the registers, and a warp takes them from one.
  int64_t warpsByRegisters =
      limits.registers / limits.warpSchedulers / registersOfWarp * static_cast<int64_t>(limits.warpSchedulers);
  int64_t shared = roundUp(block.sharedBytes + limits.reservedSharedBytes, limits.sharedUnit);

  std::pair<int64_t, const char *> bounds[] = {
      {block.registersPerThread > limits.registersPerThread ? 0 : warpsByRegisters / warps, "registers"},
      {block.sharedBytes > limits.sharedBytesPerBlock ? 0 : shared > 0 ? limits.sharedBytes / shared : limits.blocks,
       "shared memory"},
      {warps * 32 > 1024 ? 0 : limits.warps / warps, "threads"},
      {limits.blocks, "blocks"},
  };
  Occupancy result;
  auto least = std::min_element(std::begin(bounds), std::end(bounds),
                                [](const auto &a, const auto &b) { return a.first < b.first; });
  result.blocks = static_cast<int>(least->first);
  result.warps = static_cast<int>(least->first * warps);
  result.fraction = static_cast<double>(result.warps) / limits.warps;
  result.limiter = least->second;
  return result;
}

Waves waves(double blocks, double multiprocessors, double blocksPerMultiprocessor) {
  Waves result;
  result.blocks = blocks;
  result.perWave = multiprocessors * blocksPerMultiprocessor;
  if (blocks <= 0 || result.perWave <= 0)
    return result;
  result.waves = blocks / result.perWave;
  result.rounds = std::ceil(result.waves);
  result.efficiency = result.waves / result.rounds;
  result.tailBlocks = blocks - std::floor(result.waves) * result.perWave;
  return result;
}

} // namespace tenon::model
