// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// A CUPTI and a listener to NVTX of the tests' own.
#pragma GCC visibility push(default)
namespace fakecupti {

uint64_t now(); ///< by the device's clock, in ns
/// To be told with the next flush.
void addKernel(const char *name, uint64_t start, uint64_t end, uint32_t stream, uint32_t correlation = 0,
               uint64_t graphNode = 0);
void addCopy(unsigned char kind, uint64_t bytes, uint64_t start, uint64_t end);
int enabledKinds();
void refuse(int result); ///< by cuptiActivityEnable

int nvtxPushes();
int nvtxPops();
std::string nvtxName(); ///< the last one

} // namespace fakecupti
#pragma GCC visibility pop
