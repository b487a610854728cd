// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/base/PiecesCost.h"
#include "tenon/kernels/Problems.h"

#include <algorithm>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/// Tile sizes for a CPU, where a tile lives in the caches of a core and not in the registers of a block: what suits a
/// GPU is too small, because every instance packs its operands anew. docs/cpu-learned.md says how these were found.
namespace tenon::zoo {

/// `most`, or the largest smaller number that divides the extent into as many equal parts: no part is then at an edge,
/// where an operand is copied twice.
inline int64_t evenTile(int64_t extent, int64_t most) {
  int64_t parts = std::max<int64_t>((extent + most - 1) / most, 1);
  return extent % parts == 0 ? std::max<int64_t>(extent / parts, 1) : most;
}

/// The extents of tiles that cut `extent` into some number of parts, largest first: multiples of what a block of
/// registers holds, and equal ones where that is possible.
inline std::vector<int64_t> tileExtents(int64_t extent, int64_t most, int64_t multiple) {
  std::vector<int64_t> found;
  auto add = [&](int64_t tile) {
    if (found.empty() || tile < found.back())
      found.push_back(tile);
  };
  for (int64_t parts = (extent + most - 1) / most; found.empty() || found.back() > multiple; ++parts) {
    int64_t even = (extent + parts - 1) / parts;
    if (parts > 1)
      add(std::min(roundUp(even, multiple), most));
    if (extent % parts == 0)
      add(even);
  }
  return found;
}

/// Whether this processor has AMX, which multiplies so fast that packing counts.
inline bool hasMatrixTiles() {
#if defined(__x86_64__)
  static const bool has = [] { // asked once: a virtual machine traps the question
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned bf16AndTilesAndInt8 = 0b1101u << 22;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & bf16AndTilesAndInt8) == bf16AndTilesAndInt8;
  }();
  return has;
#else
  return false;
#endif
}

/// The tile of c and what is packed of a and b for it fit an L2 cache of 1 MiB: 256 x 256 and up to 512 bytes of K.
/// Smaller ones where there would not be enough of them, or a few too many, for the threads.
inline Params matmulCpuTiles(int64_t m, int64_t n, int64_t k, DType dtype, int threads,
                             bool matrixTiles = hasMatrixTiles()) {
  if (m <= 4) // nothing is packed: long rows of b, read as they come
    return {{"bm", std::max<int64_t>(m, 1)},
            {"bn", std::clamp<int64_t>(roundUp((n + threads - 1) / threads, 64), 128, threads > 1 ? 1024 : 4096)},
            {"bk", 128}};
  // f16 is packed as f32; f8 as bf16 where there are instructions for that, but sizes are those for f32.
  int64_t size = dtype == bf16 || isInteger(dtype) || dtype == f64 ? static_cast<int64_t>(sizeOf(dtype)) : 4;
  // What the register block reads of b, and 32 rows of a and 32 columns of b for tiles of AMX, should be in L1.
  constexpr int64_t depth = 512;
  // Packing a row of a, or a column of b, takes as long as so many products for each of its elements.
  constexpr double packing = 16;
  double least = 0;
  int64_t bk = evenTile(k, depth / size);
  if (k % bk && k * size <= 2048)
    bk = k; // rather a long step than an edge
  // A thread goes through the tiles of a column of them in order, and what AMX's tiles have packed of b for all of K
  // stays (up to 1 MiB); few rows are then best, whose sums stay near. Where K is longer, one thread takes long steps.
  // Vectors pack b for every tile, so that few rows would only be more packing.
  if (matrixTiles && size < 4 && m > 64) {
    if (k * size <= 4096) {
      int64_t rows = std::min<int64_t>(roundUp(m, 32), k * size > depth ? 128 : 256);
      int64_t columns = std::clamp<int64_t>(roundUp(n, 32), 32, 256);
      auto areEnough = [&] {
        return threads == 1 || (m + rows - 1) / rows * ((n + columns - 1) / columns) >= 4 * threads;
      };
      while (rows > 64 && !areEnough())
        rows = roundUp(rows / 2, 32);
      if (areEnough())
        return {{"bm", rows}, {"bn", columns}, {"bk", std::max<int64_t>(k, 1)}};
    }
    if (threads == 1)
      bk = evenTile(k, 4 * depth / size);
  }
  // Where there are few rows, most of the time goes into reading b, and pieces of its rows should be long: 1 KiB, as
  // long as what is packed of it is no more than half of a cache of 1 MiB.
  int64_t packed = (512 << 10) / (bk * size) / 64 * 64;
  int64_t most = m > 64 ? 256 : std::clamp<int64_t>(std::min<int64_t>(packed, 1024 / size), 256, 1024);
  // Of vectors, the last columns take a whole one; of tiles, a block of 32 x 32 that is not all there is copied.
  auto taken = [&](int64_t extent, int64_t part) {
    return size < 4 ? extent / 32 * 32 + (extent % 32 ? 48 : 0) : roundUp(extent, part);
  };
  // f32 and f16 beside AMX: tiles whose operands are taken apart, which costs as much as some products for each element.
  // What stays of a tile and of b is to be no more than 1 MiB; on one thread, which has all of its core's L2, 2 MiB.
  bool mayBeInPieces = matrixTiles && (dtype == f32 || dtype == f16) && m > 64, isInPieces = false;
  constexpr double takingApart = 43;
  int piecesOfProduct = dtype == f16 ? productsOfF16Pieces : productsOfF32Pieces;
  double ofPieces = 0.1 * piecesOfProduct; // of what a product of vectors takes
  int64_t depthOfPieces = evenTile(k, 256), bytesOfPieces = dtype == f16 ? 4 : 6;
  constexpr int64_t shortDepth = 128; // there the result is most of the work, and should be near
  int64_t mostOfPieces = mayBeInPieces && k > shortDepth ? 512 : 256;
  int64_t bm = 0, bn = 0;
  for (int64_t rows : tileExtents(m, mostOfPieces, 16))
    for (int64_t columns : tileExtents(std::max<int64_t>(n, 1), std::max(most, mostOfPieces), 32)) {
      int64_t down = (m + rows - 1) / rows, across = (n + columns - 1) / columns;
      int64_t instances = std::max<int64_t>(down * across, 1);
      // Each thread has so many tiles, and then some wait for the slowest: threads that share a core, or have a
      // processor that others use too, are not equally fast.
      auto rounds = [&](double waits) {
        return std::max<double>((instances + threads - 1) / threads, static_cast<double>(instances) / threads + waits);
      };
      double products = static_cast<double>(down * taken(rows, 1)) * static_cast<double>(across * taken(columns, 16));
      double lines = 1 + 64.0 / static_cast<double>(columns * size); // a row of b begins and ends within a cache line
      double packed = static_cast<double>(m) * across + static_cast<double>(n) * down * lines;
      double work = (products + packing * packed) * rounds(threads > 1 ? 0.5 : 0);
      bool isLarge = columns * (rows * 4 + depthOfPieces * bytesOfPieces) > (threads > 1 ? 1 << 20 : 2 << 20);
      // On 16 threads, two on a core, it depends on the other one even more how long a tile takes.
      double waits = threads > 2 ? 1 : threads > 1 ? 0.5 : 0;
      bool areFaster =
          mayBeInPieces && !isLarge && arePiecesFaster(rows, columns, depthOfPieces, piecesOfProduct);
      if (areFaster)
        work = (ofPieces * products + takingApart * packed) * rounds(waits);
      else if (rows > 256 || columns > most)
        continue;
      double cost = work / static_cast<double>(instances);
      if (m % rows || n % columns)
        cost *= 1.05; // at an edge an operand is copied twice
      if (bm == 0 || cost < least) {
        least = cost;
        bm = rows;
        bn = columns;
        isInPieces = areFaster;
      }
    }
  return {{"bm", bm}, {"bn", bn}, {"bk", isInPieces ? depthOfPieces : bk}};
}

/// Whether this processor is a Zen 5, which works on several rows at a time (compiler/target/cpu/Isa.h, `overlapsRows`)
/// from 1024 elements on.
inline bool overlapsLongRows() {
#if defined(__x86_64__)
  static const bool does = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned ofAuthenticAMD = 0x444d4163; // the last four letters
    if (!__get_cpuid(0, &a, &b, &c, &d) || c != ofAuthenticAMD || !__get_cpuid(1, &a, &b, &c, &d))
      return false;
    unsigned family = (a >> 8 & 15) + (a >> 20 & 255);
    return family == 26;
  }();
  return does;
#else
  return false;
#endif
}

/// Tiles that span the row: one row each where several of them are then worked on at a time.
inline Params fullRowCpuTiles(int64_t cols, bool overlaps = overlapsLongRows()) {
  Params tiles = fullRowTiles(cols);
  if (overlaps && cols >= 1024 && tiles["cols"] == cols)
    tiles["rows"] = 1;
  return tiles;
}

/// Many queries share a block of packed keys and values, of which there are 512 bytes along the second product's K, as
/// in a matmul; on one thread, with heads of up to 64, twice as many, which pack half as often. Causal: half of a tile
/// on the diagonal is computed for nothing, so there they are few where the sequence is short, though more beside AMX,
/// where packing, or taking f32 apart, weighs more; and fewer where there are not enough of them (in all the `heads` of
/// the batch) for the threads.
inline Params attentionCpuTiles(int64_t queries, int64_t keys, int64_t dim, DType dtype, bool causal, int64_t heads,
                                int threads, bool matrixTiles = hasMatrixTiles()) {
  bool isFast = dtype == bf16, isInPieces = matrixTiles && (dtype == f32 || dtype == f16);
  int64_t rows = threads == 1 && !isFast && dim <= 64 ? 512 : 256;
  if (causal)
    rows = std::clamp<int64_t>(queries / (isFast || isInPieces ? 8 : 16), 128, 256);
  while (rows > 64 && heads * ((queries + rows - 1) / rows) < 4 * threads)
    rows /= 2;
  constexpr int64_t rowsOfPieces = 256; // fewer are multiplied by vectors
  int64_t columns = isFast || (isInPieces && rows >= rowsOfPieces) ? 256 : 128;
  if (causal)
    columns = std::min({columns, rows, std::max<int64_t>(queries / (isInPieces ? 8 : 16), 128)});
  auto atMost = [](int64_t tile, int64_t extent) { return std::min(tile, std::max<int64_t>(roundUp(extent, 16), 16)); };
  return {{"bm", atMost(rows, queries)},
          {"bn", atMost(columns, keys)},
          {"dim", std::max<int64_t>(roundUp(dim, 16), 16)},
          // Causal, with few heads for a thread: the longest blocks of all heads first.
          {"by_head", !causal || heads >= 4 * threads},
          {"scaled", dtype == f32 || dtype == f64}};
}

} // namespace tenon::zoo
