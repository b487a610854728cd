// SPDX-License-Identifier: Apache-2.0
//
// A dot with a handful of rows reads B about as often as it uses it: memory is the limit, and packing would only add to
// it. Rows of B are read where they lie, several at once and from end to end, the way memory likes to be read:
//
//     for k in K step `together`:
//       for n in columns:
//         C[i][n] += A[i][k] * B[k][n] + A[i][k+1] * B[k+1][n] + ...
//
// A row lies in another page than the one before, where the processor's own prefetching starts anew: where that is too
// short (Isa::bringsRows) the rows that follow these are brought in.
#include "tenon/compiler/target/cpu/Dot.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tenon::cpu {
void DotEmitter::emitThin(const Buffer &c) {
  Type element = plan_.accumulator, from = op_.getB().getType().getElementType();
  unsignedBytes_ = op_.getAUnsigned();
  const Buffer *present = e_.buffer(op_.getA());
  bool usable = present && scratchType(op_.getA().getType().getElementType()) == element;
  Buffer a = usable ? *present : copyOf(op_.getA(), element, false);

  if (originOf(op_.getB()).contiguous == 0) // rows along K: the sums would run along the lanes
    return emitBlocks({a.pointer, a.strides[0], 1, 0}, packB(), c);
  unsignedBytes_ = op_.getBUnsigned();
  RawRows rows = rawRows(op_.getB(), 1, rawType(from));
  b_.setLoc(op_.getLoc());

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
        for (int64_t byte = 0; bringsNext && byte < width * byteSize(rows.element); byte += lineBytes)
          b_.create<LLVM::Prefetch>(at(at(place, ahead, rows.element), byte, b_.getI8Type()), /*rw=*/0, /*hint=*/2,
                                    /*cache=*/1); // to L2
        for (int64_t i = 0; i < m_; ++i) {
          Value same = splatTo(b_, units[i * count + k], width);
          sums[i] = llvm::isa<FloatType>(element)
                        ? b_.create<math::FmaOp>(same, b, sums[i]).getResult()
                        : b_.create<arith::AddIOp>(sums[i], b_.create<arith::MulIOp>(same, b)).getResult();
        }
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

} // namespace tenon::cpu
