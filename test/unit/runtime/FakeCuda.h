// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// A CUDA driver over host memory, for tests on machines without a GPU: the library has the driver's entry points, and
/// these functions to set it up and to look at what was asked of it. "Kernels" are known by name: tenon_strided (the
/// runtime's own), add_one(u32 *data, count), report(u64 *to, value); others do nothing. Every call needs a current
/// context, as with the real one. It is a driver of CUDA 13.0, or of the version in FAKE_CUDA_VERSION (12020 for 12.2),
/// with devices called "Fake H200", or as FAKE_CUDA_NAME says.
#pragma GCC visibility push(default)
namespace fake {

constexpr int devices = 4;

/// What cuTensorMapEncodeTiled was asked for, in place of the device's own format.
struct TensorMap {
  uint64_t address, sizes[5], strides[4];
  uint16_t box[5];
  uint8_t elementStrides[5], type, rank, interleave, swizzle, l2Promotion, fill;
  uint8_t unused[27];
};
static_assert(sizeof(TensorMap) == 128);

struct Launch {
  char name[32];
  unsigned grid[3], block[3], cluster[3], sharedBytes;
  int startsEarly; ///< the value of the attribute; 0 without it
  const void *stream;
  size_t wordCount, mapCount;
  uint64_t words[32]; ///< parameters of 8 bytes
  TensorMap maps[8];  ///< parameters of 128 bytes
  bool aligned;       ///< all words were at multiples of their alignment, also in the caller's memory
};

/// Forgets settings, failures and observations; memory, streams and contexts stay.
void reset();

/// The worst that a device may do: nothing that is queued runs before somebody waits for it.
void setLazy(bool lazy);
void setDeviceCount(int count);
void setInitResult(int result);
/// What the driver says of how many blocks, or clusters, of a kernel a multiprocessor, or the device, runs at once.
void setOccupancy(int blocksOfMultiprocessor, int clusters);
/// A device runs out of memory at this many bytes.
void setMemoryLimit(size_t bytes);
/// The call after the next `after` of this function fails; a sticky failure makes every later call on the context fail.
void failNext(const char *function, int result, bool sticky = false, int after = 0);

int calls(const char *function);
std::vector<Launch> launches();
uint64_t launchCount();
size_t liveBytes();
/// Accesses to device memory before it was allocated or after it was freed, in the order of execution.
int violations();
/// The last value set, or -1.
int functionAttribute(const char *function, int attribute);
/// The value of a pool's attribute at its last setting.
uint64_t poolAttribute(int attribute);
/// The options of the last assembly, by number; false where not given.
bool jitOption(int option, uint64_t &value);
size_t streamCount();

} // namespace fake
#pragma GCC visibility pop
