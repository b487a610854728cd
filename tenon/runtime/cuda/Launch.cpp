// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/cuda/Launch.h"

#include "tenon/base/Error.h"
#include "tenon/runtime/cuda/CudaStream.h"
#include "tenon/runtime/cuda/Driver.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Module.h"
#include "tenon/runtime/cuda/TensorMap.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace tenon::cuda {
namespace {

std::string text(const std::array<uint32_t, 3> &extent) {
  return std::to_string(extent[0]) + " x " + std::to_string(extent[1]) + " x " + std::to_string(extent[2]);
}

uint64_t product(const std::array<uint32_t, 3> &extent) { return uint64_t(extent[0]) * extent[1] * extent[2]; }

[[noreturn, gnu::cold]] void refuse(const Function &function, const LaunchShape &shape, Result failure) {
  const Function::Attributes &needs = function.attributes();
  std::string doing = std::string("launching kernel '") + function.name() + "' (grid " + text(shape.grid) + ", block " +
                      text(shape.block);
  if (product(shape.cluster) > 1)
    doing += ", cluster " + text(shape.cluster);
  doing += ", " + std::to_string(uint64_t(shape.sharedBytes) + static_cast<uint64_t>(needs.staticSharedBytes)) +
           " bytes of shared memory, " + std::to_string(needs.registers) + " registers a thread, at most " +
           std::to_string(needs.maxThreads) + " threads a block)";
  function.gpu().fail(failure, doing);
}

[[noreturn, gnu::cold]] void refuseParameters(const Function &function, size_t bytes) {
  throw InternalError(std::string("kernel '") + function.name() + "' takes " +
                      std::to_string(function.parameterBytes()) + " bytes of parameters and was given " +
                      std::to_string(bytes));
}

/// Parameters as they lie in the kernel's own memory for them: words, then maps. Where the first map is, only the driver
/// knows: it is aligned where the device sees it, not from the first parameter on.
class ParameterBlock {
public:
  static constexpr size_t most = 4096; ///< that every driver takes

  ParameterBlock(const Function &function, std::span<const uint64_t> words, std::span<const TensorMap> maps)
      : bytes(words.size_bytes()), data_(words.data()) {
    int64_t taken = function.parameterBytes();
    if (maps.empty()) {
      if (taken >= 0 && static_cast<size_t>(taken) != bytes) [[unlikely]]
        refuseParameters(function, bytes);
      return; // they lie like that already
    }
    if (taken < 0) [[unlikely]]
      throw Error(std::string("kernel '") + function.name() +
                  "' has tensor maps, which need a driver of CUDA 12.4 or later: it tells where they go");
    size_t first = static_cast<size_t>(taken) - maps.size_bytes();
    if (static_cast<size_t>(taken) < bytes + maps.size_bytes() || first >= bytes + alignof(TensorMap)) [[unlikely]]
      refuseParameters(function, bytes + maps.size_bytes());
    bytes = static_cast<size_t>(taken);
    if (bytes > most) [[unlikely]]
      throw Error(std::string("kernel '") + function.name() + "' has " + std::to_string(bytes) +
                  " bytes of parameters, more than the " + std::to_string(most) + " of a launch");
    std::ranges::copy(std::as_bytes(words), block_);
    std::ranges::copy(std::as_bytes(maps), block_ + first);
    data_ = block_;
  }
  void *data() { return const_cast<void *>(data_); }

  size_t bytes;

private:
  alignas(TensorMap) std::byte block_[most]; // not initialised: most launches do not need it
  const void *data_;
};

[[noreturn, gnu::cold]] void refuseStream(const Function &function, const CudaStream &stream) {
  throw Error(std::string("kernel '") + function.name() + "' was loaded on " + function.gpu().device().str() +
              " and cannot run on a stream of " + stream.device().str());
}

/// Asks for nothing where the driver is new enough.
bool mayOverlap(const LaunchShape &shape, const CudaStream &stream) {
  constexpr int capturesOverlap = 12030; // CUDA 12.3
  return shape.startsEarly && stream.gpu().api().cuLaunchKernelEx &&
         (driver().version() >= capturesOverlap || !stream.isCapturing());
}

} // namespace

void launch(const Function &function, const LaunchShape &shape, CudaStream &stream, std::span<const uint64_t> words,
            std::span<const TensorMap> maps) {
  Gpu &gpu = stream.gpu();
  gpu.checkUsable();
  if (&gpu != &function.gpu()) [[unlikely]]
    refuseStream(function, stream);
  // All parameters in one block, rather than a pointer to each.
  ParameterBlock block(function, words, maps);
  if (product(shape.grid) == 0)
    return;
  auto key = [](uintptr_t value) { return reinterpret_cast<void *>(value); };
  void *extra[] = {key(launchParamPointer), block.data(), key(launchParamSize), &block.bytes,
                   key(launchParamEnd)};
  void **parameters = block.bytes ? extra : nullptr;
  CurrentContext current(gpu);
  const DriverApi &api = gpu.api();
  Result result;
  LaunchAttribute attributes[2];
  unsigned count = 0;
  const auto &[grid, threads, cluster, sharedBytes, startsEarly] = shape;
  if (product(cluster) > 1)
    attributes[count++] = {launch_attribute::clusterDimension, {}, {cluster[0], cluster[1], cluster[2]}};
  if (mayOverlap(shape, stream))
    attributes[count++] = {launch_attribute::programmaticStreamSerialization, {}, {1}};
  if (count) {
    RawLaunchConfig config{{grid[0], grid[1], grid[2]}, {threads[0], threads[1], threads[2]},
                           sharedBytes, stream.handle(), attributes, count};
    result = api.cuLaunchKernelEx ? api.cuLaunchKernelEx(&config, function.handle(), nullptr, parameters)
                                  : Result(801); // CUDA_ERROR_NOT_SUPPORTED
  } else {
    result = api.cuLaunchKernel(function.handle(), grid[0], grid[1], grid[2], threads[0], threads[1], threads[2],
                                sharedBytes, stream.handle(), nullptr, parameters);
  }
  if (result != result::success) [[unlikely]]
    refuse(function, shape, result);
  stream.noteLaunch(function.name());
  if (CudaStream::capture && stream.isCapturing()) [[unlikely]]
    CudaStream::capture->kernels.push_back({function.name()});
}

} // namespace tenon::cuda
