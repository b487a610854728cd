// SPDX-License-Identifier: Apache-2.0
//
// Stores of f32 rounded to bf16, where the processor has an instruction for it. The instruction takes subnormal numbers
// for zero, which we do not; the vector that holds one (or a NaN, whose bits it would keep) is rounded as everywhere
// else:
//
//     an exponent of 0 or 255 becomes 1 or 0 by adding 1, and the seven upper bits of these are zero:
//     scf.if any((%bits + 0x00800000) & 0x7f000000 == 0) { integer arithmetic } else { vcvtne2ps2bf16 }
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

using namespace mlir;

namespace tenon::cpu {

constexpr unsigned packedLanes = 32; // two registers of f32 make one of bf16

/// What the store rounds: the f32 tile behind its value; null where packBf16 does not apply.
Value Nest::roundedByStore(tile::StoreOp op, const Coords &coords) {
  const ViewParts &view = e_.view(op.getView());
  auto cast = op.getValue().getDefiningOp<tile::CastOp>();
  if (checked_ || !e_.isa().dotsBf16 || !view.element.isBF16() || view.unitStride != vectorDim_ ||
      lanesIn(coords) != packedLanes || !cast || e_.buffer(cast))
    return {};
  auto from = llvm::dyn_cast<RankedTensorType>(cast.getValue().getType());
  return from && from.getElementType().isF32() ? cast.getValue() : Value();
}

Value Nest::packBf16(Value value) {
  auto words = VectorType::get({packedLanes}, b_.getI32Type());
  auto halves = VectorType::get({packedLanes}, b_.getI16Type());
  Value bits = b_.create<arith::BitcastOp>(words, value);
  Value raised = b_.create<arith::AddIOp>(bits, constantBits(b_, words, 0x00800000));
  Value upper = b_.create<arith::AndIOp>(raised, constantBits(b_, words, 0x7f000000));
  Value special = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, upper, constantBits(b_, words, 0));
  Value mask = b_.create<LLVM::BitcastOp>(b_.getI32Type(), special);
  Value any = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, mask, constantBits(b_, b_.getI32Type(), 0));
  auto branch = b_.create<scf::IfOp>(TypeRange{halves}, any, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToEnd(branch.thenBlock());
  Type bf16 = b_.getBF16Type();
  b_.create<scf::YieldOp>(ValueRange{toMemory(b_, roundTo(b_, value, bf16), bf16)});
  b_.setInsertionPointToEnd(branch.elseBlock());
  auto half = [&](int32_t first) -> Value {
    SmallVector<int32_t> lanes(packedLanes / 2);
    std::iota(lanes.begin(), lanes.end(), first);
    return b_.create<LLVM::ShuffleVectorOp>(value, value, lanes);
  };
  Value packed = b_.create<LLVM::CallIntrinsicOp>(TypeRange{VectorType::get({packedLanes}, bf16)},
                                                  "llvm.x86.avx512bf16.cvtne2ps2bf16.512",
                                                  ValueRange{half(packedLanes / 2), half(0)})
                     .getResults();
  b_.create<scf::YieldOp>(ValueRange{b_.create<LLVM::BitcastOp>(halves, packed).getResult()});
  return branch.getResult(0);
}

} // namespace tenon::cpu
