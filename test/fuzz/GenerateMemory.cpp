// SPDX-License-Identifier: Apache-2.0
//
// What touches views. Inputs may be read anywhere; of an output an instance touches its own rows only (anything, when
// there is one instance), so that no order between instances shows.
#include "ProgramGenerator.h"

#include <limits>
#include <numeric>

using namespace mlir;

namespace tenon::fuzz {

ProgramGenerator::View *ProgramGenerator::findView(llvm::function_ref<bool(const View &)> wanted) {
  std::vector<View *> found;
  for (View &view : views_)
    if (wanted(view))
      found.push_back(&view);
  return found.empty() ? nullptr : random_.pick(found);
}

bool ProgramGenerator::canHold(const View &view, ArrayRef<int64_t> shape) const {
  if (view.role == Role::atomic)
    return instances_ <= 1;
  return view.role == Role::input || instances_ <= 1 || shape[view.ownDim] <= view.ownRows;
}

Value ProgramGenerator::anyOffset(int64_t size, int64_t extent) {
  if (random_.chance(35))
    return constant(0);
  switch (random_.range(0, 11)) {
  case 0: return constant(size > extent ? random_.range(0, size - extent) : 0);
  case 1: return constant(size - (extent + 1) / 2); // over the end
  case 2: return constant(-random_.range(1, extent));
  case 3: return constant(random_.chance(50) ? size + random_.range(0, 5) : -extent - random_.range(0, 5)); // outside
  case 4:
    return constant(random_.pick<int64_t>({int64_t(1) << 40, -(int64_t(1) << 40), std::numeric_limits<int64_t>::max(),
                                           std::numeric_limits<int64_t>::min(), (int64_t(1) << 31) - 1}));
  case 5: return b_.create<arith::MulIOp>(random_.pick(pool_.indices), constant(extent));
  case 6: return smallIndex(size + 2);
  default: return anyIndex();
  }
}

SmallVector<Value> ProgramGenerator::offsetsFor(const View &view, ArrayRef<int64_t> shape) {
  SmallVector<Value> offsets;
  for (int64_t d = 0; d < view.rank(); ++d) {
    if (view.role != Role::output || instances_ <= 1 || d != view.ownDim) {
      offsets.push_back(anyOffset(view.sizes[d], shape[d]));
      continue;
    }
    Value first = instance_;
    if (view.ownRows != 1)
      first = b_.create<arith::MulIOp>(first, constant(view.ownRows));
    int64_t within = random_.chance(60) ? 0 : random_.range(0, view.ownRows - shape[d]);
    offsets.push_back(within == 0 ? first : b_.create<arith::AddIOp>(first, constant(within)).getResult());
  }
  return offsets;
}

ProgramGenerator::Tile ProgramGenerator::loadFrom(View &view, ArrayRef<int64_t> shape) {
  Value padding;
  if (random_.chance(35)) {
    if (!view.isExact)
      padding = scalarOf(view.element);
    else
      padding = b_.create<arith::ConstantOp>(
          llvm::isa<FloatType>(view.element) ? TypedAttr(b_.getFloatAttr(view.element, random_.range(-3, 3)))
          : view.element.isInteger(1)        ? TypedAttr(b_.getBoolAttr(random_.chance(50)))
                                             : TypedAttr(b_.getIntegerAttr(view.element, random_.range(-3, 3))));
  }
  SmallVector<Value> offsets = offsetsFor(view, shape);
  Value tile = b_.create<tile::LoadOp>(tileType(shape, view.element), view.value, offsets, padding);
  if (view.isExact)
    exact_[tile] = 3;
  budget_ -= typeOf(tile).getNumElements();
  return llvm::cast<Tile>(tile);
}

ProgramGenerator::Tile ProgramGenerator::load() {
  View *view = findView([&](const View &view) { return view.role != Role::atomic || instances_ <= 1; });
  Shape shape = anyShape();
  shape.resize(view->rank(), 1);
  for (int64_t d = 0; d < view->rank(); ++d)
    if (random_.chance(50) && view->sizes[d] > 0)
      shape[d] = std::min<int64_t>(view->sizes[d], 100);
  if (view->role == Role::output && instances_ > 1)
    shape[view->ownDim] = std::min(shape[view->ownDim], view->ownRows);
  int64_t limit = budget_ > 0 ? 4096 : 64;
  while (std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>()) > limit)
    random_.pick(shape) = 1;
  return keep(loadFrom(*view, shape));
}

//===--- Stores ---------------------------------------------------------------------------------------------------===//

/// The tile brought into the view's rank, element type and, where an instance has few rows, size.
ProgramGenerator::Tile ProgramGenerator::fitted(const View &view, Value tile) {
  if (typeOf(tile).getRank() != view.rank()) {
    Shape shape(typeOf(tile).getShape());
    while (static_cast<int64_t>(shape.size()) < view.rank())
      shape.insert(shape.begin() + random_.range(0, shape.size()), 1);
    while (static_cast<int64_t>(shape.size()) > view.rank()) { // two neighbours become one
      size_t d = random_.range(0, shape.size() - 2);
      shape[d] *= shape[d + 1];
      shape.erase(shape.begin() + d + 1);
    }
    tile = reshape(tile, shape);
  }
  Shape shape(typeOf(tile).getShape());
  if (!canHold(view, shape)) {
    Shape at(shape.size(), 0);
    at[view.ownDim] = random_.range(0, shape[view.ownDim] - view.ownRows);
    shape[view.ownDim] = view.ownRows;
    tile = b_.create<tile::SliceOp>(tileType(shape, typeOf(tile).getElementType()), tile, at);
  }
  return cast(tile, view.element);
}

void ProgramGenerator::storeTo(View &view, Value tile) {
  Tile value = fitted(view, tile);
  SmallVector<Value> offsets = offsetsFor(view, typeOf(value).getShape());
  // In place: x = f(x) at the very place x came from.
  for (Operation *user : view.value.getUsers())
    if (auto load = llvm::dyn_cast<tile::LoadOp>(user);
        load && load->getBlock() == b_.getInsertionBlock() && load.getType() == typeOf(value) && random_.chance(30))
      offsets.assign(load.getOffsets().begin(), load.getOffsets().end());
  b_.create<tile::StoreOp>(value, view.value, offsets);
}

void ProgramGenerator::store() {
  View *view = findView([&](const View &view) { return view.role == Role::output; });
  Value tile = anyTile();
  for (int attempt = 0; attempt < 3 && !pool_.tiles.empty() && !tile.use_empty(); ++attempt)
    tile = random_.pick(pool_.tiles);
  storeTo(*view, tile);
}

//===--- Elements named by tiles ----------------------------------------------------------------------------------===//

Value ProgramGenerator::maybeMask(ArrayRef<int64_t> shape) {
  return random_.chance(40) ? Value(tileOf(shape, b_.getI1Type())) : Value();
}

void ProgramGenerator::gather() { gatherBy(anyShape(), Value()); }

/// Elements named by `tile`, if there is one, else by any.
void ProgramGenerator::gatherBy(ArrayRef<int64_t> shape, Value tile) {
  View *view = findView([&](const View &view) { return view.role == Role::input || instances_ <= 1; });
  SmallVector<Value> indices;
  bool ofRows = random_.chance(40); // along the last dimension, rows that are named by their numbers
  for (int64_t d = 0; d < view->rank(); ++d) {
    Type element = random_.chance(50) ? b_.getI32Type() : b_.getI64Type();
    if (ofRows && d == view->rank() - 1) {
      int64_t first = random_.range(-3, std::max<int64_t>(view->sizes[d], 1));
      indices.push_back(b_.create<arith::AddIOp>(
          b_.create<tile::IotaOp>(tileType(shape, element), shape.size() - 1),
          b_.create<arith::ConstantOp>(SplatElementsAttr::get(
              tileType(shape, element), llvm::APInt(element.getIntOrFloatBitWidth(), first, /*isSigned=*/true)))));
      continue;
    }
    Shape named(shape);
    if (ofRows)
      named.back() = 1;
    Value index = tile && !ofRows && random_.chance(70) ? cast(tile, element) : tileOf(named, element);
    if (ofRows && shape.back() != 1)
      index = b_.create<tile::BroadcastOp>(tileType(shape, element), index);
    if (random_.chance(75)) // mostly inside
      index = b_.create<tile::RemOp>(
          index,
          b_.create<arith::ConstantOp>(SplatElementsAttr::get(
              tileType(shape, element),
              llvm::APInt(element.getIntOrFloatBitWidth(), view->sizes[d] + random_.range(0, 2)))),
          random_.chance(80));
    indices.push_back(index);
  }
  Value mask = maybeMask(shape), padding = random_.chance(40) ? scalarOf(view->element) : Value();
  if (tile && random_.chance(40))
    mask = cast(tile, b_.getI1Type());
  keep(b_.create<tile::GatherOp>(tileType(shape, view->element), view->value, indices, mask, padding));
}

/// Indices that name no element twice, inside this instance's rows; empty where there is no room for them.
SmallVector<Value> ProgramGenerator::uniqueIndices(const View &view, ArrayRef<int64_t> shape) {
  int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
  bool shared = view.role == Role::output && instances_ > 1;
  int64_t along = random_.range(0, view.rank() - 1);
  if (shared && view.rank() > 1)
    while (along == view.ownDim)
      along = random_.range(0, view.rank() - 1);
  bool ownRows = shared && along == view.ownDim;
  // p = (a l + b) mod m, with a and m coprime and m >= count, is another number for every l.
  int64_t modulus = ownRows ? view.ownRows : std::max(count, view.sizes[along]) + random_.range(0, 3);
  if (modulus < count)
    return {};
  int64_t factor = random_.range(1, modulus);
  while (std::gcd(factor, modulus) != 1)
    factor = factor % modulus + 1;
  Type element = random_.chance(50) ? b_.getI32Type() : b_.getI64Type();
  RankedTensorType type = tileType(shape, element);
  auto splat = [&](int64_t value) -> Value {
    return b_.create<arith::ConstantOp>(SplatElementsAttr::get(
        type, llvm::APInt(element.getIntOrFloatBitWidth(), static_cast<uint64_t>(value), true)));
  };
  auto splatIndex = [&](Value index) -> Value {
    return b_.create<tile::SplatOp>(type, b_.create<tile::CastOp>(element, index, false).getResult());
  };
  Value permuted = linearIndex(shape, element);
  permuted = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(permuted, splat(factor)), splat(random_.range(0, 9)));
  permuted = b_.create<tile::RemOp>(permuted, splat(modulus), /*is_unsigned=*/true);
  Value first = shared ? b_.create<arith::MulIOp>(instance_, constant(view.ownRows)).getResult() : Value();
  SmallVector<Value> indices;
  for (int64_t d = 0; d < view.rank(); ++d) {
    if (d == along)
      indices.push_back(ownRows ? b_.create<arith::AddIOp>(permuted, splatIndex(first)).getResult() : permuted);
    else if (shared && d == view.ownDim)
      indices.push_back(splatIndex(b_.create<arith::AddIOp>(first, constant(random_.range(0, view.ownRows - 1)))));
    else
      indices.push_back(random_.chance(50) ? splat(random_.range(-1, view.sizes[d]))
                                           : splatIndex(smallIndex(view.sizes[d] + 1)));
  }
  return indices;
}

void ProgramGenerator::scatter() { scatterOf(anyTile()); }

void ProgramGenerator::scatterOf(Value tile) {
  View *view = findView([&](const View &view) { return view.role == Role::output; });
  Tile value = cast(tile, view->element);
  SmallVector<Value> indices = uniqueIndices(*view, typeOf(value).getShape());
  if (!indices.empty())
    b_.create<tile::ScatterOp>(value, view->value, indices, maybeMask(typeOf(value).getShape()));
}

void ProgramGenerator::atomic() {
  View *view = findView([&](const View &view) { return view.role == Role::atomic; });
  if (!view)
    return;
  Shape shape = anyShape();
  while (std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>()) > 300)
    random_.pick(shape) = 1;
  bool isFloat = llvm::isa<FloatType>(view->element), alone = instances_ <= 1;
  Value value = isFloat && view->kind == tile::AtomicKind::add ? exactTile(shape, view->element, 3)
                                                               : tileOf(shape, view->element);
  bool isUnique = view->kind == tile::AtomicKind::exchange || random_.chance(50);
  SmallVector<Value> indices;
  if (isUnique) {
    indices = uniqueIndices(*view, shape);
  } else {
    for (int64_t size : view->sizes) {
      Type element = random_.chance(50) ? b_.getI32Type() : b_.getI64Type();
      Value limit = b_.create<arith::ConstantOp>(SplatElementsAttr::get(
          tileType(shape, element), llvm::APInt(element.getIntOrFloatBitWidth(), size + random_.range(0, 2))));
      indices.push_back(b_.create<tile::RemOp>(tileOf(shape, element), limit, random_.chance(80)));
    }
  }
  Value mask = maybeMask(shape), old;
  if (alone && isUnique && !isFloat && random_.chance(40))
    old = b_.create<tile::AtomicCASOp>(value.getType(), tileOf(shape, view->element), value, view->value, indices,
                                       mask);
  else
    old = b_.create<tile::AtomicRMWOp>(value.getType(), view->kind, value, view->value, indices, mask,
                                       view->isUnsigned);
  if (alone && isUnique && random_.chance(70))
    keep(old);
}

void ProgramGenerator::assertion() {
  Shape shape = anyShape();
  Value index = linearIndex(shape, b_.getI32Type());
  Value least = b_.create<arith::ConstantOp>(
      SplatElementsAttr::get(tileType(shape, b_.getI32Type()), llvm::APInt(32, 0)));
  b_.create<tile::AssertOp>(b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, index, least), "counts from zero");
}

} // namespace tenon::fuzz
