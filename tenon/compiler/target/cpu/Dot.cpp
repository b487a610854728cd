// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/Dot.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::cpu {

DotEmitter::DotEmitter(LoopEmitter &emitter, tile::DotOp op)
    : e_(emitter), b_(emitter.builder()), op_(op), plan_(planDot(op, emitter.isa())), m_(op.getType().getDimSize(0)),
      n_(op.getType().getDimSize(1)), k_(op.getA().getType().getDimSize(1)),
      units_(llvm::alignTo(k_, plan_.depthStep) / plan_.group) {}

Buffer DotEmitter::emit() {
  Buffer result = e_.bufferFor(op_.getResult());
  int64_t scratchKept = e_.usedScratch_;
  startsAtZero_ = matchPattern(op_.getAcc(), m_PosZeroFloat()) || matchPattern(op_.getAcc(), m_Zero());
  limits_ = findLimits();
  if (e_.unwritten_.contains(op_.getAcc())) {
    auto loop = llvm::cast<scf::ForOp>(op_->getParentOp());
    isFirst_ = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, e_.scalar(loop.getInductionVar()),
                                        e_.scalar(loop.getLowerBound()));
  }

  auto startAccumulator = [&] {
    const Buffer *present = e_.buffer(op_.getAcc());
    bool inPlace = present && present->pointer == result.pointer;
    bool readsZero = startsAtZero_ && !plan_.thin;
    computesAccumulator_ = isComputedByBlocks(result);
    if (!readsZero && !inPlace && !computesAccumulator_) {
      e_.materialize(op_.getAcc(), result);
      e_.flush();
    }
    b_.setLoc(op_.getLoc());
  };
  if (plan_.thin) {
    startAccumulator();
    emitThin(result);
  } else {
    PackedOperand a = packA(), b = packB();
    startAccumulator();
    findAhead(panels() * llvm::divideCeil(m_, plan_.rows) * stepsOfBlock());
    emitBlocks(a, b, result);
    if (plan_.pieces > 1)
      multiplySpecial(result);
  }
  for (Operation *temporary : llvm::reverse(temporaries_))
    temporary->erase();
  e_.usedScratch_ = scratchKept;
  return result;
}

//===--- Small things ---------------------------------------------------------------------------------------------===//

void DotEmitter::forRange(Value begin, Value end, int64_t step, llvm::function_ref<void(Value)> body) {
  auto loop = b_.create<scf::ForOp>(begin, end, e_.index(step));
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(loop.getBody()->getTerminator());
  body(loop.getInductionVar());
}

void DotEmitter::forRange(int64_t begin, int64_t end, int64_t step, llvm::function_ref<void(Value)> body) {
  if (begin >= end)
    return;
  if (begin + step >= end)
    return body(e_.index(begin));
  forRange(e_.index(begin), e_.index(end), step, body);
}

Value DotEmitter::times(Value index, int64_t factor) {
  return factor == 1 ? index : b_.create<arith::MulIOp>(index, e_.index(factor)).getResult();
}
Value DotEmitter::plus(Value index, Value other) { return b_.create<arith::AddIOp>(index, other); }
Value DotEmitter::minimum(Value index, Value other) { return b_.create<arith::MinSIOp>(index, other); }
Value DotEmitter::dividedUp(Value index, int64_t divisor) {
  return b_.create<arith::DivUIOp>(plus(index, e_.index(divisor - 1)), e_.index(divisor));
}

Value DotEmitter::at(Value pointer, Value offset, Type element) {
  if (matchPattern(offset, m_Zero()))
    return pointer;
  Value wide = b_.create<arith::IndexCastOp>(b_.getI64Type(), offset);
  return b_.create<LLVM::GEPOp>(pointer.getType(), element, pointer, ValueRange{wide});
}

Value DotEmitter::at(Value pointer, int64_t offset, Type element) {
  if (offset == 0)
    return pointer;
  return b_.create<LLVM::GEPOp>(pointer.getType(), element, pointer,
                                ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

Type DotEmitter::vectorOf(Type element, int64_t lanes) { return VectorType::get({lanes}, element); }
Value DotEmitter::zero(Type type) {
  return b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(type)));
}

Type DotEmitter::unitType() {
  return plan_.group == 1 ? plan_.packed : Type(b_.getIntegerType(8 * plan_.unitBytes()));
}

Value DotEmitter::load(Value pointer, Type element, int64_t count, int64_t lanes) {
  return widened(b_.create<LLVM::LoadOp>(vectorOf(element, count), pointer, byteSize(element)), lanes);
}

Value DotEmitter::widened(Value part, int64_t lanes) {
  int64_t count = llvm::cast<VectorType>(part.getType()).getDimSize(0);
  if (count == lanes)
    return part;
  SmallVector<int64_t> mask(lanes, count); // an element of the other operand, zero
  for (int64_t i = 0; i < count; ++i)
    mask[i] = i;
  return b_.create<vector::ShuffleOp>(part, zero(part.getType()), mask);
}

Value DotEmitter::elementsAs(Type to, Value raw, Type tileElement, bool isUnsigned) {
  if (tileElement.isF16())
    raw = b_.create<arith::BitcastOp>(typeLike(raw, tileElement), raw);
  if (llvm::isa<FloatType>(to))
    return fromMemory(b_, raw, tileElement);
  Type wide = typeLike(raw, to);
  return isUnsigned ? b_.create<arith::ExtUIOp>(wide, raw).getResult() : b_.create<arith::ExtSIOp>(wide, raw).getResult();
}

void DotEmitter::store(Value value, Value pointer, int64_t count) {
  auto type = llvm::cast<VectorType>(value.getType());
  if (count < type.getDimSize(0)) {
    SmallVector<int64_t> mask;
    for (int64_t i = 0; i < count; ++i)
      mask.push_back(i);
    value = b_.create<vector::ShuffleOp>(value, value, mask);
  }
  b_.create<LLVM::StoreOp>(value, pointer, byteSize(type.getElementType()));
}

void LoopEmitter::emitDot(tile::DotOp op) { buffers_[op.getResult()] = DotEmitter(*this, op).emit(); }

} // namespace tenon::cpu
