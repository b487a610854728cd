// SPDX-License-Identifier: Apache-2.0
//
// What makes tiles from tiles. An operand of any type can be had: from the pool, by conversion, from memory, or as a
// constant; so statements need not fit together by luck.
#include "ProgramGenerator.h"

using namespace mlir;

namespace tenon::fuzz {
namespace {

constexpr int64_t maxElements = 4096;

int64_t elementsOf(ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t extent : shape)
    elements *= extent;
  return elements;
}

} // namespace

//===--- Choices --------------------------------------------------------------------------------------------------===//

Type ProgramGenerator::anyElement() {
  if (random_.chance(85))
    return random_.pick(elements_);
  Type all[] = {b_.getF32Type(), b_.getF64Type(), b_.getF16Type(), b_.getBF16Type(), b_.getI32Type(), b_.getI64Type(),
                b_.getI16Type(), b_.getI8Type(),  b_.getI1Type(),  b_.getFloat8E4M3FNType(), b_.getFloat8E5M2Type()};
  return random_.pick(all);
}

Type ProgramGenerator::anyArithmeticElement() {
  Type type = anyElement();
  return isFloat8(type) || type.isInteger(1) ? Type(b_.getF32Type()) : type;
}

int64_t ProgramGenerator::anyExtent() { return random_.chance(85) ? random_.pick(extents_) : random_.range(1, 40); }

ProgramGenerator::Shape ProgramGenerator::anyShape() {
  Shape shape(random_.pick({1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 5}));
  for (int64_t &extent : shape)
    extent = random_.chance(85) ? anyExtent() : 1;
  int64_t limit = budget_ > 0 ? maxElements : 64;
  while (elementsOf(shape) > limit)
    random_.pick(shape) = random_.range(1, 4);
  return shape;
}

ProgramGenerator::Shape ProgramGenerator::shapeOfElements(int64_t elements, int64_t rank) {
  Shape shape;
  for (int64_t d = 0; d + 1 < rank; ++d) {
    SmallVector<int64_t> divisors;
    for (int64_t by = 1; by <= elements; ++by)
      if (elements % by == 0)
        divisors.push_back(by);
    shape.push_back(random_.pick(divisors));
    elements /= shape.back();
  }
  shape.insert(shape.begin() + random_.range(0, shape.size()), elements);
  return shape;
}

//===--- Operands -------------------------------------------------------------------------------------------------===//

ProgramGenerator::Tile ProgramGenerator::keep(Value value) {
  budget_ -= typeOf(value).getNumElements();
  pool_.tiles.push_back(value);
  return llvm::cast<Tile>(value);
}

ProgramGenerator::Tile ProgramGenerator::anyTile() {
  if (pool_.tiles.empty() || random_.chance(8))
    return load();
  size_t recent = std::min<size_t>(pool_.tiles.size(), 4);
  return llvm::cast<Tile>(random_.chance(60) ? pool_.tiles[pool_.tiles.size() - random_.range(1, recent)]
                                             : random_.pick(pool_.tiles));
}

ProgramGenerator::Tile ProgramGenerator::cast(Value tile, Type element) {
  Type from = typeOf(tile).getElementType();
  if (from == element)
    return llvm::cast<Tile>(tile);
  bool isUnsigned = random_.chance(25) && (from.isInteger() || element.isInteger());
  return llvm::cast<Tile>(
      b_.create<tile::CastOp>(typeOf(tile).clone(element), tile, isUnsigned).getResult());
}

ProgramGenerator::Tile ProgramGenerator::reshape(Value tile, ArrayRef<int64_t> shape) {
  Value result = b_.create<tile::ReshapeOp>(tileType(shape, typeOf(tile).getElementType()), tile);
  if (auto bound = exact_.find(tile); bound != exact_.end())
    exact_[result] = int64_t(bound->second);
  return llvm::cast<Tile>(result);
}

ProgramGenerator::Tile ProgramGenerator::constantTile(ArrayRef<int64_t> shape, Type element) {
  RankedTensorType type = tileType(shape, element);
  if (random_.chance(10) && type.getNumElements() <= 128) {
    SmallVector<Attribute> values;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      values.push_back(constantAttr(element));
    return llvm::cast<Tile>(b_.create<arith::ConstantOp>(DenseElementsAttr::get(type, values)).getResult());
  }
  if (random_.chance(50))
    return llvm::cast<Tile>(
        b_.create<arith::ConstantOp>(SplatElementsAttr::get(type, Attribute(constantAttr(element)))).getResult());
  if (random_.chance(60))
    return llvm::cast<Tile>(b_.create<tile::SplatOp>(type, scalarOf(element)).getResult());
  Type index = random_.chance(50) ? b_.getI32Type() : b_.getI64Type();
  Value iota = b_.create<tile::IotaOp>(tileType(shape, index), random_.range(0, shape.size() - 1));
  return cast(iota, element);
}

ProgramGenerator::Tile ProgramGenerator::tileOf(ArrayRef<int64_t> shape, Type element) {
  std::vector<Value> same, sameShape, broadcastable, sameCount;
  for (Value tile : pool_.tiles) {
    RankedTensorType type = typeOf(tile);
    if (type.getShape() == shape)
      (type.getElementType() == element ? same : sameShape).push_back(tile);
    else if (type.getNumElements() == elementsOf(shape))
      sameCount.push_back(tile);
    if (type.getRank() == static_cast<int64_t>(shape.size()) && type.getShape() != shape &&
        llvm::all_of(llvm::zip(type.getShape(), shape),
                     [](auto pair) { return std::get<0>(pair) == 1 || std::get<0>(pair) == std::get<1>(pair); }))
      broadcastable.push_back(tile);
  }
  if (!same.empty() && random_.chance(75))
    return llvm::cast<Tile>(random_.chance(50) ? same.back() : random_.pick(same));
  if (!sameShape.empty() && random_.chance(50))
    return cast(random_.pick(sameShape), element);
  if (!broadcastable.empty() && random_.chance(60)) {
    Value from = random_.pick(broadcastable);
    Value wide = b_.create<tile::BroadcastOp>(tileType(shape, typeOf(from).getElementType()), from);
    return cast(wide, element);
  }
  if (!sameCount.empty() && random_.chance(60))
    return cast(reshape(random_.pick(sameCount), shape), element);
  View *view = findView([&](const View &view) {
    return view.rank() == static_cast<int64_t>(shape.size()) && canHold(view, shape);
  });
  if (view && random_.chance(70))
    return cast(loadFrom(*view, shape), element);
  return constantTile(shape, element);
}

ProgramGenerator::Tile ProgramGenerator::withoutNaN(Value tile) {
  if (!llvm::isa<FloatType>(typeOf(tile).getElementType()))
    return llvm::cast<Tile>(tile);
  Value narrow = tile; // comparisons are not for f8
  if (isFloat8(typeOf(tile).getElementType()))
    narrow = b_.create<tile::CastOp>(typeOf(tile).clone(b_.getF32Type()), tile, false);
  Value isNaN = b_.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, narrow, narrow);
  Value zero = b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(tile.getType())));
  return llvm::cast<Tile>(b_.create<arith::SelectOp>(isNaN, zero, tile).getResult());
}

/// Integers of at most `bound` (rounded up to 2^n - 1), of either sign.
ProgramGenerator::Tile ProgramGenerator::exactTile(ArrayRef<int64_t> shape, Type element, int64_t bound) {
  for (Value tile : pool_.tiles)
    if (auto known = exact_.find(tile); known != exact_.end() && known->second <= bound &&
                                        typeOf(tile) == tileType(shape, element) && random_.chance(70))
      return llvm::cast<Tile>(tile);
  View *view = findView([&](const View &view) {
    return view.isExact && view.element == element && view.rank() == static_cast<int64_t>(shape.size());
  });
  if (view && bound >= 3 && random_.chance(80))
    return loadFrom(*view, shape);
  Value integers = cast(tileOf(shape, anyElement()), b_.getI32Type());
  auto splat = [&](int64_t value) {
    return b_.create<arith::ConstantOp>(
        SplatElementsAttr::get(tileType(shape, b_.getI32Type()), llvm::APInt(32, value)));
  };
  int64_t mask = static_cast<int64_t>(llvm::PowerOf2Ceil(bound + 1)) - 1;
  if (mask > bound)
    mask /= 2;
  Value low = b_.create<arith::AndIOp>(integers, splat(mask));
  if (mask > 1 && random_.chance(70))
    low = b_.create<arith::SubIOp>(low, splat(mask / 2));
  Value result = b_.create<tile::CastOp>(tileType(shape, element), low, false);
  exact_[result] = mask;
  return llvm::cast<Tile>(result);
}

/// 0, 1, 2, ... in row-major order.
ProgramGenerator::Tile ProgramGenerator::linearIndex(ArrayRef<int64_t> shape, Type element) {
  if (random_.chance(30)) {
    Value flat = b_.create<tile::IotaOp>(tileType({elementsOf(shape)}, element), 0);
    return reshape(flat, shape);
  }
  RankedTensorType type = tileType(shape, element);
  Value sum;
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    Value term = b_.create<tile::IotaOp>(type, d);
    if (stride != 1)
      term = b_.create<arith::MulIOp>(term, b_.create<arith::ConstantOp>(SplatElementsAttr::get(
                                                type, llvm::APInt(element.getIntOrFloatBitWidth(), stride))));
    sum = sum ? b_.create<arith::AddIOp>(sum, term).getResult() : term;
  }
  return llvm::cast<Tile>(sum);
}

//===--- Element by element ---------------------------------------------------------------------------------------===//

void ProgramGenerator::elementwise() {
  int kind = random_.range(0, 9);
  if (kind < 2) {
    keep(cast(anyTile(), anyElement()));
  } else if (kind == 2) { // the bits of one type seen as another
    Tile tile = withoutNaN(anyTile());
    Type from = typeOf(tile).getElementType(), to;
    // MLIR 19 takes a bitcast of a bitcast for the first operand, whatever its type: something must stand between.
    if (from.isInteger() && !from.isInteger(1))
      tile = llvm::cast<Tile>(
          b_.create<arith::AddIOp>(tile, b_.create<arith::ConstantOp>(SplatElementsAttr::get(
                                             typeOf(tile), llvm::APInt(from.getIntOrFloatBitWidth(), 5))))
              .getResult());
    switch (from.getIntOrFloatBitWidth()) {
    case 64: to = llvm::isa<FloatType>(from) ? Type(b_.getI64Type()) : Type(b_.getF64Type()); break;
    case 32: to = llvm::isa<FloatType>(from) ? Type(b_.getI32Type()) : Type(b_.getF32Type()); break;
    case 16:
      to = llvm::isa<FloatType>(from) ? Type(b_.getI16Type())
                                      : random_.pick({Type(b_.getF16Type()), Type(b_.getBF16Type())});
      break;
    case 8:
      to = llvm::isa<FloatType>(from) ? Type(b_.getI8Type())
                                      : random_.pick({Type(b_.getFloat8E4M3FNType()), Type(b_.getFloat8E5M2Type())});
      break;
    default: return;
    }
    keep(b_.create<arith::BitcastOp>(typeOf(tile).clone(to), tile));
  } else if (kind < 7) {
    floatOperation();
  } else {
    integerOperation();
  }
}

void ProgramGenerator::floatOperation() {
  Tile first = anyTile();
  Type element = typeOf(first).getElementType();
  if (!llvm::isa<FloatType>(element) || isFloat8(element)) {
    element = anyArithmeticElement();
    if (!llvm::isa<FloatType>(element))
      element = b_.getF32Type();
    first = cast(first, element);
  }
  ArrayRef<int64_t> shape = typeOf(first).getShape();
  int kind = random_.range(0, 25);
  Value second = kind < 6 || kind == 12 || kind > 22 ? tileOf(shape, element) : Value();
  Value third = kind == 12 ? tileOf(shape, element) : Value();
  bool swaps = second && random_.chance(20);
  keep(floatOp({swaps ? second : Value(first), swaps ? Value(first) : second, third}, kind));
}

void ProgramGenerator::integerOperation() {
  Tile first = anyTile();
  Type element = typeOf(first).getElementType();
  if (!element.isInteger()) {
    element = anyElement();
    if (!element.isInteger())
      element = random_.pick<Type>({b_.getI32Type(), b_.getI64Type(), b_.getI8Type(), b_.getI16Type()});
    first = cast(first, element);
  }
  int kind = random_.range(0, 14);
  Value second = tileOf(typeOf(first).getShape(), element);
  keep(integerOp({first, second}, kind));
}

void ProgramGenerator::compareSelect() {
  Tile first = anyTile();
  if (isFloat8(typeOf(first).getElementType()))
    first = cast(first, b_.getF32Type());
  RankedTensorType type = typeOf(first);
  Value mask;
  if (type.getElementType().isInteger(1)) {
    mask = first;
  } else {
    Value second = tileOf(type.getShape(), type.getElementType());
    if (llvm::isa<FloatType>(type.getElementType()))
      mask = b_.create<arith::CmpFOp>(static_cast<arith::CmpFPredicate>(random_.range(1, 14)), first, second);
    else
      mask = b_.create<arith::CmpIOp>(static_cast<arith::CmpIPredicate>(random_.range(0, 9)), first, second);
  }
  if (random_.chance(30)) {
    keep(mask);
    return;
  }
  Type element = anyElement();
  Value a = tileOf(type.getShape(), element), c = tileOf(type.getShape(), element);
  keep(b_.create<arith::SelectOp>(random_.chance(10) ? anyCondition() : mask, a, c));
}

void ProgramGenerator::philox() {
  Shape shape = anyShape();
  Value seed = scalarOf(b_.getI64Type());
  Value counter = tileOf(shape, b_.getI64Type());
  Type word = tileType(shape, b_.getI32Type());
  if (random_.chance(60)) {
    Type half = tileType(shape, b_.getI16Type());
    keep(b_.create<tile::RandomBitsOp>(random_.chance(50) ? word : half, seed, counter, random_.pick({7, 8, 10, 10})));
    return;
  }
  auto op = b_.create<tile::PhiloxOp>(word, word, word, word, seed, counter);
  for (Value result : op.getResults())
    if (random_.chance(60))
      keep(result);
}

//===--- Movement -------------------------------------------------------------------------------------------------===//

void ProgramGenerator::movement() {
  Tile tile = anyTile();
  RankedTensorType type = typeOf(tile);
  Shape shape(type.getShape());
  Type element = type.getElementType();
  Value result;
  switch (random_.range(0, 6)) {
  case 0: { // broadcast, with new dimensions first where none is 1
    if (!llvm::is_contained(shape, 1) && shape.size() < 5) {
      shape.insert(shape.begin() + random_.range(0, shape.size()), 1);
      tile = reshape(tile, shape);
    }
    for (int64_t &extent : shape)
      if (extent == 1 && elementsOf(shape) * 17 < maxElements && random_.chance(70))
        extent = std::min<int64_t>(anyExtent(), 17);
    result = b_.create<tile::BroadcastOp>(tileType(shape, element), tile);
    break;
  }
  case 1: { // dimensions of size 1 come and go
    Shape squeezed;
    for (int64_t extent : shape)
      if (extent != 1 || random_.chance(50))
        squeezed.push_back(extent);
    while (squeezed.size() < 5 && (squeezed.empty() || random_.chance(40)))
      squeezed.insert(squeezed.begin() + random_.range(0, squeezed.size()), 1);
    result = reshape(tile, squeezed);
    break;
  }
  case 2:
    result = reshape(tile, shapeOfElements(elementsOf(shape), random_.range(1, 4)));
    break;
  case 3:
  case 4: {
    Shape permutation;
    for (size_t d = 0; d < shape.size(); ++d)
      permutation.push_back(d);
    for (size_t d = permutation.size(); d-- > 1;)
      std::swap(permutation[d], permutation[random_.range(0, d)]);
    Shape moved;
    for (int64_t from : permutation)
      moved.push_back(shape[from]);
    result = b_.create<tile::TransposeOp>(tileType(moved, element), tile, permutation);
    break;
  }
  default: {
    Shape at, cut;
    for (int64_t extent : shape) {
      int64_t size = random_.chance(40) ? extent : random_.range(1, extent);
      cut.push_back(size);
      at.push_back(random_.range(0, extent - size));
    }
    result = b_.create<tile::SliceOp>(tileType(cut, element), tile, at);
  }
  }
  if (auto bound = exact_.find(tile); bound != exact_.end())
    exact_[result] = int64_t(bound->second);
  keep(result);
}

void ProgramGenerator::concat() {
  Tile first = anyTile();
  Shape shape(typeOf(first).getShape());
  Type element = typeOf(first).getElementType();
  int64_t dim = random_.range(0, shape.size() - 1), total = shape[dim];
  SmallVector<Value> values = {first};
  for (int i = random_.range(0, 2); i > 0; --i) {
    Shape part = shape;
    part[dim] = random_.chance(50) ? shape[dim] : random_.range(1, 8);
    if (elementsOf(shape) + elementsOf(part) > maxElements)
      break;
    values.push_back(random_.chance(15) && part[dim] == shape[dim] ? Value(first) : Value(tileOf(part, element)));
    total += part[dim];
  }
  shape[dim] = total;
  keep(b_.create<tile::ConcatOp>(tileType(shape, element), values, dim));
}

} // namespace tenon::fuzz
