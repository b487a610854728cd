// SPDX-License-Identifier: Apache-2.0
//
// Operations that only move elements. Each one is a table, made from the shapes: element i of the result is element
// table[i] of the operand.
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/interpret/Program.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon::interpret {
namespace {

using Coordinates = llvm::SmallVector<int64_t, 5>;
using Table = std::vector<size_t>;

Coordinates coordinatesOf(size_t number, ArrayRef<int64_t> shape) {
  Coordinates place(shape.size());
  for (size_t d = shape.size(); d-- > 0; number /= shape[d])
    place[d] = static_cast<int64_t>(number % shape[d]);
  return place;
}

size_t numberOf(ArrayRef<int64_t> place, ArrayRef<int64_t> shape) {
  size_t number = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    number = number * shape[d] + place[d];
  return number;
}

/// The table of an operation for which `source` maps the coordinates of a result element to those in the operand.
template <class Source> Table tableOf(RankedTensorType from, RankedTensorType to, Source source) {
  Table table(to.getNumElements());
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = numberOf(source(coordinatesOf(i, to.getShape())), from.getShape());
  return table;
}

Step move(Operation *op, Program &program, Table table) {
  return [table = std::move(table), value = program.slot(op->getOperand(0)),
          result = program.slot(op->getResult(0))](State &state) {
    for (size_t i = 0; i < table.size(); ++i)
      state.slots[result][i] = state.slots[value][table[i]];
    return true;
  };
}

Table broadcastTable(tile::BroadcastOp op) {
  RankedTensorType from = op.getValue().getType();
  return tableOf(from, op.getType(), [&](Coordinates place) {
    for (size_t d = 0; d < place.size(); ++d)
      if (from.getDimSize(d) == 1)
        place[d] = 0;
    return place;
  });
}

Table transposeTable(tile::TransposeOp op) {
  return tableOf(op.getValue().getType(), op.getType(), [&](const Coordinates &place) {
    Coordinates source(place.size());
    for (size_t d = 0; d < place.size(); ++d)
      source[op.getPermutation()[d]] = place[d];
    return source;
  });
}

Table sliceTable(tile::SliceOp op) {
  return tableOf(op.getValue().getType(), op.getType(), [&](Coordinates place) {
    for (size_t d = 0; d < place.size(); ++d)
      place[d] += op.getOffsets()[d];
    return place;
  });
}

/// The same elements in row-major order, which is how they are kept.
Table identityTable(size_t count) {
  Table table(count);
  for (size_t i = 0; i < count; ++i)
    table[i] = i;
  return table;
}

/// Concatenation scatters: one table per operand, of places in the result.
Step prepareConcat(tile::ConcatOp op, Program &program) {
  std::vector<Table> places;
  int64_t start = 0;
  for (Value value : op.getValues()) {
    auto type = llvm::cast<RankedTensorType>(value.getType());
    places.push_back(tableOf(op.getType(), type, [&](Coordinates place) {
      place[op.getDim()] += start;
      return place;
    }));
    start += type.getDimSize(op.getDim());
  }
  return [places = std::move(places), values = program.slots(op.getValues()),
          result = program.slot(op.getResult())](State &state) {
    for (size_t v = 0; v < values.size(); ++v)
      for (size_t i = 0; i < places[v].size(); ++i)
        state.slots[result][places[v][i]] = state.slots[values[v]][i];
    return true;
  };
}

Step prepareIota(tile::IotaOp op, Program &program) {
  Words words(op.getType().getNumElements());
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = static_cast<uint64_t>(coordinatesOf(i, op.getType().getShape())[op.getDim()]);
  program.setConstant(op.getResult(), std::move(words));
  return [](State &) { return true; };
}

} // namespace

Step prepareMovement(Operation *op, Program &program) {
  return llvm::TypeSwitch<Operation *, Step>(op)
      .Case([&](tile::SplatOp splat) { return move(op, program, Table(splat.getType().getNumElements(), 0)); })
      .Case([&](tile::ScalarOp) { return move(op, program, Table(1, 0)); })
      .Case([&](tile::ReshapeOp shape) { return move(op, program, identityTable(shape.getType().getNumElements())); })
      .Case([&](tile::BroadcastOp broadcast) { return move(op, program, broadcastTable(broadcast)); })
      .Case([&](tile::TransposeOp transpose) { return move(op, program, transposeTable(transpose)); })
      .Case([&](tile::SliceOp slice) { return move(op, program, sliceTable(slice)); })
      .Case([&](tile::ConcatOp concat) { return prepareConcat(concat, program); })
      .Case([&](tile::IotaOp iota) { return prepareIota(iota, program); })
      .Default([](Operation *) { return Step(); });
}

} // namespace tenon::interpret
