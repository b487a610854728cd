// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing memory: operands are checked against the view, then one tile op is recorded.
#include "tenon/base/Words.h"
#include "tenon/lang/Operators.h"
#include "tenon/lang/trace/Tracer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;

namespace tenon {
namespace {

tile::ViewType viewType(const View &view) { return llvm::cast<tile::ViewType>(valueOf(view.handle()).getType()); }

llvm::SmallVector<Value> offsetValues(const View &view, std::initializer_list<Arg> offset, const SourceLine &where) {
  if (static_cast<int>(offset.size()) != view.rank())
    throw Error(where, "a view with " + counted(view.rank(), "dimension") + " needs as many offsets, not " +
                           std::to_string(offset.size()));
  llvm::SmallVector<Value> values;
  for (const Arg &arg : offset)
    values.push_back(materializeIndex(arg));
  return values;
}

/// The padding as an operand, or none when it is the default.
Value paddingValue(const View &view, const Arg &padding, const SourceLine &where) {
  if (padding.kind != Arg::Kind::tile && padding.real == 0 && !std::signbit(padding.real))
    return {};
  if (padding.kind != Arg::Kind::tile)
    return materialize(padding, view.dtype());
  Value value = Tracer::current().use(padding.handle);
  if (!shapeOf(value).empty())
    throw Error(where, "padding is a scalar, not a tile of shape " + toString(shapeOf(value)));
  if (padding.handle.dtype != view.dtype() && !(isFloat(padding.handle.dtype) && isFloat(view.dtype())))
    throw Error(where, "padding of type " + std::string(nameOf(padding.handle.dtype)) + " for a view of " +
                           std::string(nameOf(view.dtype())));
  return castTo(value, padding.handle.dtype, view.dtype());
}

void checkStored(const View &view, const Tile &value, const SourceLine &where) {
  if (value.dtype() != view.dtype())
    throw Error(where, "type mismatch: storing " + std::string(nameOf(value.dtype())) + " into a view of " +
                           std::string(nameOf(view.dtype())) + "; convert with .to(view.dtype())");
}

/// Index tiles, mask and values of one indexed access, broadcast to one shape.
struct IndexedAccess {
  llvm::SmallVector<Value> indices;
  Value mask; ///< none when everything is on
  llvm::SmallVector<Value> values;
};

IndexedAccess indexed(const View &view, const std::vector<Tile> &indices, const Arg &mask,
                      llvm::ArrayRef<Tile> values, const SourceLine &where) {
  Tracer &t = Tracer::current();
  if (static_cast<int>(indices.size()) != view.rank())
    throw Error(where, "a view with " + counted(view.rank(), "dimension") + " needs as many index tiles, not " +
                           std::to_string(indices.size()));
  IndexedAccess access;
  Shape shape;
  for (const Tile &index : indices) {
    if (!isInteger(index.dtype()))
      throw Error(where, "an index tile has an integer type, not " + std::string(nameOf(index.dtype())));
    Value value = t.use(index.handle());
    if (value.getType().isIndex())
      value = t.create<tile::CastOp>(t.builder().getI64Type(), value, /*is_unsigned=*/false);
    else if (index.dtype() != DType::i32)
      value = castTo(value, index.dtype(), DType::i64);
    access.indices.push_back(value);
    shape = broadcastShapes(shape, shapeOf(value), where);
  }
  bool masked = mask.kind == Arg::Kind::tile || mask.integer == 0;
  if (masked) {
    if (mask.kind == Arg::Kind::tile && mask.handle.dtype != DType::boolean)
      throw Error(where, "a mask is boolean, not " + std::string(nameOf(mask.handle.dtype)));
    access.mask = materialize(mask, DType::boolean);
    shape = broadcastShapes(shape, shapeOf(access.mask), where);
  }
  for (const Tile &value : values) {
    checkStored(view, value, where);
    access.values.push_back(t.use(value.handle()));
    shape = broadcastShapes(shape, shapeOf(access.values.back()), where);
  }
  if (shape.empty())
    shape = {1};
  checkShape(view.dtype(), shape, where);
  for (Value &value : access.indices)
    value = broadcastTo(value, shape, where);
  if (masked)
    access.mask = broadcastTo(access.mask, shape, where);
  for (Value &value : access.values)
    value = broadcastTo(value, shape, where);
  return access;
}

Tile atomicUpdate(const View &view, tile::AtomicKind kind, const std::vector<Tile> &indices, const Tile &value,
                  const Arg &mask, const std::source_location &where) {
  Tracer &t = Tracer::currentAt(where);
  if (sizeOf(view.dtype()) < 4)
    throw Error(where, "atomics need elements of 32 or 64 bits, not " + std::string(nameOf(view.dtype())));
  IndexedAccess access = indexed(view, indices, mask, {value}, where);
  auto op = t.create<tile::AtomicRMWOp>(access.values[0].getType(), kind, access.values[0], valueOf(view.handle()),
                                        access.indices, access.mask, isUnsigned(view.dtype()));
  return Tile(handleOf(op.getOld(), view.dtype()));
}

} // namespace

int View::rank() const { return static_cast<int>(viewType(*this).getRank()); }

Index View::size(int dim, std::source_location where) const {
  Tracer &t = Tracer::currentAt(where);
  if (dim < 0 || dim >= rank())
    throw Error(where, "dimension " + std::to_string(dim) + " of a view with " + counted(rank(), "dimension") +
                           ": the last one is " + std::to_string(rank() - 1));
  return Index(handleOf(t.create<tile::SizeOp>(t.builder().getIndexType(), valueOf(handle_), dim), DType::i64));
}

Tile View::load(std::initializer_list<Arg> offset, const Shape &shape, Arg padding, std::source_location where) const {
  Tracer &t = Tracer::currentAt(where);
  checkShape(dtype(), shape, where);
  auto offsets = offsetValues(*this, offset, where);
  if (shape.size() != offsets.size())
    throw Error(where, "a tile of shape " + toString(shape) + " from a view with " + counted(rank(), "dimension") +
                           ": give one extent per dimension and reshape afterwards");
  Value pad = paddingValue(*this, padding, where);
  return Tile(handleOf(t.create<tile::LoadOp>(tileType(t.builder().getContext(), dtype(), shape), valueOf(handle_),
                                              offsets, pad),
                       dtype()));
}

void View::store(std::initializer_list<Arg> offset, const Tile &value, std::source_location where) const {
  Tracer &t = Tracer::currentAt(where);
  auto offsets = offsetValues(*this, offset, where);
  Value stored = t.use(value.handle());
  checkStored(*this, value, where);
  Shape shape = shapeOf(stored);
  if (shape.empty()) // a scalar is a tile of one element
    stored = broadcastTo(stored, Shape(rank(), 1), where);
  else if (static_cast<int>(shape.size()) != rank())
    throw Error(where, "shape mismatch: a tile of shape " + toString(shape) + " stored into a view with " +
                           counted(rank(), "dimension") + "; reshape it first");
  t.create<tile::StoreOp>(stored, valueOf(handle_), offsets);
}

Tile View::at(std::initializer_list<Arg> index, std::source_location where) const {
  Tile tile = load(index, Shape(rank(), 1), 0, where);
  Tracer &t = Tracer::current();
  return Tile(handleOf(t.create<tile::ScalarOp>(t.use(tile.handle())), dtype()));
}

Tile View::gather(const std::vector<Tile> &indices, Arg mask, Arg padding, std::source_location where) const {
  Tracer &t = Tracer::currentAt(where);
  IndexedAccess access = indexed(*this, indices, mask, {}, where);
  Type type = tileType(t.builder().getContext(), dtype(), shapeOf(access.indices[0]));
  Value pad = paddingValue(*this, padding, where);
  return Tile(handleOf(t.create<tile::GatherOp>(type, valueOf(handle_), access.indices, access.mask, pad), dtype()));
}

void View::scatter(const std::vector<Tile> &indices, const Tile &value, Arg mask, std::source_location where) const {
  Tracer &t = Tracer::currentAt(where);
  IndexedAccess access = indexed(*this, indices, mask, {value}, where);
  t.create<tile::ScatterOp>(access.values[0], valueOf(handle_), access.indices, access.mask);
}

Tile View::atomic_add(const std::vector<Tile> &indices, const Tile &value, Arg mask, std::source_location where) const {
  return atomicUpdate(*this, tile::AtomicKind::add, indices, value, mask, where);
}
Tile View::atomic_max(const std::vector<Tile> &indices, const Tile &value, Arg mask, std::source_location where) const {
  return atomicUpdate(*this, tile::AtomicKind::max, indices, value, mask, where);
}
Tile View::atomic_min(const std::vector<Tile> &indices, const Tile &value, Arg mask, std::source_location where) const {
  return atomicUpdate(*this, tile::AtomicKind::min, indices, value, mask, where);
}
Tile View::atomic_exchange(const std::vector<Tile> &indices, const Tile &value, Arg mask,
                           std::source_location where) const {
  return atomicUpdate(*this, tile::AtomicKind::exchange, indices, value, mask, where);
}

Tile View::atomic_compare_exchange(const std::vector<Tile> &indices, const Tile &expected, const Tile &desired,
                                   Arg mask, std::source_location where) const {
  Tracer &t = Tracer::currentAt(where);
  if (sizeOf(dtype()) < 4)
    throw Error(where, "atomics need elements of 32 or 64 bits, not " + std::string(nameOf(dtype())));
  IndexedAccess access = indexed(*this, indices, mask, {expected, desired}, where);
  auto op = t.create<tile::AtomicCASOp>(access.values[0].getType(), access.values[0], access.values[1],
                                        valueOf(handle_), access.indices, access.mask);
  return Tile(handleOf(op.getOld(), dtype()));
}

} // namespace tenon
