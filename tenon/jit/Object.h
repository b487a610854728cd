// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/CpuTarget.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

/// A compiled kernel as bytes: its info and its code in one blob, so that they cannot come from different
/// compilations. The disk cache checks integrity; decoding still trusts nothing.
namespace tenon::jit {

struct Object {
  lower::KernelInfo info;
  std::span<const char> code;   ///< for the host; inside the bytes it was decoded from
  std::span<const char> device; ///< for the GPU or the simulator of one; likewise
};

std::vector<std::byte> encodeObject(const lower::KernelInfo &info, std::span<const char> code,
                                    std::span<const char> device = {});
std::optional<Object> decodeObject(std::span<const std::byte> bytes);

} // namespace tenon::jit
