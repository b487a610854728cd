// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/cuda/Driver.h"

#include "tenon/base/Error.h"
#include "tenon/profile/Recorder.h"
#include "tenon/runtime/cuda/Errors.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace tenon::cuda {
namespace {

/// Fills in function pointers, and remembers the first that is missing.
class Symbols {
public:
  explicit Symbols(void *library) : library_(library) {}

  template <typename Function> bool optional(Function *&slot, const char *name) {
    slot = reinterpret_cast<Function *>(dlsym(library_, name));
    return slot;
  }
  template <typename Function> void required(Function *&slot, const char *name) {
    if (!optional(slot, name) && !missing_)
      missing_ = name;
  }
  const char *missing() const { return missing_; }

private:
  void *library_;
  const char *missing_ = nullptr;
};

/// Under the names that the CUDA headers give them: the suffix is the version of a function's signature.
const char *loadAll(void *library, DriverApi &api) {
  Symbols symbols(library);
  symbols.required(api.cuInit, "cuInit");
  symbols.required(api.cuDriverGetVersion, "cuDriverGetVersion");
  symbols.required(api.cuGetErrorName, "cuGetErrorName");
  symbols.required(api.cuGetErrorString, "cuGetErrorString");
  symbols.required(api.cuDeviceGetCount, "cuDeviceGetCount");
  symbols.required(api.cuDeviceGet, "cuDeviceGet");
  symbols.required(api.cuDeviceGetName, "cuDeviceGetName");
  symbols.required(api.cuDeviceGetAttribute, "cuDeviceGetAttribute");
  symbols.required(api.cuDeviceTotalMem, "cuDeviceTotalMem_v2");
  symbols.required(api.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  symbols.required(api.cuCtxGetCurrent, "cuCtxGetCurrent");
  symbols.required(api.cuCtxSetCurrent, "cuCtxSetCurrent");
  symbols.required(api.cuMemGetInfo, "cuMemGetInfo_v2");
  symbols.required(api.cuMemAlloc, "cuMemAlloc_v2");
  symbols.required(api.cuMemFree, "cuMemFree_v2");
  symbols.required(api.cuMemPoolCreate, "cuMemPoolCreate");
  symbols.required(api.cuMemPoolSetAttribute, "cuMemPoolSetAttribute");
  symbols.required(api.cuMemPoolGetAttribute, "cuMemPoolGetAttribute");
  symbols.required(api.cuMemPoolTrimTo, "cuMemPoolTrimTo");
  symbols.required(api.cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync");
  symbols.required(api.cuMemFreeAsync, "cuMemFreeAsync");
  symbols.required(api.cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  symbols.required(api.cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  symbols.required(api.cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
  symbols.required(api.cuMemcpyPeerAsync, "cuMemcpyPeerAsync");
  symbols.required(api.cuMemsetD8Async, "cuMemsetD8Async");
  symbols.required(api.cuMemHostAlloc, "cuMemHostAlloc");
  symbols.required(api.cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2");
  symbols.required(api.cuStreamCreate, "cuStreamCreate");
  symbols.required(api.cuStreamDestroy, "cuStreamDestroy_v2");
  symbols.required(api.cuStreamSynchronize, "cuStreamSynchronize");
  symbols.required(api.cuStreamQuery, "cuStreamQuery");
  symbols.required(api.cuStreamWaitEvent, "cuStreamWaitEvent");
  symbols.required(api.cuLaunchHostFunc, "cuLaunchHostFunc");
  symbols.required(api.cuEventCreate, "cuEventCreate");
  symbols.required(api.cuEventDestroy, "cuEventDestroy_v2");
  symbols.required(api.cuEventRecord, "cuEventRecord");
  symbols.required(api.cuEventSynchronize, "cuEventSynchronize");
  symbols.required(api.cuEventQuery, "cuEventQuery");
  symbols.required(api.cuEventElapsedTime, "cuEventElapsedTime");
  symbols.required(api.cuModuleLoadDataEx, "cuModuleLoadDataEx");
  symbols.required(api.cuModuleUnload, "cuModuleUnload");
  symbols.required(api.cuModuleGetFunction, "cuModuleGetFunction");
  symbols.required(api.cuFuncGetAttribute, "cuFuncGetAttribute");
  symbols.required(api.cuFuncSetAttribute, "cuFuncSetAttribute");
  symbols.required(api.cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  symbols.required(api.cuLinkCreate, "cuLinkCreate_v2");
  symbols.required(api.cuLinkAddData, "cuLinkAddData_v2");
  symbols.required(api.cuLinkComplete, "cuLinkComplete");
  symbols.required(api.cuLinkDestroy, "cuLinkDestroy");
  symbols.required(api.cuLaunchKernel, "cuLaunchKernel");
  symbols.required(api.cuStreamBeginCapture, "cuStreamBeginCapture_v2");
  symbols.required(api.cuStreamEndCapture, "cuStreamEndCapture");
  symbols.required(api.cuStreamIsCapturing, "cuStreamIsCapturing");
  symbols.required(api.cuGraphInstantiate, "cuGraphInstantiateWithFlags");
  symbols.required(api.cuGraphLaunch, "cuGraphLaunch");
  symbols.required(api.cuGraphExecDestroy, "cuGraphExecDestroy");
  symbols.required(api.cuGraphDestroy, "cuGraphDestroy");
  symbols.required(api.cuGraphGetNodes, "cuGraphGetNodes");
  symbols.optional(api.cuDeviceGetUuid, "cuDeviceGetUuid_v2");                        // CUDA 11.4
  symbols.optional(api.cuLaunchKernelEx, "cuLaunchKernelEx");                         // CUDA 11.8
  symbols.optional(api.cuFuncGetParamInfo, "cuFuncGetParamInfo");                     // CUDA 12.4
  symbols.optional(api.cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters"); // CUDA 11.8
  symbols.optional(api.cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled");             // CUDA 12.0
  return symbols.missing();
}

} // namespace

Driver::Driver(const std::string &library) : reason_(open(library)) {
  if (!reason_.empty())
    devices_ = 0;
}

std::string Driver::open(const std::string &library) {
  if (library == "none")
    return "the NVIDIA driver is switched off (TENON_CUDA_DRIVER=none)";
  // Never closed: the driver does not like to be unloaded.
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *text = dlerror();
    if (text && std::strstr(text, "No such file"))
      return "no NVIDIA driver on this machine (" + library + " not found)";
    return "the NVIDIA driver cannot be opened (" + std::string(text ? text : library) + ")";
  }
  Symbols few(handle);
  few.required(api_.cuInit, "cuInit");
  few.required(api_.cuDriverGetVersion, "cuDriverGetVersion");
  if (few.missing())
    return library + " is not a CUDA driver (it has no " + few.missing() + ")";
  if (api_.cuDriverGetVersion(&version_) != result::success)
    version_ = 0;
  if (const char *missing = loadAll(handle, api_))
    return "the NVIDIA driver is too old (CUDA " + versionText(version_) + ", without " + missing +
           "); install one for CUDA 11.4 or later";
  if (Result failure = api_.cuInit(0)) {
    if (failure == result::noDevice)
      return "NVIDIA driver found (CUDA " + versionText(version_) +
             ") but no device; if there should be one, look at CUDA_VISIBLE_DEVICES and the container's settings";
    return "the NVIDIA driver (CUDA " + versionText(version_) + ") does not start: " + describe(api_, failure);
  }
  if (Result failure = api_.cuDeviceGetCount(&devices_))
    return "the NVIDIA driver does not tell its devices: " + describe(api_, failure);
  if (devices_ <= 0)
    return "NVIDIA driver found (CUDA " + versionText(version_) +
           ") but no device; if there should be one, look at CUDA_VISIBLE_DEVICES and the container's settings";
  return "";
}

const Driver &driver() {
  // Never destroyed: tensors of static lifetime are freed after the end of main.
  static const auto &instance = *[] {
    const char *chosen = std::getenv("TENON_CUDA_DRIVER");
    auto *opened = new Driver(chosen && *chosen ? chosen : "libcuda.so.1");
    if (opened->available())
      profile::deviceOpened();
    return opened;
  }();
  return instance;
}

const DriverApi &driverApi() {
  const Driver &instance = driver();
  if (!instance.available())
    throw Error("no CUDA device can be used: " + instance.reason());
  return instance.api();
}

} // namespace tenon::cuda
