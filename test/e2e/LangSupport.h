// SPDX-License-Identifier: Apache-2.0
//
// Shared by the end-to-end tests of the language: every test runs the same kernel, unchanged, on every target.
#pragma once

#include "tenon/base/FloatFormats.h"
#include "tenon/jit/Jit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace tenon::test {

class OnTarget : public testing::TestWithParam<Target> {
protected:
  LaunchOptions options(Params params = {}) const {
    LaunchOptions o;
    o.target = GetParam();
    o.params = std::move(params);
    return o;
  }
  void run(const Kernel &kernel, const Arguments &arguments, Params params = {}) const {
    launch(kernel, arguments, options(std::move(params)));
  }
};

/// Where a kernel runs without a device. ctest runs the simulator's tests, those with "sim" in their names, apart.
inline constexpr Target everyTarget[] = {Target::cpu, Target::interpreter, Target::sim};

#define TENON_ON_EACH_TARGET(Suite)                                                                                    \
  INSTANTIATE_TEST_SUITE_P(Targets, Suite, testing::ValuesIn(everyTarget),                                             \
                           [](const auto &info) { return std::string(nameOf(info.param)); })

/// Calls visit(index) for every index of a shape, in row-major order.
inline void forEachIndex(std::span<const int64_t> sizes,
                         const std::function<void(const std::vector<int64_t> &)> &visit) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  std::vector<int64_t> index(sizes.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (size_t d = sizes.size(); d-- > 0; rest /= sizes[d])
      index[d] = rest % sizes[d];
    visit(index);
  }
}

/// The elements in row-major order.
inline std::vector<double> valuesOf(const Tensor &tensor) {
  std::vector<double> values;
  forEachIndex(tensor.sizes(), [&](const std::vector<int64_t> &i) { values.push_back(tensor.get(i)); });
  return values;
}
inline std::vector<int64_t> intsOf(const Tensor &tensor) {
  std::vector<int64_t> values;
  forEachIndex(tensor.sizes(), [&](const std::vector<int64_t> &i) { values.push_back(tensor.getInt(i)); });
  return values;
}

inline Tensor vectorOf(DType type, const std::vector<double> &values) {
  Tensor tensor = Tensor::empty(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    tensor.set({static_cast<int64_t>(i)}, values[i]);
  return tensor;
}

/// 0, 1, 2, ... in row-major order.
inline Tensor counting(DType type, IndexList sizes) {
  Tensor tensor = Tensor::empty(type, sizes);
  double next = 0;
  forEachIndex(tensor.sizes(), [&](const std::vector<int64_t> &i) { tensor.set(i, next++); });
  return tensor;
}

/// Equal as values: NaN equals NaN, and the zeros differ.
inline bool identical(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

/// A number as an element of the type would hold it.
inline double rounded(DType type, double value) {
  switch (type) {
  case DType::f64: return value;
  case DType::f32: return static_cast<float>(value);
  case DType::f16: return f16ToF32(f64ToF16(value));
  case DType::bf16: return bf16ToF32(f64ToBF16(value));
  case DType::f8e4m3: return f8e4m3ToF32(f64ToF8e4m3(value));
  case DType::f8e5m2: return f8e5m2ToF32(f64ToF8e5m2(value));
  default: return value;
  }
}

using TileFunction = std::function<std::vector<Tile>(const std::vector<Tile> &)>;

/// Runs `function` once. Its arguments are the rows of x (inputs x n, each a tile of n elements); its results, tiles of
/// `width` elements of any shape, become the rows of the tensor returned.
inline Tensor compute(Target target, const Tensor &x, DType type, int64_t results, int64_t width,
                      const TileFunction &function) {
  int64_t inputs = x.size(0), n = x.size(1);
  Kernel kernel("compute(x, y)", [=](View in, View out) {
    std::vector<Tile> arguments;
    for (int64_t i = 0; i < inputs; ++i)
      arguments.push_back(reshape(in.load({i, 0}, {1, n}), {n}));
    int64_t row = 0;
    for (const Tile &tile : function(arguments))
      out.store({row++, 0}, reshape(tile, {1, width}));
  });
  Tensor y = Tensor::empty(type, {results, width});
  y.fillBytes(0xff);
  LaunchOptions options;
  options.target = target;
  launch(kernel, {x, y}, options);
  return y;
}

/// What `function` throws as an Error, or a remark that it threw nothing.
template <class Function> std::string errorOf(Function function) {
  try {
    function();
  } catch (const Error &error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

/// The error text has all the parts.
inline void expectParts(const std::string &text, std::initializer_list<std::string> parts) {
  for (const std::string &part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

} // namespace tenon::test
