// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Products of f32 and f16 on a processor with AMX: in pieces of bf16, or by vectors (compiler/target/cpu/DotPieces.cpp).
namespace tenon {

/// For a product of f32 six of pieces are made, for one of f16 four, where `allow_tf32` three.
constexpr int productsOfF32Pieces = 6, productsOfTf32Pieces = 3, productsOfF16Pieces = 4;

/// Whether a dot of m x k by k x n is faster in pieces: taking an element apart costs as much as some products, so there
/// have to be rows and columns that share it. As measured on an Emerald Rapids whose elements come from L2 or L3 and whose
/// other thread has its share of the tiles. The code generator decides by this, and tile sizes are chosen with it in mind.
inline bool arePiecesFaster(int64_t m, int64_t n, int64_t k, int products) {
  constexpr double cyclesToTakeApart = 1, cyclesToPack = 0.1; // an element
  constexpr double vectorsInCycle = 30, tilesInCycle = 300;   // products of f32; of bf16
  auto whole = [](int64_t extent, int64_t step) { return static_cast<double>((extent + step - 1) / step * step); };
  if (k <= 0)
    return false;
  // For each element of K.
  double elements = static_cast<double>(m + n), ofVectors = static_cast<double>(m * n);
  double ofTiles = products * whole(m, 16) * whole(n, 16) * whole(k, 32) / static_cast<double>(k);
  return elements * cyclesToTakeApart + ofTiles / tilesInCycle < elements * cyclesToPack + ofVectors / vectorsInCycle;
}

} // namespace tenon
