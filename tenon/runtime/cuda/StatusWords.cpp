// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/cuda/StatusWords.h"

#include "tenon/runtime/cuda/Gpu.h"

#include <algorithm>
#include <cstring>

namespace tenon::cuda {
namespace {

std::atomic<StatusText> currentText{nullptr};

} // namespace

StatusWords::StatusWords(Gpu &gpu) : users_(count) {
  CurrentContext current(gpu);
  void *memory = nullptr;
  gpu.check(gpu.api().cuMemHostAlloc(&memory, count * sizeof(uint64_t), hostPortable | hostDeviceMapped),
            "allocating host memory for kernels to report to");
  std::memset(memory, 0, count * sizeof(uint64_t));
  host_ = static_cast<uint64_t *>(memory);
  gpu.check(gpu.api().cuMemHostGetDevicePointer(&device_, memory, 0), "mapping host memory for kernels to report to");
}

size_t StatusWords::acquire() {
  std::lock_guard lock(mutex_);
  auto least = std::min_element(users_.begin(), users_.end());
  auto index = static_cast<size_t>(least - users_.begin());
  if (++*least == 1)
    take(index);
  return index;
}

void StatusWords::release(size_t index) noexcept {
  std::lock_guard lock(mutex_);
  --users_[index];
}

void setStatusText(StatusText text) { currentText.store(text); }

std::string statusText(uint64_t status) {
  if (StatusText text = currentText.load())
    return text(status);
  return "a kernel reported failure number " + std::to_string(status);
}

} // namespace tenon::cuda
