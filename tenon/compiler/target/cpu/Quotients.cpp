// SPDX-License-Identifier: Apache-2.0
//
// Quotients of f32 with one divisor for all lanes, and usually all of a row or of the kernel (a softmax's sum, what a
// dropout scales by), by its reciprocal: a division of 16 lanes takes 9 cycles on a Xeon, and two of them do not
// overlap.
//
// Where the result is only seen rounded to 16 bits it is the product, two roundings more. Else the product q is put
// right by what it leaves over, which is exact in a multiply-add:
//
//     r = 1 / d           q = a r           q + (a - q d) r
//
// That is the quotient, correctly rounded (Markstein), as long as nothing overflows or loses digits. So a vector with a
// number outside of [2^-60, 2^60], 0 among them, is divided.
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

/// Numbers of f32 whose magnitude is in [2^-60, 2^60); a vector or one.
Value isModerate(ImplicitLocOpBuilder &b, Value value) {
  constexpr int64_t exponentBit = 1 << 23, lowest = (127 - 60) * exponentBit, count = 120 * exponentBit;
  Type bits = typeLike(value, b.getI32Type());
  Value magnitude = b.create<arith::AndIOp>(b.create<arith::BitcastOp>(bits, value), constantBits(b, bits, 0x7fffffff));
  Value above = b.create<arith::SubIOp>(magnitude, constantBits(b, bits, lowest));
  return b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, above, constantBits(b, bits, count));
}

/// A division by it is exact, or LLVM makes it a product.
bool isPowerOfTwo(Value tile) {
  llvm::APFloat number(0.0);
  if (!matchPattern(tile, m_ConstantFloat(&number)))
    return false;
  llvm::APFloat inverse(0.0);
  return number.getExactInverse(&inverse);
}

} // namespace

/// Null: divide.
Value Nest::byReciprocal(arith::DivFOp op, Value dividend, Value divisor) {
  if (op->hasAttr(tile::relaxedAttr))
    return relaxedByReciprocal(dividend, divisor);
  constexpr unsigned withMultiplyAdd = 32; // bytes of a vector
  unsigned lanes = lanesOf(dividend);
  bool isWhole = lanes == vectorLanes_ && lanes % 8 == 0;
  // Of the program's type: registers hold bf16 as f32, and its quotients are rounded each.
  if (!getElementTypeOrSelf(op.getType()).isF32() || !isWhole || e_.isa().vectorBytes < withMultiplyAdd ||
      isPowerOfTwo(op.getRhs()))
    return {};
  return exactByReciprocal(dividend, divisor);
}

/// A subnormal divisor may have no finite reciprocal; the largest ones have a subnormal one, of 21 bits. The choice is
/// one for the whole loop, and made by integers, which have units of their own.
Value Nest::relaxedByReciprocal(Value dividend, Value divisor) {
  constexpr int64_t leastNormal = 1 << 23;
  Type i32 = b_.getI32Type();
  Value reciprocal = b_.create<arith::DivFOp>(constantLike(b_, b_.getF32Type(), 1), divisor);
  Value size = b_.create<arith::AndIOp>(b_.create<arith::BitcastOp>(i32, divisor), constantBits(b_, i32, 0x7fffffff));
  Value isTiny = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, size, constantBits(b_, i32, leastNormal));
  auto branch = b_.create<scf::IfOp>(TypeRange{dividend.getType()}, isTiny, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToEnd(branch.thenBlock());
  Value divided = b_.create<arith::DivFOp>(dividend, splatTo(b_, divisor, lanesOf(dividend)));
  b_.create<scf::YieldOp>(divided);
  b_.setInsertionPointToEnd(branch.elseBlock());
  Value multiplied = b_.create<arith::MulFOp>(dividend, splatTo(b_, reciprocal, lanesOf(dividend)));
  b_.create<scf::YieldOp>(multiplied);
  return branch.getResult(0);
}

Value Nest::exactByReciprocal(Value dividend, Value divisor) {
  unsigned lanes = lanesOf(dividend);
  Value one = constantLike(b_, b_.getF32Type(), 1), once = b_.create<arith::DivFOp>(one, divisor);
  Value divisors = splatTo(b_, divisor, lanes), reciprocals = splatTo(b_, once, lanes);
  Type word = b_.getIntegerType(lanes);
  Value each = b_.create<LLVM::BitcastOp>(word, isModerate(b_, dividend));
  Value all = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, each,
                                       b_.create<arith::ConstantOp>(b_.getIntegerAttr(word, -1)));
  Value may = b_.create<arith::AndIOp>(all, isModerate(b_, divisor));
  auto branch = b_.create<scf::IfOp>(TypeRange{dividend.getType()}, may, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToEnd(branch.thenBlock());
  Value quotient = b_.create<arith::MulFOp>(dividend, reciprocals);
  Value rest = b_.create<math::FmaOp>(b_.create<arith::NegFOp>(quotient), divisors, dividend);
  b_.create<scf::YieldOp>(ValueRange{b_.create<math::FmaOp>(rest, reciprocals, quotient)});
  b_.setInsertionPointToEnd(branch.elseBlock());
  b_.create<scf::YieldOp>(ValueRange{b_.create<arith::DivFOp>(dividend, divisors)});
  return branch.getResult(0);
}

} // namespace tenon::cpu
