// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// The machine a figure was measured on, and what Tenon can do there. A figure without it says nothing.
namespace tenon {

struct Machine {
  struct Cache {
    int level = 0;
    std::string type; ///< "Data", "Instruction", "Unified"
    uint64_t bytes = 0;
    int sharedBy = 1; ///< processors
  };
  struct Gpu {
    bool driver = false; ///< libcuda.so.1 can be opened
    std::string reason;  ///< why there is no device to use; empty if there is one
    std::vector<std::string> devices;
    std::string ptxas; ///< its path, or empty
  };
  struct KernelCache {
    bool enabled = false;
    std::string directory, reason; ///< why it is off
    uint64_t entries = 0, bytes = 0;
  };

  std::string tenonVersion, llvmVersion;
  std::string cpu;                    ///< the model's name
  int processors = 1;                 ///< that this process may use
  std::vector<Cache> caches;          ///< of the first processor, nearest first
  std::vector<std::string> isaLevels; ///< what --isa accepts here, best first
  std::vector<std::string> isaExtras; ///< what else it has that matters to kernels: "amx-bf16", "avx512-vnni", ...
  uint64_t memoryBytes = 0;           ///< of the machine, or of the container when that is less
  uint64_t availableBytes = 0;        ///< that could be allocated now
  Gpu gpu;
  KernelCache kernelCache;

  /// The largest cache, or 32 MiB where the system does not tell.
  uint64_t lastLevelCacheBytes() const;
};

/// Looks only once: what it describes does not change while a program runs, except for the free memory and the cache.
const Machine &thisMachine();

/// Tenon's version: "0.1.0".
std::string tenonVersion();

} // namespace tenon
