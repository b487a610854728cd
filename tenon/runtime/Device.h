// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// Where memory is and work runs: the host's processor, or a CUDA device by its number.
struct Device {
  enum class Kind : uint8_t { cpu, cuda };
  Kind kind = Kind::cpu;
  int ordinal = 0;

  static Device cpu() { return {}; }
  static Device cuda(int ordinal = 0) { return {Kind::cuda, ordinal}; }
  bool isCpu() const { return kind == Kind::cpu; }
  bool isCuda() const { return kind == Kind::cuda; }
  /// "cpu", "cuda:0"
  std::string str() const { return isCpu() ? "cpu" : "cuda:" + std::to_string(ordinal); }
  friend bool operator==(const Device &, const Device &) = default;
};

/// Why no CUDA device can be used here, as a sentence; empty when one can. The driver (libcuda.so.1, or the library
/// that the environment variable TENON_CUDA_DRIVER names; "none" switches it off) is opened by the first question.
const std::string &whyNoCuda();
/// 0 where there is no driver.
int cudaDeviceCount();
/// Of the CUDA that the driver implements: 13000 is 13.0; 0 where there is no driver.
int cudaDriverVersion();

struct CudaProperties {
  std::string name;
  std::string uuid;         ///< 32 hexadecimal digits: the same in all processes, however they number devices; or empty
  int major = 0, minor = 0; ///< compute capability
  int multiprocessors = 0;
  int64_t memoryBytes = 0, l2Bytes = 0;
  int64_t sharedBytesPerBlock = 0;      ///< without asking for more: 48 KB
  int64_t sharedBytesPerBlockOptin = 0; ///< at most
  int64_t sharedBytesPerMultiprocessor = 0;
  int registersPerBlock = 0, registersPerMultiprocessor = 0;
  int threadsPerBlock = 0, threadsPerMultiprocessor = 0, blocksPerMultiprocessor = 0;
  int clockKilohertz = 0, memoryClockKilohertz = 0, memoryBusBits = 0;
  bool hasClusters = false, hasMemoryPools = false;

  /// What code is generated for: "sm_80", "sm_90a" (with the instructions of that architecture alone, from 9.0 on).
  std::string architecture() const;
  /// Two transfers a clock on every wire of the bus.
  double bytesPerSecond() const { return 2e3 * memoryClockKilohertz * memoryBusBits / 8; }
};
/// Looked up once; throws Error when there is no such device.
const CudaProperties &cudaProperties(int ordinal);

/// Memory of a device now.
struct CudaMemoryInfo {
  size_t freeBytes = 0, totalBytes = 0; ///< as the driver sees it; what Tenon keeps for later counts as used
  size_t poolUsedBytes = 0;             ///< in tensors of this process
  size_t poolReservedBytes = 0;         ///< kept by this process, in tensors or not
};
CudaMemoryInfo cudaMemoryInfo(int ordinal);

} // namespace tenon
#pragma GCC visibility pop
