// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/TileText.h"

#include <charconv>
#include <cmath>

namespace tenon {
namespace {

constexpr int64_t maxPrinted = 64;

template <class T> std::string shortest(T value) {
  if (std::isnan(value))
    return "nan";
  char buffer[64];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

/// Appends dimension `dim` and those below it, starting at element `next`; false when the rest is left out.
bool append(std::string &text, std::span<const int64_t> shape, size_t dim,
            const std::function<std::string(int64_t)> &element, int64_t &next) {
  if (next >= maxPrinted) { // no bracket without an element in it
    text += "...";
    return false;
  }
  if (dim == shape.size()) {
    text += element(next++);
    return true;
  }
  text += "[";
  bool isComplete = true;
  for (int64_t i = 0; i < shape[dim] && isComplete; ++i) {
    text += i == 0 ? "" : ", ";
    isComplete = append(text, shape, dim + 1, element, next);
  }
  text += "]";
  return isComplete;
}

} // namespace

std::string tupleText(std::span<const int64_t> values) {
  std::string text = "(";
  for (int64_t value : values)
    text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + ")";
}

std::string numberText(float value) { return shortest(value); }
std::string numberText(double value) { return shortest(value); }

std::string tileText(std::span<const int64_t> shape, const std::function<std::string(int64_t)> &element) {
  std::string text;
  int64_t next = 0;
  append(text, shape, 0, element, next);
  return text;
}

std::string assertionText(const std::string &message, const std::string &place, std::span<const int64_t> program,
                          std::span<const int64_t> element) {
  std::string text = "assertion failed: " + message + " (" + place + ", program " + tupleText(program);
  if (!element.empty())
    text += ", element " + tupleText(element);
  return text + ")";
}

} // namespace tenon
