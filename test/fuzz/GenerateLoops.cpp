// SPDX-License-Identifier: Apache-2.0
//
// What makes placement of values hard: tiles that a loop carries and that one operation reads in place, transposed,
// rotated and reduced, two of them that trade places; and chains that take for ever if something visits a value once
// for each way to it.
#include "ProgramGenerator.h"

#include <numeric>

using namespace mlir;

namespace tenon::fuzz {

/// The same type, other places: transposed where that fits, else through a reshape.
ProgramGenerator::Tile ProgramGenerator::turned(Value tile) {
  RankedTensorType type = typeOf(tile);
  Shape permutation(type.getRank()), shape(type.getShape()), moved;
  std::iota(permutation.begin(), permutation.end(), 0);
  for (size_t d = permutation.size(); d-- > 1;)
    std::swap(permutation[d], permutation[random_.chance(80) ? d - 1 : random_.range(0, d)]);
  for (int64_t from : permutation)
    moved.push_back(shape[from]);
  Value result = b_.create<tile::TransposeOp>(tileType(moved, type.getElementType()), tile, permutation);
  return moved == shape ? llvm::cast<Tile>(result) : reshape(result, shape);
}

/// [a b c d] -> [c d a b] along one dimension.
ProgramGenerator::Tile ProgramGenerator::rotated(Value tile) {
  RankedTensorType type = typeOf(tile);
  Shape shape(type.getShape()), at(shape.size(), 0);
  int64_t dim = random_.range(0, shape.size() - 1), extent = shape[dim];
  if (extent < 2)
    return llvm::cast<Tile>(tile);
  int64_t cut = random_.chance(40) ? 1 : random_.range(1, extent - 1);
  auto part = [&](int64_t from, int64_t to) -> Value {
    Shape cutShape = shape;
    at[dim] = from;
    cutShape[dim] = to - from;
    return b_.create<tile::SliceOp>(tileType(cutShape, type.getElementType()), tile, at);
  };
  Value last = part(cut, extent), first = part(0, cut);
  return llvm::cast<Tile>(b_.create<tile::ConcatOp>(type, ValueRange{last, first}, dim).getResult());
}

/// The largest or smallest along a dimension, everywhere along it.
ProgramGenerator::Tile ProgramGenerator::extremeOf(Value tile) {
  RankedTensorType type = typeOf(tile);
  int64_t dim = random_.range(0, type.getRank() - 1);
  Shape shape(type.getShape());
  shape[dim] = 1;
  auto op = b_.create<tile::ReduceOp>(TypeRange{tileType(shape, type.getElementType())}, tile, dim);
  combineRegion(op.getCombine(), tile, Single);
  if (random_.chance(20))
    keep(op.getResult(0));
  return llvm::cast<Tile>(b_.create<tile::BroadcastOp>(type, op.getResult(0)).getResult());
}

/// A tile of the same type made of this one.
ProgramGenerator::Tile ProgramGenerator::seen(Value tile) {
  bool isFloat = llvm::isa<FloatType>(typeOf(tile).getElementType());
  switch (random_.range(0, 9)) {
  case 0:
  case 1: return llvm::cast<Tile>(tile);
  case 2:
  case 3: return turned(tile);
  case 4:
  case 5: return rotated(tile);
  case 6: return extremeOf(tile);
  case 7: return turned(seen(tile));
  case 8: { // all of it made of one slice
    Shape shape(typeOf(tile).getShape()), at(shape.size(), 0);
    int64_t dim = random_.range(0, shape.size() - 1);
    at[dim] = random_.range(0, shape[dim] - 1);
    shape[dim] = 1;
    Value row = b_.create<tile::SliceOp>(tileType(shape, typeOf(tile).getElementType()), tile, at);
    return llvm::cast<Tile>(b_.create<tile::BroadcastOp>(tile.getType(), row).getResult());
  }
  default:
    return llvm::cast<Tile>(isFloat ? floatOp({tile, tile, tile}, random_.pick({6, 7, 8, 13, 19, 21}))
                                    : integerOp({tile, tile}, random_.pick({2, 3, 5, 14})));
  }
}

ProgramGenerator::Tile ProgramGenerator::joined(Value a, Value b) {
  bool isFloat = llvm::isa<FloatType>(typeOf(a).getElementType());
  return llvm::cast<Tile>(isFloat ? floatOp({a, b, a}, random_.pick({0, 0, 1, 2, 3, 4, 5, 12}))
                                  : integerOp({a, b}, random_.pick({0, 2, 3, 3, 4, 5, 6, 7})));
}

/// A reduction of two tiles of one shape at once, with a combination of its own.
void ProgramGenerator::reduceTwo(Value a, Value b) {
  int kind = random_.pick({ArgMax, ArgMin, Pair, Affine});
  bool isScan = kind == Affine; // associative only
  SmallVector<Value> operands = {cast(a, b_.getI32Type()),
                                 cast(b, kind == Affine || (kind != Pair && random_.chance(50)) ? b_.getI32Type()
                                                                                               : b_.getI64Type())};
  int64_t dim = random_.range(0, typeOf(a).getRank() - 1);
  SmallVector<Type> types;
  for (Value operand : operands) {
    Shape shape(typeOf(operand).getShape());
    if (!isScan)
      shape[dim] = 1;
    types.push_back(tileType(shape, typeOf(operand).getElementType()));
  }
  SmallVector<Value> results;
  if (isScan) {
    auto op = b_.create<tile::ScanOp>(types, operands, dim, random_.chance(40));
    combineRegion(op.getCombine(), operands, kind);
    results.assign(op.getResults().begin(), op.getResults().end());
  } else {
    auto op = b_.create<tile::ReduceOp>(types, operands, dim);
    combineRegion(op.getCombine(), operands, kind);
    results.assign(op.getResults().begin(), op.getResults().end());
  }
  for (Value result : results)
    if (random_.chance(80))
      keep(result);
}

/// A window of a view and the same window turned round, reduced together.
void ProgramGenerator::reduceBothWays() {
  View *view = findView(
      [&](const View &view) { return view.rank() == 2 && (view.role == Role::input || instances_ <= 1); });
  if (!view) {
    Tile tile = anyTile();
    return reduceTwo(tile, turned(tile));
  }
  int64_t rows = anyExtent(), columns = random_.chance(60) ? rows : anyExtent();
  rows = std::min<int64_t>(rows, 64), columns = std::min<int64_t>(columns, 64);
  Tile tile = loadFrom(*view, {rows, columns});
  auto load = tile.getDefiningOp<tile::LoadOp>();
  SmallVector<Value> offsets(load.getOffsets());
  if (random_.chance(30))
    std::swap(offsets[0], offsets[1]);
  Type element = view->element;
  Value other = b_.create<tile::LoadOp>(tileType({columns, rows}, element), view->value, offsets, load.getPadding());
  Value back = b_.create<tile::TransposeOp>(tileType({rows, columns}, element), other, ArrayRef<int64_t>{1, 0});
  if (random_.chance(50))
    reduceTwo(tile, back);
  else
    reduceTwo(back, tile);
  if (random_.chance(30))
    keep(back);
}

/// x = x + x, forty times: 2^40 ways from the last to the first.
void ProgramGenerator::chain() {
  Tile tile = anyTile();
  Type element = typeOf(tile).getElementType();
  if (isFloat8(element) || element.isInteger(1))
    tile = cast(tile, b_.getF32Type());
  int length = random_.range(10, 45);
  bool turns = random_.chance(30), isUniform = random_.chance(60);
  int kind = llvm::isa<FloatType>(typeOf(tile).getElementType()) ? random_.pick({0, 2, 4}) : random_.pick({3, 5, 2});
  for (int i = 0; i < length; ++i) {
    Value other = turns && random_.chance(20) ? Value(seen(tile)) : Value(tile);
    if (!isUniform)
      tile = joined(tile, other);
    else if (llvm::isa<FloatType>(typeOf(tile).getElementType()))
      tile = llvm::cast<Tile>(floatOp({tile, other}, kind));
    else
      tile = llvm::cast<Tile>(integerOp({tile, other}, kind));
  }
  keep(tile);
}

/// Something that makes the value of a tile show.
void ProgramGenerator::useOf(Value tile) {
  switch (random_.range(0, 5)) {
  case 0: reduceTwo(tile, seen(tile)); break;
  case 1: keep(joined(tile, extremeOf(tile))); break;
  case 2: scatterOf(tile); break;
  case 3: keep(tile); break;
  case 4: gatherBy(Shape(typeOf(tile).getShape()), tile); break;
  default: {
    View *view = findView([&](const View &view) { return view.role == Role::output; });
    storeTo(*view, tile);
  }
  }
}

/// A loop over one or two tiles of one type. Each is read in several ways, before and after what uses it, and the next
/// ones are made of any of these; two of them may change places.
void ProgramGenerator::windingLoop() {
  if (depth_ >= 2)
    return;
  Type element = anyArithmeticElement();
  Shape shape = anyShape();
  if (random_.chance(60)) { // square: then it can be transposed as it is
    int64_t n = std::min<int64_t>(anyExtent(), 33);
    shape = {n, n};
  }
  SmallVector<Value> inits = {tileOf(shape, element)};
  if (random_.chance(60))
    inits.push_back(random_.chance(30) ? inits[0] : Value(tileOf(shape, element)));
  int64_t trips = random_.pick({1, 2, 2, 3, 4});
  Value end = random_.chance(20) ? smallIndex(4) : constant(trips);
  auto loop = b_.create<scf::ForOp>(constant(0), end, constant(1), inits);
  Pool saved = pool_;
  ++depth_;
  budget_ -= 2000;
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(loop.getBody());
    pool_.indices.push_back(loop.getInductionVar());
    std::vector<Value> known(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    for (int i = random_.range(1, 4); i > 0; --i) {
      known.push_back(random_.chance(60) ? joined(seen(random_.pick(known)), seen(random_.pick(known)))
                                         : seen(random_.pick(known)));
      if (random_.chance(50))
        useOf(random_.pick(known));
    }
    for (Value value : loop.getRegionIterArgs())
      pool_.tiles.push_back(value);
    if (random_.chance(30))
      statement();
    SmallVector<Value> next;
    for (size_t i = 0; i < inits.size(); ++i)
      next.push_back(random_.chance(25)   ? known[inits.size() - 1 - i] // trade places
                     : random_.chance(70) ? random_.pick(known)
                                          : Value(joined(random_.pick(known), seen(random_.pick(known)))));
    if (random_.chance(30)) // also after the next ones are made
      useOf(random_.pick(known));
    b_.setInsertionPointToEnd(loop.getBody());
    b_.create<scf::YieldOp>(next);
  }
  --depth_;
  pool_ = std::move(saved);
  for (Value result : loop.getResults())
    keep(result);
}

} // namespace tenon::fuzz
