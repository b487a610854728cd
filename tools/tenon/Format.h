// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/measure/Bench.h"

#include <span>
#include <string>
#include <vector>

/// Numbers and lists as people read them.
namespace tenon::tool {

std::string secondsText(double seconds);                    ///< "1.23 ms"
std::string secondsText(const Estimate &seconds);           ///< "1.23 ms ±0.8%" ("+-" where the locale is not UTF-8)
std::string bytesText(double bytes);                        ///< "32.0 MiB"
std::string shapeText(std::span<const int64_t> shape);      ///< "128x512"
std::string paramsText(const Params &params);               ///< "cols=512 rows=8"
std::string joined(const std::vector<std::string> &items, const char *separator = ", ");
std::string dtypesText(std::span<const DType> types);       ///< "f32, f16"
/// Work per second in its own unit: GB/s, or GFLOP/s where each byte is used often.
std::string rateText(double flops, double bytes, double seconds);

} // namespace tenon::tool
