// SPDX-License-Identifier: Apache-2.0
//
// The block of a dot in AMX's tiles: 32 x 32 accumulators in four of them, two of A and two of B.
//
//     t0..t3 = C, or zero
//     for k in steps of 64 bytes of K:
//       t4, t6 = A[0], B[0];  t0 += t4 * t6              A: 16 rows of 64 bytes
//       t7 = B[1];            t1 += t4 * t7              B: 16 units of K, 16 columns of each; a unit is 4 bytes
//       t5 = A[1];            t2 += t5 * t6;  t3 += t5 * t7
//     C = t0..t3
//
// The panels are those that vectors read too, zero up to whole steps of K. A block that is not all there is computed in
// a place of its own, from which the part that exists is copied. Rows of A that do not exist hold anything: they make
// rows of C that nobody copies.
#include "tenon/compiler/target/cpu/AmxTiles.h"
#include "tenon/compiler/target/cpu/Dot.h"

using namespace mlir;

namespace tenon::cpu {

void DotEmitter::emitTileRows(const PackedOperand &a, const Buffer &c, const Columns &columns) {
  int64_t rows = plan_.rows, whole = m_ / rows * rows;
  auto block = [&](Value row) { emitTileBlock(a, c, row, 2, {}, columns); };
  if (!limits_.rows) {
    forRange(0, whole, rows, block);
    if (whole < m_)
      emitTileBlock(a, c, e_.index(whole), llvm::divideCeil(m_ - whole, tileRows), e_.index(m_ - whole), columns);
    return;
  }
  Value rest = limits_.rows, first = e_.index(0);
  if (whole) {
    first = times(b_.create<arith::DivUIOp>(limits_.rows, e_.index(rows)), rows);
    forRange(e_.index(0), first, rows, block);
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
      emitTileBlock(a, c, first, tiles, rest, columns);
  };
  for (auto [tiles, region] : llvm::zip(cases, choice.getCaseRegions()))
    fill(region, tiles);
  fill(choice.getDefaultRegion(), 0);
}

/// `tiles`: of rows. `rows`: how many of their rows exist; null: all.
void DotEmitter::emitTileBlock(const PackedOperand &a, const Buffer &c, Value row, int64_t tiles, Value rows,
                               const Columns &columns) {
  constexpr int firstOfA = 4, firstOfB = 6;
  constexpr int64_t units = tileRowBytes / 4; // of a row of a tile
  TileEmitter emitter(b_, e_.target_, e_.isa().tiles);
  Type element = plan_.accumulator, unit = unitType();
  int64_t across = llvm::divideCeil(columns.width, units);
  auto stride = [&](int64_t ofUnits) { return constantBits(b_, b_.getI64Type(), 4 * ofUnits); };
  auto sum = [&](int64_t i, int64_t j) { return static_cast<int>(2 * i + j); };

  Value there = at(c.pointer, plus(times(row, c.strides[0]), columns.first), element);
  Value from = there;
  int64_t strideOfC = c.strides[0];
  bool isWhole = !rows && columns.width % units == 0;
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
        body(sum(i, j), at(from, i * tileRows * strideOfC + j * units, element));
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
  if (isFirst_) {
    auto branch = b_.create<scf::IfOp>(isFirst_, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPoint(branch.thenBlock()->getTerminator());
    initial(/*atZero=*/true);
    b_.setInsertionPoint(branch.elseBlock()->getTerminator());
    initial(/*atZero=*/false);
  } else {
    initial(startsAtZero_);
  }

  TileProduct product = plan_.family == DotFamily::bf16Tiles ? TileProduct::bf16
                        : op_.getAUnsigned()
                            ? (op_.getBUnsigned() ? TileProduct::unsignedUnsigned : TileProduct::unsignedSigned)
                            : (op_.getBUnsigned() ? TileProduct::signedUnsigned : TileProduct::signedSigned);
  Value rowsOfA = at(a.pointer, times(row, a.itemStride), unit), depth = e_.index(units_ / units);
  if (limits_.depth)
    depth = minimum(depth, dividedUp(limits_.depth, plan_.depthStep));
  Value first = firstStep(row, columns);
  forRange(e_.index(0), depth, 1, [&](Value k) {
    bringAhead(plus(first, k));
    Value partOfA = at(rowsOfA, times(k, units), unit);
    Value partOfB = at(columns.panel, times(k, units * columns.depthStride), unit);
    for (int64_t i = 0; i < tiles; ++i) {
      emitter.load(firstOfA + i, at(partOfA, i * tileRows * a.itemStride, unit), stride(a.itemStride));
      for (int64_t j = 0; j < across; ++j) {
        if (i == 0)
          emitter.load(firstOfB + j, at(partOfB, j * units, unit), stride(columns.depthStride));
        emitter.multiply(product, sum(i, j), firstOfA + i, firstOfB + j);
      }
    }
  });
  forEachSum([&](int tile, Value place) { emitter.store(tile, place, stride(strideOfC)); });
  if (!isWhole)
    copyEdge(from, strideOfC, there, c.strides[0]);
}

} // namespace tenon::cpu
