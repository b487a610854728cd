// SPDX-License-Identifier: Apache-2.0
//
// bf16 to f32 with one instruction a register instead of two. Where only whole vectors of bf16 come in, and go out or
// are added up, the order of lanes is nobody's business: 32 numbers are loaded as 16 pairs, and their first and second
// members become a register each.
//
//     memory       a b c d ...
//     first        a c ...           a shift by 16 bits
//     second       b d ...           a mask
//
// A store puts the pairs together again, one permutation for 32 numbers (PackBf16.cpp). The other way is vpmovzxwd,
// which only one unit has, and a shift.
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;

namespace tenon::cpu {
namespace {

constexpr unsigned pairedLanes = 32;

/// The dimension of a reshape's operand that is `dim` of its result: what is not 1 keeps its order.
int beforeReshape(tile::ReshapeOp op, int dim) {
  auto from = op.getValue().getType().getShape(), to = op.getType().getShape();
  auto isLong = [](int64_t extent) { return extent != 1; };
  auto place = llvm::count_if(to.take_front(dim), isLong);
  for (auto [d, extent] : llvm::enumerate(from))
    if (isLong(extent) && place-- == 0)
      return static_cast<int>(d);
  return -1;
}

} // namespace

/// Whether a value whose lanes lie along `dim` can have them in pairs. Sets `loads` where it is loaded so.
bool Nest::comesInPairs(Value tile, int dim, bool &loads) {
  auto type = llvm::dyn_cast<RankedTensorType>(tile.getType());
  if (!type || type.getDimSize(dim) == 1)
    return true;
  Operation *op = tile.getDefiningOp();
  if (!op || e_.buffer(tile))
    return false;
  if (llvm::isa<tile::SplatOp>(op) || matchPattern(tile, m_Constant()))
    return true;
  if (auto load = llvm::dyn_cast<tile::LoadOp>(op)) {
    const ViewParts &view = e_.view(load.getView());
    loads = true;
    return view.element.isBF16() && view.unitStride == dim;
  }
  if (auto broadcast = llvm::dyn_cast<tile::BroadcastOp>(op))
    return comesInPairs(broadcast.getValue(), dim, loads);
  if (auto slice = llvm::dyn_cast<tile::SliceOp>(op))
    return comesInPairs(slice.getValue(), dim, loads);
  if (auto transpose = llvm::dyn_cast<tile::TransposeOp>(op))
    return comesInPairs(transpose.getValue(), static_cast<int>(transpose.getPermutation()[dim]), loads);
  if (auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op)) {
    int before = beforeReshape(reshape, dim);
    return before >= 0 && comesInPairs(reshape.getValue(), before, loads);
  }
  return isElementwise(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return comesInPairs(operand, dim, loads); });
}

bool Nest::pairsLanes() {
  constexpr unsigned wholeRegister = 64; // bytes of a vector
  if (vectorDim_ < 0 || e_.isa().vectorBytes < wholeRegister || vectorLanes_ % pairedLanes != 0 ||
      (group_.reduceDim >= 0 && group_.reduceDim != vectorDim_))
    return false;
  bool loads = false;
  bool can = llvm::all_of(group_.roots, [&](const NestRoot &root) {
    if (auto reduce = llvm::dyn_cast_if_present<tile::ReduceOp>(root.op))
      return llvm::all_of(reduce.getValues(), [&](Value value) { return comesInPairs(value, vectorDim_, loads); });
    auto store = llvm::dyn_cast_if_present<tile::StoreOp>(root.op);
    return store && vectorLanes_ == pairedLanes && canRoundByStore(store) &&
           comesInPairs(store.getValue(), vectorDim_, loads);
  });
  return can && loads;
}

/// The first members, then the second ones, of pairs of bf16.
Value Nest::unpackPairs(Value raw) {
  unsigned lanes = lanesOf(raw);
  auto words = VectorType::get({lanes / 2}, b_.getI32Type()), floats = VectorType::get({lanes / 2}, b_.getF32Type());
  Value pairs = b_.create<LLVM::BitcastOp>(words, raw);
  Value first = b_.create<arith::ShLIOp>(pairs, constantBits(b_, words, 16));
  Value second = b_.create<arith::AndIOp>(pairs, constantBits(b_, words, 0xffff0000));
  SmallVector<int32_t> both(lanes);
  std::iota(both.begin(), both.end(), 0);
  return b_.create<LLVM::ShuffleVectorOp>(b_.create<LLVM::BitcastOp>(floats, first),
                                          b_.create<LLVM::BitcastOp>(floats, second), both);
}

Value Nest::packPairs(Value halves) {
  int32_t lanes = static_cast<int32_t>(lanesOf(halves));
  SmallVector<int32_t> paired;
  for (int32_t i = 0; i < lanes / 2; ++i)
    paired.append({i, lanes / 2 + i});
  return b_.create<LLVM::ShuffleVectorOp>(halves, halves, paired);
}

} // namespace tenon::cpu
