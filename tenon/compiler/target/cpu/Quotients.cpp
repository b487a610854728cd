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
// number outside of [2^-63, 2^65), 0 among them, is divided, and so are all by a divisor outside of [2^-60, 2^60).
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;

namespace tenon::cpu {
namespace {

constexpr int64_t exponentBit = 1 << 23;

/// Whether the magnitude of a number of f32 is in [2^-60, 2^60).
Value isModerate(ImplicitLocOpBuilder &b, Value number) {
  constexpr int64_t lowest = (127 - 60) * exponentBit, count = 120 * exponentBit;
  Type i32 = b.getI32Type();
  Value magnitude = b.create<arith::AndIOp>(b.create<arith::BitcastOp>(i32, number), constantBits(b, i32, 0x7fffffff));
  Value above = b.create<arith::SubIOp>(magnitude, constantBits(b, i32, lowest));
  return b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, above, constantBits(b, i32, count));
}

/// Whether all magnitudes of a vector are in [2^-63, 2^65): the exponents, 64 to 191, have their upper bit when they
/// are 64 more, and no others have. Registers are brought together before they are tested.
Value areModerate(ImplicitLocOpBuilder &b, Value numbers, int64_t registerLanes) {
  Type bits = typeLike(numbers, b.getI32Type());
  Value moved =
      b.create<arith::AddIOp>(b.create<arith::BitcastOp>(bits, numbers), constantBits(b, bits, 64 * exponentBit));
  auto lanes = static_cast<int32_t>(lanesOf(numbers));
  for (; lanes % 2 == 0 && lanes > registerLanes; lanes /= 2) {
    SmallVector<int32_t> places(lanes);
    std::iota(places.begin(), places.end(), 0);
    auto half = [&](ArrayRef<int32_t> of) { return b.create<LLVM::ShuffleVectorOp>(moved, moved, of); };
    ArrayRef<int32_t> all = places;
    moved = b.create<arith::AndIOp>(half(all.take_front(lanes / 2)), half(all.drop_front(lanes / 2)));
  }
  constexpr int64_t upper = 128 * exponentBit;
  bits = moved.getType();
  Value each = b.create<arith::CmpIOp>(arith::CmpIPredicate::ne,
                                       b.create<arith::AndIOp>(moved, constantBits(b, bits, upper)),
                                       constantBits(b, bits, 0));
  Type word = b.getIntegerType(lanes);
  return b.create<arith::CmpIOp>(arith::CmpIPredicate::eq, b.create<LLVM::BitcastOp>(word, each),
                                 b.create<arith::ConstantOp>(b.getIntegerAttr(word, -1)));
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
  Value all = areModerate(b_, dividend, e_.isa().vectorBytes / 4);
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
