// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tenon::zoo {

/// The four words of Philox4x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) for a 64-bit
/// key and the lower half of a counter whose upper half is zero.
inline std::array<uint32_t, 4> philoxWords(uint64_t key, uint64_t counter, int rounds = 10) {
  auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32), c2 = 0, c3 = 0;
  for (int round = 0; round < rounds; ++round) {
    uint64_t product0 = uint64_t(0xD2511F53) * c0, product1 = uint64_t(0xCD9E8D57) * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c3 = static_cast<uint32_t>(product0);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

/// The sixteen numbers of 16 bits that a block of the generator makes: the upper byte of each is one of the block's 16
/// bytes, the lower byte the exclusive or of two others (see tile.random_bits).
inline std::array<uint16_t, 16> randomHalves(const std::array<uint32_t, 4> &words) {
  std::array<uint16_t, 16> numbers{};
  for (unsigned i = 0; i < 4; ++i) {
    uint32_t h = words[i / 2] >> 16 * (i % 2), g = words[2 + i / 2] >> 16 * (i % 2); // the upper halves do not matter
    uint32_t h0 = h & 0xff, h1 = h >> 8 & 0xff, g0 = g & 0xff, g1 = g >> 8 & 0xff;
    numbers[i] = static_cast<uint16_t>(h1 << 8 | (h0 ^ g0));
    numbers[4 + i] = static_cast<uint16_t>(g1 << 8 | (g0 ^ h1));
    numbers[8 + i] = static_cast<uint16_t>(h0 << 8 | (h1 ^ g1));
    numbers[12 + i] = static_cast<uint16_t>(g0 << 8 | (g1 ^ h0));
  }
  return numbers;
}

/// The random bits of the element at a position: 32 and 16 of them.
inline uint32_t randomWord(uint64_t seed, uint64_t position) { return philoxWords(seed, position / 4)[position % 4]; }
inline uint32_t randomHalf(uint64_t seed, uint64_t position, int rounds) {
  uint64_t block = position / 64 * 4 + position / 8 % 4;
  return randomHalves(philoxWords(seed, block, rounds))[position / 32 % 2 * 8 + position % 8];
}

/// What 16 random bits must be less than for an element to be dropped: all of them are where the probability is 1.
inline uint32_t dropLimit(double probability) {
  auto share = static_cast<float>(probability);
  if (share >= 1)
    return 65536;
  return static_cast<uint32_t>(std::clamp(std::floor(share * 65536 + 0.5f), 0.0f, 65535.0f));
}

template <class T> void dropoutReference(Arguments &arguments) {
  std::vector<T> values = valuesOf<T>(arguments[0].tensor());
  double probability = std::get<double>(arguments[2].value());
  auto seed = static_cast<uint64_t>(std::get<int64_t>(arguments[3].value()));
  for (size_t i = 0; i < values.size(); ++i) {
    bool keep = randomHalf(seed, i, 7) >= dropLimit(probability);
    T scale = probability < 1 ? static_cast<T>(1 / (1 - probability)) : T(0);
    values[i] = keep ? values[i] * scale : T(0);
  }
  setValues(arguments[1].tensor(), values);
}

} // namespace tenon::zoo
