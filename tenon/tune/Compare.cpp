// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Compare.h"

#include "tenon/base/Error.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::tuning {
namespace {

/// Program instance i walks over its own stretch and leaves one number: nothing to zero, no atomics.
Index stretchOf(const View &a, const View &found, Param cols) {
  return cdiv(cdiv(a.size(0), cols), found.size(0)) * cols;
}

const Kernel differentBytes("different_bytes(a, b, found, cols=4096)", [](View a, View b, View found, Param cols) {
  require(a.size(0) == b.size(0), "a and b must have as many bytes");
  Index i = grid(found.size(0)), each = stretchOf(a, found, cols);
  Tile count = zeros(f32, {1});
  for (Index at : range(i * each, minimum((i + 1) * each, a.size(0)), cols))
    count = count + sum(where(a.load({at}, {cols}) == b.load({at}, {cols}), zeros(f32, {cols}), 1), 0);
  found.store({i}, count);
});

const Kernel apart("apart(a, b, found, relative, cols=2048)",
                   [](View a, View b, View found, Scalar relative, Param cols) {
  require(a.size(0) == b.size(0), "a and b must have as many elements");
  Index i = grid(found.size(0)), each = stretchOf(a, found, cols);
  DType compute = a.dtype() == f64 ? f64 : f32;
  Tile most = zeros(compute, {1});
  for (Index at : range(i * each, minimum((i + 1) * each, a.size(0)), cols)) {
    Tile x = a.load({at}, {cols}).to(compute), y = b.load({at}, {cols}).to(compute);
    Tile distance = abs(x - y) - abs(y) * relative;
    // Two that are not numbers are alike; one of them, or an infinity less anything, is as far apart as can be.
    Tile isFar = (distance != distance) & ((x == x) | (y == y));
    Tile known = where(x == y, zeros(compute, {cols}), where(isFar, inf, distance));
    most = maximum(most, max(where(known == known, known, 0), 0));
  }
  found.store({i}, most.to(f32));
});

constexpr int64_t programs = 1024;

std::optional<std::vector<float>> foundBy(const Kernel &kernel, Arguments arguments, const LaunchOptions &options) {
  Tensor found = Tensor::empty(f32, {programs}, arguments[0].tensor().device());
  found.fillBytes(0xff);
  arguments.insert(arguments.begin() + 2, found);
  launch(kernel, arguments, options);
  std::vector<float> values = valuesOf<float>(found.to(Device::cpu()));
  if (std::any_of(values.begin(), values.end(), [](float value) { return std::isnan(value); }))
    return std::nullopt;
  return values;
}

LaunchOptions onDeviceOf(const Tensor &tensor) {
  LaunchOptions options;
  options.target = Target::cuda;
  options.compile.device = tensor.device().ordinal;
  return options;
}

} // namespace

std::optional<double> differentBytesBy(const LaunchOptions &options, const Tensor &a, const Tensor &b) {
  auto counts = foundBy(differentBytes, {a, b}, options);
  if (!counts)
    return std::nullopt;
  double total = 0;
  for (float count : *counts)
    total += count;
  return total;
}

std::optional<double> mostApartBy(const LaunchOptions &options, const Tensor &a, const Tensor &b, double relative) {
  auto each = foundBy(apart, {a, b, relative}, options);
  if (!each)
    return std::nullopt;
  return *std::max_element(each->begin(), each->end());
}

std::optional<size_t> firstDifferentByte(const Tensor &a, const Tensor &b) {
  if (a.elements() == 0)
    return std::nullopt;
  if (a.device().isCuda()) {
    if (differentBytesBy(onDeviceOf(a), a, b) == 0.0)
      return std::nullopt;
    return firstDifferentByte(a.to(Device::cpu()), b.to(Device::cpu()));
  }
  const auto *one = static_cast<const std::byte *>(a.data()), *other = static_cast<const std::byte *>(b.data());
  auto [at, ignored] = std::mismatch(one, one + a.elements(), other);
  if (at == one + a.elements())
    return std::nullopt;
  return static_cast<size_t>(at - one);
}

double mostApart(const Tensor &a, const Tensor &b, double relative) {
  if (a.elements() == 0)
    return 0;
  if (a.device().isCuda()) {
    if (auto found = mostApartBy(onDeviceOf(a), a, b, relative))
      return *found;
    return mostApart(a.to(Device::cpu()), b.to(Device::cpu()), relative);
  }
  std::vector<double> x = valuesOf<double>(a), y = valuesOf<double>(b);
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])))
      continue;
    double distance = std::abs(x[i] - y[i]) - relative * std::abs(y[i]);
    most = std::max(most, std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance);
  }
  return most;
}

} // namespace tenon::tuning
