// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

/// What device_print and device_assert say, the same on every target.
namespace tenon {

/// "(1, 2, 3)"
std::string tupleText(std::span<const int64_t> values);

/// The shortest text that reads back as the same value; "nan" whatever its sign, which means nothing.
std::string numberText(float value);
std::string numberText(double value);

/// Nested brackets, row-major, with "..." in place of what comes after the first 64 elements. A scalar (no dimensions) is
/// its element alone.
std::string tileText(std::span<const int64_t> shape, const std::function<std::string(int64_t)> &element);

/// "assertion failed: message (file:line, program (i, j, k), element (m, n))"; the element is left out for a scalar.
std::string assertionText(const std::string &message, const std::string &place, std::span<const int64_t> program,
                          std::span<const int64_t> element);

} // namespace tenon
