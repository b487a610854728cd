// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/cuda/DriverApi.h"

#include <mutex>
#include <string>
#include <vector>

namespace tenon::cuda {

class Gpu;

/// 64-bit words in host memory that kernels write to: how a failed device_assert is told without a copy. Zero means
/// that nothing failed. A kernel stores a number other than zero (a plain store; which of several threads wins does not
/// matter), which the host sees once the kernel is done. Each stream has a word of its own, so that its synchronize()
/// reports its own failures.
class StatusWords {
public:
  static constexpr size_t count = 512;

  explicit StatusWords(Gpu &gpu);

  /// A word that no other stream has, unless there are more than `count`.
  size_t acquire();
  void release(size_t index) noexcept;

  /// The address for the kernel.
  DevicePointer devicePointer(size_t index) const { return device_ + 8 * index; }
  uint64_t peek(size_t index) const { return __atomic_load_n(host_ + index, __ATOMIC_ACQUIRE); }
  /// Reads and clears.
  uint64_t take(size_t index) { return __atomic_exchange_n(host_ + index, 0, __ATOMIC_ACQ_REL); }

private:
  uint64_t *host_ = nullptr;
  DevicePointer device_ = 0;
  std::mutex mutex_;
  std::vector<unsigned> users_;
};

/// What a status word other than zero means, as the message of the Error that synchronize() throws. Set once, by
/// whoever compiles kernels; the default tells the number.
using StatusText = std::string (*)(uint64_t status);
void setStatusText(StatusText text);
std::string statusText(uint64_t status);

} // namespace tenon::cuda
