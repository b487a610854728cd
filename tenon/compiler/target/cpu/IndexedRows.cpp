// SPDX-License-Identifier: Apache-2.0
//
// Gathers and scatters of rows. Whoever takes rows of a table by their numbers
//
//     table.gather({expand(numbers, 1), iota(i64, {1, 128}, 1) + column})
//
// reads neighbours: along the lanes of a vector the last index goes up by one and the others stay. Such an access is that
// of a window, a vector from the first lane's address on; any other is one access for each lane.
#include "tenon/compiler/target/cpu/Nest.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

/// By how much the elements of an integer tile go up from one place along `dim` to the next: 0 or 1, as far as that can be
/// told from how it is made. Sums may wrap around in the type of their own; a wider type shows that, so that nothing but
/// an iota itself is followed through a conversion.
std::optional<int> stepAlong(Value tile, int dim) {
  auto type = llvm::cast<RankedTensorType>(tile.getType());
  Operation *op = tile.getDefiningOp();
  if (type.getDimSize(dim) == 1)
    return 0;
  if (!op)
    return std::nullopt;
  if (auto iota = llvm::dyn_cast<tile::IotaOp>(op))
    return iota.getDim() == static_cast<uint64_t>(dim) ? 1 : 0;
  if (llvm::isa<tile::SplatOp, arith::ConstantOp>(op)) // constants of Tile IR are the same everywhere
    return 0;
  if (llvm::isa<tile::BroadcastOp, tile::SliceOp>(op))
    return stepAlong(op->getOperand(0), dim);
  if (auto transpose = llvm::dyn_cast<tile::TransposeOp>(op))
    return stepAlong(transpose.getValue(), transpose.getPermutation()[dim]);
  if (auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op)) {
    // Dimensions of size 1 come and go; the others keep their order, or this is more than a change of names.
    auto dimsOf = [](ArrayRef<int64_t> shape) {
      return llvm::to_vector(llvm::make_filter_range(llvm::seq<int>(0, shape.size()), [=](int d) { return shape[d] != 1; }));
    };
    ArrayRef<int64_t> from = reshape.getValue().getType().getShape(), to = type.getShape();
    SmallVector<int> before = dimsOf(from), after = dimsOf(to);
    bool isSame = before.size() == after.size() &&
                  llvm::all_of(llvm::zip(before, after), [&](auto pair) {
                    return from[std::get<0>(pair)] == to[std::get<1>(pair)];
                  });
    return isSame ? stepAlong(reshape.getValue(), before[llvm::find(after, dim) - after.begin()]) : std::nullopt;
  }
  if (!llvm::isa<arith::ArithDialect>(op->getDialect()) && !llvm::isa<tile::CastOp>(op))
    return std::nullopt;
  SmallVector<int> steps;
  for (Value operand : op->getOperands()) {
    auto step = llvm::isa<RankedTensorType>(operand.getType()) ? stepAlong(operand, dim) : std::optional<int>(0);
    if (!step)
      return std::nullopt;
    steps.push_back(*step);
  }
  if (llvm::all_of(steps, [](int step) { return step == 0; }))
    return 0;
  if (llvm::isa<arith::AddIOp>(op) && steps[0] + steps[1] == 1)
    return 1;
  if (llvm::isa<arith::SubIOp>(op) && steps[1] == 0)
    return 1;
  if (llvm::isa<arith::ExtSIOp>(op) && op->getOperand(0).getDefiningOp<tile::IotaOp>())
    return 1;
  return std::nullopt;
}

} // namespace

std::optional<Nest::Address> Nest::rowAddress(const ViewParts &view, OperandRange indices, Value mask,
                                              const Coords &coords) {
  const auto *lane = llvm::find_if(coords, [](const Coord &coord) { return coord.lanes; });
  if (lane == coords.end() || view.unitStride < 0 || isPaired(lanes_))
    return std::nullopt;
  auto dim = static_cast<int>(lane - coords.begin());
  for (auto [d, index] : llvm::enumerate(indices))
    if (stepAlong(index, dim) != (static_cast<int>(d) == view.unitStride ? 1 : 0))
      return std::nullopt;
  // A mask of lanes is and-ed to that of the bounds only where masks are registers: see windowAddress().
  if (mask && !e_.isa().masksSmallTypes && stepAlong(mask, dim) != 0)
    return std::nullopt;

  Address address;
  address.laneDim = dim;
  Value allowed = mask ? compute(mask, coords) : Value(), ok = allowed && !lanesOf(allowed) ? allowed : Value();
  Coords first = coords;
  first[dim].lanes = false;
  Value offset, laneAt, laneSize;
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
  if (allowed && lanesOf(allowed))
    address.ok = b_.create<arith::AndIOp>(address.ok, allowed);
  return address;
}

} // namespace tenon::cpu
