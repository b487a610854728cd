// SPDX-License-Identifier: Apache-2.0
//
// Of CUPTI's activity records the beginning, as far as it is used. CUDA gives a record a new name whenever it grows
// (CUpti_ActivityKernel4 of CUDA 9.0 to CUpti_ActivityKernel10 of 13.0), but only ever at its end: what is declared here
// has stayed where it was. test/unit/profile/CuptiRecordsTest.cpp has the places as numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::profile::cupti {

enum ActivityKind : uint32_t { memcpyActivity = 1, memsetActivity = 2, kernelActivity = 10 };

struct __attribute__((packed)) KernelRecord {
  uint32_t kind;
  uint8_t cacheConfiguration, sharedConfiguration;
  uint16_t registers;
  uint32_t partitionedRequested, partitionedExecuted;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t staticShared, dynamicShared;
  uint32_t localPerThread, localTotal;
  uint32_t correlation; ///< grows with every call of the driver
  int64_t gridId;
  const char *name;
  void *reserved;
  uint64_t queued, submitted;
  uint8_t launchType, carveoutIsRequested, carveoutRequested, padding;
  uint32_t sharedExecuted;
  uint64_t graphNode; ///< 0: launched by itself. From CUDA 11.0 on
};

struct __attribute__((packed)) CopyRecord {
  uint32_t kind;
  uint8_t copyKind, from, to, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};

struct __attribute__((packed)) FillRecord {
  uint32_t kind, value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};

/// Whether the records of a library are these, by what its cuptiGetVersion says: a count up to CUDA 12.9 (13: CUDA 11.0),
/// from 13.0 on two digits each of the major and the minor version and of the update.
constexpr bool isKnown(uint32_t version) {
  return (version >= 13 && version <= 28) || (version >= 130000 && version <= 130099);
}

} // namespace tenon::profile::cupti
