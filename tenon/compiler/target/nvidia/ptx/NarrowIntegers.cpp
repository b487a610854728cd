// SPDX-License-Identifier: Apache-2.0
//
// A narrow integer that becomes a float is some bits of a word that was loaded (of two weights in a byte, four). With
// the right exponent in front of them they are a float already, but for what is to be subtracted:
//
//     %b = vector.extract %v[4] : i8 from vector<16xi8>        %w = vector.extract (vector.bitcast %v)[1] : i32
//     %h = arith.shrsi %b, 4 : i8                        ->    %x = (%w & 0xf0) ^ (0x80 | the exponent of 2^19)
//     %f = arith.sitofp %h : i8 to f32                         %f = arith.bitcast %x - (2^19 + 8)
//
// Two instructions, one of which is for the multiply-add units. To take the bits out and to convert them is two or
// three of the integer unit, which is half as wide, and conversions of bytes are slower still.
#include "tenon/compiler/target/nvidia/ptx/NarrowIntegers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// Some bits of a word, with or without a sign.
struct Field {
  Value vector, element; ///< which has the word (or half of one), or is its lower part where there is no vector
  unsigned begin, bits;
  bool isSigned;
};

Field fieldOf(Value element, bool isSigned) {
  unsigned width = element.getType().getIntOrFloatBitWidth();
  auto extract = element.getDefiningOp<vector::ExtractOp>();
  int64_t all = extract ? extract.getSourceVectorType().getNumElements() * width : 0;
  if (!extract || extract.getNumIndices() != 1 || extract.hasDynamicPosition() || (all % 32 && all != 16))
    return {{}, element, 0, width, isSigned};
  return {extract.getVector(), element, static_cast<unsigned>(extract.getStaticPosition()[0]) * width, width, isSigned};
}

/// What a narrow integer is: an element, or bits of one that constant shifts and masks leave.
Field findField(Value value, bool isSigned) {
  unsigned width = value.getType().getIntOrFloatBitWidth();
  APInt known;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() != 2 || !matchPattern(op->getOperand(1), m_ConstantInt(&known)))
    return fieldOf(value, isSigned);
  Value from = op->getOperand(0);
  if (llvm::isa<arith::AndIOp>(op) && known.isMask() && !known.isAllOnes()) {
    Field field = findField(from, from.getDefiningOp<arith::ShRSIOp>() != nullptr); // the mask drops what differs
    if (field.bits < known.countr_one())
      return fieldOf(value, isSigned);
    field.bits = known.countr_one();
    field.isSigned = false;
    return field;
  }
  bool shiftsRight = isSigned ? llvm::isa<arith::ShRSIOp>(op) : llvm::isa<arith::ShRUIOp>(op);
  if (!shiftsRight || known.uge(width))
    return fieldOf(value, isSigned);
  unsigned right = known.getZExtValue(), left = 0;
  if (auto shift = from.getDefiningOp<arith::ShLIOp>();
      shift && matchPattern(shift.getRhs(), m_ConstantInt(&known)) && known.ule(right)) {
    left = known.getZExtValue();
    from = shift.getLhs();
  }
  Field field = fieldOf(from, isSigned);
  field.begin += right - left;
  field.bits = width - right;
  return field;
}

Value floatOf(ImplicitLocOpBuilder &b, const Field &field) {
  constexpr unsigned fraction = 23, bias = 127;
  auto word = [&](uint32_t value) { return b.create<arith::ConstantIntOp>(static_cast<int32_t>(value), 32); };
  Value from;
  unsigned begin = field.begin % 32;
  if (field.vector) {
    auto vector = llvm::cast<VectorType>(field.vector.getType());
    int64_t all = vector.getNumElements() * vector.getElementTypeBitWidth(), each = std::min<int64_t>(all, 32);
    Type word = b.getIntegerType(static_cast<unsigned>(each));
    Value words = b.create<vector::BitCastOp>(VectorType::get({all / each}, word), field.vector);
    from = b.create<vector::ExtractOp>(words, static_cast<int64_t>(field.begin / 32));
    if (each < 32)
      from = b.create<arith::ExtUIOp>(b.getI32Type(), from);
  } else {
    from = b.create<arith::ExtUIOp>(b.getI32Type(), field.element);
  }
  if (begin + field.bits > fraction) {
    from = b.create<arith::ShRUIOp>(from, word(16));
    begin -= 16;
  }
  uint32_t mask = ((uint32_t(1) << field.bits) - 1) << begin;
  uint32_t sign = field.isSigned ? uint32_t(1) << (field.bits - 1) : 0; // in two's complement it counts down
  uint32_t exponent = (bias + fraction - begin) << fraction;
  Value bits = b.create<arith::XOrIOp>(b.create<arith::AndIOp>(from, word(mask)), word(sign << begin | exponent));
  double added = static_cast<double>((uint32_t(1) << (fraction - begin)) + sign);
  return b.create<arith::SubFOp>(
      b.create<arith::BitcastOp>(b.getF32Type(), bits),
      b.create<arith::ConstantFloatOp>(llvm::APFloat(static_cast<float>(added)), b.getF32Type()));
}

} // namespace

void convertNarrowIntegers(Operation *function) {
  function->walk([](Operation *op) {
    if (!llvm::isa<arith::SIToFPOp, arith::UIToFPOp>(op))
      return;
    Type from = op->getOperand(0).getType();
    if (!op->getResult(0).getType().isF32() || !(from.isInteger(8) || from.isInteger(16)))
      return;
    ImplicitLocOpBuilder b(op->getLoc(), op);
    op->getResult(0).replaceAllUsesWith(floatOf(b, findField(op->getOperand(0), llvm::isa<arith::SIToFPOp>(op))));
  });
}

} // namespace tenon::nvidia
