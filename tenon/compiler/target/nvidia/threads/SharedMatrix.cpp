// SPDX-License-Identifier: Apache-2.0
//
// Matrices in shared memory as OperandTile lays them out: written from the registers of a tile, filled up with zeros.
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {
namespace {

/// Whether every eight registers of a warp's threads are the four matrices of one stmatrix, those of a column below
/// each other first: lanes 4 i ... 4 i + 3 hold row i of each, two neighbours a lane.
bool isMadeOfMatrices(const Distribution &tile, int64_t rowDim, int64_t columnDim, int64_t elementBytes) {
  if (elementBytes != 2 || tile.registers() % 8)
    return false;
  for (const Distribution::ThreadBit &bit : tile.threadBits()) {
    if (bit.bit >= 5 && bit.dim >= 0 && bit.step % 16)
      return false;
    if (bit.bit < 2 && (bit.dim != columnDim || bit.step != 2 << bit.bit))
      return false;
    if (bit.bit >= 2 && bit.bit < 5 && (bit.dim != rowDim || bit.step != 1 << (bit.bit - 2)))
      return false;
    if (bit.dim < 0)
      return false; // several threads hold the same
  }
  for (int reg = 0; reg < tile.registers(); ++reg) {
    const Coords &first = tile.offset(reg & ~7), &at = tile.offset(reg);
    if (tile.exists(reg) != tile.exists(reg & ~7) || (tile.exists(reg) && tile.isPartial(reg, columnDim)) ||
        (tile.exists(reg) && tile.isPartial(reg, rowDim)))
      return false;
    if (at[rowDim] - first[rowDim] != (reg >> 1 & 1) * 8 || at[columnDim] - first[columnDim] != (reg & 1) + (reg >> 2 & 1) * 8)
      return false;
  }
  return true;
}

} // namespace

/// Bits of a thread's and a register's coordinates do not overlap, so that sums are xors and the chunk's place is the
/// xor of a part of the thread and a part of the register.
ThreadEmitter::ThreadPlaces ThreadEmitter::placesIn(const OperandTile &tile, const Distribution &matrix,
                                                    int64_t rowDim, int64_t columnDim) {
  Value row = rowDim < 0 ? i32(0) : threadCoords(matrix)[rowDim];
  Value column = b_.create<arith::MulIOp>(threadCoords(matrix)[columnDim], i32(tile.elementBytes));
  if (tile.panel && !tile.swizzleMask) // there is one panel, or threads are neighbours within 16 bytes
    return {b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(row, i32(tile.pitch)), column), Value()};
  Value chunk = b_.create<arith::AndIOp>(column, i32(tile.panel ? tile.panel - 16 : ~int64_t(15)));
  Value base = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(row, i32(tile.pitch)),
                                        b_.create<arith::AndIOp>(column, i32(15)));
  if (tile.panel)
    base = b_.create<arith::AddIOp>(base, panelStart(tile, column));
  return {base, swizzled(tile, row, chunk)};
}

std::pair<Value, int64_t> ThreadEmitter::matrixPlace(const ThreadPlaces &places, const OperandTile &tile, int64_t row,
                                                     int64_t column) {
  int64_t byte = column * tile.elementBytes, panelOffset = 0;
  if (tile.panel) {
    panelOffset = byte / tile.panel * tile.panelSize();
    byte %= tile.panel;
  }
  if (!places.chunk)
    return {places.base, panelOffset + row * tile.pitch + byte};
  int64_t chunkOffset = (byte & ~int64_t(15)) ^ (row >> tile.swizzleShift & tile.swizzleMask) * 16;
  Value chunk = places.chunk;
  if (chunkOffset)
    chunk = b_.create<arith::XOrIOp>(chunk, i32(chunkOffset));
  return {b_.create<arith::AddIOp>(places.base, chunk), panelOffset + row * tile.pitch + byte % 16};
}

/// Every element once, as threads hold them.
void ThreadEmitter::writeMatrix(Value value, Type element, const OperandTile &tile, int64_t begin, int64_t rowDim,
                                int64_t columnDim, SharedWindow window, int group, ColumnRange columns, Value slot) {
  const Distribution &matrix = distribution(value);
  int64_t bytes = tile.elementBytes;
  if (!slot && options_.architecture >= 90 && isMadeOfMatrices(matrix, rowDim, columnDim, bytes))
    return writeMatrices(value, element, tile, begin, rowDim, columnDim, window, group, columns);
  int64_t width = std::min({16 / bytes, matrix.consecutive(columnDim), tile.columns & -tile.columns});
  Type memory = memoryType(element), moved = width == 1 ? memory : VectorType::get({width}, memory);
  ThreadPlaces places = placesIn(tile, matrix, rowDim, columnDim);
  if (slot)
    places.base = b_.create<arith::AddIOp>(places.base, slot);
  Value owner = isOwner(matrix);
  for (int reg = 0; reg < matrix.registers(); reg += static_cast<int>(width)) {
    if (!matrix.exists(reg) || !columns.contains(matrix.offset(reg)[columnDim]))
      continue;
    const Coords &offset = matrix.offset(reg);
    auto [at, constant] = matrixPlace(places, tile, offset[rowDim], offset[columnDim] - columns.begin);
    Value packed = packMemory(ArrayRef<Value>(registers(value)).slice(reg, width), element, moved);
    storeShared(packed, at, begin + constant, both(holdsElement(matrix, reg), owner), window, group);
  }
}

/// The same by stmatrix, four matrices of 8 x 8 at a time: lane l points at row l % 16 and the chunk l / 16.
void ThreadEmitter::writeMatrices(Value value, Type element, const OperandTile &tile, int64_t begin, int64_t rowDim,
                                  int64_t columnDim, SharedWindow window, int group, ColumnRange columns) {
  const Distribution &matrix = distribution(value);
  assert((!tile.panel || tile.swizzleMask) && "rows of whole matrices have panels of a power of two");
  auto masked = [&](Value number, int64_t bits) -> Value { return b_.create<arith::AndIOp>(number, i32(bits)); };
  Value lane = masked(threadId_, 31);
  Value row = b_.create<arith::AddIOp>(masked(threadCoords(matrix)[rowDim], ~int64_t(7)), masked(lane, 15));
  Value byte = b_.create<arith::MulIOp>(masked(threadCoords(matrix)[columnDim], ~int64_t(7)), i32(tile.elementBytes));
  byte = b_.create<arith::AddIOp>(byte, masked(lane, 16));
  Value chunk = swizzled(tile, row, tile.panel ? masked(byte, tile.panel - 1) : byte);
  Value base = b_.create<arith::MulIOp>(row, i32(tile.pitch));
  if (tile.panel)
    base = b_.create<arith::AddIOp>(base, panelStart(tile, byte));
  Type two = VectorType::get({2}, memoryType(element)), word = VectorType::get({1}, b_.getI32Type());
  VectorType four = VectorType::get({4}, b_.getI32Type());
  for (int reg = 0; reg < matrix.registers(); reg += 8) {
    if (!matrix.exists(reg) || !columns.contains(matrix.offset(reg)[columnDim]))
      continue;
    int64_t rowOffset = matrix.offset(reg)[rowDim];
    int64_t byteOffset = (matrix.offset(reg)[columnDim] - columns.begin) * tile.elementBytes;
    int64_t before = 0;
    if (tile.panel) {
      before = byteOffset / tile.panel * tile.panelSize();
      byteOffset %= tile.panel;
    }
    byteOffset ^= (rowOffset >> tile.swizzleShift & tile.swizzleMask) * 16;
    SmallVector<Value> words;
    for (int pair = 0; pair < 4; ++pair) {
      Value packed = packMemory(ArrayRef<Value>(registers(value)).slice(reg + 2 * pair, 2), element, two);
      words.push_back(b_.create<vector::ExtractOp>(b_.create<vector::BitCastOp>(word, packed), 0));
    }
    Value at = b_.create<arith::AddIOp>(
        base, byteOffset ? b_.create<arith::XOrIOp>(chunk, i32(byteOffset)).getResult() : chunk);
    at = b_.create<arith::AddIOp>(at, i32(begin + before + rowOffset * tile.pitch));
    b_.create<StMatrixOp>(at, b_.create<vector::FromElementsOp>(four, words), /*transpose=*/false,
                          b_.getDenseI64ArrayAttr({window.begin, window.end}), b_.getI32IntegerAttr(group));
  }
}

Value ThreadEmitter::swizzled(const OperandTile &tile, Value row, Value byte) {
  if (!tile.swizzleMask)
    return byte;
  Value chunks = tile.swizzleShift ? b_.create<arith::ShRUIOp>(row, i32(tile.swizzleShift)).getResult() : row;
  chunks = b_.create<arith::AndIOp>(chunks, i32(tile.swizzleMask));
  return b_.create<arith::XOrIOp>(byte, b_.create<arith::ShLIOp>(chunks, i32(4)));
}

/// Where the panel of a byte of a row begins, i32.
Value ThreadEmitter::panelStart(const OperandTile &tile, Value byte) {
  return b_.create<arith::MulIOp>(b_.create<arith::ShRUIOp>(byte, i32(llvm::Log2_64(tile.panel))),
                                  i32(tile.panelSize()));
}

/// Writes the zeros: the columns past the matrix in all rows, then the rows past it.
void ThreadEmitter::zeroPadding(const OperandTile &tile, int64_t begin, SharedWindow window, int group) {
  auto zero = [&](int64_t firstRow, int64_t rows, int64_t firstByte, int64_t endByte) {
    int64_t rowBytes = endByte - firstByte, unit = 16;
    while (firstByte % unit || endByte % unit)
      unit /= 2;
    int64_t perRow = rowBytes / unit, count = rows * perRow;
    if (count <= 0)
      return;
    Type type = unit <= 4 ? Type(b_.getIntegerType(unit * 8)) : VectorType::get({unit / 4}, b_.getI32Type());
    Value nothing = b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(type)));
    for (int64_t first = 0; first < count; first += options_.threads) {
      Value number = b_.create<arith::AddIOp>(threadId_, i32(first));
      Value mask;
      if (first + options_.threads > count)
        mask = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, number, i32(count));
      Value row = b_.create<arith::AddIOp>(b_.create<arith::DivUIOp>(number, i32(perRow)), i32(firstRow));
      Value byte = b_.create<arith::AddIOp>(
          b_.create<arith::MulIOp>(b_.create<arith::RemUIOp>(number, i32(perRow)), i32(unit)), i32(firstByte));
      Value inPanel = tile.panel ? b_.create<arith::AndIOp>(byte, i32(tile.panel - 1)).getResult() : byte;
      Value at = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(row, i32(tile.pitch)), swizzled(tile, row, inPanel));
      if (tile.panel)
        at = b_.create<arith::AddIOp>(at, panelStart(tile, byte));
      storeShared(nothing, at, begin, mask, window, group);
    }
  };
  int64_t used = tile.columns * tile.elementBytes;
  zero(0, tile.paddedRows, used, tile.paddedColumns * tile.elementBytes);
  zero(tile.rows, tile.paddedRows - tile.rows, 0, used);
}

} // namespace tenon::nvidia
