// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/FloatFormats.h"
#include "tenon/base/SimThread.h"
#include "tenon/runtime/sim/Calls.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tenon::sim {

/// The exact function, rounded once. The hardware's value is within 2 ulp of it (tanh: 2^-11).
float approx(Thread *, uint32_t, int32_t function, float value) {
  auto evaluate = [&](long double x) -> long double {
    switch (ApproxFunction(function)) {
    case ApproxFunction::ex2: return std::exp2(x);
    case ApproxFunction::rcp: return 1 / x;
    case ApproxFunction::rsqrt: return 1 / std::sqrt(x);
    case ApproxFunction::lg2: return std::log2(x);
    case ApproxFunction::tanh: return std::tanh(x);
    }
    return x;
  };
  auto result = static_cast<float>(evaluate(value));
  return std::isnan(result) ? std::bit_cast<float>(0x7fffffff) : result;
}

int32_t pack(Thread *, uint32_t, int32_t type, float low, float high) {
  auto narrow = [&](float value) -> uint32_t {
    if (std::isnan(value))
      return 0x7fff;
    return OperandType(type) == OperandType::f16 ? f64ToF16(value) : f64ToBF16(value);
  };
  return static_cast<int32_t>(narrow(low) | narrow(high) << 16);
}

int32_t permuteBytes(Thread *, uint32_t, uint32_t low, uint32_t high, uint32_t selector) {
  uint64_t bytes = uint64_t(high) << 32 | low;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    uint32_t which = selector >> 4 * i & 0xf, byte = bytes >> 8 * (which & 7) & 0xff;
    if (which & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return static_cast<int32_t>(result);
}

} // namespace tenon::sim
