// SPDX-License-Identifier: Apache-2.0
//
// Tensors for the tensor memory accelerator (sm_90 and later), which moves boxes of them to shared memory and back and
// is told of each by a map: 128 opaque bytes, made by the driver, that are a kernel's parameter.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace tenon::cuda {

class Gpu;

/// CUtensorMap.
struct alignas(64) TensorMap {
  uint64_t words[16];
};
static_assert(sizeof(TensorMap) == 128);

/// Of one kernel.
constexpr size_t maxTensorMaps = 16;

/// What a map says. Dimensions are innermost first; the elements of the first are neighbours in memory. What a box
/// reaches past the tensor is read as zeros and not written.
struct TiledTensor {
  static constexpr size_t maxRank = 5;
  std::string_view name;    ///< for errors
  std::string_view element; ///< as MLIR spells it
  int64_t elementBytes = 0;
  size_t rank = 0;
  uint64_t address = 0;
  std::array<int64_t, maxRank> sizes{}, byteStrides{}; ///< the first stride is the element's size and not looked at
  std::array<int64_t, maxRank> box{};                  ///< in elements
  int64_t swizzleBytes = 0;                            ///< of the box in shared memory: 0 (none), 32, 64, 128
};

/// Throws Error when the hardware has no map for this tensor, with the reason: an address or a stride that is no
/// multiple of 16 bytes, a box of more than 256 elements a dimension, ...
void checkTensorMap(const TiledTensor &tensor);
/// Throws Error for the same reasons, and when the driver is too old.
void encodeTensorMap(Gpu &gpu, const TiledTensor &tensor, TensorMap &map);

/// The most recent maps of one parameter of a kernel: tensors that differ in address, sizes and strides alone. A model
/// launches with the same few over and over, and copying a map costs a small part of making one. For several threads
/// at once; nobody waits, and nothing is allocated.
class TensorMapCache {
public:
  void get(Gpu &gpu, const TiledTensor &tensor, TensorMap &map);

private:
  using Key = std::array<uint64_t, 1 + 2 * TiledTensor::maxRank>;
  static Key keyOf(const TiledTensor &tensor);
  bool find(const Key &key, TensorMap &map) const;
  void keep(const Key &key, const TensorMap &map);

  /// A reader copies what it finds, and believes it if the version is even and still the same afterwards: a writer
  /// makes it odd before it changes anything.
  struct Slot {
    std::atomic<uint64_t> version{0}; ///< 0: empty
    std::array<std::atomic<uint64_t>, std::tuple_size_v<Key>> key{};
    std::array<std::atomic<uint64_t>, 16> map{};
  };
  std::array<Slot, 16> slots_;
  std::atomic<size_t> next_{0}; ///< the slot to write to, in turn
};

} // namespace tenon::cuda
