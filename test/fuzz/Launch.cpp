// SPDX-License-Identifier: Apache-2.0
#include "Launch.h"

#include "Random.h"

#include "tenon/base/FloatFormats.h"
#include "tenon/compiler/dialect/TileDialect.h"

#include "llvm/Support/Format.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace tenon::fuzz {
namespace {

double decode(uint64_t word, Type type) {
  if (type.isF64())
    return std::bit_cast<double>(word);
  if (type.isF32())
    return std::bit_cast<float>(static_cast<uint32_t>(word));
  if (type.isF16())
    return f16ToF32(static_cast<uint16_t>(word));
  if (type.isBF16())
    return bf16ToF32(static_cast<uint16_t>(word));
  return type.isFloat8E4M3FN() ? f8e4m3ToF32(static_cast<uint8_t>(word)) : f8e5m2ToF32(static_cast<uint8_t>(word));
}

uint64_t encode(double value, Type type) {
  if (type.isF64())
    return std::bit_cast<uint64_t>(value);
  if (type.isF32())
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type.isF16())
    return f64ToF16(value);
  if (type.isBF16())
    return f64ToBF16(value);
  return type.isFloat8E4M3FN() ? f64ToF8e4m3(value) : f64ToF8e5m2(value);
}

uint64_t randomElement(Random &random, Type type, const std::string &fill) {
  bool isFloat = llvm::isa<FloatType>(type);
  if (type.isInteger(1))
    return fill == "any" && random.chance(20) ? random.range(2, 255) : random.range(0, 1);
  if (fill == "ints")
    return isFloat ? encode(static_cast<double>(random.range(-3, 3)), type)
                   : static_cast<uint64_t>(random.range(-3, 3));
  if (fill == "unit")
    return isFloat ? encode(static_cast<double>(random.range(-8000, 8000)) / 1000, type)
                   : static_cast<uint64_t>(random.range(-100, 100));
  if (!isFloat)
    return random.chance(70) ? random.next() >> random.range(0, 63) : random.next();
  if (random.chance(30))
    return random.next();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (random.chance(30))
    return encode(random.pick({0.0, -0.0, 1.0, -1.0, infinity, -infinity, std::nan(""), 0.5, -2.5, 1e-40, 65504.0,
                               448.0, -57344.0, 2147483648.0, -9223372036854775808.0, 1e300, 255.0, 127.5}),
                  type);
  return encode(static_cast<double>(random.range(-1000000, 1000000)) / random.pick({1, 1000, 100000}), type);
}

/// The lowest and highest element that a view of these sizes and strides touches, relative to its base.
std::pair<int64_t, int64_t> extentOf(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  int64_t low = 0, high = 0;
  for (auto [size, stride] : llvm::zip(sizes, strides)) {
    if (size <= 0)
      return {0, 0};
    (stride < 0 ? low : high) += (size - 1) * stride;
  }
  return {low, high};
}

/// Row-major, but for dimension `unit`, which becomes the innermost one.
std::vector<int64_t> denseStrides(ArrayRef<int64_t> sizes, int64_t unit) {
  std::vector<int64_t> strides(sizes.size());
  int64_t next = 1;
  if (unit >= 0) {
    strides[unit] = 1;
    next = std::max<int64_t>(sizes[unit], 1);
  }
  for (size_t d = sizes.size(); d-- > 0;)
    if (static_cast<int64_t>(d) != unit) {
      strides[d] = next;
      next *= std::max<int64_t>(sizes[d], 1);
    }
  return strides;
}

} // namespace

unsigned elementBytes(Type element) { return (element.getIntOrFloatBitWidth() + 7) / 8; }

GuardedMemory::GuardedMemory(size_t bytes, size_t guardBytes, bool atEnd)
    : size_(bytes + 2 * guardBytes), guard_(guardBytes) {
  size_t page = sysconf(_SC_PAGESIZE), pages = (size_ + page - 1) / page * page;
  mapped_ = pages + 2 * page;
  mapping_ = static_cast<char *>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (mapping_ == MAP_FAILED || mprotect(mapping_ + page, pages, PROT_READ | PROT_WRITE))
    abort();
  data_ = mapping_ + page + (atEnd ? pages - size_ : 0);
}

GuardedMemory::~GuardedMemory() { munmap(mapping_, mapped_); }

Launch::Launch(func::FuncOp kernel) {
  auto seedOf = kernel->getAttrOfType<IntegerAttr>(seedAttr);
  uint64_t seed = seedOf ? static_cast<uint64_t>(seedOf.getInt()) : 1;
  std::map<size_t, size_t> viewOfArgument;
  std::vector<std::pair<int64_t, int64_t>> ranges; // per buffer, in elements from the first view's base
  for (size_t i = 0; i < kernel.getNumArguments(); ++i) {
    auto type = llvm::dyn_cast<tile::ViewType>(kernel.getArgument(i).getType());
    if (!type)
      continue;
    auto sizes = kernel.getArgAttrOfType<DenseI64ArrayAttr>(i, sizesAttr);
    auto strides = kernel.getArgAttrOfType<DenseI64ArrayAttr>(i, stridesAttr);
    if ((sizes && sizes.size() != type.getRank()) || (strides && strides.size() != type.getRank())) {
      error_ = "argument " + std::to_string(i) + " has fuzz.sizes or fuzz.strides of another rank";
      return;
    }
    // Written by hand, a program may leave them out.
    View view{i, buffers_.size(), 0, std::vector<int64_t>(type.getRank(), 16), {}};
    if (sizes)
      view.sizes = sizes.asArrayRef().vec();
    auto unit = kernel.getArgAttrOfType<IntegerAttr>(i, tile::unitStrideAttr);
    view.strides = strides ? strides.asArrayRef().vec() : denseStrides(view.sizes, unit ? unit.getInt() : -1);
    auto [low, high] = extentOf(view.sizes, view.strides);
    if (auto shares = kernel.getArgAttrOfType<IntegerAttr>(i, sharesAttr)) {
      auto other = viewOfArgument.find(shares.getInt());
      if (other == viewOfArgument.end()) {
        error_ = "fuzz.shares names no earlier view";
        return;
      }
      auto shift = kernel.getArgAttrOfType<IntegerAttr>(i, shiftAttr);
      view.buffer = views_[other->second].buffer;
      view.base = shift ? shift.getInt() : 0;
      shares_ = true;
      ranges[view.buffer].first = std::min(ranges[view.buffer].first, view.base + low);
      ranges[view.buffer].second = std::max(ranges[view.buffer].second, view.base + high);
    } else {
      auto fill = kernel.getArgAttrOfType<StringAttr>(i, fillAttr);
      buffers_.push_back({type.getElementType(), fill ? fill.str() : "unit", seed * 1000 + i, nullptr, {}});
      ranges.push_back({low, high});
    }
    viewOfArgument[i] = views_.size();
    views_.push_back(std::move(view));
  }
  for (auto [buffer, range] : llvm::zip(buffers_, ranges)) {
    Random random(buffer.seed);
    size_t bytes = elementBytes(buffer.element);
    // At the end of a page the memory keeps its element's alignment, since page and sizes are multiples of it.
    buffer.memory = std::make_unique<GuardedMemory>((range.second - range.first + 1) * bytes,
                                                    bytes * random.pick({0, 1, 5, 64}), random.chance(50));
    buffer.initial.resize(buffer.memory->size());
    for (size_t at = 0; at < buffer.initial.size(); at += bytes) {
      uint64_t word = randomElement(random, buffer.element, buffer.fill);
      std::memcpy(&buffer.initial[at], &word, bytes);
    }
  }
  for (View &view : views_)
    view.base -= ranges[view.buffer].first;
  for (size_t i = 0; i < kernel.getNumArguments(); ++i) {
    if (auto at = viewOfArgument.find(i); at != viewOfArgument.end()) {
      View &view = views_[at->second];
      Buffer &buffer = buffers_[view.buffer];
      words_.push_back(
          reinterpret_cast<int64_t>(buffer.memory->payload() + view.base * elementBytes(buffer.element)));
      words_.insert(words_.end(), view.sizes.begin(), view.sizes.end());
      words_.insert(words_.end(), view.strides.begin(), view.strides.end());
    } else {
      auto word = kernel.getArgAttrOfType<IntegerAttr>(i, wordAttr);
      words_.push_back(word ? word.getInt() : 0);
    }
  }
}

void Launch::reset() {
  for (Buffer &buffer : buffers_)
    std::memcpy(buffer.memory->begin(), buffer.initial.data(), buffer.initial.size());
}

Snapshot Launch::snapshot() const {
  Snapshot result;
  for (const Buffer &buffer : buffers_)
    result.emplace_back(buffer.memory->begin(), buffer.memory->begin() + buffer.memory->size());
  return result;
}

std::string Launch::place(size_t buffer, int64_t element) const {
  size_t guards = buffers_[buffer].memory->guard() / elementBytes(buffers_[buffer].element);
  int64_t inPayload = element - static_cast<int64_t>(guards);
  for (const View &view : views_) {
    if (view.buffer != buffer)
      continue;
    // Small views: look at every element.
    std::vector<int64_t> index(view.sizes.size(), 0);
    bool isEmpty = llvm::any_of(view.sizes, [](int64_t size) { return size <= 0; });
    while (!isEmpty) {
      int64_t at = view.base;
      for (size_t d = 0; d < index.size(); ++d)
        at += index[d] * view.strides[d];
      if (at == inPayload) {
        std::string text = "argument " + std::to_string(view.argument) + " element (";
        for (size_t d = 0; d < index.size(); ++d)
          text += (d ? ", " : "") + std::to_string(index[d]);
        return text + ")";
      }
      size_t d = index.size();
      while (d-- > 0 && ++index[d] == view.sizes[d])
        index[d] = 0;
      if (d == static_cast<size_t>(-1))
        break;
    }
  }
  return "memory outside every view, element " + std::to_string(inPayload) + " of buffer " + std::to_string(buffer);
}

std::optional<std::string> Launch::difference(const Snapshot &expected, bool zeroSigns) const {
  for (auto [i, buffer] : llvm::enumerate(buffers_)) {
    const char *got = buffer.memory->begin(), *want = expected[i].data();
    if (!std::memcmp(got, want, buffer.memory->size()))
      continue;
    size_t bytes = elementBytes(buffer.element);
    bool isFloat = llvm::isa<FloatType>(buffer.element);
    for (size_t at = 0; at < buffer.memory->size(); at += bytes) {
      uint64_t a = 0, b = 0;
      std::memcpy(&a, got + at, bytes);
      std::memcpy(&b, want + at, bytes);
      if (a == b)
        continue;
      double x = isFloat ? decode(a, buffer.element) : 0, y = isFloat ? decode(b, buffer.element) : 0;
      if (isFloat && ((std::isnan(x) && std::isnan(y)) || (zeroSigns && x == y)))
        continue;
      std::string text;
      llvm::raw_string_ostream stream(text);
      stream << place(i, static_cast<int64_t>(at / bytes)) << ": got " << llvm::format_hex(a, 2 * bytes + 2);
      if (isFloat)
        stream << " (" << llvm::format("%.9g", x) << ")";
      stream << ", expected " << llvm::format_hex(b, 2 * bytes + 2);
      if (isFloat)
        stream << " (" << llvm::format("%.9g", y) << ")";
      return stream.str();
    }
  }
  return std::nullopt;
}

} // namespace tenon::fuzz
