// SPDX-License-Identifier: Apache-2.0
//
// A dot with a handful of rows reads B about as often as it uses it: memory is the limit, and packing would only add to
// it. Rows of B are read where they lie, several at once and from end to end, the way memory likes to be read:
//
//     for k in K step `together`:
//       for n in columns:
//         C[i][n] += A[i][k] * B[k][n] + A[i][k+1] * B[k+1][n] + ...
//
// Rows of B that run along K (the weights of a linear layer) are multiplied with A's rows lane by lane, and the sums
// added up across the lanes behind them:
//
//     for n in columns step `together`:
//       for k in K step two vectors:
//         sums[i][n] += A[i][k ..] * B[k .., n]
//       C[i][n] += the lanes of sums[i][n]
//
// A row lies in another page than the one before, where the processor's own prefetching starts anew: where that is too
// short (Isa::bringsRows) the rows that follow these are brought in.
#include "tenon/compiler/target/cpu/Dot.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace tenon::cpu {

void DotEmitter::emitThin(const Buffer &c) {
  Type element = plan_.accumulator, from = op_.getB().getType().getElementType();
  unsignedBytes_ = op_.getAUnsigned();
  const Buffer *present = e_.buffer(op_.getA());
  bool usable = present && scratchType(op_.getA().getType().getElementType()) == element;
  Buffer a = usable ? *present : copyOf(op_.getA(), element, false);

  unsignedBytes_ = op_.getBUnsigned();
  RawRows rows = rawRows(op_.getB(), 1, rawType(from));
  b_.setLoc(op_.getLoc());
  if (rows.alongDepth)
    return emitThinAlongDepth(a, rows, c);

  // A unit of A for each row and each row of B, and two vectors of B and sums: within half the registers.
  int64_t lanes = plan_.lanes, together = std::max<int64_t>(1, std::min<int64_t>(8, e_.isa().registers / 4 / m_));
  auto several = [&](Value first, int64_t count) {
    SmallVector<Value> units;
    for (int64_t i = 0; i < m_; ++i)
      for (int64_t k = 0; k < count; ++k) {
        Value place = at(a.pointer, plus(first, e_.index(i * a.strides[0] + k)), element);
        units.push_back(b_.create<LLVM::LoadOp>(element, place, byteSize(element)));
      }
    SmallVector<Value> starts;
    for (int64_t k = 0; k < count; ++k)
      starts.push_back(at(rows.pointer, b_.create<arith::MulIOp>(plus(first, e_.index(k)), rows.stride), rows.element));
    Value ahead = times(rows.stride, together);
    bool bringsNext = e_.isa().bringsRows && count == together;
    auto columns = [&](Value column, int64_t width) {
      SmallVector<Value> sums;
      for (int64_t i = 0; i < m_; ++i)
        sums.push_back(load(at(c.pointer, plus(column, e_.index(i * c.strides[0])), element), element, width, width));
      for (int64_t k = 0; k < count; ++k) {
        Value place = at(starts[k], column, rows.element);
        Value b = elementsAs(element, load(place, rows.element, width, width), from, op_.getBUnsigned());
        if (bringsNext)
          bringIn(at(place, ahead, rows.element), width * byteSize(rows.element));
        for (int64_t i = 0; i < m_; ++i)
          sums[i] = addProduct(splatTo(b_, units[i * count + k], width), b, sums[i]);
      }
      for (int64_t i = 0; i < m_; ++i)
        store(sums[i], at(c.pointer, plus(column, e_.index(i * c.strides[0])), element), width);
    };
    int64_t step = 2 * lanes, whole = n_ / step * step;
    forRange(0, whole, step, [&](Value column) { columns(column, step); });
    if (whole < n_)
      columns(e_.index(whole), n_ - whole);
  };
  int64_t whole = k_ / together * together;
  forRange(0, whole, together, [&](Value first) { several(first, together); });
  forRange(whole, k_, 1, [&](Value first) { several(first, 1); });
}

void DotEmitter::emitThinAlongDepth(const Buffer &a, const RawRows &rows, const Buffer &c) {
  Type element = plan_.accumulator, from = op_.getB().getType().getElementType();
  // Two registers of sums for each row of A and of B, two of each row of A, and two of B.
  int64_t width = 2 * plan_.lanes, registers = e_.isa().registers, most = (registers - 2 - 2 * m_) / (2 * m_);
  int64_t together = llvm::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(most, 1, 4)));
  auto several = [&](Value first, int64_t count) {
    SmallVector<Value> starts;
    for (int64_t n = 0; n < count; ++n)
      starts.push_back(at(rows.pointer, b_.create<arith::MulIOp>(plus(first, e_.index(n)), rows.stride), rows.element));
    Value ahead = times(rows.stride, together);
    auto step = [&](Value k, int64_t there, ValueRange before) {
      SmallVector<Value> ofA, sums(before);
      for (int64_t i = 0; i < m_; ++i)
        ofA.push_back(load(at(a.pointer, plus(k, e_.index(i * a.strides[0])), element), element, there, width));
      for (int64_t n = 0; n < count; ++n) {
        Value place = at(starts[n], k, rows.element);
        Value ofB = elementsAs(element, load(place, rows.element, there, width), from, op_.getBUnsigned());
        if (e_.isa().bringsRows && count == together && there == width)
          bringIn(at(place, ahead, rows.element), width * byteSize(rows.element));
        for (int64_t i = 0; i < m_; ++i)
          sums[n * m_ + i] = addProduct(ofA[i], ofB, sums[n * m_ + i]);
      }
      return sums;
    };
    SmallVector<Value> sums(count * m_, zero(vectorOf(element, width)));
    int64_t whole = k_ / width * width;
    if (whole > 0) {
      auto loop = b_.create<scf::ForOp>(e_.index(0), e_.index(whole), e_.index(width), sums);
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToEnd(loop.getBody());
      b_.create<scf::YieldOp>(step(loop.getInductionVar(), width, loop.getRegionIterArgs()));
      sums = loop.getResults();
    }
    if (whole < k_)
      sums = step(e_.index(whole), k_ - whole, sums);
    for (int64_t n = 0; n < count; ++n)
      for (int64_t i = 0; i < m_; ++i) {
        Value place = at(c.pointer, plus(first, e_.index(i * c.strides[0] + n)), element);
        Value before = b_.create<LLVM::LoadOp>(element, place, byteSize(element));
        b_.create<LLVM::StoreOp>(sum(before, acrossLanes(sums[n * m_ + i])), place, byteSize(element));
      }
  };
  int64_t whole = n_ / together * together;
  forRange(0, whole, together, [&](Value first) { several(first, together); });
  forRange(whole, n_, 1, [&](Value first) { several(first, 1); });
}

/// To L2.
void DotEmitter::bringIn(Value place, int64_t bytes) {
  for (int64_t byte = 0; byte < bytes; byte += lineBytes)
    b_.create<LLVM::Prefetch>(at(place, byte, b_.getI8Type()), /*rw=*/0, /*hint=*/2, /*cache=*/1);
}

Value DotEmitter::sum(Value x, Value y) {
  if (llvm::isa<FloatType>(plan_.accumulator))
    return b_.create<arith::AddFOp>(x, y);
  return b_.create<arith::AddIOp>(x, y);
}

Value DotEmitter::addProduct(Value x, Value y, Value to) {
  if (llvm::isa<FloatType>(plan_.accumulator))
    return b_.create<math::FmaOp>(x, y, to);
  return b_.create<arith::AddIOp>(to, b_.create<arith::MulIOp>(x, y));
}

/// The sum of all lanes: halves, until there is one.
Value DotEmitter::acrossLanes(Value vector) {
  for (int64_t lanes = lanesOf(vector); lanes > 1; lanes /= 2) {
    SmallVector<int64_t> low(lanes / 2), high(lanes / 2);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), lanes / 2);
    vector = sum(b_.create<vector::ShuffleOp>(vector, vector, low), b_.create<vector::ShuffleOp>(vector, vector, high));
  }
  return b_.create<vector::ExtractOp>(vector, 0);
}

} // namespace tenon::cpu
