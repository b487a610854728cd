// SPDX-License-Identifier: Apache-2.0
//
// Reductions, scans and dots. The order in which they combine is not defined, so operands are chosen such that no order
// shows: integers that wrap, extrema, small integers in floats.
#include "ProgramGenerator.h"

using namespace mlir;

namespace tenon::fuzz {
namespace {

/// The largest n such that all integers up to n are exact.
int64_t exactLimit(Type type) {
  if (type.isF64())
    return int64_t(1) << 53;
  if (type.isF32())
    return 1 << 24;
  if (type.isF16())
    return 1 << 11;
  if (type.isBF16())
    return 1 << 8;
  return type.isFloat8E4M3FN() ? 16 : 8;
}

} // namespace

/// Operands and what to do with them.
SmallVector<Value> ProgramGenerator::combineOperands(bool isScan, int &kind) {
  Tile tile = anyTile();
  ArrayRef<int64_t> shape = typeOf(tile).getShape();
  Type element = typeOf(tile).getElementType();
  kind = random_.chance(65) ? Single : random_.range(ArgMax, isScan ? Last : Masked);
  if (random_.chance(30))
    kind = FloatSum;
  switch (kind) {
  case FloatSum: {
    if (!llvm::isa<FloatType>(element) || isFloat8(element))
      element = random_.pick<Type>({b_.getF32Type(), b_.getF64Type(), b_.getF16Type(), b_.getBF16Type()});
    int64_t bound = std::min<int64_t>(exactLimit(element) / 4100, 1000);
    if (bound < 1) { // so narrow that only short sums are exact
      int64_t longest = *std::max_element(shape.begin(), shape.end());
      if (longest * 3 > exactLimit(element))
        element = b_.getF32Type();
      bound = 3;
    }
    if (random_.chance(15)) {
      kind = FloatProduct;
      bound = 1;
    }
    return {exactTile(shape, element, bound)};
  }
  case ArgMax:
  case ArgMin: {
    if (element.isInteger(1) || isFloat8(element))
      element = b_.getF32Type();
    Value values = llvm::isa<FloatType>(element) ? exactTile(shape, element, 3) : cast(tile, element);
    Type index = random_.pick({Type(b_.getI32Type()), Type(b_.getI64Type())});
    Value indices = random_.chance(70)
                        ? Value(b_.create<tile::IotaOp>(tileType(shape, index), random_.range(0, shape.size() - 1)))
                        : Value(tileOf(shape, index));
    return {values, indices};
  }
  case Pair: return {tileOf(shape, b_.getI32Type()), tileOf(shape, b_.getI64Type())};
  case Affine: return {tileOf(shape, b_.getI32Type()), tileOf(shape, b_.getI32Type())};
  case Masked: return {tileOf(shape, b_.getI32Type())};
  case First:
  case Last: return {tile};
  default: return {isFloat8(element) ? cast(tile, b_.getF32Type()) : tile};
  }
}

void ProgramGenerator::combineRegion(Region &region, ValueRange operands, int kind) {
  OpBuilder::InsertionGuard guard(b_);
  Block *block = b_.createBlock(&region);
  size_t n = operands.size();
  for (int side = 0; side < 2; ++side)
    for (Value operand : operands)
      block->addArgument(typeOf(operand).getElementType(), b_.getLoc());
  auto left = [&](size_t i) -> Value { return block->getArgument(i); };
  auto right = [&](size_t i) -> Value { return block->getArgument(n + i); };
  Type element = left(0).getType();
  SmallVector<Value> results;
  switch (kind) {
  case FloatSum: results = {b_.create<arith::AddFOp>(left(0), right(0))}; break;
  case FloatProduct: results = {b_.create<arith::MulFOp>(left(0), right(0))}; break;
  case ArgMax:
  case ArgMin: {
    bool isFloat = llvm::isa<FloatType>(element), isMax = kind == ArgMax;
    Value better = isFloat ? b_.create<arith::CmpFOp>(isMax ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT,
                                                      left(0), right(0)).getResult()
                           : b_.create<arith::CmpIOp>(isMax ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::slt,
                                                      left(0), right(0)).getResult();
    Value equal = isFloat ? b_.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, left(0), right(0)).getResult()
                          : b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, left(0), right(0)).getResult();
    Value earlier = b_.create<arith::CmpIOp>(arith::CmpIPredicate::slt, left(1), right(1));
    Value takesLeft = b_.create<arith::OrIOp>(better, b_.create<arith::AndIOp>(equal, earlier));
    for (size_t i = 0; i < 2; ++i)
      results.push_back(b_.create<arith::SelectOp>(takesLeft, left(i), right(i)));
    break;
  }
  case Pair:
    results = {b_.create<arith::AddIOp>(left(0), right(0)), b_.create<arith::MaxSIOp>(left(1), right(1))};
    break;
  case Masked: {
    Value sum = b_.create<arith::AddIOp>(left(0), right(0));
    results = {b_.create<arith::AndIOp>(sum, b_.create<arith::ConstantOp>(b_.getI32IntegerAttr(255)))};
    break;
  }
  case Affine: { // x -> a x + b, one after the other: associative, not commutative
    Value product = b_.create<arith::MulIOp>(left(0), right(0));
    results = {product, b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(left(1), right(0)), right(1))};
    break;
  }
  case First: results = {left(0)}; break;
  case Last: results = {right(0)}; break;
  default:
    if (llvm::isa<FloatType>(element))
      results = {random_.chance(50) ? b_.create<arith::MaximumFOp>(left(0), right(0)).getResult()
                                    : b_.create<arith::MinimumFOp>(left(0), right(0)).getResult()};
    else
      results = {integerOp({left(0), right(0)}, random_.pick({0, 1, 2, 3, 5, 6, 7, 8, 9}))};
  }
  b_.create<tile::YieldOp>(results);
}

void ProgramGenerator::reduce() {
  int kind;
  SmallVector<Value> operands = combineOperands(/*isScan=*/false, kind);
  Shape shape(typeOf(operands[0]).getShape());
  int64_t dim = random_.range(0, shape.size() - 1), extent = shape[dim];
  shape[dim] = 1;
  SmallVector<Type> types;
  for (Value operand : operands)
    types.push_back(tileType(shape, typeOf(operand).getElementType()));
  auto op = b_.create<tile::ReduceOp>(types, operands, dim);
  combineRegion(op.getCombine(), operands, kind);
  for (Value result : op.getResults())
    if (operands.size() == 1 || random_.chance(80))
      keep(result);
  if (auto bound = exact_.find(operands[0]); bound != exact_.end() && kind == FloatSum)
    exact_[op.getResult(0)] = bound->second * extent;
}

void ProgramGenerator::scan() {
  int kind;
  SmallVector<Value> operands = combineOperands(/*isScan=*/true, kind);
  int64_t dim = random_.range(0, typeOf(operands[0]).getRank() - 1);
  auto op = b_.create<tile::ScanOp>(ValueRange(operands).getTypes(), operands, dim, random_.chance(40));
  combineRegion(op.getCombine(), operands, kind);
  for (Value result : op.getResults())
    if (operands.size() == 1 || random_.chance(80))
      keep(result);
}

ProgramGenerator::Tile ProgramGenerator::dotOf(Value a, Value b, Value acc, bool isAUnsigned, bool isBUnsigned) {
  auto flag = [&](bool set) { return set ? b_.getUnitAttr() : UnitAttr(); };
  return llvm::cast<Tile>(b_.create<tile::DotOp>(acc.getType(), a, b, acc, flag(isAUnsigned), flag(isBUnsigned),
                                                 flag(random_.chance(10)))
                              .getResult());
}

void ProgramGenerator::dot() {
  auto extent = [&](int64_t limit) { return std::min(anyExtent(), limit); };
  int64_t m = extent(40), n = extent(100), k = extent(64);
  Type e4m3 = b_.getFloat8E4M3FNType(), e5m2 = b_.getFloat8E5M2Type();
  Type a = random_.pick<Type>({b_.getF32Type(), b_.getF64Type(), b_.getF16Type(), b_.getBF16Type(), e4m3, e5m2,
                               b_.getI8Type()});
  Type b = isFloat8(a) ? random_.pick({e4m3, e5m2}) : a;
  Type acc = a.isF64() ? a : a.isInteger(8) ? Type(b_.getI32Type()) : Type(b_.getF32Type());
  bool isInteger = a.isInteger(8);
  auto operand = [&](ArrayRef<int64_t> shape, Type type) -> Value {
    return isInteger ? tileOf(shape, type) : exactTile(shape, type, 3);
  };
  Value left = random_.chance(25) ? b_.create<tile::TransposeOp>(tileType({m, k}, a), operand({k, m}, a),
                                                                 ArrayRef<int64_t>{1, 0}).getResult()
                                  : operand({m, k}, a);
  Value right = random_.chance(25) ? b_.create<tile::TransposeOp>(tileType({k, n}, b), operand({n, k}, b),
                                                                  ArrayRef<int64_t>{1, 0}).getResult()
                                   : operand({k, n}, b);
  Value sum = random_.chance(40)
                  ? Value(b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(tileType({m, n}, acc)))))
                  : isInteger ? Value(tileOf({m, n}, acc)) : Value(exactTile({m, n}, acc, 1000));
  keep(dotOf(left, right, sum, isInteger && random_.chance(40), isInteger && random_.chance(40)));
}

} // namespace tenon::fuzz
