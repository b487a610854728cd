// SPDX-License-Identifier: Apache-2.0
//
// The end of a reduction along lanes: halves of a vector are combined until one element is left, and what whole steps
// leave of a row goes into the first lanes before that.
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

/// The lanes of the smallest register that holds one vector of each: 16 bytes.
int64_t smallLanes(ArrayRef<Value> values) {
  int64_t lanes = 16;
  for (Value value : values)
    lanes = std::min<int64_t>(lanes, 16 / byteSize(memoryType(getElementTypeOrSelf(value.getType()))));
  return lanes;
}

} // namespace

SmallVector<Value> Nest::cut(ArrayRef<Value> values, int64_t offset, int64_t size) {
  SmallVector<Value> part;
  for (Value value : values)
    part.push_back(size == 1 ? b_.create<vector::ExtractOp>(value, offset).getResult()
                             : b_.create<vector::ExtractStridedSliceOp>(value, offset, size, 1).getResult());
  return part;
}

SmallVector<Value> Nest::combineInto(SmallVector<Value> totals, ArrayRef<Value> part) {
  if (part.empty() || lanesOf(part[0]) == lanesOf(totals[0]))
    return combineAll(totals, part);
  int64_t lanes = std::max(1u, lanesOf(part[0]));
  SmallVector<Value> combined = combineAll(cut(totals, 0, lanes), part);
  for (auto [total, value] : llvm::zip(totals, combined))
    total = lanes == 1 ? b_.create<vector::InsertOp>(value, total, 0).getResult()
                       : b_.create<vector::InsertStridedSliceOp>(value, total, 0, 1).getResult();
  return totals;
}

SmallVector<Value> Nest::horizontal(SmallVector<Value> values, ArrayRef<size_t> extremes) {
  auto combine = [&](ArrayRef<Value> left, ArrayRef<Value> right) {
    SmallVector<Value> combined = combineAll(left, right);
    dropNans(combined, extremes);
    return combined;
  };
  if (values.empty() || lanesOf(values[0]) == 0)
    return values;
  int64_t n = lanesOf(values[0]);
  if (!llvm::isPowerOf2_64(n)) {
    int64_t half = llvm::bit_floor(static_cast<uint64_t>(n));
    values = combineInto(cut(values, 0, half), cut(values, half, n - half));
    n = half;
  }
  for (; n >= smallLanes(values) * 2; n /= 2)
    values = combine(cut(values, 0, n / 2), cut(values, n / 2, n / 2));
  // In one small register: its upper half beside the lower one, and the whole of both combined. What comes of the upper
  // half is not used, but instructions for two lanes, or one, are often several in the place of one.
  for (int64_t half = n / 2; half > 0; half /= 2) {
    SmallVector<int64_t> turned;
    for (int64_t i = 0; i < n; ++i)
      turned.push_back((i + half) % n);
    SmallVector<Value> upper;
    for (Value value : values)
      upper.push_back(b_.create<vector::ShuffleOp>(value, value, turned));
    values = combine(values, upper);
  }
  return cut(values, 0, 1);
}

} // namespace tenon::cpu
