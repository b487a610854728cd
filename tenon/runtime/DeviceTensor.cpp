// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/DeviceTensor.h"

#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Memory.h"
#include "tenon/runtime/cuda/StridedCopy.h"

#include <cstring>

namespace tenon {
namespace {

using cuda::Gpu;

size_t offsetOf(const Tensor &tensor) { return Tensor::maxRank - static_cast<size_t>(tensor.rank()); }

std::array<int64_t, 5> paddedSizes(const Tensor &tensor) {
  static_assert(Tensor::maxRank == 5);
  std::array<int64_t, 5> sizes{1, 1, 1, 1, 1};
  for (size_t d = 0; d < tensor.sizes().size(); ++d)
    sizes[offsetOf(tensor) + d] = tensor.sizes()[d];
  return sizes;
}

cuda::StridedElements elementsOf(const Tensor &tensor) {
  cuda::StridedElements elements{tensor.data(), {}};
  auto bytes = static_cast<int64_t>(sizeOf(tensor.dtype()));
  for (size_t d = 0; d < tensor.sizes().size(); ++d)
    if (tensor.sizes()[d] > 1) // the stride of one element may be anything, and is never used
      elements.strides[offsetOf(tensor) + d] = tensor.strides()[d] * bytes;
  return elements;
}

} // namespace

void *allocateOnDevice(Device device, size_t bytes) { return Gpu::get(device.ordinal).memory().allocate(bytes); }

void releaseOnDevice(Device device, void *data) noexcept {
  if (Gpu *gpu = Gpu::opened(device.ordinal))
    gpu->memory().release(data);
}

void awaitDevice(Device device) noexcept {
  if (Gpu *gpu = Gpu::opened(device.ordinal))
    gpu->awaitQueuedWork();
}

void copyDeviceTensor(const Tensor &to, const Tensor &from) {
  Device there = to.device(), here = from.device();
  size_t bytes = static_cast<size_t>(from.elements()) * sizeOf(from.dtype());
  bool dense = to.isContiguous() && from.isContiguous();
  if (there == here) {
    Gpu &gpu = Gpu::get(here.ordinal);
    if (dense)
      return cuda::copyOnDevice(gpu, to.data(), gpu, from.data(), bytes);
    return cuda::copyStrided(gpu, paddedSizes(from), elementsOf(to), elementsOf(from), sizeOf(from.dtype()));
  }
  if (!dense) {
    // Strides are followed on the side where they are; in between the elements travel in a row.
    Tensor packed = from.isContiguous() ? from : from.clone();
    if (to.isContiguous())
      return copyDeviceTensor(to, packed);
    Tensor landed = Tensor::empty(to.dtype(), to.sizes(), there);
    copyDeviceTensor(landed, packed);
    return to.copyFrom(landed);
  }
  if (here.isCpu())
    return cuda::copyToDevice(Gpu::get(there.ordinal), to.data(), from.data(), bytes);
  if (there.isCpu())
    return cuda::copyToHost(Gpu::get(here.ordinal), to.data(), from.data(), bytes);
  cuda::copyOnDevice(Gpu::get(there.ordinal), to.data(), Gpu::get(here.ordinal), from.data(), bytes);
}

void fillDeviceTensor(const Tensor &tensor, uint64_t pattern) {
  Gpu &gpu = Gpu::get(tensor.device().ordinal);
  size_t bytes = sizeOf(tensor.dtype());
  bool oneByte = true;
  for (size_t i = 1; i < bytes; ++i)
    oneByte = oneByte && (pattern >> (8 * i) & 0xff) == (pattern & 0xff);
  if (oneByte && tensor.isContiguous())
    return cuda::fillBytes(gpu, tensor.data(), static_cast<uint8_t>(pattern),
                           static_cast<size_t>(tensor.elements()) * bytes);
  cuda::fillStrided(gpu, paddedSizes(tensor), elementsOf(tensor), pattern, bytes);
}

} // namespace tenon
