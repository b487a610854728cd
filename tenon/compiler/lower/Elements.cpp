// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/lower/Elements.h"

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace tenon::lower {
namespace {

bool isSmallFloat(Type type) { return type.isF16() || type.isBF16() || type.isFloat8E4M3FN() || type.isFloat8E5M2(); }

using Builder = ImplicitLocOpBuilder;

Value select(Builder &b, Value condition, Value a, Value c) { return b.create<arith::SelectOp>(condition, a, c); }
Value compare(Builder &b, arith::CmpFPredicate predicate, Value x, Value y) {
  return b.create<arith::CmpFOp>(predicate, x, y);
}
Value isNaN(Builder &b, Value x) { return compare(b, arith::CmpFPredicate::UNO, x, x); }

/// f32 -> the nearest value with `kept` mantissa bits, ties to even; NaN is not kept.
Value roundMantissa(Builder &b, Value x, unsigned kept) {
  unsigned drop = 23 - kept;
  Type i32 = typeLike(x, b.getI32Type());
  Value bits = b.create<arith::BitcastOp>(i32, x);
  Value lsb = b.create<arith::AndIOp>(
      b.create<arith::ShRUIOp>(bits, constantBits(b, i32, drop)), constantBits(b, i32, 1));
  Value rounded = b.create<arith::AddIOp>(
      bits, b.create<arith::AddIOp>(lsb, constantBits(b, i32, (1 << (drop - 1)) - 1)));
  rounded = b.create<arith::AndIOp>(rounded, constantBits(b, i32, ~((int64_t(1) << drop) - 1)));
  return b.create<arith::BitcastOp>(x.getType(), rounded);
}

Value roundToFloat8(Builder &b, Value x, unsigned mantissaBits, double minNormal, double maxFinite) {
  Value magnitude = b.create<math::AbsFOp>(x);
  Value normal = roundMantissa(b, magnitude, mantissaBits);
  // Below the smallest normal the spacing is constant: scale it to 1, round to an integer, scale back. All exact.
  double spacing = minNormal * std::ldexp(1.0, -static_cast<int>(mantissaBits));
  Type type = x.getType();
  Value scaled = b.create<arith::MulFOp>(magnitude, constantLike(b, type, 1 / spacing));
  Value subnormal = b.create<arith::MulFOp>(b.create<math::RoundEvenOp>(scaled), constantLike(b, type, spacing));
  Value rounded = select(
      b, compare(b, arith::CmpFPredicate::OLT, magnitude, constantLike(b, type, minNormal)), subnormal, normal);
  Value largest = constantLike(b, type, maxFinite);
  rounded = select(b, compare(b, arith::CmpFPredicate::OGT, rounded, largest), largest, rounded);
  // NaN compares false everywhere above and came through the integer path: restore it.
  rounded = select(b, isNaN(b, x), x, rounded);
  return b.create<math::CopySignOp>(rounded, x);
}

/// f64 -> f32 such that a second rounding to at most 22 bits gives what one rounding would have: to odd.
Value narrowToOdd(Builder &b, Value x) {
  Type f32 = typeLike(x, b.getF32Type()), i32 = typeLike(x, b.getI32Type());
  Value nearest = b.create<arith::TruncFOp>(f32, x);
  Value back = b.create<arith::ExtFOp>(x.getType(), nearest);
  Value bits = b.create<arith::BitcastOp>(i32, nearest);
  // Step back where rounding went away from zero, then set the last bit where anything was lost.
  Value away = compare(b, arith::CmpFPredicate::OGT, b.create<math::AbsFOp>(back), b.create<math::AbsFOp>(x));
  Value one = constantBits(b, i32, 1), zero = constantBits(b, i32, 0);
  bits = b.create<arith::SubIOp>(bits, select(b, away, one, zero));
  Value inexact = compare(b, arith::CmpFPredicate::ONE, back, x);
  bits = b.create<arith::OrIOp>(bits, select(b, inexact, one, zero));
  return b.create<arith::BitcastOp>(f32, bits);
}

/// Float to integer: towards zero, saturating, NaN gives 0.
Value floatToInt(Builder &b, Value x, IntegerType to, bool isUnsigned) {
  unsigned width = to.getWidth();
  // Narrow integers go through i32, where the conversion is one instruction.
  Type wide = typeLike(x, width < 32 ? b.getI32Type() : to);
  double limit = std::ldexp(1.0, isUnsigned ? width : width - 1);
  Value high = constantLike(b, x.getType(), limit);
  Value low = constantLike(b, x.getType(), isUnsigned ? -1.0 : -limit);
  Value below = compare(b, isUnsigned ? arith::CmpFPredicate::OLE : arith::CmpFPredicate::OLT, x, low);
  Value above = compare(b, arith::CmpFPredicate::OGE, x, high);
  Value outside = b.create<arith::OrIOp>(b.create<arith::OrIOp>(below, above), isNaN(b, x));
  Value safe = select(b, outside, constantLike(b, x.getType(), 0), x);
  Value result = isUnsigned && width >= 32 ? b.create<arith::FPToUIOp>(wide, safe).getResult()
                                           : b.create<arith::FPToSIOp>(wide, safe).getResult();
  int64_t largest = isUnsigned ? (width == 64 ? -1 : (int64_t(1) << width) - 1) : llvm::maxIntN(width);
  int64_t smallest = isUnsigned ? 0 : llvm::minIntN(width);
  result = select(b, above, constantBits(b, wide, largest), result);
  result = select(b, below, constantBits(b, wide, smallest), result);
  return width < 32 ? b.create<arith::TruncIOp>(typeLike(x, to), result).getResult() : result;
}

Value intToFloat(Builder &b, Value x, IntegerType from, Type to, bool isUnsigned, Rounding rounding) {
  // Through f64 for a small float: every integer up to 53 bits is exact there, so rounding happens once.
  Type wide = isSmallFloat(to) && from.getWidth() >= 32 ? b.getF64Type() : registerType(to);
  if (isSmallFloat(to) && from.getWidth() == 64) {
    // Larger ones: replace the low bits, far below what survives, by one bit that says whether they were zero.
    Type type = x.getType();
    Value low = b.create<arith::AndIOp>(x, constantBits(b, type, 0xfff));
    Value lost = b.create<arith::CmpIOp>(arith::CmpIPredicate::ne, low, constantBits(b, type, 0));
    Value high = b.create<arith::AndIOp>(x, constantBits(b, type, ~int64_t(0xfff)));
    Value marked = b.create<arith::OrIOp>(high, select(b, lost, constantBits(b, type, 0x800), constantBits(b, type, 0)));
    Value shifted = b.create<arith::AddIOp>(x, constantBits(b, type, int64_t(1) << 52));
    Value exact = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, shifted, constantBits(b, type, int64_t(1) << 53));
    x = select(b, exact, x, marked);
  }
  Value value = isUnsigned ? b.create<arith::UIToFPOp>(typeLike(x, wide), x).getResult()
                           : b.create<arith::SIToFPOp>(typeLike(x, wide), x).getResult();
  return castElements(b, value, wide, to, false, rounding);
}

//===--- Integer operations with every case defined ---------------------------------------------------------------===//

bool isConstant(Value value) {
  if (auto splat = value.getDefiningOp<vector::SplatOp>())
    value = splat.getInput();
  return matchPattern(value, m_Constant());
}

/// Vectors of integers have no division, and are taken apart for one lane by lane. Floats have one, and a quotient of
/// numbers that they hold is right once it is cut off: it is at least 1 / |y| below the next whole number, and rounded
/// by less (x of 16 bits with 24 in a float, of 32 with 53). y is not 0; x / y must not overflow.
Value divideAsFloats(Builder &b, Value x, Value y, bool isUnsigned, bool isShort) {
  Type wide = typeLike(x, isShort ? Type(b.getF32Type()) : Type(b.getF64Type()));
  auto real = [&](Value number) {
    return isUnsigned ? b.create<arith::UIToFPOp>(wide, number).getResult()
                      : b.create<arith::SIToFPOp>(wide, number).getResult();
  };
  Value quotient = b.create<arith::DivFOp>(real(x), real(y));
  return isUnsigned ? b.create<arith::FPToUIOp>(x.getType(), quotient).getResult()
                    : b.create<arith::FPToSIOp>(x.getType(), quotient).getResult();
}

/// The same of 64 bits, which f64 has not. With a = |x| and d = |y|: a quotient that is off by a few thousand, where a
/// is large, what is left of a, the quotient of that, which is off by one, and what is then put right. One reciprocal,
/// which is the same for all where d is.
Value divideLong(Builder &b, Value x, Value y) {
  Type type = x.getType(), wide = typeLike(x, b.getF64Type());
  Value zero = constantBits(b, type, 0), one = constantBits(b, type, 1);
  auto isNegative = [&](Value number) { return b.create<arith::CmpIOp>(arith::CmpIPredicate::slt, number, zero); };
  auto negated = [&](Value number) { return b.create<arith::SubIOp>(zero, number); };
  Value a = select(b, isNegative(x), negated(x), x), d = select(b, isNegative(y), negated(y), y);
  Value reciprocal = b.create<arith::DivFOp>(constantLike(b, wide, 1), b.create<arith::UIToFPOp>(wide, d));
  Value first = b.create<arith::MulFOp>(b.create<arith::UIToFPOp>(wide, a), reciprocal);
  // The largest f64 that an i64 holds.
  first = b.create<arith::MinNumFOp>(first, constantLike(b, wide, 0x1.fffffffffffffp62));
  Value quotient = b.create<arith::FPToSIOp>(type, first);
  Value rest = b.create<arith::SubIOp>(a, b.create<arith::MulIOp>(quotient, d));
  Value more = b.create<arith::FPToSIOp>(
      type, b.create<math::FloorOp>(b.create<arith::MulFOp>(b.create<arith::SIToFPOp>(wide, rest), reciprocal)));
  quotient = b.create<arith::AddIOp>(quotient, more);
  rest = b.create<arith::SubIOp>(rest, b.create<arith::MulIOp>(more, d));
  Value isTooMuch = isNegative(rest), isTooLittle = b.create<arith::CmpIOp>(arith::CmpIPredicate::uge, rest, d);
  quotient = select(b, isTooMuch, b.create<arith::SubIOp>(quotient, one),
                    select(b, isTooLittle, b.create<arith::AddIOp>(quotient, one), quotient));
  Value differ = isNegative(b.create<arith::XOrIOp>(x, y));
  return select(b, differ, negated(quotient), quotient);
}

Value quotientOf(Builder &b, Value x, Value y, bool isUnsigned, bool byConstant) {
  Type element = getElementTypeOrSelf(x.getType());
  int64_t width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  bool inLanes = lanesOf(x) > 1 && !byConstant && !element.isIndex(); // by a constant: multiplied and shifted
  if (inLanes && width <= 32)
    return divideAsFloats(b, x, y, isUnsigned, width <= 16);
  if (inLanes && !isUnsigned)
    return divideLong(b, x, y);
  return isUnsigned ? b.create<arith::DivUIOp>(x, y).getResult() : b.create<arith::DivSIOp>(x, y).getResult();
}

Value divide(Builder &b, Value x, Value y, bool isUnsigned) {
  Type type = x.getType();
  Value zero = constantBits(b, type, 0), one = constantBits(b, type, 1);
  Value byZero = b.create<arith::CmpIOp>(arith::CmpIPredicate::eq, y, zero);
  if (isUnsigned) {
    Value quotient = quotientOf(b, x, select(b, byZero, one, y), isUnsigned, isConstant(y));
    return select(b, byZero, zero, quotient);
  }
  // x / -1 is -x, which wraps for the smallest integer where the machine would trap.
  Value byMinusOne = b.create<arith::CmpIOp>(arith::CmpIPredicate::eq, y, constantBits(b, type, -1));
  Value special = b.create<arith::OrIOp>(byZero, byMinusOne);
  Value quotient = quotientOf(b, x, select(b, special, one, y), isUnsigned, isConstant(y));
  quotient = select(b, byMinusOne, b.create<arith::SubIOp>(zero, x), quotient);
  return select(b, byZero, zero, quotient);
}

Value shift(Builder &b, Value x, Value amount, bool left, bool isUnsigned) {
  Type type = x.getType(), element = getElementTypeOrSelf(type);
  int64_t width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  if (APInt known; matchPattern(amount, m_ConstantInt(&known)) && known.ult(width)) {
    if (left)
      return b.create<arith::ShLIOp>(x, amount);
    return isUnsigned ? b.create<arith::ShRUIOp>(x, amount).getResult()
                      : b.create<arith::ShRSIOp>(x, amount).getResult();
  }
  Value limit = constantBits(b, type, width - 1);
  Value tooFar = b.create<arith::CmpIOp>(arith::CmpIPredicate::ugt, amount, limit);
  Value safe = select(b, tooFar, limit, amount);
  if (!left && !isUnsigned)
    return b.create<arith::ShRSIOp>(x, safe); // by width - 1 leaves the sign, which is what more would give
  Value shifted = left ? b.create<arith::ShLIOp>(x, safe).getResult() : b.create<arith::ShRUIOp>(x, safe).getResult();
  return select(b, tooFar, constantBits(b, type, 0), shifted);
}

} // namespace

//===--- Types and constants --------------------------------------------------------------------------------------===//

Type registerType(Type element) { return isSmallFloat(element) ? Float32Type::get(element.getContext()) : element; }

Type memoryType(Type element) {
  MLIRContext *context = element.getContext();
  if (element.isBF16())
    return IntegerType::get(context, 16);
  if (element.isFloat8E4M3FN() || element.isFloat8E5M2() || element.isInteger(1))
    return IntegerType::get(context, 8);
  return element;
}

Type scratchType(Type element) {
  return element.isInteger(1) ? Type(IntegerType::get(element.getContext(), 8)) : registerType(element);
}

unsigned byteSize(Type element) { return element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8; }

Type typeLike(Value like, Type element) {
  if (auto vector = llvm::dyn_cast<VectorType>(like.getType()))
    return VectorType::get(vector.getShape(), element);
  return element;
}

Value constantLike(Builder &b, Type type, double value) {
  auto element = llvm::cast<FloatType>(getElementTypeOrSelf(type));
  TypedAttr attribute = b.getFloatAttr(element, value);
  if (auto vector = llvm::dyn_cast<VectorType>(type))
    attribute = SplatElementsAttr::get(vector, Attribute(attribute));
  return b.create<arith::ConstantOp>(attribute);
}

Value constantBits(Builder &b, Type type, int64_t value) {
  Type element = getElementTypeOrSelf(type);
  unsigned width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  TypedAttr attribute = IntegerAttr::get(element, llvm::APInt(width, static_cast<uint64_t>(value), false));
  if (auto vector = llvm::dyn_cast<VectorType>(type))
    attribute = SplatElementsAttr::get(vector, Attribute(attribute));
  return b.create<arith::ConstantOp>(attribute);
}

unsigned lanesOf(Value value) {
  auto vector = llvm::dyn_cast<VectorType>(value.getType());
  return vector ? vector.getDimSize(0) : 0;
}

Value splatTo(Builder &b, Value value, unsigned lanes) {
  if (lanes == 0 || lanesOf(value))
    return value;
  return b.create<vector::SplatOp>(VectorType::get({lanes}, value.getType()), value);
}

void unifyLanes(Builder &b, MutableArrayRef<Value> values) {
  unsigned lanes = 0;
  for (Value value : values)
    lanes = std::max(lanes, lanesOf(value));
  for (Value &value : values)
    value = splatTo(b, value, lanes);
}

//===--- Between memory and registers -----------------------------------------------------------------------------===//

Value fromMemory(Builder &b, Value raw, Type element) {
  Type f32 = typeLike(raw, b.getF32Type()), i32 = typeLike(raw, b.getI32Type());
  if (element.isBF16()) {
    Value wide = b.create<arith::ExtUIOp>(i32, raw);
    return b.create<arith::BitcastOp>(f32, b.create<arith::ShLIOp>(wide, constantBits(b, i32, 16)));
  }
  if (element.isF16())
    return b.create<arith::ExtFOp>(f32, raw);
  if (element.isInteger(1))
    return b.create<arith::CmpIOp>(arith::CmpIPredicate::ne, raw, constantBits(b, raw.getType(), 0));
  Type i16 = typeLike(raw, b.getI16Type()), f16 = typeLike(raw, b.getF16Type());
  if (element.isFloat8E5M2()) { // the high byte of an f16
    Value bits = b.create<arith::ShLIOp>(b.create<arith::ExtUIOp>(i16, raw), constantBits(b, i16, 8));
    return b.create<arith::ExtFOp>(f32, b.create<arith::BitcastOp>(f16, bits).getResult());
  }
  if (element.isFloat8E4M3FN()) {
    // Placed in an f16 its exponent is biased by 15 instead of 7: 2^8 too small, subnormals included.
    Value byte = b.create<arith::ExtUIOp>(i16, raw);
    Value magnitude = b.create<arith::AndIOp>(byte, constantBits(b, i16, 0x7f));
    Value sign = b.create<arith::AndIOp>(byte, constantBits(b, i16, 0x80));
    Value bits = b.create<arith::OrIOp>(b.create<arith::ShLIOp>(magnitude, constantBits(b, i16, 7)),
                                        b.create<arith::ShLIOp>(sign, constantBits(b, i16, 8)));
    Value value = b.create<arith::ExtFOp>(f32, b.create<arith::BitcastOp>(f16, bits).getResult());
    value = b.create<arith::MulFOp>(value, constantLike(b, f32, 256));
    Value nan = b.create<arith::CmpIOp>(arith::CmpIPredicate::eq, magnitude, constantBits(b, i16, 0x7f));
    return select(b, nan, constantLike(b, f32, std::numeric_limits<double>::quiet_NaN()), value);
  }
  return raw;
}

Value toMemory(Builder &b, Value value, Type element) {
  Type i32 = typeLike(value, b.getI32Type()), i16 = typeLike(value, b.getI16Type());
  Type i8 = typeLike(value, b.getI8Type()), f16 = typeLike(value, b.getF16Type());
  if (element.isBF16()) {
    Value bits = b.create<arith::BitcastOp>(i32, value);
    return b.create<arith::TruncIOp>(i16, b.create<arith::ShRUIOp>(bits, constantBits(b, i32, 16)));
  }
  if (element.isF16())
    return b.create<arith::TruncFOp>(f16, value);
  if (element.isInteger(1))
    return b.create<arith::ExtUIOp>(i8, value);
  if (element.isFloat8E5M2()) {
    Value bits = b.create<arith::BitcastOp>(i16, b.create<arith::TruncFOp>(f16, value));
    return b.create<arith::TruncIOp>(i8, b.create<arith::ShRUIOp>(bits, constantBits(b, i16, 8)));
  }
  if (element.isFloat8E4M3FN()) {
    Value scaled = b.create<arith::MulFOp>(value, constantLike(b, value.getType(), 1.0 / 256));
    Value bits = b.create<arith::BitcastOp>(i16, b.create<arith::TruncFOp>(f16, scaled));
    Value magnitude = b.create<arith::AndIOp>(b.create<arith::ShRUIOp>(bits, constantBits(b, i16, 7)),
                                              constantBits(b, i16, 0x7f));
    magnitude = select(b, isNaN(b, value), constantBits(b, i16, 0x7f), magnitude);
    Value sign = b.create<arith::AndIOp>(b.create<arith::ShRUIOp>(bits, constantBits(b, i16, 8)),
                                         constantBits(b, i16, 0x80));
    return b.create<arith::TruncIOp>(i8, b.create<arith::OrIOp>(magnitude, sign));
  }
  return value;
}

Value roundTo(Builder &b, Value value, Type element) {
  if (element.isBF16())
    return select(b, isNaN(b, value), constantLike(b, value.getType(), std::numeric_limits<double>::quiet_NaN()),
                  roundMantissa(b, value, 7));
  if (element.isF16())
    return b.create<arith::ExtFOp>(value.getType(),
                                   b.create<arith::TruncFOp>(typeLike(value, element), value).getResult());
  if (element.isFloat8E4M3FN())
    return roundToFloat8(b, value, 3, 0x1p-6, 448);
  if (element.isFloat8E5M2())
    return roundToFloat8(b, value, 2, 0x1p-14, 57344);
  return value;
}

Value bitsTiesAway(Builder &b, Value value) {
  constexpr int64_t half = 0x8000; // of the last place that is kept
  Type i32 = typeLike(value, b.getI32Type());
  return b.create<arith::AddIOp>(b.create<arith::BitcastOp>(i32, value), constantBits(b, i32, half));
}

//===--- Operations -----------------------------------------------------------------------------------------------===//

Value castElements(Builder &b, Value value, Type from, Type to, bool isUnsigned, Rounding rounding) {
  if (from == to)
    return value;
  auto round = [&](Value wide) { return rounding == Rounding::now ? roundTo(b, wide, to) : wide; };
  if (from.isIndex() || to.isIndex()) { // scalars only
    if (from.isIndex())
      return castElements(b, b.create<arith::IndexCastOp>(b.getI64Type(), value), b.getI64Type(), to, false, rounding);
    return b.create<arith::IndexCastOp>(to, castElements(b, value, from, b.getI64Type(), isUnsigned));
  }
  auto fromInt = llvm::dyn_cast<IntegerType>(from), toInt = llvm::dyn_cast<IntegerType>(to);
  if (fromInt && toInt) {
    Type type = typeLike(value, to);
    if (toInt.getWidth() < fromInt.getWidth())
      return b.create<arith::TruncIOp>(type, value);
    return isUnsigned || from.isInteger(1) ? b.create<arith::ExtUIOp>(type, value).getResult()
                                           : b.create<arith::ExtSIOp>(type, value).getResult();
  }
  if (fromInt)
    return intToFloat(b, value, fromInt, to, isUnsigned || from.isInteger(1), rounding);
  if (toInt)
    return floatToInt(b, value, toInt, isUnsigned || to.isInteger(1)); // a boolean is 0 or 1, never -1
  Type wideTo = registerType(to);
  if (from.isF64()) {
    if (to.isF32())
      return b.create<arith::TruncFOp>(typeLike(value, to), value);
    return round(narrowToOdd(b, value));
  }
  if (wideTo.isF64())
    return b.create<arith::ExtFOp>(typeLike(value, wideTo), value);
  return round(value);
}

bool isElementwise(Operation *op) {
  if (llvm::isa<tile::CastOp, tile::DivOp, tile::RemOp, tile::ShlOp, tile::ShrOp>(op))
    return true;
  Dialect *dialect = op->getDialect();
  return dialect && op->getNumResults() == 1 && !llvm::isa<arith::ConstantOp>(op) &&
         llvm::isa<arith::ArithDialect, math::MathDialect>(dialect);
}

bool roundsResult(Operation *op) {
  // What only picks an operand or changes its sign needs no rounding, and must not saturate a stored infinity.
  return isSmallFloat(getElementTypeOrSelf(op->getResult(0).getType())) &&
         !llvm::isa<arith::SelectOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
                    arith::NegFOp, math::AbsFOp, math::CopySignOp, arith::BitcastOp>(op);
}

Value elementwise(Builder &b, Operation *op, ArrayRef<Value> originals, Rounding rounding) {
  if (!isElementwise(op))
    return {};
  SmallVector<Value> operands(originals);
  unifyLanes(b, operands);
  Type resultElement = getElementTypeOrSelf(op->getResult(0).getType());
  Type operandElement = getElementTypeOrSelf(op->getOperand(0).getType());
  if (op->hasAttr(tile::tiesAwayAttr)) {
    assert(rounding == Rounding::now && "whoever rounds later would take ties to even");
    Value bits = bitsTiesAway(b, operands[0]);
    bits = b.create<arith::AndIOp>(bits, constantBits(b, bits.getType(), 0xffff0000));
    return b.create<arith::BitcastOp>(operands[0].getType(), bits);
  }
  if (auto cast = llvm::dyn_cast<tile::CastOp>(op))
    return castElements(b, operands[0], operandElement, resultElement, cast.getIsUnsigned(), rounding);
  if (auto div = llvm::dyn_cast<tile::DivOp>(op))
    return divide(b, operands[0], operands[1], div.getIsUnsigned());
  if (auto rem = llvm::dyn_cast<tile::RemOp>(op)) {
    Value quotient = divide(b, operands[0], operands[1], rem.getIsUnsigned());
    return b.create<arith::SubIOp>(operands[0], b.create<arith::MulIOp>(quotient, operands[1]));
  }
  if (auto shl = llvm::dyn_cast<tile::ShlOp>(op))
    return shift(b, operands[0], operands[1], /*left=*/true, shl.getIsUnsigned());
  if (auto shr = llvm::dyn_cast<tile::ShrOp>(op))
    return shift(b, operands[0], operands[1], /*left=*/false, shr.getIsUnsigned());
  if (llvm::isa<arith::BitcastOp>(op)) { // between memory forms: those are the bits
    Value bits = toMemory(b, operands[0], operandElement);
    Type memory = typeLike(bits, memoryType(resultElement));
    if (memory != bits.getType())
      bits = b.create<arith::BitcastOp>(memory, bits);
    return fromMemory(b, bits, resultElement);
  }
  if (llvm::isa<arith::ExtFOp, arith::TruncFOp>(op))
    return castElements(b, operands[0], operandElement, resultElement, false, rounding);
  OperationState state(b.getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(typeLike(operands.back(), registerType(resultElement)));
  state.addAttributes(op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  Value result = b.create(state)->getResult(0);
  return rounding == Rounding::now && roundsResult(op) ? roundTo(b, result, resultElement) : result;
}

SmallVector<Value> combineElements(Builder &b, Region &region, ArrayRef<Value> left, ArrayRef<Value> right) {
  IRMapping mapping;
  Block &block = region.front();
  for (auto [i, value] : llvm::enumerate(left))
    mapping.map(block.getArgument(i), value);
  for (auto [i, value] : llvm::enumerate(right))
    mapping.map(block.getArgument(left.size() + i), value);
  for (Operation &op : block.without_terminator()) {
    if (auto constant = llvm::dyn_cast<arith::ConstantOp>(op)) {
      Type type = registerType(constant.getType());
      Value value = llvm::isa<FloatType>(type)
                        ? constantLike(b, type, llvm::cast<FloatAttr>(constant.getValue()).getValueAsDouble())
                        : b.create<arith::ConstantOp>(constant.getValue()).getResult();
      mapping.map(constant.getResult(), value);
      continue;
    }
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      operands.push_back(mapping.lookup(operand));
    mapping.map(op.getResult(0), elementwise(b, &op, operands));
  }
  SmallVector<Value> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(mapping.lookup(value));
  unsigned lanes = left.empty() ? 0 : lanesOf(left[0]);
  for (Value &value : results)
    value = splatTo(b, value, lanes); // a region may ignore its arguments
  return results;
}

std::optional<SmallVector<TypedAttr>> neutralElements(Region &region) {
  Block &block = region.front();
  if (block.getNumArguments() != 2 || std::distance(block.begin(), block.end()) != 2)
    return std::nullopt;
  Operation &op = block.front();
  if (op.getNumOperands() != 2 || op.getOperand(0) == op.getOperand(1) ||
      block.getTerminator()->getOperand(0) != op.getResult(0))
    return std::nullopt;
  Type type = registerType(op.getResult(0).getType());
  ::mlir::Builder b(region.getContext());
  auto real = [&](double value) -> SmallVector<TypedAttr> { return {b.getFloatAttr(type, value)}; };
  auto integer = [&](llvm::APInt value) -> SmallVector<TypedAttr> { return {b.getIntegerAttr(type, value)}; };
  unsigned width = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return llvm::TypeSwitch<Operation *, std::optional<SmallVector<TypedAttr>>>(&op)
      .Case<arith::AddFOp>([&](auto) { return real(-0.0); })
      .Case<arith::MulFOp>([&](auto) { return real(1); })
      .Case<arith::MaximumFOp>([&](auto) { return real(-infinity); })
      .Case<arith::MinimumFOp>([&](auto) { return real(infinity); })
      .Case<arith::AddIOp, arith::OrIOp, arith::XOrIOp, arith::MaxUIOp>(
          [&](auto) { return integer(llvm::APInt::getZero(width)); })
      .Case<arith::MulIOp>([&](auto) { return integer(llvm::APInt(width, 1)); })
      .Case<arith::AndIOp, arith::MinUIOp>([&](auto) { return integer(llvm::APInt::getAllOnes(width)); })
      .Case<arith::MaxSIOp>([&](auto) { return integer(llvm::APInt::getSignedMinValue(width)); })
      .Case<arith::MinSIOp>([&](auto) { return integer(llvm::APInt::getSignedMaxValue(width)); })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace tenon::lower
