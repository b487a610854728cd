// SPDX-License-Identifier: Apache-2.0
#include "Format.h"

#include "Terminal.h"

#include <fmt/format.h>

namespace tenon::tool {
namespace {

/// Three digits that count.
std::string threeDigits(double value) {
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

} // namespace

std::string secondsText(double seconds) {
  struct Unit {
    double size;
    const char *name;
  };
  for (Unit unit : {Unit{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}})
    if (seconds >= unit.size)
      return threeDigits(seconds / unit.size) + " " + unit.name;
  return threeDigits(seconds / 1e-9) + " ns";
}

std::string secondsText(const Estimate &seconds) {
  double percent = seconds.spread() * 100;
  return secondsText(seconds.median) + (standardOutput().unicode ? " ±" : " +-") +
         (percent < 10 ? fmt::format("{:.1f}%", percent) : fmt::format("{:.0f}%", percent));
}

std::string bytesText(double bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  return unit ? fmt::format("{:.1f} {}", bytes, units[unit]) : fmt::format("{:.0f} B", bytes);
}

std::string shapeText(std::span<const int64_t> shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

std::string paramsText(const Params &params) {
  std::string text;
  for (const auto &[name, value] : params)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

std::string joined(const std::vector<std::string> &items, const char *separator) {
  return fmt::format("{}", fmt::join(items, separator));
}

std::string dtypesText(std::span<const DType> types) {
  std::vector<std::string> names;
  for (DType type : types)
    names.emplace_back(nameOf(type));
  return joined(names);
}

std::string rateText(double flops, double bytes, double seconds) {
  if (seconds <= 0)
    return "";
  // Above this, no CPU is waiting for memory.
  constexpr double manyPerByte = 16;
  if (bytes > 0 && flops / bytes < manyPerByte)
    return threeDigits(bytes / seconds / 1e9) + " GB/s";
  return threeDigits(flops / seconds / 1e9) + " GFLOP/s";
}

} // namespace tenon::tool
