// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/kernels/Problems.h"

#include <algorithm>

/// Tile sizes for a CPU, where a tile lives in the caches of a core and not in the registers of a block: what suits a
/// GPU is too small, because every instance packs its operands anew. docs/cpu.md says how these were found.
namespace tenon::zoo {

/// `most`, or the largest smaller number that divides the extent into as many equal parts: no part is then at an edge,
/// where an operand is copied twice.
inline int64_t evenTile(int64_t extent, int64_t most) {
  int64_t parts = std::max<int64_t>((extent + most - 1) / most, 1);
  return extent % parts == 0 ? std::max<int64_t>(extent / parts, 1) : most;
}

/// The tile of c and what is packed of a and b for it fill most of an L2 cache of 1 MiB: 256 x 256 and 1 KiB of K.
inline Params matmulCpuTiles(int64_t m, int64_t n, int64_t k, DType dtype) {
  if (m <= 4) // nothing is packed: long rows of b, read as they come
    return {{"bm", std::max<int64_t>(m, 1)}, {"bn", 1024}, {"bk", 128}};
  // f16 and f8 are packed as f32.
  int64_t size = dtype == bf16 || isInteger(dtype) || dtype == f64 ? static_cast<int64_t>(sizeOf(dtype)) : 4;
  return {{"bm", evenTile(m, 256)}, {"bn", evenTile(n, 256)}, {"bk", evenTile(k, 1024 / size)}};
}

/// Many queries share a block of packed keys and values. Causal: half of a tile on the diagonal is computed for
/// nothing, so there they are few where the sequence is short.
inline Params attentionCpuTiles(int64_t queries, int64_t keys, int64_t dim, bool causal) {
  int64_t rows = causal ? std::clamp<int64_t>(queries / 16, 64, 256) : 256;
  int64_t columns = causal ? std::min<int64_t>(rows, 128) : 256;
  auto atMost = [](int64_t tile, int64_t extent) { return std::min(tile, std::max<int64_t>(roundUp(extent, 16), 16)); };
  return {{"bm", atMost(rows, queries)},
          {"bn", atMost(columns, keys)},
          {"dim", std::max<int64_t>(roundUp(dim, 16), 16)}};
}

} // namespace tenon::zoo
