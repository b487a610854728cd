// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/cuda/TensorMap.h"

#include "tenon/base/Error.h"
#include "tenon/runtime/cuda/Errors.h"
#include "tenon/runtime/cuda/Gpu.h"

#include <string>
#include <utility>

namespace tenon::cuda {
namespace {

/// CUtensorMapDataType, or -1. Nothing is computed in it; the number of bytes is what counts.
int dataType(const TiledTensor &tensor) {
  constexpr std::pair<std::string_view, int> named[] = {{"f16", 6}, {"f32", 7}, {"f64", 8}, {"bf16", 9}};
  for (auto [name, type] : named)
    if (tensor.element == name)
      return type;
  switch (tensor.elementBytes) {
  case 1: return 0;
  case 2: return 1;
  case 4: return 2;
  case 8: return 4;
  }
  return -1;
}

/// What of a tensor is not as the driver's manual wants it, or "": the driver itself only says that something is not.
std::string reasonAgainst(const TiledTensor &tensor) {
  auto number = [](int64_t value) { return std::to_string(value); };
  auto dimension = [&](size_t d) { return "dimension " + std::to_string(d) + " (innermost first)"; };
  if (tensor.rank < 1 || tensor.rank > TiledTensor::maxRank)
    return "it has " + std::to_string(tensor.rank) + " dimensions, and a map 1 to 5";
  if (tensor.address % 16)
    return "its address is no multiple of 16 bytes";
  for (size_t d = 0; d < tensor.rank; ++d) {
    if (tensor.sizes[d] < 1 || tensor.sizes[d] > int64_t(1) << 32)
      return dimension(d) + " has " + number(tensor.sizes[d]) + " elements, and one of a map 1 to 2^32";
    int64_t stride = tensor.byteStrides[d];
    if (d > 0 && (stride < 0 || stride >= int64_t(1) << 40))
      return "the stride of " + dimension(d) + " is " + number(stride) + " bytes, and one of a map 0 to 2^40";
    if (d > 0 && stride % 16)
      return "the stride of " + dimension(d) + " is " + number(stride) + " bytes, which is no multiple of 16";
    if (tensor.box[d] < 1 || tensor.box[d] > 256)
      return "the box has " + number(tensor.box[d]) + " elements in " + dimension(d) + ", and one of a map 1 to 256";
  }
  int64_t row = tensor.box[0] * tensor.elementBytes;
  if (row % 16)
    return "a row of the box is " + number(row) + " bytes, which is no multiple of 16";
  int64_t swizzle = tensor.swizzleBytes;
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return "there is no swizzle of " + number(swizzle) + " bytes; there are 32, 64 and 128";
  if (swizzle && row > swizzle)
    return "a row of the box is " + number(row) + " bytes, more than the " + number(swizzle) + " of its swizzle";
  if (dataType(tensor) < 0)
    return "its elements have " + number(tensor.elementBytes) + " bytes";
  return "";
}

/// CUtensorMapL2promotion: how much of memory L2 fetches at once. Where boxes do not begin at multiples of 256 bytes, as
/// much again would be brought that is not asked for.
int promotion(const TiledTensor &tensor) {
  constexpr int to128Bytes = 2, to256Bytes = 3;
  bool whole = tensor.address % 256 == 0;
  for (size_t d = 1; d < tensor.rank; ++d)
    whole &= tensor.byteStrides[d] % 256 == 0;
  return whole ? to256Bytes : to128Bytes;
}

/// CUtensorMapSwizzle
int swizzleMode(int64_t bytes) { return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0; }

[[noreturn, gnu::cold]] void refuse(const TiledTensor &tensor, const std::string &reason) {
  throw Error("view '" + std::string(tensor.name) + "' cannot be moved by the tensor memory accelerator: " + reason);
}

} // namespace

void checkTensorMap(const TiledTensor &tensor) {
  if (std::string reason = reasonAgainst(tensor); !reason.empty())
    refuse(tensor, reason);
}

void encodeTensorMap(Gpu &gpu, const TiledTensor &tensor, TensorMap &map) {
  const DriverApi &api = gpu.api();
  if (!api.cuTensorMapEncodeTiled)
    refuse(tensor, "the NVIDIA driver (CUDA " + versionText(driver().version()) +
                       ") is too old for it; install one for CUDA 12.0 or later");
  checkTensorMap(tensor);
  std::array<uint64_t, TiledTensor::maxRank> sizes{}, strides{};
  std::array<uint32_t, TiledTensor::maxRank> box{}, steps;
  for (size_t d = 0; d < tensor.rank; ++d) {
    sizes[d] = static_cast<uint64_t>(tensor.sizes[d]);
    box[d] = static_cast<uint32_t>(tensor.box[d]);
    if (d > 0)
      strides[d - 1] = static_cast<uint64_t>(tensor.byteStrides[d]);
  }
  steps.fill(1);
  constexpr int noInterleave = 0, fillWithZeros = 0;
  CurrentContext current(gpu);
  Result failure = api.cuTensorMapEncodeTiled(
      &map, dataType(tensor), static_cast<unsigned>(tensor.rank),
      reinterpret_cast<void *>(static_cast<uintptr_t>(tensor.address)), sizes.data(), strides.data(), box.data(),
      steps.data(), noInterleave, swizzleMode(tensor.swizzleBytes), promotion(tensor), fillWithZeros);
  if (failure != result::success) [[unlikely]]
    gpu.fail(failure, "making a tensor map of view '" + std::string(tensor.name) + "'");
}

TensorMapCache::Key TensorMapCache::keyOf(const TiledTensor &tensor) {
  Key key{tensor.address};
  for (size_t d = 0; d < tensor.rank; ++d) {
    key[1 + d] = static_cast<uint64_t>(tensor.sizes[d]);
    key[1 + TiledTensor::maxRank + d] = static_cast<uint64_t>(tensor.byteStrides[d]);
  }
  return key;
}

void TensorMapCache::get(Gpu &gpu, const TiledTensor &tensor, TensorMap &map) {
  Key key = keyOf(tensor);
  if (find(key, map)) [[likely]]
    return;
  encodeTensorMap(gpu, tensor, map);
  keep(key, map);
}

bool TensorMapCache::find(const Key &key, TensorMap &map) const {
  for (const Slot &slot : slots_) {
    if (slot.key[0].load(std::memory_order_relaxed) != key[0])
      continue;
    uint64_t version = slot.version.load(std::memory_order_acquire);
    if (version == 0 || version % 2)
      continue;
    // Whoever sees a word of a later write sees, behind it, the version that this write began with.
    bool same = true;
    for (size_t i = 0; i < key.size(); ++i)
      same &= slot.key[i].load(std::memory_order_acquire) == key[i];
    if (!same)
      continue;
    for (size_t i = 0; i < slot.map.size(); ++i)
      map.words[i] = slot.map[i].load(std::memory_order_acquire);
    if (slot.version.load(std::memory_order_relaxed) == version) [[likely]]
      return true;
  }
  return false;
}

void TensorMapCache::keep(const Key &key, const TensorMap &map) {
  Slot &slot = slots_[next_.fetch_add(1, std::memory_order_relaxed) % slots_.size()];
  uint64_t version = slot.version.load(std::memory_order_relaxed);
  if (version % 2 || !slot.version.compare_exchange_strong(version, version + 1, std::memory_order_acq_rel))
    return; // another thread is about to fill it
  for (size_t i = 0; i < key.size(); ++i)
    slot.key[i].store(key[i], std::memory_order_release);
  for (size_t i = 0; i < slot.map.size(); ++i)
    slot.map[i].store(map.words[i], std::memory_order_release);
  slot.version.store(version + 2, std::memory_order_release);
}

} // namespace tenon::cuda
