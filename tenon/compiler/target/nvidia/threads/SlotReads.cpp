// SPDX-License-Identifier: Apache-2.0
//
// Tiles that the tensor memory accelerator brings and threads read: what an operand of a dot is computed from (weights
// of 8 bits, activations before their function) arrives iterations ahead, in a ring of its own, and is in registers as
// if it had been loaded from memory.
//
//     wait until full[slot]
//     registers = the tiles of the slot
//     each warp, when all of its lanes have read: arrive on empty[slot]
#include "tenon/compiler/target/nvidia/threads/Rings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {

void ThreadEmitter::readSlot(const Transfer &transfer) {
  tile::LoadOp load = transfer.load;
  const Distribution &matrix = distribution(load);
  const OperandTile &tile = transfer.tile;
  const StagedOperand &slot = copied_.find(load)->second;
  Type element = typeOf(load).getElementType(), memory = memoryType(element);
  int64_t width =
      std::min({16 / tile.elementBytes, matrix.consecutive(transfer.columnDim), tile.columns & -tile.columns});
  Type moved = width == 1 ? memory : VectorType::get({width}, memory);
  ThreadPlaces places = placesIn(tile, matrix, transfer.rowDim, transfer.columnDim);
  places.base = b_.create<arith::AddIOp>(places.base, slot.at);
  Registers values(matrix.registers());
  for (int reg = 0; reg < matrix.registers(); reg += static_cast<int>(width)) {
    if (!matrix.exists(reg))
      continue;
    const Coords &offset = matrix.offset(reg);
    auto [at, constant] =
        matrixPlace(places, tile, transfer.rowDim < 0 ? 0 : offset[transfer.rowDim], offset[transfer.columnDim]);
    Value raw = loadShared(moved, at, constant, holdsElement(matrix, reg), slot.window, slot.group);
    unpack(raw, element, MutableArrayRef<Value>(values).slice(reg, width), /*byWords=*/true);
  }
  registers(load) = std::move(values);
}

void ThreadEmitter::releaseReadSlot(Ring &ring) { arriveByWarp(barrierAt(ring.empty, ring.current)); }

} // namespace tenon::nvidia
