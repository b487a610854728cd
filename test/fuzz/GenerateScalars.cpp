// SPDX-License-Identifier: Apache-2.0
//
// Scalars: constants, offsets, conditions, numbers read off tiles; and element-wise operations, which serve both.
#include "ProgramGenerator.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace tenon::fuzz {

TypedAttr ProgramGenerator::constantAttr(Type type) {
  if (auto floating = llvm::dyn_cast<FloatType>(type)) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double value = random_.pick({0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -7.0, 1.5, 100.0, -0.0, 1e-5, infinity, -infinity});
    if (random_.chance(3))
      value = std::nan("");
    llvm::APFloat number(value);
    bool losesInfo;
    number.convert(floating.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return FloatAttr::get(type, number);
  }
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  uint64_t value = static_cast<uint64_t>(random_.pick<int64_t>({0, 1, -1, 2, 3, 5, 7, 31, 64, 100, -100}));
  if (random_.chance(15))
    value = random_.chance(50) ? random_.next() : uint64_t(1) << (width - 1);
  if (width == 1)
    value &= 1;
  return IntegerAttr::get(type, llvm::APInt(64, value).trunc(width));
}

Value ProgramGenerator::castScalar(Value value, Type to) {
  if (value.getType() == to)
    return value;
  bool isUnsigned = random_.chance(25) && !value.getType().isIndex() && !to.isIndex();
  return b_.create<tile::CastOp>(to, value, isUnsigned);
}

Value ProgramGenerator::anyIndex() {
  if (random_.chance(80))
    return random_.pick(pool_.indices);
  if (random_.chance(70))
    return constant(random_.range(-8, 40));
  return indexArithmetic();
}

Value ProgramGenerator::indexArithmetic() {
  Value x = random_.pick(pool_.indices);
  Value y = random_.chance(50) ? random_.pick(pool_.indices) : constant(random_.range(-4, 20));
  switch (random_.range(0, 8)) {
  case 0: return b_.create<arith::AddIOp>(x, y);
  case 1: return b_.create<arith::SubIOp>(x, y);
  case 2: return b_.create<arith::MulIOp>(x, y);
  case 3: return b_.create<tile::DivOp>(x, y, random_.chance(30));
  case 4: return b_.create<tile::RemOp>(x, y, random_.chance(30));
  case 5: return b_.create<arith::MaxSIOp>(x, y);
  case 6: return b_.create<arith::MinSIOp>(x, y);
  case 7: {
    View &view = random_.pick(views_);
    return b_.create<tile::SizeOp>(view.value, random_.range(0, view.rank() - 1));
  }
  default: {
    Value scalar = scalarFromTile(Type());
    return castScalar(scalar, b_.getIndexType());
  }
  }
}

Value ProgramGenerator::smallIndex(int64_t limit) {
  return b_.create<tile::RemOp>(anyIndex(), constant(limit), /*is_unsigned=*/true);
}

Value ProgramGenerator::anyCondition() {
  for (Value scalar : pool_.scalars)
    if (scalar.getType().isInteger(1) && random_.chance(50))
      return scalar;
  if (random_.chance(25))
    return scalarFromTile(b_.getI1Type());
  auto predicate = static_cast<arith::CmpIPredicate>(random_.range(0, 9));
  Value x = anyIndex(), y = random_.chance(50) ? anyIndex() : constant(random_.range(-1, 3));
  return b_.create<arith::CmpIOp>(predicate, x, y);
}

Value ProgramGenerator::scalarFromTile(Type element) {
  Tile tile = anyTile();
  if (element && typeOf(tile).getElementType() != element) {
    if (element.isInteger(1))
      tile = tileOf(typeOf(tile).getShape(), element);
    else
      tile = cast(tile, element);
  }
  Type type = typeOf(tile).getElementType();
  Shape ones(typeOf(tile).getRank(), 1), at;
  for (int64_t extent : typeOf(tile).getShape())
    at.push_back(random_.range(0, extent - 1));
  Value single = b_.create<tile::SliceOp>(tileType(ones, type), tile, at);
  return b_.create<tile::ScalarOp>(single);
}

Value ProgramGenerator::scalarOf(Type type) {
  std::vector<Value> same;
  for (Value scalar : pool_.scalars)
    if (scalar.getType() == type)
      same.push_back(scalar);
  if (!same.empty() && random_.chance(50)) {
    Value x = random_.pick(same), y = random_.pick(same);
    bool isFloat8 = type.isFloat8E4M3FN() || type.isFloat8E5M2();
    if (random_.chance(50) || isFloat8)
      return x;
    return llvm::isa<FloatType>(type) ? floatOp({x, y, y}, random_.range(0, 25))
                                      : integerOp({x, y}, random_.range(0, 14));
  }
  if (!pool_.scalars.empty() && random_.chance(30))
    return castScalar(random_.pick(pool_.scalars), type);
  if (random_.chance(20))
    return castScalar(anyIndex(), type);
  if (random_.chance(20) && !pool_.tiles.empty())
    return scalarFromTile(type);
  return b_.create<arith::ConstantOp>(constantAttr(type));
}

Value ProgramGenerator::floatOp(ArrayRef<Value> x, int kind) {
  switch (kind) {
  case 0: return b_.create<arith::AddFOp>(x[0], x[1]);
  case 1: return b_.create<arith::SubFOp>(x[0], x[1]);
  case 2: return b_.create<arith::MulFOp>(x[0], x[1]);
  case 3: return b_.create<arith::DivFOp>(x[0], x[1]);
  case 4: return b_.create<arith::MaximumFOp>(x[0], x[1]);
  case 5: return b_.create<arith::MinimumFOp>(x[0], x[1]);
  case 6: return b_.create<arith::NegFOp>(x[0]);
  case 7: return b_.create<math::AbsFOp>(x[0]);
  case 8: return b_.create<math::FloorOp>(x[0]);
  case 9: return b_.create<math::CeilOp>(x[0]);
  case 10: return b_.create<math::RoundEvenOp>(x[0]);
  case 11: return b_.create<math::SqrtOp>(x[0]);
  case 12: return b_.create<math::FmaOp>(x[0], x[1], x[2]);
  case 13: return b_.create<math::ExpOp>(x[0]);
  case 14: return b_.create<math::Exp2Op>(x[0]);
  case 15: return b_.create<math::LogOp>(x[0]);
  case 16: return b_.create<math::Log2Op>(x[0]);
  case 17: return b_.create<math::SinOp>(x[0]);
  case 18: return b_.create<math::CosOp>(x[0]);
  case 19: return b_.create<math::TanhOp>(x[0]);
  case 20: return b_.create<math::ErfOp>(x[0]);
  case 21: return b_.create<math::RsqrtOp>(x[0]);
  case 22: return b_.create<math::TruncOp>(x[0]);
  case 23: { // the sign of a NaN means nothing
    Value sign = x[1];
    Value isNaN = b_.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, sign, sign);
    Value zero = b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(sign.getType())));
    return b_.create<math::CopySignOp>(x[0], b_.create<arith::SelectOp>(isNaN, zero, sign));
  }
  default: { // either zero may come out of maxnumf(-0, +0): adding +0 makes both the same
    Value value = kind == 24 ? b_.create<arith::MaxNumFOp>(x[0], x[1]).getResult()
                             : b_.create<arith::MinNumFOp>(x[0], x[1]).getResult();
    Value zero = b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(value.getType())));
    return b_.create<arith::AddFOp>(value, zero);
  }
  }
}

Value ProgramGenerator::integerOp(ArrayRef<Value> x, int kind) {
  if (getElementTypeOrSelf(x[0].getType()).isInteger(1))
    kind %= 3;
  bool isUnsigned = random_.chance(40);
  switch (kind) {
  case 0: return b_.create<arith::AndIOp>(x[0], x[1]);
  case 1: return b_.create<arith::OrIOp>(x[0], x[1]);
  case 2: return b_.create<arith::XOrIOp>(x[0], x[1]);
  case 3: return b_.create<arith::AddIOp>(x[0], x[1]);
  case 4: return b_.create<arith::SubIOp>(x[0], x[1]);
  case 5: return b_.create<arith::MulIOp>(x[0], x[1]);
  case 6: return b_.create<arith::MaxSIOp>(x[0], x[1]);
  case 7: return b_.create<arith::MinSIOp>(x[0], x[1]);
  case 8: return b_.create<arith::MaxUIOp>(x[0], x[1]);
  case 9: return b_.create<arith::MinUIOp>(x[0], x[1]);
  case 10: return b_.create<tile::DivOp>(x[0], x[1], isUnsigned);
  case 11: return b_.create<tile::RemOp>(x[0], x[1], isUnsigned);
  case 12: return b_.create<tile::ShlOp>(x[0], x[1], isUnsigned);
  case 13: return b_.create<tile::ShrOp>(x[0], x[1], isUnsigned);
  default: return b_.create<math::AbsIOp>(x[0]);
  }
}

} // namespace tenon::fuzz
