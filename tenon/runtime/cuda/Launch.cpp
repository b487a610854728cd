// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/cuda/Launch.h"

#include "tenon/base/Error.h"
#include "tenon/runtime/cuda/CudaStream.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Module.h"

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

[[noreturn, gnu::cold]] void refuseParameters(const Function &function, size_t words) {
  throw InternalError(std::string("kernel '") + function.name() + "' takes " +
                      std::to_string(function.parameterBytes()) + " bytes of parameters and was given " +
                      std::to_string(8 * words));
}

[[noreturn, gnu::cold]] void refuseStream(const Function &function, const CudaStream &stream) {
  throw Error(std::string("kernel '") + function.name() + "' was loaded on " + function.gpu().device().str() +
              " and cannot run on a stream of " + stream.device().str());
}

} // namespace

void launch(const Function &function, const LaunchShape &shape, CudaStream &stream, std::span<const uint64_t> words) {
  Gpu &gpu = stream.gpu();
  gpu.checkUsable();
  if (&gpu != &function.gpu()) [[unlikely]]
    refuseStream(function, stream);
  size_t bytes = words.size_bytes();
  if (function.parameterBytes() >= 0 && static_cast<size_t>(function.parameterBytes()) != bytes) [[unlikely]]
    refuseParameters(function, words.size());
  if (product(shape.grid) == 0)
    return;

  // All parameters in one block, rather than a pointer to each.
  auto key = [](uintptr_t value) { return reinterpret_cast<void *>(value); };
  void *extra[] = {key(launchParamPointer), const_cast<uint64_t *>(words.data()), key(launchParamSize), &bytes,
                   key(launchParamEnd)};
  void **parameters = bytes ? extra : nullptr;
  CurrentContext current(gpu);
  const DriverApi &api = gpu.api();
  Result result;
  if (product(shape.cluster) > 1) {
    LaunchAttribute attribute;
    RawLaunchConfig config{};
    for (size_t d = 0; d < 3; ++d) {
      attribute.cluster[d] = shape.cluster[d];
      config.grid[d] = shape.grid[d];
      config.block[d] = shape.block[d];
    }
    config.sharedBytes = shape.sharedBytes;
    config.stream = stream.handle();
    config.attributes = &attribute;
    config.attributeCount = 1;
    result = api.cuLaunchKernelEx ? api.cuLaunchKernelEx(&config, function.handle(), nullptr, parameters)
                                  : Result(801); // CUDA_ERROR_NOT_SUPPORTED
  } else {
    const auto &[grid, block, cluster, sharedBytes] = shape;
    result = api.cuLaunchKernel(function.handle(), grid[0], grid[1], grid[2], block[0], block[1], block[2], sharedBytes,
                                stream.handle(), nullptr, parameters);
  }
  if (result != result::success) [[unlikely]]
    refuse(function, shape, result);
  stream.noteLaunch(function.name());
}

} // namespace tenon::cuda
