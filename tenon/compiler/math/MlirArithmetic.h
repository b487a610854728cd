// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic policy (see Arithmetic.h) that builds arith and math ops, on scalars, vectors or ranked tensors of
// static shape alike: all values of one expansion have the shape of its operand. No fast-math flag is set: the
// functions depend on each operation being rounded as written.
#pragma once

#include "tenon/compiler/math/Arithmetic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/DenseMap.h"

#include <bit>
#include <concepts>
#include <type_traits>

namespace tenon::math {

class MlirArithmetic {
public:
  /// A value whose element type is known at compile time, so that add and mul can be told apart from addi and muli.
  template <class T> struct Value {
    mlir::Value value;
  };
  using Mask = Value<bool>;

  /// `shape` is any scalar, vector or tensor type; its element type does not matter.
  MlirArithmetic(mlir::ImplicitLocOpBuilder &builder, mlir::Type shape)
      : builder(builder), shape(llvm::dyn_cast<mlir::ShapedType>(shape)) {}

  /// Equal constants of one expansion are built once.
  template <class T> Value<T> constant(T value) {
    mlir::Value &known = constants[{std::is_floating_point_v<T> * 64 + sizeof(T), rawBits(value)}];
    if (!known) {
      mlir::TypedAttr attribute = scalarAttribute(value);
      if (shape)
        attribute = mlir::DenseElementsAttr::get(shape.clone(attribute.getType()), mlir::Attribute(attribute));
      known = builder.create<mlir::arith::ConstantOp>(attribute);
    }
    return {known};
  }

  template <class T> Value<T> add(Value<T> x, Value<T> y) {
    return floatOrInteger<T, mlir::arith::AddFOp, mlir::arith::AddIOp>(x, y);
  }
  template <class T> Value<T> sub(Value<T> x, Value<T> y) {
    return floatOrInteger<T, mlir::arith::SubFOp, mlir::arith::SubIOp>(x, y);
  }
  template <class T> Value<T> mul(Value<T> x, Value<T> y) {
    return floatOrInteger<T, mlir::arith::MulFOp, mlir::arith::MulIOp>(x, y);
  }

  template <std::floating_point T> Value<T> div(Value<T> x, Value<T> y) { return make<mlir::arith::DivFOp>(x, y); }
  template <std::floating_point T> Value<T> fma(Value<T> x, Value<T> y, Value<T> z) {
    return {builder.create<mlir::math::FmaOp>(x.value, y.value, z.value)};
  }
  template <std::floating_point T> Value<T> sqrt(Value<T> x) { return {builder.create<mlir::math::SqrtOp>(x.value)}; }
  template <std::floating_point T> Value<T> neg(Value<T> x) { return {builder.create<mlir::arith::NegFOp>(x.value)}; }
  template <std::floating_point T> Value<T> abs(Value<T> x) { return {builder.create<mlir::math::AbsFOp>(x.value)}; }
  template <std::floating_point T> Value<T> floor(Value<T> x) { return {builder.create<mlir::math::FloorOp>(x.value)}; }

  template <std::floating_point T> Mask lessThan(Value<T> x, Value<T> y) {
    return {builder.create<mlir::arith::CmpFOp>(mlir::arith::CmpFPredicate::OLT, x.value, y.value)};
  }
  template <class T> Mask equal(Value<T> x, Value<T> y) {
    if constexpr (std::is_floating_point_v<T>)
      return {builder.create<mlir::arith::CmpFOp>(mlir::arith::CmpFPredicate::OEQ, x.value, y.value)};
    else
      return {builder.create<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::eq, x.value, y.value)};
  }
  template <class T> Value<T> select(Mask mask, Value<T> ifTrue, Value<T> ifFalse) {
    return {builder.create<mlir::arith::SelectOp>(mask.value, ifTrue.value, ifFalse.value)};
  }

  template <std::unsigned_integral T> Value<T> bitAnd(Value<T> x, Value<T> y) {
    return make<mlir::arith::AndIOp>(x, y);
  }
  template <std::unsigned_integral T> Value<T> bitOr(Value<T> x, Value<T> y) { return make<mlir::arith::OrIOp>(x, y); }
  template <std::unsigned_integral T> Value<T> bitXor(Value<T> x, Value<T> y) {
    return make<mlir::arith::XOrIOp>(x, y);
  }
  template <std::unsigned_integral T> Value<T> shiftLeft(Value<T> x, Value<T> by) {
    return make<mlir::arith::ShLIOp>(x, by);
  }
  template <std::unsigned_integral T> Value<T> shiftRight(Value<T> x, Value<T> by) {
    return make<mlir::arith::ShRUIOp>(x, by);
  }

  Value<std::uint32_t> toBits(Value<float> x) { return convert<mlir::arith::BitcastOp, std::uint32_t>(x.value); }
  Value<std::uint64_t> toBits(Value<double> x) { return convert<mlir::arith::BitcastOp, std::uint64_t>(x.value); }
  Value<float> fromBits(Value<std::uint32_t> x) { return convert<mlir::arith::BitcastOp, float>(x.value); }
  Value<double> fromBits(Value<std::uint64_t> x) { return convert<mlir::arith::BitcastOp, double>(x.value); }

  Value<double> extend(Value<float> x) { return convert<mlir::arith::ExtFOp, double>(x.value); }
  Value<float> truncate(Value<double> x) { return convert<mlir::arith::TruncFOp, float>(x.value); }
  Value<std::uint32_t> truncateBits(Value<std::uint64_t> x) {
    return convert<mlir::arith::TruncIOp, std::uint32_t>(x.value);
  }

private:
  template <class Op, class T> Value<T> make(Value<T> x, Value<T> y) { return {builder.create<Op>(x.value, y.value)}; }

  template <class T, class FloatOp, class IntegerOp> Value<T> floatOrInteger(Value<T> x, Value<T> y) {
    if constexpr (std::is_floating_point_v<T>)
      return make<FloatOp>(x, y);
    else
      return make<IntegerOp>(x, y);
  }

  template <class Op, class To> Value<To> convert(mlir::Value x) {
    mlir::Type type = scalarType<To>();
    return {builder.create<Op>(shape ? mlir::Type(shape.clone(type)) : type, x)};
  }

  template <class T> mlir::Type scalarType() {
    if constexpr (std::is_same_v<T, float>)
      return builder.getF32Type();
    else if constexpr (std::is_same_v<T, double>)
      return builder.getF64Type();
    else
      return builder.getIntegerType(8 * sizeof(T));
  }

  /// APFloat takes the value as it is: a NaN or -0 arrives with its bits.
  template <class T> mlir::TypedAttr scalarAttribute(T value) {
    if constexpr (std::is_floating_point_v<T>)
      return mlir::FloatAttr::get(scalarType<T>(), llvm::APFloat(value));
    else
      return builder.getIntegerAttr(scalarType<T>(), llvm::APInt(8 * sizeof(T), value));
  }

  static std::uint64_t rawBits(float value) { return std::bit_cast<std::uint32_t>(value); }
  static std::uint64_t rawBits(double value) { return std::bit_cast<std::uint64_t>(value); }
  template <std::unsigned_integral T> static std::uint64_t rawBits(T value) { return value; }

  mlir::ImplicitLocOpBuilder &builder;
  mlir::ShapedType shape;
  llvm::DenseMap<std::pair<unsigned, std::uint64_t>, mlir::Value> constants;
};

} // namespace tenon::math
