// SPDX-License-Identifier: Apache-2.0
//
// Stores of f32 rounded to bf16, where the processor has an instruction for it. The instruction takes subnormal numbers
// for zero, which we do not; vectors that hold one are rounded as everywhere else:
//
//     scf.if any(vfpclassps %value, subnormal) { integer arithmetic } else { vcvtne2ps2bf16 }
//
// Zeros, infinities and NaNs are the instruction's own business: a result that is half zeros (a dropout's, a ReLU's)
// must not fall back. Operands of dots need no such test: the dots, too, take subnormal numbers for zero.
//
// Where ties may go away from zero (TiesAway.h) there is no such test, and no instruction that only one unit has:
//
//     (first + half) >> 16 | (second + half) & 0xffff0000       lanes in pairs
#include "tenon/compiler/target/cpu/KeepOperands.h"
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

using namespace mlir;

namespace tenon::cpu {

constexpr unsigned packedLanes = 32; // two registers of f32 make one of bf16

/// What the store rounds: the f32 tile behind its value; null where packBf16 does not apply.
Value Nest::roundedByStore(tile::StoreOp op, const Coords &coords) {
  if (checked_ || lanesIn(coords) != packedLanes || !e_.pairedTiles().takes(op, vectorDim_))
    return {};
  return op.getValue().getDefiningOp<tile::CastOp>().getValue();
}

namespace {

/// So many lanes of a vector, from `first` on.
Value lanesFrom(ImplicitLocOpBuilder &b, Value value, int32_t first, unsigned count) {
  SmallVector<int32_t> lanes(count);
  std::iota(lanes.begin(), lanes.end(), first);
  return b.create<LLVM::ShuffleVectorOp>(value, value, lanes);
}

Value roundPair(ImplicitLocOpBuilder &b, Value lower, Value upper) {
  Value packed = b.create<LLVM::CallIntrinsicOp>(TypeRange{VectorType::get({packedLanes}, b.getBF16Type())},
                                                 "llvm.x86.avx512bf16.cvtne2ps2bf16.512", ValueRange{upper, lower})
                     .getResults();
  return b.create<LLVM::BitcastOp>(VectorType::get({packedLanes}, b.getI16Type()), packed);
}

} // namespace

Value Nest::roundedByOperand(Value bits, const Coords &coords) {
  Operation *op = bits.getDefiningOp();
  auto cast = op && op->hasAttr(operandAttr) ? op->getOperand(0).getDefiningOp<tile::CastOp>() : tile::CastOp();
  unsigned lanes = lanesIn(coords);
  if (!cast || e_.buffer(cast) || !e_.isa().dotsBf16 || (lanes != packedLanes && lanes != 2 * packedLanes))
    return {};
  auto from = llvm::dyn_cast<RankedTensorType>(cast.getValue().getType());
  return from && from.getElementType().isF32() ? cast.getValue() : Value();
}

Value Nest::roundOperand(Value value) {
  auto rounded = [&](int32_t first) {
    return roundPair(b_, lanesFrom(b_, value, first, packedLanes / 2),
                     lanesFrom(b_, value, first + packedLanes / 2, packedLanes / 2));
  };
  if (lanesOf(value) == packedLanes)
    return rounded(0);
  SmallVector<int32_t> both(2 * packedLanes);
  std::iota(both.begin(), both.end(), 0);
  return b_.create<LLVM::ShuffleVectorOp>(rounded(0), rounded(packedLanes), both);
}

Value Nest::packTiesAway(Value value, bool underMask) {
  constexpr unsigned lanes = packedLanes / 2;
  auto halves = VectorType::get({packedLanes}, b_.getI16Type());
  Value bits = bitsTiesAway(b_, value);
  Value first = lanesFrom(b_, bits, 0, lanes), second = lanesFrom(b_, bits, lanes, lanes);
  bool inPairs = isPaired(packedLanes);
  if (!inPairs || underMask) { // the upper halves; a permutation takes a mask for nothing
    SmallVector<int32_t> places(packedLanes);
    for (auto [at, place] : llvm::enumerate(places))
      place = inPairs ? 2 * (at / 2) + 1 + at % 2 * packedLanes : 2 * at + 1;
    return b_.create<LLVM::ShuffleVectorOp>(b_.create<LLVM::BitcastOp>(halves, first),
                                            b_.create<LLVM::BitcastOp>(halves, second), places);
  }
  Type pair = first.getType();
  first = b_.create<arith::ShRUIOp>(first, constantBits(b_, pair, 16));
  // One instruction. Written as two, LLVM makes it and the shift a permutation of two registers, which takes longer.
  constexpr int64_t firstOrSecondUnderMask = 0xf8;
  Value both = b_.create<LLVM::CallIntrinsicOp>(TypeRange{pair}, "llvm.x86.avx512.pternlog.d.512",
                                                ValueRange{first, second, constantBits(b_, pair, 0xffff0000),
                                                           constantBits(b_, b_.getI32Type(), firstOrSecondUnderMask)})
                   .getResults();
  return b_.create<LLVM::BitcastOp>(halves, both);
}

Value Nest::packBf16(Value value) {
  auto halves = VectorType::get({packedLanes}, b_.getI16Type());
  Type i32 = b_.getI32Type();
  Value lower = lanesFrom(b_, value, 0, packedLanes / 2), upper = lanesFrom(b_, value, packedLanes / 2, packedLanes / 2);
  auto hasSubnormal = [&](Value part) -> Value {
    constexpr int64_t subnormal = 0x20;
    Value lanes = b_.create<LLVM::CallIntrinsicOp>(TypeRange{VectorType::get({packedLanes / 2}, b_.getI1Type())},
                                                   "llvm.x86.avx512.fpclass.ps.512",
                                                   ValueRange{part, constantBits(b_, i32, subnormal)})
                      .getResults();
    return b_.create<LLVM::BitcastOp>(b_.getI16Type(), lanes);
  };
  Value mask = b_.create<arith::OrIOp>(hasSubnormal(lower), hasSubnormal(upper));
  Value any = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, mask, constantBits(b_, b_.getI16Type(), 0));
  auto branch = b_.create<scf::IfOp>(TypeRange{halves}, any, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToEnd(branch.thenBlock());
  Type bf16 = b_.getBF16Type();
  b_.create<scf::YieldOp>(ValueRange{toMemory(b_, roundTo(b_, value, bf16), bf16)});
  b_.setInsertionPointToEnd(branch.elseBlock());
  b_.create<scf::YieldOp>(ValueRange{roundPair(b_, lower, upper)});
  b_.setInsertionPointAfter(branch);
  return isPaired(packedLanes) ? packPairs(branch.getResult(0)) : branch.getResult(0);
}

} // namespace tenon::cpu
