// SPDX-License-Identifier: Apache-2.0
//
// AMX multiplies bf16 sixteen times as fast as vectors multiply f32. So a longer number is taken apart into pieces that
// are bf16, and the pieces are multiplied: f32 is three of 8 bits each, f16 two.
//
//     x = x0 + x1 + x2       x0: cut off after 8 bits;  x1: what is left, rounded to 8;  x2: what is left then
//     a b = a0 b0 + a0 b1 + a1 b0 + a0 b2 + a1 b1 + a2 b0         the other three are below 2^-22 of |a b|
//
// All pieces together are the number, products of pieces are exact, and sums are of f32. What of a piece, a product or a
// sum is below 2^-126 counts as zero, as AMX has it.
//
// The two numbers of a unit are 16 apart in K, for both operands, so that nothing changes lanes. The pieces of a step of
// 32 lie one behind the other:
//
//     panel of B:        step 0: 16 rows of units of piece 0 | of piece 1 | of piece 2     step 1: ...
//     strip of A, a row: step 0:       16 units of piece 0 | of piece 1 | of piece 2       step 1: ...
//
// A strip of A is taken apart when its turn comes. What is left over of an infinity or NaN is NaN, which is noted: rows
// for which an operand has one are multiplied by vectors afterwards, as they are.
#include "tenon/compiler/target/cpu/AmxTiles.h"
#include "tenon/compiler/target/cpu/Dot.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

/// The numbers of a unit are so far apart in K.
constexpr int64_t apart = tileRows;
/// Vectors of columns that special rows take in at once.
constexpr int64_t specialVectors = 4;

} // namespace

/// The pieces of two vectors, together in units. `rests`: what was left over, NaN where a number is not finite.
DotEmitter::Pieces DotEmitter::takeApart(Value low, Value high, SmallVectorImpl<Value> &rests) {
  Type bits = vectorOf(b_.getI32Type(), plan_.lanes), floats = vectorOf(b_.getF32Type(), plan_.lanes);
  auto constant = [&](int64_t value) { return constantBits(b_, bits, value); };
  Value upper = constant(static_cast<int32_t>(0xffff0000u));
  bool isRounded = op_.getA().getType().getElementType().isF32() && plan_.pieces < 3; // else the last one is exact
  Pieces units;
  SmallVector<Value, 2> rest = {low, high};
  for (int64_t piece = 0; piece < plan_.pieces; ++piece) {
    bool isLast = piece + 1 == plan_.pieces;
    SmallVector<Value, 2> cut;
    for (Value &part : rest) {
      Value whole = b_.create<arith::BitcastOp>(bits, part);
      if (piece > 0 && (!isLast || isRounded))
        whole = b_.create<arith::AddIOp>(whole, constant(0x8000));
      cut.push_back(b_.create<arith::AndIOp>(whole, upper));
      if (isLast)
        rests.push_back(part);
      else
        part = b_.create<arith::SubFOp>(part, b_.create<arith::BitcastOp>(floats, cut.back()));
    }
    units.push_back(b_.create<arith::OrIOp>(b_.create<arith::ShRUIOp>(cut[0], constant(16)), cut[1]));
  }
  return units;
}

//===--- What is not finite ---------------------------------------------------------------------------------------===//

/// Adds the rests to the note, which is NaN then if one of them is. (Or if there are infinite ones of both signs, of the
/// largest numbers: then rows are multiplied by vectors without need.)
void DotEmitter::noteSpecial(Value note, ArrayRef<Value> rests) {
  Value sum = load(note, plan_.accumulator, plan_.lanes, plan_.lanes);
  Value other = rests.front();
  for (Value rest : rests.drop_front())
    other = b_.create<arith::AddFOp>(other, rest);
  store(b_.create<arith::AddFOp>(sum, other), note, plan_.lanes);
}

/// Multiplies a strip of A, if all of it and of B is finite; otherwise notes that it is still to be done.
void DotEmitter::unlessSpecial(Value row, llvm::function_ref<void()> multiply) {
  const InPieces &pieces = inPieces_;
  Value both = b_.create<arith::AddFOp>(load(pieces.noteOfA, plan_.accumulator, plan_.lanes, plan_.lanes),
                                        load(pieces.noteOfB, plan_.accumulator, plan_.lanes, plan_.lanes));
  Value lanes = b_.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, both, both);
  Value mask = b_.create<LLVM::BitcastOp>(b_.getIntegerType(plan_.lanes), lanes);
  Value isSpecial = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, mask, constantBits(b_, mask.getType(), 0));
  Type byte = b_.getI8Type();
  Value noted = b_.create<arith::ExtUIOp>(byte, isSpecial);
  Value strip = b_.create<arith::DivUIOp>(row, e_.index(plan_.rows));
  b_.create<LLVM::StoreOp>(noted, at(pieces.specialStrips, strip, byte), 1);
  Value before = b_.create<LLVM::LoadOp>(byte, pieces.isAny, 1);
  b_.create<LLVM::StoreOp>(b_.create<arith::OrIOp>(before, noted), pieces.isAny, 1);
  auto branch = b_.create<scf::IfOp>(b_.create<arith::XOrIOp>(isSpecial, constantBits(b_, b_.getI1Type(), 1)),
                                     /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(branch.thenBlock()->getTerminator());
  multiply();
}

/// The strips that were left out, by vectors. This is rare, so it is short, not fast: all of K, also where it ends
/// earlier, and all columns.
void DotEmitter::multiplySpecial(const Buffer &c) {
  const InPieces &pieces = inPieces_;
  Type byte = b_.getI8Type(), element = plan_.accumulator;
  auto ifSet = [&](Value place, llvm::function_ref<void()> body) {
    Value set = b_.create<LLVM::LoadOp>(byte, place, 1);
    Value isSet = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, set, constantBits(b_, byte, 0));
    auto branch = b_.create<scf::IfOp>(isSet, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPoint(branch.thenBlock()->getTerminator());
    body();
  };
  auto multiplyRow = [&](Value row, Value rowsOfB, int64_t strideOfB, Value column, int64_t width) {
    int64_t lanes = plan_.lanes, vectors = llvm::divideCeil(width, lanes);
    auto present = [&](int64_t v) { return std::min(lanes, width - v * lanes); };
    SmallVector<Value> sums(vectors, zero(vectorOf(element, lanes)));
    auto loop = b_.create<scf::ForOp>(e_.index(0), e_.index(k_), e_.index(1), sums);
    {
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToEnd(loop.getBody());
      Value k = loop.getInductionVar();
      const RawRows &from = pieces.rowsOfA;
      Value start = plus(b_.create<arith::MulIOp>(row, from.stride), k);
      Value same = b_.create<vector::SplatOp>(
          llvm::cast<VectorType>(vectorOf(element, lanes)),
          b_.create<vector::ExtractOp>(loadToPack(from, start, 1, 1), ArrayRef<int64_t>{0}));
      Value rowOfB = at(rowsOfB, plus(times(k, strideOfB), column), element);
      SmallVector<Value> next;
      for (int64_t v = 0; v < vectors; ++v) {
        Value b = load(at(rowOfB, v * lanes, element), element, present(v), lanes);
        next.push_back(b_.create<math::FmaOp>(same, b, loop.getRegionIterArg(v)));
      }
      b_.create<scf::YieldOp>(next);
    }
    SmallVector<Value> computed;
    if (computesAccumulator_)
      computed = computedAccumulator(row, column, width);
    for (int64_t v = 0; v < vectors; ++v) {
      Value sum = loop.getResult(v);
      Value place = at(c.pointer, plus(plus(times(row, c.strides[0]), column), e_.index(v * lanes)), element);
      Value before = computesAccumulator_ ? computed[v] : load(place, element, present(v), lanes);
      if (isFirst_)
        before = b_.create<arith::SelectOp>(isFirst_, zero(before.getType()), before);
      if (!startsAtZero_)
        sum = b_.create<arith::AddFOp>(before, sum);
      store(sum, place, present(v));
    }
  };
  ifSet(pieces.isAny, [&] {
    e_.usedScratch_ = pieces.scratchBefore; // what was packed of B is not needed any more
    Buffer b = copyOf(op_.getB(), element, false);
    forRange(0, llvm::divideCeil(m_, plan_.rows), 1, [&](Value strip) {
      ifSet(at(pieces.specialStrips, strip, byte), [&] {
        Value first = times(strip, plan_.rows), end = plus(first, e_.index(plan_.rows));
        forRange(first, minimum(end, limits_.rows ? limits_.rows : e_.index(m_)), 1, [&](Value row) {
          int64_t step = specialVectors * plan_.lanes, whole = n_ / step * step;
          forRange(0, whole, step, [&](Value j) { multiplyRow(row, b.pointer, b.strides[0], j, step); });
          if (whole < n_)
            multiplyRow(row, b.pointer, b.strides[0], e_.index(whole), n_ - whole);
        });
      });
    });
  });
}

//===--- A --------------------------------------------------------------------------------------------------------===//

/// Where A's rows are, one element of K after the other, and room for a strip of them in pieces.
void DotEmitter::findRowsOfA() {
  InPieces &pieces = inPieces_;
  Origin origin = originOf(op_.getA());
  Type element = plan_.operand(), byte = b_.getI8Type();
  if (origin.contiguous == 1) {
    pieces.rowsOfA = rowsToWiden(op_.getA(), 0, limits_.rows);
    if (origin.source && !e_.buffer(origin.base))
      unpackedA_.window = windowOf(origin, limits_.rows);
  } else {
    Buffer copy = copyOf(op_.getA(), element, false);
    pieces.rowsOfA = {copy.pointer, e_.index(copy.strides[0]), true, element};
  }
  pieces.strip = e_.allocate({plan_.rows, plan_.pieces * units_}, unitType(), lineBytes / plan_.unitBytes());
  pieces.noteOfA = e_.allocate({plan_.lanes}, plan_.accumulator).pointer;
  int64_t strips = llvm::divideCeil(m_, plan_.rows);
  pieces.specialStrips = e_.allocate({strips + 1}, byte).pointer;
  pieces.isAny = at(pieces.specialStrips, strips, byte);
  b_.create<LLVM::StoreOp>(constantBits(b_, byte, 0), pieces.isAny, 1);
  // What is skipped, since nobody needs its rows, is not special.
  forRange(0, strips, 1, [&](Value strip) {
    b_.create<LLVM::StoreOp>(constantBits(b_, byte, 0), at(pieces.specialStrips, strip, byte), 1);
  });
}

StripOfA DotEmitter::takeStripApart(Value row, int64_t tiles, Value rows) {
  const InPieces &pieces = inPieces_;
  const Buffer &strip = pieces.strip;
  int64_t step = plan_.depthStep, unitsOfStep = step / plan_.group, whole = k_ / step;
  store(zero(vectorOf(plan_.accumulator, plan_.lanes)), pieces.noteOfA, plan_.lanes);
  forRange(e_.index(0), rows ? rows : e_.index(tiles * tileRows), 1, [&](Value i) {
    Value start = b_.create<arith::MulIOp>(plus(row, i), pieces.rowsOfA.stride);
    Value into = at(strip.pointer, times(i, strip.strides[0]), unitType());
    auto piece = [&](Value number, int64_t count) {
      Value first = plus(start, times(number, step));
      auto half = [&](int64_t from) {
        int64_t present = std::min(count - from, apart);
        return present > 0 ? loadToPack(pieces.rowsOfA, plus(first, e_.index(from)), present, plan_.lanes)
                           : zero(vectorOf(plan_.operand(), plan_.lanes));
      };
      SmallVector<Value> rests;
      for (auto [p, unit] : llvm::enumerate(takeApart(half(0), half(apart), rests))) {
        Value place = plus(times(number, plan_.pieces * unitsOfStep), e_.index(static_cast<int64_t>(p) * unitsOfStep));
        store(unit, at(into, place, unitType()), plan_.lanes);
      }
      noteSpecial(pieces.noteOfA, rests);
    };
    forRange(0, whole, 1, [&](Value number) { piece(number, step); });
    if (whole * step < k_)
      piece(e_.index(whole), k_ - whole * step);
  });
  return {strip.pointer, constantBits(b_, b_.getI64Type(), strip.strides[0] * plan_.unitBytes())};
}

//===--- B --------------------------------------------------------------------------------------------------------===//

PackedOperand DotEmitter::packPiecesOfB() {
  inPieces_.scratchBefore = e_.usedScratch_;
  std::optional<PackedOperand> kept = packKept();
  PackedOperand packed = kept ? *kept : pack(rowsToWiden(op_.getB(), 1), n_, plan_.panel());
  inPieces_.noteOfB = noteBehind(packed);
  return packed;
}

Value DotEmitter::noteBehind(const PackedOperand &b) { return at(b.pointer, panels() * b.panelStride, unitType()); }

void DotEmitter::packPieces(const RawRows &from, int64_t items, const PackedOperand &to) {
  store(zero(vectorOf(plan_.accumulator, plan_.lanes)), noteBehind(to), plan_.lanes);
  if (from.alongDepth)
    packPiecesAlong(from, items, to);
  else
    packPiecesAcross(from, items, to);
}

/// Rows across K: two of them at a time.
void DotEmitter::packPiecesAcross(const RawRows &from, int64_t items, const PackedOperand &to) {
  int64_t lanes = plan_.lanes, panel = plan_.panel(), step = plan_.depthStep, ofPiece = apart * panel;
  Value note = noteBehind(to);
  Type type = vectorOf(plan_.operand(), lanes);
  auto units = [&](Value number, Value unit, bool isLow, bool isHigh) {
    Value depth = plus(times(number, step), unit);
    Value low = b_.create<arith::MulIOp>(depth, from.stride);
    Value high = b_.create<arith::MulIOp>(plus(depth, e_.index(apart)), from.stride);
    Value inPanel = plus(times(number, plan_.pieces * ofPiece), times(unit, panel));
    auto piece = [&](Value item, int64_t count) {
      Value ofPanel = times(b_.create<arith::DivUIOp>(item, e_.index(panel)), to.panelStride);
      Value into = at(to.pointer, plus(ofPanel, inPanel), unitType());
      SmallVector<Value> rests;
      for (int64_t first = 0; first < count; first += lanes) {
        Value column = plus(item, e_.index(first));
        auto half = [&](bool isThere, Value start) {
          return isThere ? loadToPack(from, plus(start, column), std::min(lanes, count - first), lanes) : zero(type);
        };
        for (auto [p, unitsOfPiece] : llvm::enumerate(takeApart(half(isLow, low), half(isHigh, high), rests)))
          store(unitsOfPiece, at(into, static_cast<int64_t>(p) * ofPiece + first, unitType()), lanes);
      }
      noteSpecial(note, rests);
    };
    int64_t whole = items / panel * panel;
    forRange(0, whole, panel, [&](Value item) { piece(item, panel); });
    if (whole < items)
      piece(e_.index(whole), items - whole);
  };
  int64_t whole = k_ / step, rest = k_ - whole * step;
  forRange(0, whole, 1,
           [&](Value number) { forRange(0, apart, 1, [&](Value unit) { units(number, unit, true, true); }); });
  if (rest == 0)
    return;
  int64_t both = std::max<int64_t>(rest - apart, 0), one = std::min(rest, apart);
  forRange(0, both, 1, [&](Value unit) { units(e_.index(whole), unit, true, true); });
  forRange(both, one, 1, [&](Value unit) { units(e_.index(whole), unit, true, false); });
  forRange(one, apart, 1, [&](Value unit) { units(e_.index(whole), unit, false, false); });
}

/// Rows along K: two squares of lanes x lanes elements, transposed in registers.
void DotEmitter::packPiecesAlong(const RawRows &from, int64_t items, const PackedOperand &to) {
  int64_t lanes = plan_.lanes, panel = plan_.panel(), step = plan_.depthStep, ofPiece = apart * panel;
  Value note = noteBehind(to);
  Value none = zero(vectorOf(plan_.operand(), lanes));
  // The elements i of K of all columns are vector i, of which `depth` are there.
  auto square = [&](Value item, int64_t count, Value first, int64_t depth) {
    SmallVector<Value> rows(lanes, none);
    if (depth > 0)
      rows = transposedRows(from, item, count, first, std::min(depth, lanes), /*group=*/1);
    for (int64_t i = std::max<int64_t>(depth, 0); i < lanes; ++i)
      rows[i] = none;
    return rows;
  };
  auto stripe = [&](Value item, int64_t count) {
    Value ofPanel = times(b_.create<arith::DivUIOp>(item, e_.index(panel)), to.panelStride);
    Value within = plus(ofPanel, b_.create<arith::RemUIOp>(item, e_.index(panel)));
    auto steps = [&](Value number, int64_t depth) {
      Value first = times(number, step);
      SmallVector<Value> low = square(item, count, first, depth);
      SmallVector<Value> high = square(item, count, plus(first, e_.index(apart)), depth - apart);
      Value into = at(to.pointer, plus(within, times(number, plan_.pieces * ofPiece)), unitType());
      SmallVector<Value> rests;
      for (int64_t unit = 0; unit < apart; ++unit)
        for (auto [p, units] : llvm::enumerate(takeApart(low[unit], high[unit], rests)))
          store(units, at(into, static_cast<int64_t>(p) * ofPiece + unit * panel, unitType()), lanes);
      noteSpecial(note, rests);
    };
    int64_t whole = k_ / step;
    forRange(0, whole, 1, [&](Value number) { steps(number, step); });
    if (whole * step < k_)
      steps(e_.index(whole), k_ - whole * step);
  };
  int64_t whole = items / lanes * lanes;
  forRange(0, whole, lanes, [&](Value item) { stripe(item, lanes); });
  if (whole < items)
    stripe(e_.index(whole), items - whole);
}

} // namespace tenon::cpu
