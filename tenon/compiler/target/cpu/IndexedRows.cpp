// SPDX-License-Identifier: Apache-2.0
//
// Gathers and scatters of rows. Whoever takes rows of a table by their numbers
//
//     table.gather({expand(numbers, 1), iota(i64, {1, 128}, 1) + column})
//
// reads neighbours: along the lanes of a vector the last index goes up by one and the others stay. Such an access is
// that of a window, a vector from the first lane's address on; any other is one access for each lane.
#include "tenon/compiler/target/cpu/Nest.h"
#include "tenon/compiler/target/cpu/Steps.h"

using namespace mlir;

namespace tenon::cpu {

std::optional<Nest::Address> Nest::rowAddress(const ViewParts &view, OperandRange indices, Value mask,
                                              const Coords &coords) {
  const auto *lane = llvm::find_if(coords, [](const Coord &coord) { return coord.lanes; });
  if (lane == coords.end() || view.unitStride < 0 || isPaired(lanes_))
    return std::nullopt;
  auto dim = static_cast<int>(lane - coords.begin());
  for (auto [d, index] : llvm::enumerate(indices))
    if (stepAlong(index, dim) != (static_cast<int>(d) == view.unitStride ? 1 : 0))
      return std::nullopt;
  // A mask of lanes is and-ed to that of the bounds only where masks are registers: see lanesInside().
  bool masksLanes = mask && stepAlong(mask, dim) != 0;
  if (masksLanes && !e_.isa().masksSmallTypes)
    return std::nullopt;

  Address address;
  address.laneDim = dim;
  Coords first = coords;
  first[dim].lanes = false;
  Value ok = mask && !masksLanes ? compute(mask, first) : Value(), offset, laneAt, laneSize;
  for (auto [d, index] : llvm::enumerate(indices)) {
    Type type = llvm::cast<RankedTensorType>(index.getType()).getElementType();
    Value at = castElements(b_, compute(index, first), type, b_.getI64Type(), /*isUnsigned=*/false);
    at = b_.create<arith::IndexCastOp>(b_.getIndexType(), at);
    Value size = view.sizes[d], last = b_.create<arith::SubIOp>(size, e_.index(1)), near;
    if (static_cast<int>(d) == view.unitStride) {
      laneAt = at;
      laneSize = size;
      if (unsigned bits = type.getIntOrFloatBitWidth(); bits < 64) // one more would be the least number of the type
        laneSize = b_.create<arith::MinSIOp>(size, e_.index(int64_t(1) << (bits - 1)));
      near = b_.create<arith::MinSIOp>(at, last);
    } else {
      Value inside = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, at, size);
      ok = ok ? b_.create<arith::AndIOp>(ok, inside).getResult() : inside;
      near = b_.create<arith::MulIOp>(b_.create<arith::MinUIOp>(at, last), view.strides[d]);
    }
    offset = offset ? b_.create<arith::AddIOp>(offset, near).getResult() : near;
  }
  address.first = address.pointer =
      b_.create<LLVM::GEPOp>(LLVM::LLVMPointerType::get(b_.getContext()), memoryType(view.element), view.pointer,
                             ValueRange{b_.create<arith::IndexCastOp>(b_.getI64Type(), offset)});
  address.ok = lanesInside(laneAt, laneSize, ok);
  if (masksLanes)
    address.ok = b_.create<arith::AndIOp>(address.ok, splatTo(b_, compute(mask, coords), lanes_));
  return address;
}

} // namespace tenon::cpu
