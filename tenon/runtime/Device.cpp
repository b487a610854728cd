// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/Device.h"

#include "tenon/base/Error.h"
#include "tenon/runtime/cuda/Errors.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Memory.h"

#include <vector>

namespace tenon {
namespace {

CudaProperties look(const cuda::DriverApi &api, int ordinal) {
  cuda::DeviceNumber device = 0;
  auto check = [&](cuda::Result result) {
    if (result != cuda::result::success)
      throw Error("asking cuda:" + std::to_string(ordinal) + " for its properties failed with " +
                  cuda::describe(api, result));
  };
  check(api.cuDeviceGet(&device, ordinal));
  auto ask = [&](int attribute) {
    int value = 0;
    // An attribute that the driver is too old to know is one that the device does not have.
    cuda::Result result = api.cuDeviceGetAttribute(&value, attribute, device);
    if (result != cuda::result::invalidValue)
      check(result);
    return value;
  };
  CudaProperties p;
  char name[256] = {};
  check(api.cuDeviceGetName(name, sizeof name - 1, device));
  p.name = name;
  if (cuda::Uuid uuid; api.cuDeviceGetUuid && api.cuDeviceGetUuid(&uuid, device) == cuda::result::success)
    for (unsigned char byte : uuid.bytes)
      for (int digit : {byte >> 4, byte & 15})
        p.uuid += "0123456789abcdef"[digit];
  size_t bytes = 0;
  check(api.cuDeviceTotalMem(&bytes, device));
  p.memoryBytes = static_cast<int64_t>(bytes);
  namespace a = cuda::attribute;
  p.major = ask(a::capabilityMajor);
  p.minor = ask(a::capabilityMinor);
  p.multiprocessors = ask(a::multiprocessorCount);
  p.l2Bytes = ask(a::l2CacheSize);
  p.sharedBytesPerBlock = ask(a::sharedBytesPerBlock);
  p.sharedBytesPerBlockOptin = ask(a::sharedBytesPerBlockOptin);
  p.sharedBytesPerMultiprocessor = ask(a::sharedBytesPerMultiprocessor);
  p.registersPerBlock = ask(a::registersPerBlock);
  p.registersPerMultiprocessor = ask(a::registersPerMultiprocessor);
  p.threadsPerBlock = ask(a::threadsPerBlock);
  p.threadsPerMultiprocessor = ask(a::threadsPerMultiprocessor);
  p.blocksPerMultiprocessor = ask(a::blocksPerMultiprocessor);
  p.clockKilohertz = ask(a::clockRate);
  p.memoryClockKilohertz = ask(a::memoryClockRate);
  p.memoryBusBits = ask(a::memoryBusWidth);
  p.hasClusters = ask(a::clusterLaunch) && api.cuLaunchKernelEx;
  p.hasMemoryPools = ask(a::memoryPoolsSupported);
  return p;
}

} // namespace

const std::string &whyNoCuda() { return cuda::driver().reason(); }
int cudaDeviceCount() { return cuda::driver().devices(); }
int cudaDriverVersion() { return cuda::driver().version(); }

std::string CudaProperties::architecture() const {
  return "sm_" + std::to_string(major) + std::to_string(minor) + (major >= 9 ? "a" : "");
}

const CudaProperties &cudaProperties(int ordinal) {
  const cuda::DriverApi &api = cuda::driverApi();
  // Never destroyed: a tensor of static lifetime may still ask.
  static const auto &all = *[&] {
    auto *list = new std::vector<CudaProperties>;
    for (int i = 0; i < cudaDeviceCount(); ++i)
      list->push_back(look(api, i));
    return list;
  }();
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= all.size())
    throw Error("there is no device cuda:" + std::to_string(ordinal) + "; this machine has " +
                (all.size() == 1 ? "cuda:0 alone" : "cuda:0 to cuda:" + std::to_string(all.size() - 1)));
  return all[static_cast<size_t>(ordinal)];
}

CudaMemoryInfo cudaMemoryInfo(int ordinal) { return cuda::Gpu::get(ordinal).memory().info(); }

} // namespace tenon
