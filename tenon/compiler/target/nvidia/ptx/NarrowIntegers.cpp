// SPDX-License-Identifier: Apache-2.0
//
// A GPU converts integers of 32 bits to f32 four times as fast as narrower ones, and shifts words only. So where a
// narrow integer becomes a float, it and the shifts and masks that it comes from (the two weights in a byte) are
// computed in 32 bits, from the word that was loaded:
//
//     %b = vector.extract %v[6] : i8 from vector<16xi8>        %w = vector.extract (vector.bitcast %v)[1] : i32
//     %h = arith.shrsi %b, 4 : i8                        ->    %h = (%w << 8) >> 28
//     %f = arith.sitofp %h : i8 to f32                         %f = arith.sitofp %h : i32 to f32
#include "tenon/compiler/target/nvidia/ptx/NarrowIntegers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

class Widener {
public:
  Widener(ImplicitLocOpBuilder &b, bool isSigned) : b_(b), isSigned_(isSigned) {}

  /// The value in 32 bits, of which the lowest `dropped` may be anything.
  Value widened(Value value, unsigned dropped = 0) {
    unsigned width = value.getType().getIntOrFloatBitWidth();
    APInt known;
    Operation *op = value.getDefiningOp();
    if (op && op->getNumOperands() == 2 && matchPattern(op->getOperand(1), m_ConstantInt(&known))) {
      bool shiftsRight = isSigned_ ? llvm::isa<arith::ShRSIOp>(op) : llvm::isa<arith::ShRUIOp>(op);
      if (shiftsRight && known.ult(width))
        return shiftedRight(widened(op->getOperand(0), dropped + known.getZExtValue()), known.getZExtValue());
      if (llvm::isa<arith::AndIOp>(op))
        return b_.create<arith::AndIOp>(widened(op->getOperand(0)),
                                        word(isSigned_ ? known.getSExtValue() : known.getZExtValue()));
      if (llvm::isa<arith::ShLIOp>(op) && known.ult(width))
        return fromBits(op->getOperand(0), width - known.getZExtValue(), width, dropped);
    }
    return fromBits(value, width, width, dropped);
  }

private:
  Value word(int64_t value) { return b_.create<arith::ConstantIntOp>(value, 32); }

  Value shiftedRight(Value value, unsigned by) {
    if (!by)
      return value;
    return isSigned_ ? b_.create<arith::ShRSIOp>(value, word(by)).getResult()
                     : b_.create<arith::ShRUIOp>(value, word(by)).getResult();
  }

  /// The lowest `bits` of a value as the highest of a narrow integer, zeros below, but for the lowest `dropped`.
  Value fromBits(Value value, unsigned bits, unsigned width, unsigned dropped) {
    auto extract = value.getDefiningOp<vector::ExtractOp>();
    Value from;
    unsigned begin = 0;
    if (extract && extract.getNumIndices() == 1 && !extract.hasDynamicPosition() &&
        extract.getSourceVectorType().getNumElements() * width % 32 == 0) {
      unsigned all = extract.getStaticPosition()[0] * width;
      auto words = VectorType::get({extract.getSourceVectorType().getNumElements() * width / 32}, b_.getI32Type());
      from = b_.create<vector::ExtractOp>(b_.create<vector::BitCastOp>(words, extract.getVector()), all / 32);
      begin = all % 32;
    } else {
      from = b_.create<arith::ExtUIOp>(b_.getI32Type(), value);
    }
    if (begin && width - bits > dropped) // the neighbour's would be what is below
      from = b_.create<arith::AndIOp>(from, word(static_cast<int32_t>(~uint32_t(0) << begin)));
    if (unsigned by = 32 - bits - begin)
      from = b_.create<arith::ShLIOp>(from, word(by));
    return shiftedRight(from, 32 - width);
  }

  ImplicitLocOpBuilder &b_;
  bool isSigned_;
};

} // namespace

void widenConvertedIntegers(Operation *function) {
  function->walk([](Operation *op) {
    if (!llvm::isa<arith::SIToFPOp, arith::UIToFPOp>(op))
      return;
    Type from = op->getOperand(0).getType();
    if (!op->getResult(0).getType().isF32() || !(from.isInteger(8) || from.isInteger(16)))
      return;
    ImplicitLocOpBuilder b(op->getLoc(), op);
    op->setOperand(0, Widener(b, llvm::isa<arith::SIToFPOp>(op)).widened(op->getOperand(0)));
  });
}

} // namespace tenon::nvidia
