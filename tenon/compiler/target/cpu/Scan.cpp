// SPDX-License-Identifier: Apache-2.0
//
// Running sums and the like: one element after the other along their dimension, in vectors along another.
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <functional>

using namespace mlir;

namespace tenon::cpu {

void Nest::emitScan(tile::ScanOp op, ArrayRef<Buffer> results) {
  // Sequential along the scanned dimension; the others are plain loops. The first element is its own result.
  start();
  checked_ = true;
  int dim = op.getDim(), rank = group_.shape.size();
  int64_t extent = group_.shape[dim];
  for (int d = rank - 1; d >= 0; --d) // vectors along the last dimension, if that is not the scanned one
    if (group_.shape[d] > 1) {
      vectorDim_ = d == dim ? -1 : d;
      break;
    }
  auto element = [&](const Coords &coords) {
    SmallVector<Value> values;
    setInsertion(levels_.size() - 1);
    levels_.back().memo.clear();
    for (Value value : op.getValues())
      values.push_back(splatTo(b_, compute(value, coords), lanes_ > 1 ? lanes_ : 0));
    setInsertion(levels_.size() - 1);
    return values;
  };
  auto store = [&](const Coords &coords, ArrayRef<Value> values) {
    for (auto [buffer, value] : llvm::zip(results, values))
      storeBuffer(buffer, coords, value);
  };
  std::function<void(int, Coords)> dims = [&](int d, Coords coords) {
    if (d == rank) {
      coords[dim] = {e_.index(op.getReverse() ? extent - 1 : 0)};
      SmallVector<Value> first = element(coords);
      store(coords, first);
      if (extent == 1)
        return;
      loop(1, e_.index(extent), 1, first, [&](Value counter, ValueRange carried) {
        Value at = counter;
        if (op.getReverse()) {
          setInsertion(levels_.size() - 1);
          at = b_.create<arith::SubIOp>(e_.index(extent - 1), counter);
          depths_[at] = depths_[counter];
        }
        coords[dim] = {at};
        SmallVector<Value> current = element(coords);
        // Elements keep their order, which matters where the region does not commute.
        SmallVector<Value> left(carried), right = current;
        if (op.getReverse())
          std::swap(left, right);
        SmallVector<Value> combined = combineElements(b_, op.getCombine(), left, right);
        store(coords, combined);
        return combined;
      });
      return;
    }
    if (d == dim || group_.shape[d] == 1) {
      dims(d + 1, coords);
      return;
    }
    bool vectorized = d == vectorDim_;
    int64_t step = vectorized ? std::min<int64_t>(group_.shape[d], preferredLanes(e_.isa())) : 1;
    int64_t whole = group_.shape[d] / step * step;
    auto inner = [&](Value counter, unsigned lanes) {
      if (vectorized)
        lanes_ = lanes;
      coords[d] = {counter, vectorized && lanes > 1};
      dims(d + 1, coords);
    };
    loop(0, e_.index(whole), step, {}, [&](Value counter, ValueRange) -> SmallVector<Value> {
      inner(counter, step);
      return {};
    });
    if (whole < group_.shape[d])
      inner(e_.index(whole), group_.shape[d] - whole);
  };
  dims(0, Coords(rank, Coord{e_.index(0)}));
}

} // namespace tenon::cpu
