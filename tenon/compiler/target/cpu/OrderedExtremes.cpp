// SPDX-License-Identifier: Apache-2.0
//
// The largest (or smallest) of a row, where it is NaN if anything is. vrangeps, which knows signed zeros, drops NaNs,
// so each step would take two more instructions. Along a row all lanes come together in the end, and it is enough to
// know then whether there was one: a comparison under a mask does that for two registers at once and keeps what it
// knew.
//
//     %m' = vrangeps %m, %x                        for each register
//     %k' {%k} = vcmpordps %x0, %x1                for every two
//     ...
//     result = all of %k ? largest of %m : NaN
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace tenon::cpu {
namespace {

constexpr unsigned registerLanes = 16;
constexpr unsigned registerBits = 512;

bool isExtreme(tile::ReduceOp reduce) {
  Block &block = reduce.getCombine().front();
  return reduce.getValues().size() == 1 && std::distance(block.begin(), block.end()) == 2 &&
         llvm::isa<arith::MaximumFOp, arith::MinimumFOp>(block.front()) &&
         block.getTerminator()->getOperand(0) == block.front().getResult(0) &&
         llvm::all_of(block.front().getOperands(), llvm::IsaPred<BlockArgument>) &&
         block.front().getOperand(0) != block.front().getOperand(1) && block.getArgument(0).getType().isF32();
}

} // namespace

/// Which of the values that are reduced are extremes along the lanes, and of whole pairs of registers.
SmallVector<size_t> Nest::extremesOfLanes() {
  SmallVector<size_t> found;
  constexpr unsigned withMasks = 64; // bytes of a vector
  if (group_.reduceDim != vectorDim_ || e_.isa().vectorBytes < withMasks || lanes_ % (2 * registerLanes) != 0)
    return found;
  size_t at = 0;
  for (const NestRoot &root : group_.roots)
    if (auto reduce = llvm::dyn_cast_if_present<tile::ReduceOp>(root.op)) {
      if (isExtreme(reduce))
        found.push_back(at);
      at += reduce.getValues().size();
    }
  return found;
}

SmallVector<Value> Nest::orderedLanes(Value vector) {
  SmallVector<Value> masks;
  unsigned lanes = registerBits / getElementTypeOrSelf(vector.getType()).getIntOrFloatBitWidth();
  for (unsigned first = 0; first < lanesOf(vector); first += 2 * lanes) {
    auto part = [&](unsigned at) -> Value { return b_.create<vector::ExtractStridedSliceOp>(vector, at, lanes, 1); };
    masks.push_back(b_.create<arith::CmpFOp>(arith::CmpFPredicate::ORD, part(first), part(first + lanes)));
  }
  return masks;
}

/// Of what combineAll has made, the extremes need not be NaN where one of two is: the masks know.
void Nest::dropNans(ArrayRef<Value> combined, ArrayRef<size_t> extremes) {
  for (size_t at : extremes) {
    Operation *op = combined[at].getDefiningOp();
    op->setAttr("fastmath", arith::FastMathFlagsAttr::get(op->getContext(), arith::FastMathFlags::nnan));
  }
}

/// What combineAll does, with the masks after the values. `carried` has both, `values` none.
SmallVector<Value> Nest::combineOrdered(ArrayRef<Value> carried, ArrayRef<Value> values, ArrayRef<size_t> extremes,
                                        ArrayRef<size_t> halves) {
  SmallVector<Value> combined = combineAll(carried.take_front(values.size()), values);
  carried = carried.drop_front(values.size());
  dropNans(combined, extremes);
  for (size_t at : llvm::to_vector(llvm::concat<const size_t>(extremes, halves)))
    for (Value mask : orderedLanes(values[at])) {
      combined.push_back(b_.create<arith::AndIOp>(carried.front(), mask));
      carried = carried.drop_front();
    }
  return combined;
}

/// The extremes among the values that a loop has reduced to single numbers, NaN where one was met. `carried`: the
/// masks.
void Nest::restoreNans(MutableArrayRef<Value> values, ArrayRef<Value> carried, ArrayRef<size_t> extremes) {
  if (extremes.empty())
    return;
  size_t perValue = carried.size() / extremes.size();
  Value nan = constantLike(b_, b_.getF32Type(), std::numeric_limits<double>::quiet_NaN());
  for (size_t at : extremes) {
    Value all = carried.front();
    for (Value mask : carried.take_front(perValue).drop_front())
      all = b_.create<arith::AndIOp>(all, mask);
    carried = carried.drop_front(perValue);
    Value bits = b_.create<LLVM::BitcastOp>(b_.getI16Type(), all);
    Value isOrdered = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, bits, constantBits(b_, b_.getI16Type(), -1));
    values[at] = b_.create<arith::SelectOp>(isOrdered, values[at], nan);
  }
}

} // namespace tenon::cpu
