// SPDX-License-Identifier: Apache-2.0
#include "tenon/lang/Tile.h"

#include "tenon/lang/Operators.h"
#include "tenon/lang/trace/Tracer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon {

Shape Tile::shape(std::source_location where) const {
  if (!handle().value)
    throw Error(where, "this variable holds no value yet: it has no shape");
  return shapeOf(valueOf(handle()));
}

int64_t Tile::size(int dim, std::source_location where) const {
  Shape extents = shape(where);
  checkDim(dim, static_cast<int>(extents.size()), where);
  return extents[dim];
}

Tile Tile::to(DType type, std::source_location where) const {
  Tracer &t = Tracer::currentAt(where);
  Value value = t.use(handle());
  if (value.getType().isIndex())
    value = t.create<tile::CastOp>(t.builder().getI64Type(), value, /*is_unsigned=*/false);
  return Tile(handleOf(castTo(value, dtype(), type), type));
}

Tile Tile::bitcast(DType type, std::source_location where) const {
  Tracer &t = Tracer::currentAt(where);
  if (sizeOf(type) != sizeOf(dtype()) || (type == DType::boolean) != (dtype() == DType::boolean))
    throw Error(where, "bitcast between types of different width: " + std::string(nameOf(dtype())) + " and " +
                           std::string(nameOf(type)));
  Value value = t.use(handle());
  if (value.getType().isIndex())
    value = t.create<tile::CastOp>(t.builder().getI64Type(), value, /*is_unsigned=*/false);
  Type to = tileType(t.builder().getContext(), type, shapeOf(value));
  if (to == value.getType())
    return Tile(handleOf(value, type));
  return Tile(handleOf(t.create<arith::BitcastOp>(to, value), type));
}

Tile &Tile::operator+=(Arg rhs) { return *this = Arg(*this, rhs.where) + rhs; }
Tile &Tile::operator-=(Arg rhs) { return *this = Arg(*this, rhs.where) - rhs; }
Tile &Tile::operator*=(Arg rhs) { return *this = Arg(*this, rhs.where) * rhs; }
Tile &Tile::operator/=(Arg rhs) { return *this = Arg(*this, rhs.where) / rhs; }

Tile::operator bool() const {
  throw Error(Tracer::current().lastLine(),
              "a tile cannot be a C++ condition: its value is not known while the kernel is traced; combine "
              "conditions with & and |, use where(), if_() for a run-time branch or range() for a loop (the line is "
              "the last one before the condition that was traced)");
}

Index::Index(int64_t value, std::source_location where) {
  Tracer::currentAt(where);
  *this = Index(handleOf(materialize(Arg(value, where), DType::i64, /*asIndex=*/true), DType::i64));
}

Index::Index(const Tile &scalar, std::source_location where) {
  Tracer::currentAt(where);
  *this = Index(handleOf(materializeIndex(Arg(scalar, where)), DType::i64));
}

} // namespace tenon
