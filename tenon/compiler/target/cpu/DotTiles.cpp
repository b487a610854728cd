// SPDX-License-Identifier: Apache-2.0
//
// The block of a dot in AMX's tiles: 32 x 32 accumulators in four of them, two of A and two of B.
//
//     for each strip of 32 rows of A:                    in L2: the next one comes while this one is multiplied
//       for each panel of 32 columns of B:               packed, in L2
//         block
//
//     block: t0..t3 = C, or zero
//     for k in steps of 64 bytes of K:
//       t4, t6, t7, t5 = A[0], B[0], B[1], A[1]          A: 16 rows of 64 bytes
//       t0 += t4 * t6;  t1 += t4 * t7                    B: 16 units of K, 16 columns of each; a unit is 4 bytes
//       t2 += t5 * t6;  t3 += t5 * t7                    before each, a part of B two steps further on comes to L1
//     C = t0..t3
//
// The order is for a core whose other thread is busy: there loads between products, products with nothing in between
// and lines that are not in L1 made a step take up to 1.8 times as long. Alone on a core it is as fast as the best
// ones.
//
// Operands in pieces (DotPieces.cpp) have several products in a step, each of which loads the pieces of one side, and
// sums that start at zero and are added to C by vectors.
//
// The panels are those that vectors read too, zero up to whole steps of K. A block that is not all there is computed in
// a place of its own, from which the part that exists is copied. Rows of A that do not exist hold anything: they make
// rows of C that nobody copies.
#include "tenon/compiler/target/cpu/AmxTiles.h"
#include "tenon/compiler/target/cpu/Dot.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

/// So much of L1 (48 KiB in 12 ways where there is AMX) may be a strip of A; rows that are a multiple of the other
/// apart fall on few of its sets.
constexpr int64_t l1Share = 16 << 10, l1Apart = 2048;
/// So many steps of a block before they are loaded, rows of B come to L1.
constexpr int64_t stepsToL1 = 2;
/// Which registers the operands are in; the sums are before them.
constexpr int firstOfA = 4, firstOfB = 6;
constexpr int64_t unitsOfRow = tileRowBytes / 4; ///< of a tile
/// Of sums of pieces, so many steps at most: the smaller products would vanish beside sums that are much larger.
constexpr int64_t stepsOfPieces = 8;

int sumAt(int64_t i, int64_t j) { return static_cast<int>(2 * i + j); }

} // namespace

void DotEmitter::emitStrips(const PackedOperand &a, const PackedOperand &b, const Buffer &c) {
  int64_t rows = plan_.rows, whole = m_ / rows * rows;
  auto strip = [&](Value row, int64_t tiles, Value present) {
    StripOfA here = plan_.pieces > 1 ? takeStripApart(row, tiles, present) : stripOf(a, row, tiles, present);
    findNextStrip(row);
    auto multiply = [&] {
      forEachPanel(b, [&](const Columns &columns) { emitTileBlock(here, c, row, tiles, present, columns); });
    };
    if (plan_.pieces > 1)
      unlessSpecial(row, multiply);
    else
      multiply();
  };
  auto wholeStrip = [&](Value row) { strip(row, 2, {}); };
  if (!limits_.rows) {
    forRange(0, whole, rows, wholeStrip);
    if (whole < m_)
      strip(e_.index(whole), llvm::divideCeil(m_ - whole, tileRows), e_.index(m_ - whole));
    return;
  }
  Value rest = limits_.rows, first = e_.index(0);
  if (whole) {
    first = times(b_.create<arith::DivUIOp>(limits_.rows, e_.index(rows)), rows);
    forRange(e_.index(0), first, rows, wholeStrip);
    rest = b_.create<arith::SubIOp>(limits_.rows, first);
  }
  SmallVector<int64_t> cases = {1};
  if (m_ > tileRows)
    cases.push_back(2);
  auto choice = b_.create<scf::IndexSwitchOp>(TypeRange{}, dividedUp(rest, tileRows), b_.getDenseI64ArrayAttr(cases),
                                              cases.size());
  OpBuilder::InsertionGuard guard(b_);
  auto fill = [&](Region &region, int64_t tiles) {
    b_.setInsertionPointToEnd(&region.emplaceBlock());
    auto end = b_.create<scf::YieldOp>();
    b_.setInsertionPoint(end);
    if (tiles)
      strip(first, tiles, rest);
  };
  for (auto [tiles, region] : llvm::zip(cases, choice.getCaseRegions()))
    fill(region, tiles);
  fill(choice.getDefaultRegion(), 0);
}

/// Rows of A where they lie: in scratch; in the view, where every row of a tile is one line of the cache; or copied
/// from there to where the strip before was.
StripOfA DotEmitter::stripOf(const PackedOperand &a, Value row, int64_t tiles, Value rows) {
  Value packed = at(a.pointer, times(row, a.itemStride), unitType());
  Value stride = constantBits(b_, b_.getI64Type(), a.itemStride * plan_.unitBytes());
  const auto &[copy, window] = unpackedA_;
  if (!window.inside)
    return {packed, stride};
  Type element = plan_.packed, i64 = b_.getI64Type();
  Value inView, inPlace = constantBits(b_, b_.getI1Type(), 0);
  if (k_ % plan_.depthStep == 0) {
    inView = at(window.pointer, b_.create<arith::MulIOp>(row, window.stride), element);
    Value strideOfView = b_.create<arith::IndexCastOp>(i64, times(window.stride, byteSize(element)));
    Value bits = b_.create<arith::OrIOp>(b_.create<LLVM::PtrToIntOp>(i64, window.pointer), strideOfView);
    bits = b_.create<arith::AndIOp>(bits, constantBits(b_, i64, lineBytes - 1));
    Value isAligned = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, bits, constantBits(b_, i64, 0));
    inPlace = b_.create<arith::AndIOp>(window.inside, isAligned);
    // A strip that L1 could hold should not have all its rows in a few sets of it.
    if (plan_.rows * k_ * byteSize(element) <= l1Share) {
      bits = b_.create<arith::AndIOp>(strideOfView, constantBits(b_, i64, l1Apart - 1));
      Value isApart = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, bits, constantBits(b_, i64, 0));
      inPlace = b_.create<arith::AndIOp>(inPlace, isApart);
    }
    if (rows) {
      Value end = plus(row, e_.index(tiles * tileRows));
      Value areThere = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sle, end, window.rowsThere);
      inPlace = b_.create<arith::AndIOp>(inPlace, areThere);
    }
    stride = b_.create<arith::SelectOp>(inPlace, strideOfView, stride);
  }
  Value isCopied = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ugt, window.inside, inPlace);
  auto branch = b_.create<scf::IfOp>(isCopied, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPoint(branch.thenBlock()->getTerminator());
    copyRowsOfA(row, plus(row, rows ? rows : e_.index(tiles * tileRows)), copy.pointer);
  }
  Value place = b_.create<arith::SelectOp>(isCopied, copy.pointer, packed);
  return {inView ? b_.create<arith::SelectOp>(inPlace, inView, place).getResult() : place, stride};
}

/// `tiles`: of rows. `rows`: how many of their rows exist; null: all.
void DotEmitter::emitTileBlock(const StripOfA &a, const Buffer &c, Value row, int64_t tiles, Value rows,
                               const Columns &columns) {
  Value depth = e_.index(units_ / unitsOfRow);
  if (limits_.depth)
    depth = minimum(depth, dividedUp(limits_.depth, plan_.depthStep));
  auto part = [&](Value begin, Value end, bool isFirst) {
    emitPartOfBlock(a, c, row, tiles, rows, columns, begin, end, isFirst);
  };
  int64_t steps = units_ / unitsOfRow;
  if (plan_.pieces == 1 || steps <= stepsOfPieces)
    return part(e_.index(0), depth, /*isFirst=*/true);
  part(e_.index(0), minimum(depth, e_.index(stepsOfPieces)), /*isFirst=*/true);
  forRange(stepsOfPieces, steps, stepsOfPieces, [&](Value begin) {
    part(begin, minimum(depth, plus(begin, e_.index(stepsOfPieces))), /*isFirst=*/false);
  });
}

/// Steps `begin` to `end` of K. `isFirst`: they are the first ones, to which the accumulator is still to be added.
void DotEmitter::emitPartOfBlock(const StripOfA &a, const Buffer &c, Value row, int64_t tiles, Value rows,
                                 const Columns &columns, Value begin, Value end, bool isFirst) {
  TileEmitter emitter(b_, e_.target_, e_.isa().tiles);
  Type element = plan_.accumulator;
  int64_t across = llvm::divideCeil(columns.width, unitsOfRow);
  auto stride = [&](int64_t ofUnits) { return constantBits(b_, b_.getI64Type(), 4 * ofUnits); };

  Value there = at(c.pointer, plus(times(row, c.strides[0]), columns.first), element);
  Value from = there;
  int64_t strideOfC = c.strides[0];
  bool isComputed = isFirst && computesAccumulator_;
  bool addsApart = isComputed || !isFirst || (plan_.pieces > 1 && !startsAtZero_);
  bool isWhole = !rows && columns.width % unitsOfRow == 0 && !addsApart;
  auto copyEdge = [&](Value source, int64_t sourceStride, Value target, int64_t targetStride) {
    forRange(e_.index(0), rows ? rows : e_.index(tiles * tileRows), 1, [&](Value i) {
      Value values = load(at(source, times(i, sourceStride), element), element, columns.width, columns.width);
      store(values, at(target, times(i, targetStride), element), columns.width);
    });
  };
  if (!isWhole) {
    if (!edge_.pointer)
      edge_ = e_.allocate({plan_.rows, plan_.panel()}, element);
    from = edge_.pointer;
    strideOfC = edge_.strides[0];
  }
  auto forEachSum = [&](llvm::function_ref<void(int, Value)> body) {
    for (int64_t i = 0; i < tiles; ++i)
      for (int64_t j = 0; j < across; ++j)
        body(sumAt(i, j), at(from, i * tileRows * strideOfC + j * unitsOfRow, element));
  };
  auto initial = [&](bool atZero) {
    if (!isWhole && !atZero)
      copyEdge(there, c.strides[0], from, strideOfC);
    forEachSum([&](int tile, Value place) {
      if (atZero)
        emitter.zero(tile);
      else
        emitter.load(tile, place, stride(strideOfC));
    });
  };
  if (isFirst_ && !addsApart) {
    auto branch = b_.create<scf::IfOp>(isFirst_, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPoint(branch.thenBlock()->getTerminator());
    initial(/*atZero=*/true);
    b_.setInsertionPoint(branch.elseBlock()->getTerminator());
    initial(/*atZero=*/false);
  } else {
    initial(startsAtZero_ || addsApart);
  }

  Value below = b_.create<LLVM::GEPOp>(a.pointer.getType(), b_.getI8Type(), a.pointer,
                                       ValueRange{b_.create<arith::MulIOp>(a.strideBytes, stride(tileRows / 4))});
  Value block = blockNumber(row, columns);
  forRange(begin, end, 1, [&](Value k) {
    bringAhead(block, columns.number, k);
    if (plan_.pieces > 1)
      emitStepOfPieces(a, below, k, tiles, columns);
    else
      emitStep(a, below, k, tiles, columns);
  });
  forEachSum([&](int tile, Value place) { emitter.store(tile, place, stride(strideOfC)); });
  if (!addsApart) {
    if (!isWhole)
      copyEdge(from, strideOfC, there, c.strides[0]);
    return;
  }
  forRange(e_.index(0), rows ? rows : e_.index(tiles * tileRows), 1, [&](Value i) {
    SmallVector<Value> computed;
    if (isComputed)
      computed = computedAccumulator(plus(row, i), columns.first, columns.width);
    for (int64_t v = 0; v < across; ++v) {
      int64_t first = v * unitsOfRow, count = std::min(unitsOfRow, columns.width - first);
      Value place = at(there, plus(times(i, c.strides[0]), e_.index(first)), element);
      Value before = isComputed ? computed[v] : load(place, element, count, unitsOfRow);
      if (isFirst && isFirst_)
        before = b_.create<arith::SelectOp>(isFirst_, zero(before.getType()), before);
      Value sum = load(at(from, plus(times(i, strideOfC), e_.index(first)), element), element, unitsOfRow, unitsOfRow);
      sum = llvm::isa<FloatType>(element) ? b_.create<arith::AddFOp>(before, sum).getResult()
                                          : b_.create<arith::AddIOp>(before, sum).getResult();
      store(sum, place, count);
    }
  });
}

/// To L1.
void DotEmitter::bringLines(Value pointer, int64_t begin, int64_t end) {
  for (int64_t line = begin; line < end; ++line)
    b_.create<LLVM::Prefetch>(at(pointer, line * lineBytes, b_.getI8Type()), /*rw=*/0, /*hint=*/3, /*cache=*/1);
}

/// One step along K: the operands are loaded once, and each product is preceded by a part of what comes to L1.
void DotEmitter::emitStep(const StripOfA &a, Value below, Value k, int64_t tiles, const Columns &columns) {
  TileEmitter emitter(b_, e_.target_, e_.isa().tiles);
  Type unit = unitType();
  TileProduct product = plan_.family == DotFamily::bf16Tiles ? TileProduct::bf16
                        : op_.getAUnsigned()
                            ? (op_.getBUnsigned() ? TileProduct::unsignedUnsigned : TileProduct::unsignedSigned)
                            : (op_.getBUnsigned() ? TileProduct::signedUnsigned : TileProduct::signedSigned);
  Value strideOfB = constantBits(b_, b_.getI64Type(), 4 * columns.depthStride);
  int64_t across = llvm::divideCeil(columns.width, unitsOfRow);
  int64_t stepOfB = unitsOfRow * columns.depthStride;
  Value partOfB = at(columns.panel, times(k, stepOfB), unit);
  auto loadA = [&](int64_t i) {
    emitter.load(firstOfA + i, at(i == 0 ? a.pointer : below, times(k, unitsOfRow), unit), a.strideBytes);
  };
  loadA(0);
  for (int64_t j = 0; j < across; ++j)
    emitter.load(firstOfB + j, at(partOfB, j * unitsOfRow, unit), strideOfB);
  if (tiles > 1)
    loadA(1);
  int64_t lines = llvm::divideCeil(stepOfB * 4, lineBytes), products = tiles * across;
  Value further = at(partOfB, stepsToL1 * stepOfB, unit);
  for (int64_t number = 0; number < products; ++number) {
    bringLines(further, lines * number / products, lines * (number + 1) / products);
    int64_t i = number / across, j = number % across;
    emitter.multiply(product, sumAt(i, j), firstOfA + i, firstOfB + j);
  }
}

/// The same for operands in pieces. Each product has one piece in common with the one before; the other one is loaded as
/// soon as nobody needs what it replaces.
void DotEmitter::emitStepOfPieces(const StripOfA &a, Value below, Value k, int64_t tiles, const Columns &columns) {
  TileEmitter emitter(b_, e_.target_, e_.isa().tiles);
  Type unit = unitType();
  Value strideOfB = constantBits(b_, b_.getI64Type(), 4 * columns.depthStride);
  int64_t across = llvm::divideCeil(columns.width, unitsOfRow), ofB = unitsOfRow * columns.depthStride;
  Value partOfB = at(columns.panel, times(k, plan_.pieces * ofB), unit);
  Value first = times(k, plan_.pieces * unitsOfRow);
  auto loadA = [&](int64_t i, int64_t piece) {
    Value place = at(i == 0 ? a.pointer : below, first, unit);
    emitter.load(firstOfA + i, at(place, piece * unitsOfRow, unit), a.strideBytes);
  };
  auto loadB = [&](int64_t j, int64_t piece) {
    emitter.load(firstOfB + j, at(partOfB, piece * ofB + j * unitsOfRow, unit), strideOfB);
  };
  int64_t lines = llvm::divideCeil(plan_.pieces * ofB * 4, lineBytes), number = 0;
  int64_t products = static_cast<int64_t>(plan_.products.size()) * tiles * across;
  Value further = at(partOfB, stepsToL1 * plan_.pieces * ofB, unit);
  auto multiply = [&](int64_t i, int64_t j) {
    bringLines(further, lines * number / products, lines * (number + 1) / products);
    ++number;
    emitter.multiply(TileProduct::bf16, sumAt(i, j), firstOfA + i, firstOfB + j);
  };
  for (int64_t i = 0; i < tiles; ++i)
    loadA(i, plan_.products.front().a);
  for (int64_t j = 0; j < across; ++j)
    loadB(j, plan_.products.front().b);
  for (auto [p, product] : llvm::enumerate(plan_.products)) {
    PieceProduct next = p + 1 < plan_.products.size() ? plan_.products[p + 1] : product;
    assert((next.a == product.a || next.b == product.b) && "one side is loaded at a time");
    if (next.b != product.b) {
      for (int64_t j = 0; j < across; ++j) {
        for (int64_t i = 0; i < tiles; ++i)
          multiply(i, j);
        loadB(j, next.b);
      }
    } else {
      for (int64_t i = 0; i < tiles; ++i) {
        for (int64_t j = 0; j < across; ++j)
          multiply(i, j);
        if (next.a != product.a)
          loadA(i, next.a);
      }
    }
  }
}

} // namespace tenon::cpu
