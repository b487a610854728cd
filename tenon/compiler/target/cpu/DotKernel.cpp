// SPDX-License-Identifier: Apache-2.0
//
// The loops around the register block:
//
//     for each panel of B:                                  packed, stays in L1
//       for each block of rows of A:                        comes from L2
//         acc[rows][vectors] = 0
//         for k in units of K:                              vectors loads, rows broadcasts, their multiply-adds
//           acc[i][j] += A[i][k] * B[k][j]
//         C += acc
//
// (Of AMX's tiles, the other way round: DotTiles.cpp.) Rows and columns that are left over get smaller blocks. Their
// number may be known only when the program runs (DotLimits); there is then one block for every fourth (or second, or
// every) number of rows and a switch.
#include "tenon/compiler/target/cpu/Dot.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace tenon::cpu {
namespace {

/// Steps of K in one iteration of the loop.
constexpr int64_t stepsAtOnce = 4;

} // namespace

int64_t DotEmitter::piecesOfDepth() const { return llvm::divideCeil(units_, stepsAtOnce * linesOfPiece); }

Value DotEmitter::multiplyAdd(Value a, Value b, Value sum) {
  auto call = [&](const char *name, Value first, Value second) -> Value {
    return b_.create<LLVM::CallIntrinsicOp>(sum.getType(), b_.getStringAttr(name), ValueRange{sum, first, second})
        ->getResult(0);
  };
  switch (plan_.family) {
  case DotFamily::multiplyAdd:
    if (llvm::isa<FloatType>(plan_.accumulator))
      return b_.create<math::FmaOp>(a, b, sum);
    return b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(a, b), sum);
  case DotFamily::bf16Pairs: {
    auto pairs = llvm::cast<VectorType>(vectorOf(b_.getBF16Type(), 2 * plan_.lanes));
    return call("llvm.x86.avx512bf16.dpbf16ps.512", b_.create<vector::BitCastOp>(pairs, a),
                b_.create<vector::BitCastOp>(pairs, b));
  }
  case DotFamily::bytePairs: {
    const char *name = plan_.lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                       : plan_.lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
                                          : "llvm.x86.sse2.pmadd.wd";
    auto pairs = llvm::cast<VectorType>(vectorOf(b_.getI16Type(), 2 * plan_.lanes));
    Value left = b_.create<vector::BitCastOp>(pairs, a), right = b_.create<vector::BitCastOp>(pairs, b);
    auto products = b_.create<LLVM::CallIntrinsicOp>(sum.getType(), b_.getStringAttr(name), ValueRange{left, right});
    return b_.create<arith::AddIOp>(products->getResult(0), sum);
  }
  case DotFamily::byteQuads:
    return plan_.aIsUnsigned ? call("llvm.x86.avx512.vpdpbusd.512", a, b) : call("llvm.x86.avx512.vpdpbusd.512", b, a);
  case DotFamily::bf16Tiles:
  case DotFamily::byteTiles:
    break;
  }
  llvm_unreachable("a family of vectors");
}

void DotEmitter::forEachPanel(const PackedOperand &b, llvm::function_ref<void(const Columns &)> body) {
  int64_t panel = plan_.panel(), whole = n_ / panel;
  auto columns = [&](Value number, int64_t width) {
    Value start = b.pointer;
    if (unpackedB_.pointer)
      packPanel(number, width, b);
    else
      start = at(start, times(number, b.panelStride), unitType());
    body({start, number, times(number, panel), width, b.depthStride});
  };
  auto perPanel = [&](Value number) { columns(number, panel); };
  if (!limits_.columns) {
    forRange(0, whole, 1, perPanel);
    if (whole * panel < n_)
      columns(e_.index(whole), n_ - whole * panel);
    return;
  }
  if (whole) {
    Value needed = dividedUp(limits_.columns, panel);
    forRange(e_.index(0), minimum(needed, e_.index(whole)), 1, perPanel);
  }
  if (whole * panel < n_) {
    Value reached = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sgt, limits_.columns, e_.index(whole * panel));
    auto branch = b_.create<scf::IfOp>(reached, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPoint(branch.thenBlock()->getTerminator());
    columns(e_.index(whole), n_ - whole * panel);
  }
}

void DotEmitter::emitBlocks(const PackedOperand &a, const PackedOperand &b, const Buffer &c) {
  if (plan_.usesTiles())
    return emitStrips(a, b, c);
  findNext(panels() * llvm::divideCeil(m_, plan_.rows) * piecesOfDepth());
  forEachPanel(b, [&](const Columns &columns) { emitRows(a, c, columns); });
}

Value DotEmitter::blockNumber(Value row, const Columns &columns) {
  Value ofRows = b_.create<arith::DivUIOp>(row, e_.index(plan_.rows));
  if (plan_.usesTiles())
    return plus(times(ofRows, panels()), columns.number);
  return plus(times(columns.number, llvm::divideCeil(m_, plan_.rows)), ofRows);
}

void DotEmitter::emitRows(const PackedOperand &a, const Buffer &c, const Columns &columns) {
  int64_t rows = plan_.rows, whole = m_ / rows * rows;
  auto block = [&](Value row) { emitBlock(a, c, row, rows, columns); };
  if (!limits_.rows) {
    forRange(0, whole, rows, block);
    if (whole < m_)
      emitBlock(a, c, e_.index(whole), m_ - whole, columns);
    return;
  }
  Value rest = limits_.rows, first = e_.index(0);
  if (whole) {
    Value blocks = b_.create<arith::DivUIOp>(limits_.rows, e_.index(rows));
    first = times(blocks, rows);
    forRange(e_.index(0), first, rows, block);
    rest = b_.create<arith::SubIOp>(limits_.rows, first);
  }
  // One block for what is left, rounded up to a multiple that the tile has room for.
  int64_t step = std::gcd(std::gcd(m_, rows), rows >= 8 ? 4 : 2), most = std::min(m_, rows - 1);
  SmallVector<int64_t> cases;
  for (int64_t i = 1; (i - 1) * step < most; ++i)
    cases.push_back(i);
  Value chosen = dividedUp(rest, step);
  auto choice = b_.create<scf::IndexSwitchOp>(TypeRange{}, chosen, b_.getDenseI64ArrayAttr(cases), cases.size());
  OpBuilder::InsertionGuard guard(b_);
  auto fill = [&](Region &region, int64_t count) {
    b_.setInsertionPointToEnd(&region.emplaceBlock());
    auto end = b_.create<scf::YieldOp>();
    b_.setInsertionPoint(end);
    if (count)
      emitBlock(a, c, first, count, columns, /*isRest=*/whole || count < m_);
  };
  for (auto [i, region] : llvm::zip(cases, choice.getCaseRegions()))
    fill(region, std::min(i * step, m_));
  fill(choice.getDefaultRegion(), 0);
}

void DotEmitter::emitBlock(const PackedOperand &a, const Buffer &c, Value row, int64_t rows, const Columns &columns,
                           bool isRest) {
  int64_t lanes = plan_.lanes, vectors = (columns.width + lanes - 1) / lanes;
  auto present = [&](int64_t v) { return std::min(lanes, columns.width - v * lanes); };
  Type element = plan_.accumulator, unit = unitType(), type = vectorOf(element, lanes);
  Value from = at(c.pointer, plus(times(row, c.strides[0]), columns.first), element);
  Value rowsOfA = at(a.pointer, times(row, a.itemStride), unit);

  if (unpackedA_.window.inside) {
    Value isFirst = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, columns.number, e_.index(0));
    Value isDue = b_.create<arith::AndIOp>(isFirst, unpackedA_.window.inside);
    auto branch = b_.create<scf::IfOp>(isDue, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPoint(branch.thenBlock()->getTerminator());
    copyRowsOfA(row, plus(row, e_.index(rows)),
                at(unpackedA_.copy.pointer, times(row, unpackedA_.copy.strides[0]), plan_.packed));
  }
  auto placeOf = [&](int64_t i, int64_t v) { return at(from, i * c.strides[0] + v * lanes, element); };
  // The sums begin at zero and are added to C at the end: waiting for C, which is in L2, would stop them all at once.
  SmallVector<Value> sums(rows * vectors, zero(type));
  if (!startsAtZero_)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t v = 0; v < vectors; ++v)
        b_.create<LLVM::Prefetch>(placeOf(i, v), /*rw=*/1, /*hint=*/3, /*cache=*/1);
  auto step = [&](Value rowOfB, Value columnOfA, SmallVectorImpl<Value> &sums) {
    SmallVector<Value> b;
    for (int64_t v = 0; v < vectors; ++v)
      b.push_back(b_.create<LLVM::LoadOp>(vectorOf(unit, lanes), at(rowOfB, v * lanes, unit), byteSize(unit)));
    for (int64_t i = 0; i < rows; ++i) {
      Value scalar = b_.create<LLVM::LoadOp>(unit, at(columnOfA, i * a.itemStride, unit), byteSize(unit));
      Value same = b_.create<vector::SplatOp>(llvm::cast<VectorType>(vectorOf(unit, lanes)), scalar);
      for (int64_t v = 0; v < vectors; ++v)
        sums[i * vectors + v] = multiplyAdd(same, b[v], sums[i * vectors + v]);
    }
  };
  auto steps = [&](Value begin, Value end, int64_t count, ArrayRef<Value> lines) {
    auto loop = b_.create<scf::ForOp>(begin, end, e_.index(count), sums);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToEnd(loop.getBody());
    Value k = loop.getInductionVar();
    Value rowOfB = at(columns.panel, times(k, columns.depthStride), unit);
    Value columnOfA = at(rowsOfA, times(k, a.depthStride), unit);
    if (!lines.empty())
      bringLine(lines, b_.create<arith::DivUIOp>(b_.create<arith::SubIOp>(k, begin), e_.index(count)));
    sums.assign(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    for (int64_t i = 0; i < count; ++i)
      step(at(rowOfB, i * columns.depthStride, unit), at(columnOfA, i * a.depthStride, unit), sums);
    b_.create<scf::YieldOp>(sums);
    sums.assign(loop.getResults().begin(), loop.getResults().end());
  };
  Value depth = e_.index(units_), whole = e_.index(units_ / stepsAtOnce * stepsAtOnce);
  if (limits_.depth) {
    depth = minimum(depth, dividedUp(limits_.depth, plan_.group));
    whole = times(b_.create<arith::DivUIOp>(depth, e_.index(stepsAtOnce)), stepsAtOnce);
  }
  // Blocks for all numbers of rows that may be left over are most of the code, and outside of a loop run once each.
  if (isRest && next_.empty()) {
    steps(e_.index(0), depth, 1, {});
    whole = depth;
  } else if (!next_.empty() && units_ >= stepsAtOnce) {
    constexpr int64_t length = stepsAtOnce * linesOfPiece;
    auto loop = b_.create<scf::ForOp>(e_.index(0), whole, e_.index(length), sums);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToEnd(loop.getBody());
    Value k = loop.getInductionVar();
    Value piece = b_.create<arith::DivUIOp>(k, e_.index(length));
    SmallVector<Value> lines = nextLines(plus(times(blockNumber(row, columns), piecesOfDepth()), piece));
    sums.assign(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    steps(k, minimum(plus(k, e_.index(length)), whole), stepsAtOnce, lines);
    b_.create<scf::YieldOp>(sums);
    sums.assign(loop.getResults().begin(), loop.getResults().end());
  } else if (units_ >= stepsAtOnce) {
    steps(e_.index(0), whole, stepsAtOnce, {});
  }
  if (whole != depth && (limits_.depth || units_ % stepsAtOnce))
    steps(whole, depth, 1, {});

  for (int64_t i = 0; i < rows; ++i) {
    SmallVector<Value> computed;
    if (computesAccumulator_)
      computed = computedAccumulator(plus(row, e_.index(i)), columns.first, columns.width);
    for (int64_t v = 0; v < vectors; ++v) {
      Value &sum = sums[i * vectors + v];
      auto add = [&](Value other) {
        sum = llvm::isa<FloatType>(element) ? b_.create<arith::AddFOp>(other, sum).getResult()
                                            : b_.create<arith::AddIOp>(other, sum).getResult();
      };
      if (!startsAtZero_)
        add(computesAccumulator_ ? computed[v] : load(placeOf(i, v), element, present(v), lanes));
      if (correction_)
        add(load(at(correction_, plus(columns.first, e_.index(v * lanes)), element), element, lanes, lanes));
      store(sum, placeOf(i, v), present(v));
    }
  }
}

} // namespace tenon::cpu
