// SPDX-License-Identifier: Apache-2.0
//
// Reductions, scans and dot. A combine function is traced into the op's region on scalars.
#include "tenon/lang/Operators.h"
#include "tenon/lang/trace/Tracer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon {
namespace {

/// Traces `combine` into the region: its arguments are the scalars of the left and of the right partial results.
void traceCombine(Region &region, const std::vector<Tile> &tiles, const CombineMany &combine, const SourceLine &where) {
  Tracer &t = Tracer::current();
  OpBuilder &b = t.builder();
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&region);
  std::vector<Tile> left, right;
  for (auto *side : {&left, &right})
    for (const Tile &tile : tiles)
      side->push_back(Tile(handleOf(
          block->addArgument(elementType(b.getContext(), tile.dtype()), t.location()), tile.dtype())));
  std::vector<Tile> combined = combine(left, right);
  if (combined.size() != tiles.size())
    throw Error(where, "the combine function returns " + std::to_string(combined.size()) + " values for " +
                           std::to_string(tiles.size()) + " tiles");
  llvm::SmallVector<Value> values;
  for (auto [i, tile] : llvm::enumerate(combined)) {
    if (!tile.handle().value || tile.dtype() != tiles[i].dtype() || !tile.shape().empty())
      throw Error(where, "the combine function must return a scalar of type " + std::string(nameOf(tiles[i].dtype())) +
                             " for tile " + std::to_string(i));
    values.push_back(t.use(tile.handle()));
  }
  t.create<tile::YieldOp>(values);
  // A tile from outside would slip in by capture: the region must be closed.
  region.walk([&](Operation *op) {
    if (op->getNumRegions() != 0)
      throw Error(where, "the combine function may not contain loops, branches or reductions: use where()");
    for (Value operand : op->getOperands())
      if (!region.isAncestor(operand.getParentRegion()))
        throw Error(where, "the combine function may use its arguments and C++ numbers only");
  });
}

template <class Op, class... Extra>
std::vector<Tile> combineAlong(const std::vector<Tile> &tiles, int dim, bool keepsExtent, const CombineMany &combine,
                               const std::source_location &where, Extra... extra) {
  Tracer &t = Tracer::currentAt(where);
  if (tiles.empty())
    throw Error(where, "a reduction or scan needs at least one tile");
  Shape shape = tiles[0].shape(where);
  checkDim(dim, static_cast<int>(shape.size()), where);
  llvm::SmallVector<Value> values;
  for (const Tile &tile : tiles) {
    if (tile.shape(where) != shape)
      throw Error(where, "shape mismatch: a reduction or scan over " + toString(shape) + " and " +
                             toString(tile.shape(where)));
    values.push_back(t.use(tile.handle()));
  }
  if (!keepsExtent)
    shape[dim] = 1;
  llvm::SmallVector<Type> types;
  for (const Tile &tile : tiles)
    types.push_back(tileType(t.builder().getContext(), tile.dtype(), shape));
  auto op = t.create<Op>(types, values, dim, extra...);
  Location location = t.location();
  traceCombine(op.getCombine(), tiles, combine, where);
  op->setLoc(location);
  std::vector<Tile> results;
  for (auto [tile, value] : llvm::zip(tiles, op.getResults()))
    results.push_back(Tile(handleOf(value, tile.dtype())));
  return results;
}

CombineMany single(const Combine &combine) {
  return [combine](const std::vector<Tile> &a, const std::vector<Tile> &b) {
    return std::vector<Tile>{combine(a[0], b[0])};
  };
}

/// Sums and products: the type they are computed in.
DType accumulatorType(DType type) {
  if (type == DType::f16 || type == DType::bf16)
    return DType::f32;
  if (type == DType::i8 || type == DType::i16 || type == DType::boolean)
    return DType::i32;
  if (type == DType::u8 || type == DType::u16)
    return DType::u32;
  return type;
}

/// Accumulates in the wide type; 16-bit floats are rounded back, integers stay wide.
template <class Reduce> Tile accumulate(const Tile &x, const std::source_location &where, Reduce reduceWide) {
  DType type = x.dtype(), wide = accumulatorType(type);
  Tile total = reduceWide(wide == type ? x : x.to(wide, where));
  return isFloat(type) && wide != type ? total.to(type, where) : total;
}

Tile logical(const Tile &x, int dim, const Combine &combine, const char *name, const std::source_location &where) {
  if (x.dtype() != DType::boolean)
    throw Error(where, std::string(name) + "() needs a boolean tile, not " + std::string(nameOf(x.dtype())));
  return reduce(x, dim, combine, where);
}

/// The position of the best element; `better(a, b)` is strict. NaN beats everything, the smaller position wins ties.
Tile bestPosition(const Tile &x, int dim, const std::source_location &at, Tile (*better)(Arg, Arg)) {
  Tile positions = iota(DType::i32, x.shape(at), dim, at);
  CombineMany combine = [&](const std::vector<Tile> &a, const std::vector<Tile> &b) {
    Tile takeRight = better(b[0], a[0]);
    Tile earlier = b[1] < a[1];
    if (isFloat(x.dtype())) {
      Tile aIsNaN = a[0] != a[0], bIsNaN = b[0] != b[0];
      Tile tie = (a[0] == b[0]) | (aIsNaN & bIsNaN);
      takeRight = ((takeRight | bIsNaN) & !aIsNaN) | (tie & earlier);
    } else {
      takeRight = takeRight | ((a[0] == b[0]) & earlier);
    }
    return std::vector<Tile>{where(takeRight, b[0], a[0]), where(takeRight, b[1], a[1])};
  };
  return reduce({x, positions}, dim, combine, at)[1];
}

} // namespace

Tile reduce(const Tile &x, int dim, const Combine &combine, std::source_location where) {
  return combineAlong<tile::ReduceOp>({x}, dim, false, single(combine), where)[0];
}

std::vector<Tile> reduce(const std::vector<Tile> &tiles, int dim, const CombineMany &combine,
                         std::source_location where) {
  return combineAlong<tile::ReduceOp>(tiles, dim, false, combine, where);
}

Tile scan(const Tile &x, int dim, const Combine &combine, bool reverse, std::source_location where) {
  return combineAlong<tile::ScanOp>({x}, dim, true, single(combine), where, reverse)[0];
}

std::vector<Tile> scan(const std::vector<Tile> &tiles, int dim, const CombineMany &combine, bool reverse,
                       std::source_location where) {
  return combineAlong<tile::ScanOp>(tiles, dim, true, combine, where, reverse);
}

Tile sum(const Tile &x, int dim, std::source_location where) {
  Tracer::Pin pin(where);
  return accumulate(x, where, [&](const Tile &wide) {
    return reduce(wide, dim, [](Tile a, Tile b) { return a + b; }, where);
  });
}
Tile prod(const Tile &x, int dim, std::source_location where) {
  Tracer::Pin pin(where);
  return accumulate(x, where, [&](const Tile &wide) {
    return reduce(wide, dim, [](Tile a, Tile b) { return a * b; }, where);
  });
}
Tile cumsum(const Tile &x, int dim, bool reverse, std::source_location where) {
  Tracer::Pin pin(where);
  return accumulate(x, where, [&](const Tile &wide) {
    return scan(wide, dim, [](Tile a, Tile b) { return a + b; }, reverse, where);
  });
}
Tile max(const Tile &x, int dim, std::source_location where) {
  Tracer::Pin pin(where);
  return reduce(x, dim, [](Tile a, Tile b) { return maximum(a, b); }, where);
}
Tile min(const Tile &x, int dim, std::source_location where) {
  Tracer::Pin pin(where);
  return reduce(x, dim, [](Tile a, Tile b) { return minimum(a, b); }, where);
}
Tile any(const Tile &x, int dim, std::source_location where) {
  Tracer::Pin pin(where);
  return logical(x, dim, [](Tile a, Tile b) { return a | b; }, "any", where);
}
Tile all(const Tile &x, int dim, std::source_location where) {
  Tracer::Pin pin(where);
  return logical(x, dim, [](Tile a, Tile b) { return a & b; }, "all", where);
}
Tile argmax(const Tile &x, int dim, std::source_location where) {
  Tracer::Pin pin(where);
  return bestPosition(x, dim, where, [](Arg a, Arg b) { return a > b; });
}
Tile argmin(const Tile &x, int dim, std::source_location where) {
  Tracer::Pin pin(where);
  return bestPosition(x, dim, where, [](Arg a, Arg b) { return a < b; });
}

Tile dot(const Tile &a, const Tile &b, const Tile &acc, DotOptions options, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  Value va = t.use(a.handle()), vb = t.use(b.handle()), vacc = t.use(acc.handle());
  Shape sa = shapeOf(va), sb = shapeOf(vb), sacc = shapeOf(vacc);
  if (sa.size() != 2 || sb.size() != 2 || sacc.size() != 2 || sa[1] != sb[0] || sacc[0] != sa[0] || sacc[1] != sb[1])
    throw Error(where, "shape mismatch: dot of " + toString(sa) + " and " + toString(sb) + " plus " + toString(sacc) +
                           "; it takes M x K, K x N and M x N");
  auto isByte = [](DType type) { return type == DType::i8 || type == DType::u8; };
  DType ta = a.dtype(), tb = b.dtype(), tacc = acc.dtype();
  bool ok = (ta == tb && ta == DType::f64 && tacc == DType::f64) ||
            (ta == tb && (ta == DType::f32 || ta == DType::f16 || ta == DType::bf16) && tacc == DType::f32) ||
            (isFloat8(ta) && isFloat8(tb) && tacc == DType::f32) || (isByte(ta) && isByte(tb) && tacc == DType::i32);
  if (!ok)
    throw Error(where, "dot of " + std::string(nameOf(ta)) + " and " + std::string(nameOf(tb)) +
                           " with an accumulator of " + std::string(nameOf(tacc)) +
                           " is not supported: f64 accumulates in f64, f32/f16/bf16/f8 in f32, i8/u8 in i32");
  if (options.fast_accum && !isFloat8(ta))
    throw Error(where, "fast_accum is about the sums of f8 operands, and these are of " + std::string(nameOf(ta)));
  auto op = t.create<tile::DotOp>(vacc.getType(), va, vb, vacc, ta == DType::u8, tb == DType::u8, options.allow_tf32,
                                  options.fast_accum);
  return Tile(handleOf(op, tacc));
}

Tile dot(const Tile &a, const Tile &b, std::source_location where) {
  Shape sa = a.shape(where), sb = b.shape(where);
  if (sa.size() != 2 || sb.size() != 2 || sa[1] != sb[0])
    throw Error(where,
                "shape mismatch: dot of " + toString(sa) + " and " + toString(sb) + "; it takes M x K and K x N");
  DType type = a.dtype() == DType::f64 ? DType::f64 : isFloat(a.dtype()) ? DType::f32 : DType::i32;
  return dot(a, b, zeros(type, {a.size(0), b.size(1)}, where), {}, where);
}

} // namespace tenon
