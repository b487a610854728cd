// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/layout/Fragments.h"

#include "tenon/base/Error.h"

#include <bit>

namespace tenon::nvidia {

namespace {

/// How many elements are in one 32-bit register.
int64_t elementsPerWord(unsigned elementBits) {
  if (elementBits != 8 && elementBits != 16 && elementBits != 32)
    throw InternalError("fragments have elements of 8, 16 or 32 bits, not " + std::to_string(elementBits));
  return 32 / elementBits;
}

LinearLayout along(Unit unit, int64_t size, unsigned dim) { return LinearLayout::identity1D(unit, size, dim, 2); }

/// The unit of all fragments, 8 x 4 registers of 32 bits over one warp: four lanes share a row (or, with rowDim 1, a
/// column), each with one register's elements.
LinearLayout coreMatrix(int64_t perWord, unsigned rowDim = 0) {
  return along(Unit::Register, perWord, 1 - rowDim) * along(Unit::Lane, 4, 1 - rowDim) * along(Unit::Lane, 8, rowDim);
}

} // namespace

//===--- Matrix instructions --------------------------------------------------------------------------------------===//

LinearLayout mmaAccumulator() { return coreMatrix(2).repeat(Unit::Register, 0, 2); }

LinearLayout plainAccumulator(int64_t rows, int64_t columns) {
  auto along = [](Unit unit, int64_t size, unsigned dim) { return LinearLayout::identity1D(unit, size, dim, 2); };
  int64_t vector = std::min<int64_t>(columns, 4), lanesAcross = std::min<int64_t>(columns / vector, 8);
  int64_t lanesDown = std::min(rows, 32 / lanesAcross);
  lanesAcross = std::min(columns / vector, 32 / lanesDown);
  return along(Unit::Register, vector, 1) * along(Unit::Lane, lanesAcross, 1) * along(Unit::Lane, lanesDown, 0) *
         LinearLayout::zeros1D(Unit::Lane, 32 / (lanesAcross * lanesDown), 2);
}

LinearLayout mmaOperandA(unsigned elementBits) {
  return coreMatrix(elementsPerWord(elementBits)).repeat(Unit::Register, 0, 2).repeat(Unit::Register, 1, 2);
}

LinearLayout mmaOperandB(unsigned elementBits) {
  return coreMatrix(elementsPerWord(elementBits), /*rowDim=*/1).repeat(Unit::Register, 0, 2);
}

LinearLayout wgmmaAccumulator(int64_t n) {
  if (n < 8 || n > 256 || n % 8)
    throw InternalError("wgmma has no accumulator of " + std::to_string(n) + " columns");
  return mmaAccumulator().repeat(Unit::Warp, 0, 4).repeat(Unit::Register, 1, std::bit_ceil(uint64_t(n)) / 8);
}

LinearLayout wgmmaOperandA(unsigned elementBits) { return mmaOperandA(elementBits).repeat(Unit::Warp, 0, 4); }

//===--- Shared memory --------------------------------------------------------------------------------------------===//

LinearLayout swizzledPanel(int64_t rows, unsigned swizzleBytes, unsigned elementBits) {
  if (swizzleBytes != 16 && swizzleBytes != 32 && swizzleBytes != 64 && swizzleBytes != 128)
    throw InternalError("there is no swizzle of " + std::to_string(swizzleBytes) + " bytes");
  int64_t perChunk = 4 * elementsPerWord(elementBits), columns = swizzleBytes / 16 * perChunk;
  std::vector<Coords> bases;
  for (int64_t column = 1; column < columns; column *= 2)
    bases.push_back({0, column});
  for (int64_t row = 1; row < rows; row *= 2) {
    // Address bits 7, 8, 9 move the chunk by 1, 2, 4, as far as a row has chunks.
    int64_t chunk = row * swizzleBytes / 128;
    bases.push_back({row, chunk < swizzleBytes / 16 ? chunk * perChunk : 0});
  }
  return LinearLayout({{Unit::Offset, bases}}, {rows, columns});
}

LinearLayout swizzledTile(int64_t rows, int64_t columns, unsigned swizzleBytes, unsigned elementBits) {
  LinearLayout panel = swizzledPanel(rows, swizzleBytes, elementBits);
  if (columns % panel.extent(1))
    throw InternalError("a tile of " + std::to_string(columns) + " columns is not made of whole panels");
  return panel.repeat(Unit::Offset, 1, columns / panel.extent(1));
}

//===--- ldmatrix and stmatrix ------------------------------------------------------------------------------------===//

MatrixMove matrixMove(const std::vector<unsigned> &arrangement, unsigned elementBits, bool transposed) {
  if (arrangement.size() > 2 || (transposed && elementBits != 16))
    throw InternalError("no such ldmatrix or stmatrix");
  int64_t perWord = elementsPerWord(elementBits);
  // A row address names the whole row: 4 * perWord columns, of which it is the first.
  LinearLayout rowOfLane({{Unit::Lane, {{1, 0}, {2, 0}, {4, 0}}}}, {8, 4 * perWord});
  LinearLayout registers = coreMatrix(perWord, transposed ? 1 : 0);
  for (unsigned dim : arrangement) {
    rowOfLane = rowOfLane.repeat(Unit::Lane, dim, 2);
    registers = registers.repeat(Unit::Register, dim, 2);
  }
  int64_t unusedLanes = 4 >> arrangement.size();
  return {rowOfLane * LinearLayout::zeros1D(Unit::Lane, unusedLanes, 2), registers};
}

} // namespace tenon::nvidia
