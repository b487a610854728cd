// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/base/DType.h"
#include "tenon/runtime/Device.h"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct DLManagedTensor; // tenon/runtime/DLPack.h, or the official dlpack.h

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// Sizes, strides or indices as an argument: `{2, 3}`, a vector, an array or a span of int64_t. Refers to the caller's
/// memory, so it lives for one call only.
class IndexList {
public:
  IndexList() = default;
  IndexList(std::initializer_list<int64_t> values) : values_(values.begin(), values.size()) {}
  template <typename Range>
    requires std::convertible_to<const Range &, std::span<const int64_t>>
  IndexList(const Range &values) : values_(values) {}

  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  int64_t operator[](size_t i) const { return values_[i]; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

private:
  std::span<const int64_t> values_;
};

/// A range of memory of the host or of a CUDA device, owned (64-byte aligned) or borrowed; the last tensor that refers
/// to it lets it go. Memory of a device may be used on all its streams, and may be let go while work that uses it is
/// queued: it stays until that is done.
class Buffer {
public:
  static constexpr size_t alignment = 64;

  /// Owned and not initialised; throws Error when there is no memory.
  explicit Buffer(size_t bytes, Device device = {});
  /// Borrowed: `release`, if any, runs when the last user is gone; for memory of a device, after waiting for what is
  /// queued on Tenon's streams there.
  Buffer(void *data, size_t bytes, std::function<void()> release = {}, Device device = {});
  ~Buffer();
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  void *begin() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  /// Attached last, once nothing can throw any more: a failed construction must not release what it never took over.
  void onRelease(std::function<void()> release) { release_ = std::move(release); }

private:
  void *data_;
  size_t bytes_;
  bool owned_;
  Device device_;
  std::function<void()> release_;
};

/// An array of rank 0 to 5 on the host or on a CUDA device, or a view of one. A Tensor is a handle: copies and views
/// share the buffer, and a const handle says nothing about the elements. Strides are in elements and may be zero or
/// negative. All arithmetic is 64-bit, and a shape whose extent does not fit is refused when the tensor is made.
///
/// Whether every element lies inside the buffer is a separate question, answered by checkInsideBuffer(): a tensor may
/// describe more than is there (a wrong stride in a borrowed array), and the launch must be the one to say so.
///
/// Elements of a device's tensor cannot be read or written one by one from the host: to() copies it. Copies and fills
/// on a device run after everything that is queued on its streams at that time, and are done when the function returns.
class Tensor {
public:
  static constexpr size_t maxRank = 5;

  /// An empty f32 vector.
  Tensor();

  /// Row-major, owned, not initialised.
  static Tensor empty(DType dtype, IndexList sizes, Device device = {});
  /// Row-major, owned, all bytes zero.
  static Tensor zeros(DType dtype, IndexList sizes, Device device = {});
  /// The caller's memory of `bytes` bytes, whose first element is at `data`; without strides, row-major. The memory
  /// must outlive the tensor and its views; `release` is called when the last is gone, and not when borrow throws.
  static Tensor borrow(void *data, size_t bytes, DType dtype, IndexList sizes, IndexList strides = {},
                       std::function<void()> release = {}, Device device = {});

  /// Takes over `managed`, whose deleter runs when the last view is gone; if this throws, the caller still owns it. The
  /// memory may be the host's or a CUDA device's; what its producer still computes must be done before it is used.
  static Tensor from_dlpack(DLManagedTensor *managed);
  /// A view for another library; it keeps the buffer alive until its deleter is called.
  DLManagedTensor *to_dlpack() const;

  Device device() const { return buffer_->device(); }
  DType dtype() const { return dtype_; }
  int64_t rank() const { return rank_; }
  std::span<const int64_t> sizes() const { return {sizes_.data(), static_cast<size_t>(rank_)}; }
  std::span<const int64_t> strides() const { return {strides_.data(), static_cast<size_t>(rank_)}; }
  int64_t size(int64_t dim) const;
  int64_t stride(int64_t dim) const;
  int64_t elements() const { return elements_; }
  bool isContiguous() const;

  /// The first element: the one of index {0, 0, ...}.
  void *data() const { return data_; }
  void *bufferBegin() const { return buffer_->begin(); }
  size_t bufferBytes() const { return buffer_->bytes(); }
  const std::shared_ptr<Buffer> &buffer() const { return buffer_; }

  /// Views of the same buffer. Dimension d of transpose(perm) is dimension perm[d] of this tensor.
  Tensor transpose(IndexList perm) const;
  /// Elements begin, begin + step, ... (`length` of them) of one dimension; a negative step walks backwards.
  Tensor slice(int64_t dim, int64_t begin, int64_t length, int64_t step = 1) const;
  /// Only of a contiguous tensor: clone() first otherwise.
  Tensor reshape(IndexList sizes) const;
  /// A row-major copy with a buffer of its own.
  Tensor clone() const;
  /// The same on another device (or on the same: it is always a copy).
  Tensor to(Device device) const;
  /// Overwrites the elements of this view with those of another of the same type and sizes, wherever each is.
  void copyFrom(const Tensor &source) const;

  /// One element as a double. Writing rounds once to nearest-even (FloatFormats.h); an integer is truncated towards
  /// zero and saturates, NaN giving zero; a boolean is true unless the value is zero.
  double get(IndexList index) const;
  void set(IndexList index, double value) const;
  /// One integer or boolean element, exactly. u64 is the same 64 bits, so values from 2^63 are negative here. A value
  /// that the type cannot hold is refused.
  int64_t getInt(IndexList index) const;
  void setInt(IndexList index, int64_t value) const;

  void fill(double value) const;
  /// The same values for the same seed, sizes and type on every machine, whatever the strides. Floats are uniform in
  /// [lo, hi) and then rounded to the type; integers are uniform in [lo, hi], both ends included, and so is a boolean's
  /// integer, true unless zero.
  void fillRandom(uint64_t seed, double lo, double hi) const;
  /// Every byte of every element of this view; 0xff is NaN in every float type.
  void fillBytes(uint8_t pattern) const;

  /// Throws unless every element lies inside the buffer and is aligned to its own size.
  void checkInsideBuffer() const;
  /// The same view of other memory, borrowed, in which the element at the lowest address is at `lowest`.
  Tensor movedTo(void *lowest, Device device = {}, std::function<void()> release = {}) const;
  /// The addresses [first, second) that its elements lie in; equal when it has none.
  std::pair<uintptr_t, uintptr_t> addresses() const;
  /// Whether the byte ranges the two reach over meet: false is a proof, true is not (interleaved views). An empty
  /// tensor overlaps nothing.
  bool overlaps(const Tensor &other) const;
  /// Whether different indices name different elements: true is a proof, false is not.
  bool hasDistinctElements() const;

  /// "f32[2, 3]"
  std::string str() const;

private:
  /// Offsets in bytes from data(): every element lies in [low, high).
  struct Extent {
    int64_t low = 0, high = 0;
  };

  Tensor(std::shared_ptr<Buffer> buffer, void *data, DType dtype, IndexList sizes, IndexList strides);
  /// Checks rank, sizes and strides, and that no offset can overflow; buffer_ and data_ stay unset.
  void setShape(DType dtype, IndexList sizes, IndexList strides);
  static std::array<int64_t, maxRank> rowMajor(IndexList sizes);
  int64_t checkedDim(int64_t dim) const;
  std::byte *element(IndexList index) const;
  void requireHost() const;
  void copyOnHost(const Tensor &source) const;
  template <typename Function> void forEachElement(Function function) const;

  std::shared_ptr<Buffer> buffer_;
  std::byte *data_ = nullptr;
  DType dtype_ = DType::f32;
  int64_t rank_ = 0;
  std::array<int64_t, maxRank> sizes_{}, strides_{};
  int64_t elements_ = 0;
  Extent extent_;
};

} // namespace tenon
#pragma GCC visibility pop
