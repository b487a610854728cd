// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/Tensor.h"

#include "tenon/base/Error.h"
#include "tenon/base/FloatFormats.h"
#include "tenon/base/Words.h"
#include "tenon/profile/Recorder.h"
#include "tenon/runtime/DeviceTensor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <thread>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tenon {
namespace {

std::string listText(IndexList values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

bool multiply(int64_t a, int64_t b, int64_t &result) { return !__builtin_mul_overflow(a, b, &result); }
bool add(int64_t a, int64_t b, int64_t &result) { return !__builtin_add_overflow(a, b, &result); }

template <typename T> T load(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T> void store(std::byte *to, T value) { std::memcpy(to, &value, sizeof value); }

/// Calls `function` with a value of the C++ type that holds an integer of `type`.
template <typename Function> auto withInteger(DType type, Function function) {
  switch (type) {
  case DType::i64: return function(int64_t());
  case DType::i32: return function(int32_t());
  case DType::i16: return function(int16_t());
  case DType::i8: return function(int8_t());
  case DType::u64: return function(uint64_t());
  case DType::u32: return function(uint32_t());
  case DType::u16: return function(uint16_t());
  default: return function(uint8_t());
  }
}

/// Towards zero, saturating, NaN to zero. The comparisons are exact because both bounds are (plus or minus one at most)
/// powers of two: 2^63 is the first double that does not fit i64, whose largest value is no double.
template <typename T> T saturate(double value) {
  if (std::isnan(value))
    return 0;
  value = std::trunc(value);
  if (value < static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (value >= std::ldexp(1.0, std::numeric_limits<T>::digits))
    return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

double read(DType type, const std::byte *from) {
  switch (type) {
  case DType::f64: return load<double>(from);
  case DType::f32: return load<float>(from);
  case DType::f16: return f16ToF32(load<uint16_t>(from));
  case DType::bf16: return bf16ToF32(load<uint16_t>(from));
  case DType::f8e4m3: return f8e4m3ToF32(load<uint8_t>(from));
  case DType::f8e5m2: return f8e5m2ToF32(load<uint8_t>(from));
  case DType::boolean: return load<uint8_t>(from) ? 1 : 0;
  default: return withInteger(type, [&](auto t) { return static_cast<double>(load<decltype(t)>(from)); });
  }
}

void write(DType type, std::byte *to, double value) {
  switch (type) {
  case DType::f64: return store(to, value);
  case DType::f32: return store(to, static_cast<float>(value));
  case DType::f16: return store(to, f64ToF16(value));
  case DType::bf16: return store(to, f64ToBF16(value));
  case DType::f8e4m3: return store(to, f64ToF8e4m3(value));
  case DType::f8e5m2: return store(to, f64ToF8e5m2(value));
  case DType::boolean: return store(to, static_cast<uint8_t>(value != 0));
  default: return withInteger(type, [&](auto t) { store(to, saturate<decltype(t)>(value)); });
  }
}

/// splitmix64 as a function of a counter: element i does not depend on how many came before.
uint64_t randomBits(uint64_t seed, uint64_t counter) {
  auto mix = [](uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  // The seed is mixed first, or neighbouring seeds would give the same sequence shifted by one.
  return mix(mix(seed + 0x9e3779b97f4a7c15u) + (counter + 1) * 0x9e3779b97f4a7c15u);
}

/// Memory of several large pages begins with one, and asks for them: to look up a small page's address takes longer than
/// to read the page, so that whatever waits for memory runs up to half again as fast.
constexpr size_t largePage = size_t(2) << 20;

std::align_val_t hostAlignment(size_t bytes) {
  return std::align_val_t(bytes >= 2 * largePage ? largePage : Buffer::alignment);
}

void askForLargePages([[maybe_unused]] void *data, [[maybe_unused]] size_t bytes) {
#if defined(__linux__)
  if (bytes >= 2 * largePage)
    madvise(data, bytes, MADV_HUGEPAGE); // a wish: nothing is lost where it is not granted
#endif
}

} // namespace

Buffer::Buffer(size_t bytes, Device device) : bytes_(bytes), owned_(true), device_(device) {
  if (device.isCuda()) {
    data_ = allocateOnDevice(device, bytes);
    return;
  }
  data_ = ::operator new(std::max<size_t>(bytes, 1), hostAlignment(bytes), std::nothrow);
  if (!data_)
    throw Error("cannot allocate " + std::to_string(bytes) + " bytes of host memory; use a smaller tensor");
  askForLargePages(data_, bytes);
}

Buffer::Buffer(void *data, size_t bytes, std::function<void()> release, Device device)
    : data_(data), bytes_(bytes), owned_(false), device_(device), release_(std::move(release)) {}

Buffer::~Buffer() {
  if (owned_ && device_.isCuda())
    releaseOnDevice(device_, data_);
  else if (owned_)
    ::operator delete(data_, hostAlignment(bytes_));
  if (release_) {
    if (device_.isCuda())
      awaitDevice(device_); // its owner knows nothing of our streams
    release_();
  }
}

Tensor::Tensor() {
  static const auto nothing = std::make_shared<Buffer>(nullptr, 0);
  buffer_ = nothing;
  setShape(DType::f32, {0}, {});
}

Tensor::Tensor(std::shared_ptr<Buffer> buffer, void *data, DType dtype, IndexList sizes, IndexList strides)
    : buffer_(std::move(buffer)), data_(static_cast<std::byte *>(data)) {
  setShape(dtype, sizes, strides);
}

std::array<int64_t, Tensor::maxRank> Tensor::rowMajor(IndexList sizes) {
  std::array<int64_t, maxRank> strides{};
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    // An empty dimension counts as one so that the strides stay those of the shape, as everyone else has it.
    if (!multiply(stride, std::max<int64_t>(sizes[d], 1), stride))
      throw Error("a tensor of sizes " + listText(sizes) + " is too large; the number of elements must fit in 63 bits");
  }
  return strides;
}

void Tensor::setShape(DType dtype, IndexList sizes, IndexList strides) {
  if (sizes.size() > maxRank)
    throw Error("a tensor of rank " + std::to_string(sizes.size()) + " is not supported; the rank may be 0 to 5");
  for (int64_t size : sizes)
    if (size < 0)
      throw Error("a tensor of sizes " + listText(sizes) + " is not possible; every size must be 0 or more");
  if (!strides.empty() && strides.size() != sizes.size())
    throw Error("sizes " + listText(sizes) + " and strides " + listText(strides) +
                " differ in length; give one stride per dimension, or none for row-major");
  std::array<int64_t, maxRank> dense = rowMajor(sizes);

  dtype_ = dtype;
  rank_ = static_cast<int64_t>(sizes.size());
  elements_ = 1;
  auto bytes = static_cast<int64_t>(sizeOf(dtype));
  int64_t low = 0, high = bytes;
  bool fits = true;
  bool hasElements = std::find(sizes.begin(), sizes.end(), 0) == sizes.end();
  for (size_t d = 0; d < sizes.size(); ++d) {
    sizes_[d] = sizes[d];
    strides_[d] = strides.empty() ? dense[d] : strides[d];
    fits = fits && multiply(elements_, sizes_[d], elements_);
    if (!hasElements)
      continue;
    int64_t reach;
    fits = fits && multiply(sizes_[d] - 1, strides_[d], reach) && multiply(reach, bytes, reach) &&
           (reach < 0 ? add(low, reach, low) : add(high, reach, high));
  }
  int64_t span;
  if (!fits || __builtin_sub_overflow(high, low, &span))
    throw Error("a tensor of sizes " + listText(sizes) + (strides.empty() ? "" : " and strides " + listText(strides)) +
                " is too large; its extent in bytes must fit in 63 bits");
  extent_ = hasElements ? Extent{low, high} : Extent{};
}

Tensor Tensor::empty(DType dtype, IndexList sizes, Device device) {
  Tensor result;
  result.setShape(dtype, sizes, {});
  result.buffer_ = std::make_shared<Buffer>(static_cast<size_t>(result.extent_.high), device);
  result.data_ = static_cast<std::byte *>(result.buffer_->begin());
  return result;
}

Tensor Tensor::zeros(DType dtype, IndexList sizes, Device device) {
  Tensor result = empty(dtype, sizes, device);
  result.fillBytes(0);
  return result;
}

Tensor Tensor::borrow(void *data, size_t bytes, DType dtype, IndexList sizes, IndexList strides,
                      std::function<void()> release, Device device) {
  if (device.isCuda())
    cudaProperties(device.ordinal); // there must be such a device
  Tensor result(std::make_shared<Buffer>(data, bytes, nullptr, device), data, dtype, sizes, strides);
  result.buffer_->onRelease(std::move(release));
  return result;
}

int64_t Tensor::checkedDim(int64_t dim) const {
  if (dim < 0 || dim >= rank_)
    throw Error("tensor " + str() + " has no dimension " + std::to_string(dim) +
                "; a dimension is 0 or more and less than " + std::to_string(rank_));
  return dim;
}

int64_t Tensor::size(int64_t dim) const { return sizes_[static_cast<size_t>(checkedDim(dim))]; }
int64_t Tensor::stride(int64_t dim) const { return strides_[static_cast<size_t>(checkedDim(dim))]; }

bool Tensor::isContiguous() const {
  int64_t stride = 1;
  for (size_t d = static_cast<size_t>(rank_); d-- > 0;) {
    if (elements_ > 0 && sizes_[d] != 1 && strides_[d] != stride)
      return false;
    stride *= std::max<int64_t>(sizes_[d], 1);
  }
  return true;
}

Tensor Tensor::transpose(IndexList perm) const {
  std::array<bool, maxRank> seen{};
  std::array<int64_t, maxRank> newSizes{}, newStrides{};
  bool valid = perm.size() == static_cast<size_t>(rank_);
  for (size_t d = 0; valid && d < perm.size(); ++d) {
    valid = perm[d] >= 0 && perm[d] < rank_ && !seen[static_cast<size_t>(perm[d])];
    if (!valid)
      break;
    auto from = static_cast<size_t>(perm[d]);
    seen[from] = true;
    newSizes[d] = sizes_[from];
    newStrides[d] = strides_[from];
  }
  if (!valid)
    throw Error("tensor " + str() + " cannot be transposed by " + listText(perm) + "; give each of its " +
                counted(rank_, "dimension") + " once");
  size_t used = perm.size();
  return Tensor(buffer_, data_, dtype_, std::span(newSizes).first(used), std::span(newStrides).first(used));
}

Tensor Tensor::slice(int64_t dim, int64_t begin, int64_t length, int64_t step) const {
  int64_t extent = size(dim);
  int64_t last = begin;
  bool valid = step != 0 && length >= 0 && begin >= 0 && begin <= extent &&
               (length == 0 || (multiply(length - 1, step, last) && add(begin, last, last) && begin < extent &&
                                last >= 0 && last < extent));
  if (!valid)
    throw Error("slice of " + std::to_string(length) + " elements from " + std::to_string(begin) + " with step " +
                std::to_string(step) + " leaves dimension " + std::to_string(dim) + " of tensor " + str() +
                "; every index must be from 0 to " + std::to_string(extent - 1) + " and the step must not be 0");
  Tensor result = *this;
  auto d = static_cast<size_t>(dim);
  auto newSizes = sizes_, newStrides = strides_;
  newSizes[d] = length;
  if (length > 1) // the step of fewer is never taken, and may be any number
    newStrides[d] *= step;
  auto used = static_cast<size_t>(rank_);
  result.setShape(dtype_, std::span(newSizes).first(used), std::span(newStrides).first(used));
  // Nothing to point at when either is empty, and begin * stride need not fit then.
  if (result.elements_ > 0)
    result.data_ += begin * strides_[d] * static_cast<int64_t>(sizeOf(dtype_));
  return result;
}

Tensor Tensor::reshape(IndexList sizes) const {
  if (!isContiguous())
    throw Error("tensor " + str() + " with strides " + listText(strides()) +
                " is not contiguous and cannot be reshaped; clone() it first");
  Tensor result(buffer_, data_, dtype_, sizes, {});
  if (result.elements_ != elements_)
    throw Error("tensor " + str() + " of " + std::to_string(elements_) + " elements cannot be reshaped to " +
                listText(sizes) + ", which has " + std::to_string(result.elements_));
  return result;
}

/// Calls function(std::byte *element, uint64_t rowMajorIndex) for every element in row-major order. The caller has
/// checked that the elements are there. The stride of a dimension of one element may be anything and is never used.
template <typename Function> void Tensor::forEachElement(Function function) const {
  if (elements_ == 0)
    return;
  auto bytes = static_cast<int64_t>(sizeOf(dtype_));
  int64_t inner = rank_ ? sizes_[static_cast<size_t>(rank_ - 1)] : 1;
  int64_t innerStride = inner > 1 ? strides_[static_cast<size_t>(rank_ - 1)] * bytes : 0;
  std::array<int64_t, maxRank> index{};
  std::byte *row = data_;
  for (uint64_t counter = 0;;) {
    for (int64_t i = 0; i < inner; ++i)
      function(row + i * innerStride, counter++);
    int64_t d = rank_ - 2;
    for (; d >= 0; --d) {
      auto u = static_cast<size_t>(d);
      if (index[u] + 1 < sizes_[u]) {
        ++index[u];
        row += strides_[u] * bytes;
        break;
      }
      row -= index[u] * strides_[u] * bytes;
      index[u] = 0;
    }
    if (d < 0)
      return;
  }
}

Tensor Tensor::clone() const { return to(device()); }

Tensor Tensor::to(Device device) const {
  checkInsideBuffer();
  Tensor result = empty(dtype_, sizes(), device);
  result.copyFrom(*this);
  return result;
}

void Tensor::copyFrom(const Tensor &source) const {
  if (source.dtype_ != dtype_ || source.rank_ != rank_ || source.sizes_ != sizes_)
    throw Error("tensor " + str() + " cannot be overwritten with " + source.str() +
                "; both must have the same type and sizes");
  checkInsideBuffer();
  source.checkInsideBuffer();
  if (elements_ == 0)
    return;
  if (overlaps(source))
    return copyFrom(source.clone());
  if (!device().isCpu() || !source.device().isCpu())
    return copyDeviceTensor(*this, source);
  profile::Span span(profile::Kind::copy, "on the host");
  if (span)
    span->bytes = static_cast<uint64_t>(elements_) * sizeOf(dtype_);
  copyOnHost(source);
}

void Tensor::copyOnHost(const Tensor &source) const {
  size_t bytes = sizeOf(dtype_);
  if (isContiguous() && source.isContiguous())
    std::memcpy(data_, source.data_, static_cast<size_t>(elements_) * bytes);
  else if (isContiguous())
    source.forEachElement([&](std::byte *from, uint64_t i) { std::memcpy(data_ + i * bytes, from, bytes); });
  else if (source.isContiguous())
    forEachElement([&](std::byte *to, uint64_t i) { std::memcpy(to, source.data_ + i * bytes, bytes); });
  else
    copyOnHost(source.clone());
}

void Tensor::requireHost() const {
  if (device().isCuda())
    throw Error("tensor " + str() + " is on " + device().str() +
                " and its elements cannot be read or written from the host; copy it with to(Device::cpu()) first");
}

std::byte *Tensor::element(IndexList index) const {
  requireHost();
  bool valid = index.size() == static_cast<size_t>(rank_);
  int64_t offset = 0;
  for (size_t d = 0; valid && d < index.size(); ++d) {
    valid = index[d] >= 0 && index[d] < sizes_[d];
    if (valid)
      offset += index[d] * strides_[d] * static_cast<int64_t>(sizeOf(dtype_));
  }
  if (!valid)
    throw Error("tensor " + str() + " has no element " + listText(index) +
                "; give one index per dimension, each from 0 to its size less one");
  // The index is right, but a borrowed tensor may describe more memory than there is.
  uint64_t first = reinterpret_cast<uintptr_t>(data_) - reinterpret_cast<uintptr_t>(bufferBegin()) +
                   static_cast<uint64_t>(offset);
  if (!data_ || first > bufferBytes() || sizeOf(dtype_) > bufferBytes() - first)
    checkInsideBuffer();
  return data_ + offset;
}

double Tensor::get(IndexList index) const { return read(dtype_, element(index)); }
void Tensor::set(IndexList index, double value) const { write(dtype_, element(index), value); }

int64_t Tensor::getInt(IndexList index) const {
  if (isFloat(dtype_))
    throw Error("getInt reads integers and tensor " + str() + " holds floating-point numbers; use get");
  const std::byte *from = element(index);
  if (dtype_ == DType::boolean)
    return load<uint8_t>(from) != 0;
  return withInteger(dtype_, [&](auto t) { return static_cast<int64_t>(load<decltype(t)>(from)); });
}

void Tensor::setInt(IndexList index, int64_t value) const {
  if (isFloat(dtype_))
    throw Error("setInt writes integers and tensor " + str() + " holds floating-point numbers; use set");
  std::byte *to = element(index);
  if (dtype_ == DType::boolean)
    return store(to, static_cast<uint8_t>(value != 0));
  withInteger(dtype_, [&](auto t) {
    using T = decltype(t);
    if (static_cast<int64_t>(static_cast<T>(value)) != value)
      throw Error(std::to_string(value) + " does not fit in an element of tensor " + str() + "; the range is " +
                  std::to_string(std::numeric_limits<T>::min()) + " to " +
                  std::to_string(std::numeric_limits<T>::max()));
    store(to, static_cast<T>(value));
  });
}

void Tensor::fill(double value) const {
  checkInsideBuffer();
  std::array<std::byte, 8> bits{};
  write(dtype_, bits.data(), value);
  if (device().isCuda())
    return fillDeviceTensor(*this, load<uint64_t>(bits.data()));
  forEachElement([&, bytes = sizeOf(dtype_)](std::byte *to, uint64_t) { std::memcpy(to, bits.data(), bytes); });
}

void Tensor::fillRandom(uint64_t seed, double lo, double hi) const {
  checkInsideBuffer();
  if (device().isCuda()) { // the same values as on the host, from there
    Tensor values = empty(dtype_, sizes());
    values.fillRandom(seed, lo, hi);
    return copyFrom(values);
  }
  if (!(lo <= hi) || !std::isfinite(hi - lo))
    throw Error("random values from " + std::to_string(lo) + " to " + std::to_string(hi) +
                " are not possible; both bounds must be finite and the lower one first");
  if (isFloat(dtype_)) {
    // fma, written out, rounds once everywhere; `lo + u * (hi - lo)` may or may not be contracted.
    auto fill = [&](std::byte *to, uint64_t i) {
      double u = static_cast<double>(randomBits(seed, i) >> 11) * 0x1p-53;
      write(dtype_, to, std::fma(u, hi - lo, lo));
    };
    constexpr int64_t many = int64_t(1) << 20;
    if (elements_ < many || !isContiguous())
      return forEachElement(fill);
    // Each value depends on its place alone.
    std::vector<std::thread> helpers;
    int64_t count = std::max<int64_t>(std::thread::hardware_concurrency(), 1), each = (elements_ + count - 1) / count;
    for (int64_t begin = 0; begin < elements_; begin += each)
      helpers.emplace_back([&, begin] {
        for (int64_t i = begin; i < std::min(begin + each, elements_); ++i)
          fill(data_ + static_cast<size_t>(i) * sizeOf(dtype_), static_cast<uint64_t>(i));
      });
    for (std::thread &helper : helpers)
      helper.join();
    return;
  }
  withInteger(dtype_, [&](auto t) {
    using T = decltype(t);
    T first = saturate<T>(std::ceil(lo)), last = saturate<T>(std::floor(hi));
    if (std::ceil(lo) > std::floor(hi))
      throw Error("there is no integer from " + std::to_string(lo) + " to " + std::to_string(hi) + " to fill tensor " +
                  str() + " with; widen the range");
    // Modulo 2^64 throughout: a width of zero is all of them.
    uint64_t width = static_cast<uint64_t>(last) - static_cast<uint64_t>(first) + 1;
    forEachElement([&](std::byte *to, uint64_t i) {
      uint64_t bits = randomBits(seed, i);
      auto value = static_cast<T>(static_cast<uint64_t>(first) + (width ? bits % width : bits));
      store(to, dtype_ == DType::boolean ? static_cast<T>(value != 0) : value);
    });
  });
}

void Tensor::fillBytes(uint8_t pattern) const {
  checkInsideBuffer();
  if (device().isCuda())
    return fillDeviceTensor(*this, pattern * 0x0101010101010101u);
  if (isContiguous() && elements_ > 0) {
    std::memset(data_, pattern, static_cast<size_t>(elements_) * sizeOf(dtype_));
    return;
  }
  forEachElement([&, bytes = sizeOf(dtype_)](std::byte *to, uint64_t) { std::memset(to, pattern, bytes); });
}

void Tensor::checkInsideBuffer() const {
  if (elements_ == 0)
    return;
  if (!data_)
    throw Error("tensor " + str() + " has elements but its data is null; give it memory or make a size 0");
  // Unsigned differences: data_ may be anywhere, and no pointer outside the buffer is formed.
  uint64_t begin = reinterpret_cast<uintptr_t>(bufferBegin());
  uint64_t before = reinterpret_cast<uintptr_t>(data_) - begin;
  uint64_t below = static_cast<uint64_t>(-extent_.low), above = static_cast<uint64_t>(extent_.high);
  if (before > bufferBytes() || below > before || above > bufferBytes() - before)
    throw Error("tensor " + str() + " with strides " + listText(strides()) + " reaches from byte " +
                std::to_string(static_cast<int64_t>(before) + extent_.low) + " to byte " +
                std::to_string(static_cast<int64_t>(before) + extent_.high) + " of a buffer of " +
                std::to_string(bufferBytes()) + " bytes; correct its sizes or strides");
  if (reinterpret_cast<uintptr_t>(data_) % sizeOf(dtype_) != 0)
    throw Error("tensor " + str() + " starts at an address that is not a multiple of its element size of " +
                std::to_string(sizeOf(dtype_)) + " bytes; copy it to aligned memory");
}

bool Tensor::hasDistinctElements() const {
  // From the smallest stride up, each step must clear everything the smaller ones reach over. Sorted by insertion from
  // the last dimension on, which is in order already when the tensor is row-major.
  struct Dim {
    uint64_t step, count;
  };
  std::array<Dim, maxRank> dims;
  size_t used = 0;
  for (auto d = static_cast<size_t>(rank_); d-- > 0;) {
    if (sizes_[d] <= 1)
      continue;
    auto step = static_cast<uint64_t>(std::abs(strides_[d]));
    size_t at = used++;
    for (; at > 0 && dims[at - 1].step > step; --at)
      dims[at] = dims[at - 1];
    dims[at] = {step, static_cast<uint64_t>(sizes_[d]) - 1};
  }
  uint64_t reach = 0;
  for (size_t i = 0; i < used; ++i) {
    if (dims[i].step <= reach)
      return false;
    reach += dims[i].step * dims[i].count;
  }
  return true;
}

Tensor Tensor::movedTo(void *lowest, Device device, std::function<void()> release) const {
  // Borrowed memory begins at its lowest address: every stride positive first, then dimensions are turned round.
  std::vector<int64_t> strides(strides_.begin(), strides_.begin() + rank_);
  if (elements_ > 0)
    for (int64_t &stride : strides)
      stride = std::abs(stride);
  auto bytes = static_cast<size_t>(extent_.high - extent_.low);
  Tensor moved = borrow(lowest, bytes, dtype_, sizes(), strides, std::move(release), device);
  for (int64_t d = 0; d < rank_ && elements_ > 0; ++d)
    if (stride(d) < 0)
      moved = moved.slice(d, size(d) - 1, size(d), -1);
  return moved;
}

std::pair<uintptr_t, uintptr_t> Tensor::addresses() const {
  auto at = reinterpret_cast<uintptr_t>(data_);
  return {at + static_cast<uint64_t>(extent_.low), at + static_cast<uint64_t>(extent_.high)};
}

bool Tensor::overlaps(const Tensor &other) const {
  if (elements_ == 0 || other.elements_ == 0)
    return false;
  auto [low, high] = addresses();
  auto [otherLow, otherHigh] = other.addresses();
  return low < otherHigh && otherLow < high;
}

std::string Tensor::str() const { return std::string(nameOf(dtype_)) + listText(sizes()); }

} // namespace tenon
