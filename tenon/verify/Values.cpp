// SPDX-License-Identifier: Apache-2.0
#include "tenon/verify/Values.h"

#include "tenon/base/Error.h"
#include "tenon/base/FloatFormats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tenon {
namespace {

template <class T> T load(const void *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T> void store(void *to, T value) { std::memcpy(to, &value, sizeof value); }

int64_t readInteger(DType type, const void *from) {
  switch (type) {
  case DType::i64: case DType::u64: return load<int64_t>(from);
  case DType::i32: return load<int32_t>(from);
  case DType::i16: return load<int16_t>(from);
  case DType::i8: return load<int8_t>(from);
  case DType::u32: return load<uint32_t>(from);
  case DType::u16: return load<uint16_t>(from);
  case DType::u8: return load<uint8_t>(from);
  default: return load<uint8_t>(from) != 0;
  }
}

/// Integers wrap, as they do in a kernel.
void writeInteger(DType type, void *to, int64_t value) {
  switch (sizeOf(type)) {
  case 8: return store(to, value);
  case 4: return store(to, static_cast<uint32_t>(value));
  case 2: return store(to, static_cast<uint16_t>(value));
  default: return store(to, type == DType::boolean ? static_cast<uint8_t>(value != 0) : static_cast<uint8_t>(value));
  }
}

/// Explicit mantissa bits, and the exponent of the smallest normal number.
struct Format {
  int bits, minExponent;
};
Format formatOf(DType type) {
  switch (type) {
  case DType::f64: return {52, -1022};
  case DType::f32: return {23, -126};
  case DType::f16: return {10, -14};
  case DType::bf16: return {7, -126};
  case DType::f8e4m3: return {3, -6};
  default: return {2, -14};
  }
}

} // namespace

double readFloat(DType type, const void *from) {
  switch (type) {
  case DType::f64: return load<double>(from);
  case DType::f32: return load<float>(from);
  case DType::f16: return f16ToF32(load<uint16_t>(from));
  case DType::bf16: return bf16ToF32(load<uint16_t>(from));
  case DType::f8e4m3: return f8e4m3ToF32(load<uint8_t>(from));
  default: return f8e5m2ToF32(load<uint8_t>(from));
  }
}

void writeFloat(DType type, void *to, double value) {
  switch (type) {
  case DType::f64: return store(to, value);
  case DType::f32: return store(to, static_cast<float>(value));
  case DType::f16: return store(to, f64ToF16(value));
  case DType::bf16: return store(to, f64ToBF16(value));
  case DType::f8e4m3: return store(to, f64ToF8e4m3(value));
  default: return store(to, f64ToF8e5m2(value));
  }
}

double roundTo(DType type, double value) {
  std::byte bits[8];
  writeFloat(type, bits, value);
  return readFloat(type, bits);
}

double ulp(DType type, double value) {
  Format format = formatOf(type);
  int exponent = value == 0 ? format.minExponent : std::max(std::ilogb(value), format.minExponent);
  return std::ldexp(1.0, exponent - format.bits);
}

template <class T> std::vector<T> valuesOf(const Tensor &tensor) {
  tensor.checkInsideBuffer();
  DType type = tensor.dtype();
  if (std::is_integral_v<T> && isFloat(type))
    throw Error("tensor " + tensor.str() + " holds floating-point numbers and cannot be read as integers");
  std::vector<T> values(static_cast<size_t>(tensor.elements()));
  if (isFloat(type))
    forEachElement(tensor, [&](int64_t i, std::byte *from) { values[i] = static_cast<T>(readFloat(type, from)); });
  else
    forEachElement(tensor, [&](int64_t i, std::byte *from) { values[i] = static_cast<T>(readInteger(type, from)); });
  return values;
}

template <class T> void setValues(const Tensor &tensor, const std::vector<T> &values) {
  tensor.checkInsideBuffer();
  DType type = tensor.dtype();
  if (static_cast<int64_t>(values.size()) != tensor.elements())
    throw Error("tensor " + tensor.str() + " cannot take " + std::to_string(values.size()) + " values");
  if (isFloat(type))
    forEachElement(tensor, [&](int64_t i, std::byte *to) { writeFloat(type, to, static_cast<double>(values[i])); });
  else
    forEachElement(tensor, [&](int64_t i, std::byte *to) { writeInteger(type, to, static_cast<int64_t>(values[i])); });
}

template std::vector<float> valuesOf(const Tensor &);
template std::vector<double> valuesOf(const Tensor &);
template std::vector<long double> valuesOf(const Tensor &);
template std::vector<int64_t> valuesOf(const Tensor &);
template void setValues(const Tensor &, const std::vector<float> &);
template void setValues(const Tensor &, const std::vector<double> &);
template void setValues(const Tensor &, const std::vector<long double> &);
template void setValues(const Tensor &, const std::vector<int64_t> &);

Tensor convert(const Tensor &tensor, DType type) {
  tensor.checkInsideBuffer();
  Tensor result = Tensor::empty(type, tensor.sizes());
  auto *to = static_cast<std::byte *>(result.data());
  forEachElement(tensor, [&, from = tensor.dtype(), bytes = sizeOf(type)](int64_t i, std::byte *element) {
    writeFloat(type, to + i * bytes, readFloat(from, element));
  });
  return result;
}

std::string positionText(const Tensor &tensor, int64_t rowMajorIndex) {
  std::string text = "]";
  for (size_t d = tensor.sizes().size(); d-- > 0;) {
    text = (d ? ", " : "") + std::to_string(rowMajorIndex % tensor.sizes()[d]) + text;
    rowMajorIndex /= tensor.sizes()[d];
  }
  return "[" + text;
}

} // namespace tenon
