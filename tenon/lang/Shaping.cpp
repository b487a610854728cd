// SPDX-License-Identifier: Apache-2.0
//
// Making tiles, moving their elements, and random numbers.
#include "tenon/base/Words.h"
#include "tenon/lang/Operators.h"
#include "tenon/lang/trace/Tracer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace tenon {
namespace {

RankedTensorType tensorType(DType type, const Shape &shape) {
  return llvm::cast<RankedTensorType>(tileType(Tracer::current().builder().getContext(), type, shape));
}

} // namespace

Tile full(DType type, const Shape &shape, Arg value, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  if (!shape.empty())
    checkShape(type, shape, where);
  Value scalar = materialize(value, type);
  if (value.kind == Arg::Kind::tile) {
    if (!shapeOf(scalar).empty())
      throw Error(where, "full() repeats a scalar, not a tile of shape " + toString(shapeOf(scalar)));
    scalar = t.use(Tile(handleOf(scalar, value.handle.dtype)).to(type, where).handle());
  }
  if (shape.empty())
    return Tile(handleOf(scalar, type));
  return Tile(handleOf(t.create<tile::SplatOp>(tensorType(type, shape), scalar), type));
}

Tile zeros(DType type, const Shape &shape, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  if (shape.empty())
    return full(type, shape, 0, where);
  checkShape(type, shape, where);
  auto zero = t.builder().getZeroAttr(tensorType(type, shape));
  return Tile(handleOf(t.create<arith::ConstantOp>(llvm::cast<TypedAttr>(zero)), type));
}

Tile iota(DType type, const Shape &shape, int dim, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  checkShape(type, shape, where);
  checkDim(dim, static_cast<int>(shape.size()), where);
  if (type == DType::i64 || type == DType::i32)
    return Tile(handleOf(t.create<tile::IotaOp>(tensorType(type, shape), dim), type));
  return iota(DType::i64, shape, dim, where).to(type, where);
}

Tile iota(int64_t n, std::source_location where) { return iota(DType::i32, {n}, 0, where); }

Tile broadcast(const Tile &x, const Shape &shape, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  checkShape(x.dtype(), shape, where);
  return Tile(handleOf(broadcastTo(t.use(x.handle()), shape, where), x.dtype()));
}

Tile expand(const Tile &x, int dim, std::source_location where) {
  Shape shape = x.shape(where);
  checkDim(dim, static_cast<int>(shape.size()) + 1, where);
  shape.insert(shape.begin() + dim, 1);
  return reshape(x, shape, where);
}

Tile reshape(const Tile &x, const Shape &shape, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  Value value = t.use(x.handle());
  checkShape(x.dtype(), shape, where);
  int64_t from = 1, to = 1;
  for (int64_t extent : shapeOf(value))
    from *= extent;
  for (int64_t extent : shape)
    to *= extent;
  if (from != to)
    throw Error(where, "shape mismatch: " + toString(shapeOf(value)) + " has " + std::to_string(from) +
                           " elements and cannot be reshaped to " + toString(shape));
  if (shapeOf(value).empty())
    return Tile(handleOf(broadcastTo(value, shape, where), x.dtype()));
  return Tile(handleOf(t.create<tile::ReshapeOp>(tensorType(x.dtype(), shape), value), x.dtype()));
}

Tile transpose(const Tile &x, const std::vector<int> &permutation, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  Value value = t.use(x.handle());
  Shape from = shapeOf(value), to;
  std::vector<bool> seen(from.size());
  std::vector<int64_t> wide;
  for (int d : permutation) {
    checkDim(d, static_cast<int>(from.size()), where);
    if (seen[d])
      throw Error(where, "a permutation names every dimension once, and this one names " + std::to_string(d) + " twice");
    seen[d] = true;
    to.push_back(from[d]);
    wide.push_back(d);
  }
  if (permutation.size() != from.size())
    throw Error(where, "a tile with " + counted(static_cast<int64_t>(from.size()), "dimension") + " needs a permutation of as many, not " +
                           std::to_string(permutation.size()));
  return Tile(handleOf(t.create<tile::TransposeOp>(tensorType(x.dtype(), to), value, wide), x.dtype()));
}

Tile transpose(const Tile &x, std::source_location where) {
  if (x.shape(where).size() != 2)
    throw Error(where, "transpose() without a permutation needs a matrix, not a tile of shape " + toString(x.shape()));
  return transpose(x, {1, 0}, where);
}

Tile slice(const Tile &x, int dim, int64_t begin, int64_t length, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  Value value = t.use(x.handle());
  Shape shape = shapeOf(value);
  checkDim(dim, static_cast<int>(shape.size()), where);
  if (begin < 0 || length < 1 || begin > shape[dim] - length)
    throw Error(where, "slice of " + std::to_string(length) + " elements from " + std::to_string(begin) +
                           " of a dimension of " + std::to_string(shape[dim]));
  std::vector<int64_t> offsets(shape.size(), 0);
  offsets[dim] = begin;
  shape[dim] = length;
  return Tile(handleOf(t.create<tile::SliceOp>(tensorType(x.dtype(), shape), value, offsets), x.dtype()));
}

Tile concat(const std::vector<Tile> &tiles, int dim, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  if (tiles.empty())
    throw Error(where, "concat() needs at least one tile");
  Shape shape = tiles[0].shape(where);
  checkDim(dim, static_cast<int>(shape.size()), where);
  shape[dim] = 0;
  llvm::SmallVector<Value> values;
  for (const Tile &tile : tiles) {
    Shape part = tile.shape(where);
    if (tile.dtype() != tiles[0].dtype())
      throw Error(where, "type mismatch: concat() of " + std::string(nameOf(tiles[0].dtype())) + " and " +
                             std::string(nameOf(tile.dtype())));
    bool fits = part.size() == shape.size();
    for (size_t d = 0; fits && d < part.size(); ++d)
      fits = static_cast<int>(d) == dim || part[d] == shape[d];
    if (!fits)
      throw Error(where, "shape mismatch: concat() of " + toString(tiles[0].shape()) + " and " + toString(part) +
                             " along dimension " + std::to_string(dim));
    shape[dim] += part[dim];
    values.push_back(t.use(tile.handle()));
  }
  checkShape(tiles[0].dtype(), shape, where);
  return Tile(handleOf(t.create<tile::ConcatOp>(tensorType(tiles[0].dtype(), shape), values, dim), tiles[0].dtype()));
}

Tile scalar(const Tile &x, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  Value value = t.use(x.handle());
  Shape shape = shapeOf(value);
  if (shape.empty())
    return x;
  if (shape != Shape(shape.size(), 1))
    throw Error(where, "scalar() needs a tile of one element, not of shape " + toString(shape) + ": reduce it first");
  return Tile(handleOf(t.create<tile::ScalarOp>(value), x.dtype()));
}

//===--- Random numbers -------------------------------------------------------------------------------------------===//

namespace {

/// The operands of the generator: seed and counter in 64 bits.
std::pair<Value, Value> randomOperands(Tracer &t, Arg seed, const Tile &counter, std::source_location where) {
  Value key = seed.kind == Arg::Kind::tile ? materializeIndex(seed) : materialize(seed, DType::i64);
  if (key.getType().isIndex())
    key = t.create<tile::CastOp>(t.builder().getI64Type(), key, /*is_unsigned=*/false);
  if (!isInteger(counter.dtype()) || counter.shape(where).empty())
    throw Error(where, "the counter of random numbers is a tile of integers");
  return {key, castTo(t.use(counter.handle()), counter.dtype(), DType::i64)};
}

} // namespace

std::array<Tile, 4> philox(Arg seed, const Tile &counter, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  auto [key, count] = randomOperands(t, seed, counter, where);
  Type word = tensorType(DType::u32, counter.shape());
  auto op = t.create<tile::PhiloxOp>(word, word, word, word, key, count);
  return {Tile(handleOf(op.getWord0(), DType::u32)), Tile(handleOf(op.getWord1(), DType::u32)),
          Tile(handleOf(op.getWord2(), DType::u32)), Tile(handleOf(op.getWord3(), DType::u32))};
}

Tile random_bits(Arg seed, const Tile &counter, RandomOptions options, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  if (options.bits != 32 && options.bits != 16)
    throw Error(where, "random bits are 32 or 16 for each element, not " + std::to_string(options.bits));
  if (options.rounds < 7 || options.rounds > 10)
    throw Error(where, "the generator of random bits has 7 to 10 rounds, not " + std::to_string(options.rounds));
  auto [key, count] = randomOperands(t, seed, counter, where);
  DType type = options.bits == 32 ? DType::u32 : DType::u16;
  auto op = t.create<tile::RandomBitsOp>(tensorType(type, counter.shape()), key, count, options.rounds);
  return Tile(handleOf(op.getBits(), type));
}

Tile random_uniform(Arg seed, const Tile &counter, std::source_location where) {
  Tracer::Pin pin(where);
  // The top 24 bits are exact in f32, so every multiple of 2^-24 in [0, 1) is equally likely.
  return (random_bits(seed, counter, {}, where) >> 8).to(f32) * 0x1p-24;
}

namespace {

constexpr RandomOptions eventBits{.bits = 16, .rounds = 7};

/// What 16 random bits must be less than for an event, and whether it happens whatever they are.
struct RandomLimit {
  Arg bits, isCertain, isUncertain;

  static RandomLimit of(const Arg &probability) {
    if (probability.kind == Arg::Kind::tile) {
      Tile share = Tile(probability.handle).to(f32), isCertain = share >= 1;
      return {(share * 65536 + 0.5).to(u16), isCertain, !isCertain}; // the conversion saturates: 65535 of 65536 at most
    }
    // As above: in f32, and a NaN is no probability at all.
    auto share = static_cast<float>(probability.real);
    float limit = std::isnan(share) ? 0.0f : std::clamp(std::floor(share * 65536 + 0.5f), 0.0f, 65535.0f);
    return {static_cast<int>(limit), share >= 1, !(share >= 1)};
  }
};

} // namespace

Tile random_event(Arg probability, Arg seed, const Tile &counter, std::source_location at) {
  Tracer::Pin pin(at);
  auto limit = RandomLimit::of(probability);
  return (random_bits(seed, counter, eventBits, at) < limit.bits) | limit.isCertain;
}

Tile dropout(const Tile &x, Arg probability, Arg seed, const Tile &counter, std::source_location at) {
  Tracer::Pin pin(at);
  // What is kept and not what is dropped: processors compare under a mask, and make a zero of what is masked out.
  auto limit = RandomLimit::of(probability);
  Tile keeps = (random_bits(seed, counter, eventBits, at) >= limit.bits) & limit.isUncertain;
  if (probability.kind != Arg::Kind::tile)
    return where(keeps, x * Arg(probability.real < 1 ? 1 / (1 - probability.real) : 0.0, at), 0);
  Tile kept = 1 - probability;
  return where(keeps, x * where(kept > 0, 1 / kept, 0), 0);
}

} // namespace tenon
