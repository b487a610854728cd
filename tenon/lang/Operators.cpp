// SPDX-License-Identifier: Apache-2.0
//
// Element-wise operations: operands are brought to one type and shape, then one arith, math or tile op is recorded.
#include "tenon/lang/Operators.h"

#include "tenon/lang/trace/Tracer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace tenon {
namespace {

/// Operands of one operation, brought to a common element type and shape.
struct Operands {
  llvm::SmallVector<Value, 3> values;
  DType dtype;
  SourceLine where;
};

bool isIndexValue(const Arg &arg) { return arg.kind == Arg::Kind::tile && valueOf(arg.handle).getType().isIndex(); }
bool isScalar(const Arg &arg) { return arg.kind == Arg::Kind::tile && shapeOf(valueOf(arg.handle)).empty(); }

/// The element type that the operands agree on. Rules, in order: C++ numbers adapt to anything; a float scalar adapts to
/// a float tile, and an f64 one to another float scalar; an Index meets integers as i64; otherwise types must be equal.
DType commonType(llvm::ArrayRef<Arg> args, const SourceLine &where) {
  std::optional<DType> type;
  bool typeIsScalar = true, anyIndex = false;
  for (const Arg &arg : args) {
    if (arg.kind != Arg::Kind::tile)
      continue;
    if (isIndexValue(arg)) {
      anyIndex = true;
      continue;
    }
    bool scalar = isScalar(arg);
    if (!type || (typeIsScalar && !scalar && isFloat(*type) && isFloat(arg.handle.dtype))) {
      type = arg.handle.dtype;
      typeIsScalar = scalar;
    } else if (scalar && typeIsScalar && isFloat(*type) && isFloat(arg.handle.dtype) &&
               (*type == DType::f64 || arg.handle.dtype == DType::f64)) {
      if (*type == DType::f64) // a run-time Scalar adapts to an element, whichever comes first
        type = arg.handle.dtype;
    } else if (*type != arg.handle.dtype && !(scalar && !typeIsScalar && isFloat(*type) && isFloat(arg.handle.dtype))) {
      bool mayBeScalars =
          isFloat(*type) && isFloat(arg.handle.dtype) && (*type == DType::f64 || arg.handle.dtype == DType::f64);
      throw Error(where, "type mismatch: " + std::string(nameOf(*type)) + " and " +
                             std::string(nameOf(arg.handle.dtype)) + "; convert one of them with .to()" +
                             (mayBeScalars ? " (a tile made of a Scalar and numbers alone is f64)" : ""));
    }
  }
  if (anyIndex) {
    if (type && !isInteger(*type))
      throw Error(where, "type mismatch: " + std::string(nameOf(*type)) +
                             " and an index; convert the index with .to(" + std::string(nameOf(*type)) + ")");
    return DType::i64;
  }
  if (type)
    return *type;
  // Only C++ numbers: possible for the functions, sqrt(2.0) say.
  for (const Arg &arg : args)
    if (arg.kind == Arg::Kind::real)
      return DType::f32;
  return args.front().kind == Arg::Kind::truth ? DType::boolean : DType::i64;
}

/// Whether the operation can stay in index arithmetic: only indices and C++ integers, at least one index.
bool allIndices(llvm::ArrayRef<Arg> args) {
  bool any = false;
  for (const Arg &arg : args) {
    if (isIndexValue(arg))
      any = true;
    else if (arg.kind != Arg::Kind::integer)
      return false;
  }
  return any;
}

Operands unify(llvm::ArrayRef<Arg> args) {
  Tracer &t = Tracer::currentAt(args.front().where);
  Operands result;
  result.where = t.lastLine();
  for (const Arg &arg : args)
    if (arg.kind == Arg::Kind::tile)
      t.use(arg.handle);
  if (allIndices(args)) {
    result.dtype = DType::i64;
    for (const Arg &arg : args)
      result.values.push_back(materialize(arg, DType::i64, /*asIndex=*/true));
    return result;
  }
  result.dtype = commonType(args, result.where);
  Shape shape;
  for (const Arg &arg : args) {
    Value value = materialize(arg, result.dtype);
    if (value.getType().isIndex())
      value = t.create<tile::CastOp>(t.builder().getI64Type(), value, /*is_unsigned=*/false);
    else if (arg.kind == Arg::Kind::tile)
      value = castTo(value, arg.handle.dtype, result.dtype);
    result.values.push_back(value);
    shape = broadcastShapes(shape, shapeOf(value), result.where);
  }
  if (!shape.empty())
    checkShape(result.dtype, shape, result.where);
  for (Value &value : result.values)
    value = broadcastTo(value, shape, result.where);
  return result;
}

void refuseFloat8(const Operands &o) {
  if (isFloat8(o.dtype))
    throw Error(o.where, "no arithmetic on " + std::string(nameOf(o.dtype)) + ": convert it with .to(f32) first");
}

[[noreturn]] void refuse(const Operands &o, const char *operation) {
  throw Error(o.where, std::string(operation) + " is not defined for " + std::string(nameOf(o.dtype)));
}

Tile result(Value value, DType type) { return Tile(handleOf(value, type)); }

template <class FloatOp, class IntegerOp> Tile arithmetic(Arg a, Arg b, const char *name) {
  Operands o = unify({a, b});
  refuseFloat8(o);
  Tracer &t = Tracer::current();
  if (isFloat(o.dtype))
    return result(t.create<FloatOp>(o.values[0], o.values[1]), o.dtype);
  if (!isInteger(o.dtype))
    refuse(o, name);
  return result(t.create<IntegerOp>(o.values[0], o.values[1]), o.dtype);
}

template <class Op> Tile bitwise(Arg a, Arg b, const char *name) {
  Operands o = unify({a, b});
  if (isFloat(o.dtype))
    refuse(o, name);
  return result(Tracer::current().create<Op>(o.values[0], o.values[1]), o.dtype);
}

/// tile.rem, tile.shl, tile.shr: integers only, signedness from the type.
template <class Op> Tile definedInteger(Arg a, Arg b, const char *name) {
  Operands o = unify({a, b});
  if (!isInteger(o.dtype))
    refuse(o, name);
  return result(Tracer::current().create<Op>(o.values[0].getType(), o.values[0], o.values[1], isUnsigned(o.dtype)),
                o.dtype);
}

Tile compare(Arg a, Arg b, arith::CmpFPredicate forFloat, arith::CmpIPredicate forSigned,
             arith::CmpIPredicate forUnsigned) {
  Operands o = unify({a, b});
  refuseFloat8(o);
  Tracer &t = Tracer::current();
  Value value;
  if (isFloat(o.dtype))
    value = t.create<arith::CmpFOp>(forFloat, o.values[0], o.values[1]);
  else
    value = t.create<arith::CmpIOp>(isSigned(o.dtype) ? forSigned : forUnsigned, o.values[0], o.values[1]);
  return result(value, DType::boolean);
}

template <class Op> Tile floatFunction(Arg x, const char *name) {
  Operands o = unify({x});
  refuseFloat8(o);
  if (!isFloat(o.dtype))
    throw Error(o.where, std::string(name) + " needs a float tile, not " + std::string(nameOf(o.dtype)) +
                             ": convert it with .to(f32)");
  return result(Tracer::current().create<Op>(o.values[0]), o.dtype);
}

template <class FloatOp, class SignedOp, class UnsignedOp> Tile extremum(Arg a, Arg b) {
  Operands o = unify({a, b});
  refuseFloat8(o);
  Tracer &t = Tracer::current();
  Value x = o.values[0], y = o.values[1];
  if (isFloat(o.dtype))
    return result(t.create<FloatOp>(x, y), o.dtype);
  return result(isSigned(o.dtype) ? t.create<SignedOp>(x, y).getResult() : t.create<UnsignedOp>(x, y).getResult(),
                o.dtype);
}

} // namespace

Tile operator+(Arg a, Arg b) { return arithmetic<arith::AddFOp, arith::AddIOp>(a, b, "+"); }
Tile operator-(Arg a, Arg b) { return arithmetic<arith::SubFOp, arith::SubIOp>(a, b, "-"); }
Tile operator*(Arg a, Arg b) { return arithmetic<arith::MulFOp, arith::MulIOp>(a, b, "*"); }

Tile operator/(Arg a, Arg b) {
  Operands o = unify({a, b});
  refuseFloat8(o);
  Tracer &t = Tracer::current();
  if (isFloat(o.dtype))
    return result(t.create<arith::DivFOp>(o.values[0], o.values[1]), o.dtype);
  if (!isInteger(o.dtype))
    refuse(o, "/");
  return result(t.create<tile::DivOp>(o.values[0].getType(), o.values[0], o.values[1], isUnsigned(o.dtype)), o.dtype);
}

Tile operator%(Arg a, Arg b) { return definedInteger<tile::RemOp>(a, b, "%"); }
Tile operator<<(Arg a, Arg b) { return definedInteger<tile::ShlOp>(a, b, "<<"); }
Tile operator>>(Arg a, Arg b) { return definedInteger<tile::ShrOp>(a, b, ">>"); }
Tile operator&(Arg a, Arg b) { return bitwise<arith::AndIOp>(a, b, "&"); }
Tile operator|(Arg a, Arg b) { return bitwise<arith::OrIOp>(a, b, "|"); }
Tile operator^(Arg a, Arg b) { return bitwise<arith::XOrIOp>(a, b, "^"); }

Tile operator-(Arg a) {
  Operands o = unify({a});
  refuseFloat8(o);
  Tracer &t = Tracer::current();
  if (isFloat(o.dtype))
    return result(t.create<arith::NegFOp>(o.values[0]), o.dtype);
  if (!isInteger(o.dtype))
    refuse(o, "-");
  Value zero = t.create<arith::ConstantOp>(llvm::cast<TypedAttr>(t.builder().getZeroAttr(o.values[0].getType())));
  return result(t.create<arith::SubIOp>(zero, o.values[0]), o.dtype);
}

Tile operator~(Arg a) {
  Operands o = unify({a});
  if (isFloat(o.dtype))
    refuse(o, "~");
  Tracer &t = Tracer::current();
  Type type = o.values[0].getType();
  TypedAttr ones = t.builder().getIntegerAttr(getElementTypeOrSelf(type), -1);
  if (auto tensor = llvm::dyn_cast<RankedTensorType>(type))
    ones = SplatElementsAttr::get(tensor, Attribute(ones));
  return result(t.create<arith::XOrIOp>(o.values[0], t.create<arith::ConstantOp>(ones)), o.dtype);
}

Tile operator!(const Tile &a) {
  if (a.dtype() != DType::boolean)
    throw Error(Tracer::current().lastLine(),
                "! needs a boolean tile, not " + std::string(nameOf(a.dtype())) + ": compare it with 0");
  Tracer::Pin pin(Tracer::current());
  return ~Arg(a);
}

Tile operator==(Arg a, Arg b) {
  return compare(a, b, arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, arith::CmpIPredicate::eq);
}
Tile operator!=(Arg a, Arg b) {
  return compare(a, b, arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne, arith::CmpIPredicate::ne);
}
Tile operator<(Arg a, Arg b) {
  return compare(a, b, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, arith::CmpIPredicate::ult);
}
Tile operator<=(Arg a, Arg b) {
  return compare(a, b, arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle, arith::CmpIPredicate::ule);
}
Tile operator>(Arg a, Arg b) {
  return compare(a, b, arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt, arith::CmpIPredicate::ugt);
}
Tile operator>=(Arg a, Arg b) {
  return compare(a, b, arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge, arith::CmpIPredicate::uge);
}

Tile where(Arg condition, Arg a, Arg b) {
  Tracer &t = Tracer::currentAt(condition.where);
  Operands o = unify({a, b});
  t.at(condition.where);
  Value mask = materialize(condition, DType::boolean);
  if (condition.kind == Arg::Kind::tile && condition.handle.dtype != DType::boolean)
    throw Error(condition.where, "where() needs a boolean condition, not " +
                                     std::string(nameOf(condition.handle.dtype)) + ": compare it with something");
  Shape shape = broadcastShapes(shapeOf(mask), shapeOf(o.values[0]), o.where);
  if (!shape.empty())
    checkShape(o.dtype, shape, o.where);
  mask = broadcastTo(mask, shape, o.where);
  for (Value &value : o.values)
    value = broadcastTo(value, shape, o.where);
  return result(t.create<arith::SelectOp>(mask, o.values[0], o.values[1]), o.dtype);
}

Tile maximum(Arg a, Arg b) { return extremum<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(a, b); }
Tile minimum(Arg a, Arg b) { return extremum<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(a, b); }

Tile fma(Arg a, Arg b, Arg c) {
  Operands o = unify({a, b, c});
  if (o.dtype != DType::f32 && o.dtype != DType::f64)
    refuse(o, "fma");
  return result(Tracer::current().create<math::FmaOp>(o.values[0], o.values[1], o.values[2]), o.dtype);
}

Tile cdiv(Arg a, Arg b) {
  Tracer::Pin pin(a.where);
  for (const Arg &arg : {a, b})
    if (arg.kind == Arg::Kind::real || (arg.kind == Arg::Kind::tile && !isInteger(arg.handle.dtype)))
      throw Error(a.where, "cdiv needs integers, not " +
                               std::string(arg.kind == Arg::Kind::real ? "a C++ float" : nameOf(arg.handle.dtype)));
  Arg less = b;
  if (b.kind == Arg::Kind::tile)
    less = Arg(b - 1, b.where);
  else
    less.integer -= 1, less.real -= 1; // still a number, which takes the type of a
  return (a + less) / b;
}

Tile exp(Arg x) { return floatFunction<math::ExpOp>(x, "exp"); }
Tile exp2(Arg x) { return floatFunction<math::Exp2Op>(x, "exp2"); }
Tile expm1(Arg x) { return floatFunction<math::ExpM1Op>(x, "expm1"); }
Tile log(Arg x) { return floatFunction<math::LogOp>(x, "log"); }
Tile log2(Arg x) { return floatFunction<math::Log2Op>(x, "log2"); }
Tile log1p(Arg x) { return floatFunction<math::Log1pOp>(x, "log1p"); }
Tile sqrt(Arg x) { return floatFunction<math::SqrtOp>(x, "sqrt"); }
Tile rsqrt(Arg x) { return floatFunction<math::RsqrtOp>(x, "rsqrt"); }
Tile sin(Arg x) { return floatFunction<math::SinOp>(x, "sin"); }
Tile cos(Arg x) { return floatFunction<math::CosOp>(x, "cos"); }
Tile tanh(Arg x) { return floatFunction<math::TanhOp>(x, "tanh"); }
Tile erf(Arg x) { return floatFunction<math::ErfOp>(x, "erf"); }
Tile floor(Arg x) { return floatFunction<math::FloorOp>(x, "floor"); }
Tile ceil(Arg x) { return floatFunction<math::CeilOp>(x, "ceil"); }
Tile round(Arg x) { return floatFunction<math::RoundEvenOp>(x, "round"); }

Tile clamp(Arg x, Arg low, Arg high) {
  Tracer::Pin pin(x.where);
  return minimum(maximum(x, low), high);
}

Tile pow(Arg x, Arg y) {
  Operands o = unify({x, y});
  Tracer::Pin pin(x.where);
  refuseFloat8(o);
  if (!isFloat(o.dtype))
    throw Error(o.where, "pow needs float tiles, not " + std::string(nameOf(o.dtype)) + ": convert them with .to(f32)");
  Tile base = result(o.values[0], o.dtype), power = result(o.values[1], o.dtype);
  if (y.kind != Arg::Kind::tile) {
    double number = y.kind == Arg::Kind::real ? y.real : static_cast<double>(y.integer);
    if (number == 2)
      return base * base;
    if (number == -1)
      return 1 / base;
  }
  // 2^(y log2|x|) in a format whose rounding of the logarithm, times up to 128, does not show in the result.
  DType wide = o.dtype == DType::f16 || o.dtype == DType::bf16 ? DType::f32 : DType::f64;
  Tile b = base.to(wide), magnitude = abs(b);
  Tile e = y.kind == Arg::Kind::tile ? power.to(wide) : result(unify({b, y}).values[1], wide); // a number as it is
  Tile value = where((e == 0) | (magnitude == 1), 1, exp2(e * log2(magnitude)));
  Tile whole = floor(e) == e, odd = whole & (floor(e / 2) * 2 != e);
  Tile ofNegative = where(whole | (magnitude == inf), value, std::numeric_limits<double>::quiet_NaN());
  value = where(b < 0, where(odd, -value, ofNegative), value);
  return value.to(o.dtype);
}

Tile sigmoid(Arg x) {
  Tracer::Pin pin(x.where);
  if (x.kind == Arg::Kind::tile && (x.handle.dtype == DType::f16 || x.handle.dtype == DType::bf16)) {
    Tile wide = sigmoid(Tile(x.handle).to(f32, x.where)); // one operation: rounded once
    return wide.to(x.handle.dtype, x.where);
  }
  // exp of a negative number only: 1 / (1 + exp(-x)) would overflow where the result is still a small number.
  Tile e = exp(-abs(x));
  return where(x >= 0, 1, e) / (1 + e);
}

Tile abs(Arg x) {
  Operands o = unify({x});
  refuseFloat8(o);
  Tracer &t = Tracer::current();
  if (isFloat(o.dtype))
    return result(t.create<math::AbsFOp>(o.values[0]), o.dtype);
  if (isUnsigned(o.dtype))
    return result(o.values[0], o.dtype);
  if (!isSigned(o.dtype))
    refuse(o, "abs");
  // Two's complement: the smallest integer is its own absolute value, as everywhere integers wrap.
  Value zero = t.create<arith::ConstantOp>(llvm::cast<TypedAttr>(t.builder().getZeroAttr(o.values[0].getType())));
  Value negated = t.create<arith::SubIOp>(zero, o.values[0]);
  return result(t.create<arith::MaxSIOp>(o.values[0], negated), o.dtype);
}

Tile sign(Arg x) {
  Operands o = unify({x});
  Tracer::Pin pin(x.where);
  if (o.dtype == boolean)
    refuse(o, "sign");
  Tile number = result(o.values[0], o.dtype);
  if (isUnsigned(o.dtype))
    return minimum(number, 1);
  return where(number > 0, 1, where(number < 0, -1, number)); // a zero keeps its sign, a NaN stays one
}

Tile isnan(Arg x) {
  Operands o = unify({x});
  Tracer::Pin pin(x.where);
  if (!isFloat(o.dtype))
    refuse(o, "isnan");
  Tile number = result(o.values[0], o.dtype);
  return number != number;
}

Tile isinf(Arg x) {
  Operands o = unify({x});
  Tracer::Pin pin(x.where);
  if (!isFloat(o.dtype))
    refuse(o, "isinf");
  return abs(result(o.values[0], o.dtype)) == inf;
}

} // namespace tenon
