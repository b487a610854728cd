// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// The part of the CUDA driver's ABI that Tenon uses, declared here so that no CUDA header is needed to build.
/// Functions carry the names of the driver's documentation; the symbol each is loaded from (some end in _v2) is in
/// Driver.cpp.
namespace tenon::cuda {

using Result = int;
using DevicePointer = uint64_t;
using DeviceNumber = int;
using ContextHandle = struct OpaqueContext *;
using StreamHandle = struct OpaqueStream *;
using EventHandle = struct OpaqueEvent *;
using ModuleHandle = struct OpaqueModule *;
using FunctionHandle = struct OpaqueFunction *;
using PoolHandle = struct OpaquePool *;
using LinkHandle = struct OpaqueLink *;
using GraphHandle = struct OpaqueGraph *;
using GraphExecHandle = struct OpaqueGraphExec *;
using GraphNodeHandle = struct OpaqueGraphNode *;

/// Results with a meaning for control flow; Errors.cpp explains the rest.
namespace result {
constexpr Result success = 0, invalidValue = 1, outOfMemory = 2, deinitialized = 4, noDevice = 100, notReady = 600,
                 launchOutOfResources = 701;
}

namespace attribute { // CUdevice_attribute
constexpr int threadsPerBlock = 1, sharedBytesPerBlock = 8, registersPerBlock = 12, clockRate = 13,
              multiprocessorCount = 16, memoryClockRate = 36, memoryBusWidth = 37, l2CacheSize = 38,
              threadsPerMultiprocessor = 39, capabilityMajor = 75, capabilityMinor = 76,
              sharedBytesPerMultiprocessor = 81, registersPerMultiprocessor = 82, sharedBytesPerBlockOptin = 97,
              blocksPerMultiprocessor = 106, memoryPoolsSupported = 115, clusterLaunch = 120;
}

namespace function_attribute { // CUfunction_attribute
constexpr int maxThreadsPerBlock = 0, sharedBytes = 1, constantBytes = 2, localBytes = 3, registers = 4,
              maxDynamicSharedBytes = 8, nonPortableClusterSizeAllowed = 14;
}

namespace jit_option { // CUjit_option, CUjitInputType
constexpr int maxRegisters = 0, infoLogBuffer = 3, infoLogBytes = 4, errorLogBuffer = 5, errorLogBytes = 6,
              optimizationLevel = 7, logVerbose = 12, generateLineInfo = 13;
constexpr int inputPtx = 1;
} // namespace jit_option

namespace pool_attribute { // CUmemPool_attribute
constexpr int releaseThreshold = 4, reservedNow = 5, usedNow = 7;
}

constexpr unsigned streamNonBlocking = 1;                       // CU_STREAM_NON_BLOCKING
constexpr unsigned eventWithTiming = 0, eventWithoutTiming = 2; // CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING
constexpr unsigned hostPortable = 1, hostDeviceMapped = 2;      // CU_MEMHOSTALLOC_*
constexpr int captureRelaxed = 2;                               // CU_STREAM_CAPTURE_MODE_RELAXED

/// CUmemPoolProps
struct PoolProperties {
  int allocationType = 1; ///< CU_MEM_ALLOCATION_TYPE_PINNED
  int handleTypes = 0;    ///< none: not shared with other processes
  int locationType = 1;   ///< CU_MEM_LOCATION_TYPE_DEVICE
  int locationId = 0;
  void *securityAttributes = nullptr;
  size_t maxBytes = 0;
  unsigned char reserved[56] = {};
};
static_assert(sizeof(PoolProperties) == 88 && offsetof(PoolProperties, securityAttributes) == 16);

/// CUlaunchAttribute with the one attribute used here.
struct LaunchAttribute {
  int id = 0;
  char padding[4] = {};
  unsigned value[3] = {}; ///< of the cluster's dimensions three, of a switch one
  char rest[52] = {};
};
static_assert(sizeof(LaunchAttribute) == 72 && offsetof(LaunchAttribute, value) == 8);
namespace launch_attribute { // CUlaunchAttributeID
constexpr int clusterDimension = 4, programmaticStreamSerialization = 6;
}

/// CUlaunchConfig
struct RawLaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  StreamHandle stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
};
static_assert(sizeof(RawLaunchConfig) == 56 && offsetof(RawLaunchConfig, stream) == 32 &&
              offsetof(RawLaunchConfig, attributeCount) == 48);

/// The values of CU_LAUNCH_PARAM_END, _BUFFER_POINTER and _BUFFER_SIZE in the `extra` argument of a launch.
constexpr uintptr_t launchParamEnd = 0, launchParamPointer = 1, launchParamSize = 2;

struct Uuid {
  unsigned char bytes[16];
};

struct DriverApi {
  Result (*cuInit)(unsigned flags);
  Result (*cuDriverGetVersion)(int *version);
  Result (*cuGetErrorName)(Result error, const char **text);
  Result (*cuGetErrorString)(Result error, const char **text);

  Result (*cuDeviceGetCount)(int *count);
  Result (*cuDeviceGet)(DeviceNumber *device, int ordinal);
  Result (*cuDeviceGetName)(char *name, int length, DeviceNumber device);
  Result (*cuDeviceGetUuid)(Uuid *uuid, DeviceNumber device); ///< null: not in this driver
  Result (*cuDeviceGetAttribute)(int *value, int attribute, DeviceNumber device);
  Result (*cuDeviceTotalMem)(size_t *bytes, DeviceNumber device);
  Result (*cuDevicePrimaryCtxRetain)(ContextHandle *context, DeviceNumber device);
  Result (*cuCtxGetCurrent)(ContextHandle *context);
  Result (*cuCtxSetCurrent)(ContextHandle context);

  Result (*cuMemGetInfo)(size_t *freeBytes, size_t *totalBytes);
  Result (*cuMemAlloc)(DevicePointer *pointer, size_t bytes);
  Result (*cuMemFree)(DevicePointer pointer);
  Result (*cuMemPoolCreate)(PoolHandle *pool, const PoolProperties *properties);
  Result (*cuMemPoolSetAttribute)(PoolHandle pool, int attribute, void *value);
  Result (*cuMemPoolGetAttribute)(PoolHandle pool, int attribute, void *value);
  Result (*cuMemPoolTrimTo)(PoolHandle pool, size_t bytesToKeep);
  Result (*cuMemAllocFromPoolAsync)(DevicePointer *pointer, size_t bytes, PoolHandle pool, StreamHandle stream);
  Result (*cuMemFreeAsync)(DevicePointer pointer, StreamHandle stream);
  Result (*cuMemcpyHtoDAsync)(DevicePointer to, const void *from, size_t bytes, StreamHandle stream);
  Result (*cuMemcpyDtoHAsync)(void *to, DevicePointer from, size_t bytes, StreamHandle stream);
  Result (*cuMemcpyDtoDAsync)(DevicePointer to, DevicePointer from, size_t bytes, StreamHandle stream);
  Result (*cuMemcpyPeerAsync)(DevicePointer to, ContextHandle toContext, DevicePointer from, ContextHandle fromContext,
                              size_t bytes, StreamHandle stream);
  Result (*cuMemsetD8Async)(DevicePointer to, unsigned char value, size_t count, StreamHandle stream);
  Result (*cuMemHostAlloc)(void **pointer, size_t bytes, unsigned flags);
  Result (*cuMemHostGetDevicePointer)(DevicePointer *pointer, void *host, unsigned flags);

  Result (*cuStreamCreate)(StreamHandle *stream, unsigned flags);
  Result (*cuStreamDestroy)(StreamHandle stream);
  Result (*cuStreamSynchronize)(StreamHandle stream);
  Result (*cuStreamQuery)(StreamHandle stream);
  Result (*cuStreamWaitEvent)(StreamHandle stream, EventHandle event, unsigned flags);
  Result (*cuLaunchHostFunc)(StreamHandle stream, void (*function)(void *), void *data);
  Result (*cuEventCreate)(EventHandle *event, unsigned flags);
  Result (*cuEventDestroy)(EventHandle event);
  Result (*cuEventRecord)(EventHandle event, StreamHandle stream);
  Result (*cuEventSynchronize)(EventHandle event);
  Result (*cuEventQuery)(EventHandle event);
  Result (*cuEventElapsedTime)(float *milliseconds, EventHandle start, EventHandle end);

  Result (*cuModuleLoadDataEx)(ModuleHandle *module, const void *image, unsigned optionCount, int *options,
                               void **values);
  Result (*cuModuleUnload)(ModuleHandle module);
  Result (*cuModuleGetFunction)(FunctionHandle *function, ModuleHandle module, const char *name);
  Result (*cuFuncGetAttribute)(int *value, int attribute, FunctionHandle function);
  Result (*cuFuncSetAttribute)(FunctionHandle function, int attribute, int value);
  Result (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, FunctionHandle function, int blockThreads,
                                                        size_t sharedBytes);
  Result (*cuLinkCreate)(unsigned optionCount, int *options, void **values, LinkHandle *link);
  Result (*cuLinkAddData)(LinkHandle link, int type, void *data, size_t bytes, const char *name, unsigned optionCount,
                          int *options, void **values);
  Result (*cuLinkComplete)(LinkHandle link, void **cubin, size_t *bytes);
  Result (*cuLinkDestroy)(LinkHandle link);
  Result (*cuLaunchKernel)(FunctionHandle function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                           unsigned blockY, unsigned blockZ, unsigned sharedBytes, StreamHandle stream,
                           void **parameters, void **extra);

  Result (*cuStreamBeginCapture)(StreamHandle stream, int mode);
  Result (*cuStreamEndCapture)(StreamHandle stream, GraphHandle *graph);
  Result (*cuStreamIsCapturing)(StreamHandle stream, int *status);
  Result (*cuGraphInstantiate)(GraphExecHandle *exec, GraphHandle graph, unsigned long long flags);
  Result (*cuGraphLaunch)(GraphExecHandle exec, StreamHandle stream);
  Result (*cuGraphExecDestroy)(GraphExecHandle exec);
  Result (*cuGraphDestroy)(GraphHandle graph);
  Result (*cuGraphGetNodes)(GraphHandle graph, GraphNodeHandle *nodes, size_t *count);

  // Null where the driver is older than they are.
  Result (*cuLaunchKernelEx)(const RawLaunchConfig *config, FunctionHandle function, void **parameters, void **extra);
  Result (*cuFuncGetParamInfo)(FunctionHandle function, size_t index, size_t *offset, size_t *bytes);
  Result (*cuOccupancyMaxActiveClusters)(int *clusters, FunctionHandle function, const RawLaunchConfig *config);
  Result (*cuTensorMapEncodeTiled)(void *map, int dataType, unsigned rank, void *address, const uint64_t *sizes,
                                   const uint64_t *byteStrides, const unsigned *box, const unsigned *elementStrides,
                                   int interleave, int swizzle, int l2Promotion, int outOfBoundsFill);
};

} // namespace tenon::cuda
