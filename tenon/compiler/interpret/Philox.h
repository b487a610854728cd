// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace tenon::interpret {

/// Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): ten rounds
/// that scramble a 128-bit counter under a 64-bit key, or fewer. Words in the order of the paper, lowest first.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key, int rounds = 10);

} // namespace tenon::interpret
