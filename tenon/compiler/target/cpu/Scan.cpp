// SPDX-License-Identifier: Apache-2.0
//
// Running sums and the like. Along a dimension that vectors do not lie along, one element after the other. Along the
// one they do, a vector at a time: each lane takes in the one 1, 2, 4, ... before it, and then all of them what is
// carried.
//
//     x0 x1 x2 x3    x0 x01 x12 x23    x0 x01 x02 x03    c0 c01 c02 c03     (x12: x1 and x2 combined)
//
// So the chain from vector to vector is one combination of the whole of each, and operands are computed as vectors.
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <functional>

using namespace mlir;

namespace tenon::cpu {

void Nest::emitScan(tile::ScanOp op, ArrayRef<Buffer> results) {
  int dim = op.getDim();
  for (int d = 0; d < static_cast<int>(group_.shape.size()); ++d)
    if (group_.shape[d] > 1)
      vectorDim_ = d;
  bool alongLanes = vectorDim_ == dim;
  vectorLanes_ = alongLanes ? e_.isa().vectorBytes / 4 : preferredLanes(e_.isa());
  e_.prefetch().beginNest(b_.getInsertionBlock(), group_.shape, vectorDim_, vectorLanes_);
  Value inside = inBounds();
  if (!inside) {
    emitScanLoops(op, results);
    return;
  }
  auto branch = b_.create<scf::IfOp>(inside, /*withElseRegion=*/true);
  for (bool isInside : {true, false}) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPoint((isInside ? branch.thenBlock() : branch.elseBlock())->getTerminator());
    checked_ = !isInside;
    emitScanLoops(op, results);
  }
}

void Nest::emitScanLoops(tile::ScanOp op, ArrayRef<Buffer> results) {
  start();
  int dim = op.getDim(), rank = group_.shape.size();
  int64_t extent = group_.shape[dim];
  bool isReversed = op.getReverse(), alongLanes = vectorDim_ == dim;
  auto elements = [&](const Coords &coords) {
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
  // Elements keep their order, which matters where the region does not commute.
  auto combine = [&](ArrayRef<Value> before, ArrayRef<Value> after) {
    return isReversed ? combineElements(b_, op.getCombine(), after, before)
                      : combineElements(b_, op.getCombine(), before, after);
  };
  /// Lane l of each is lane from(l).
  auto shuffled = [&](ArrayRef<Value> values, unsigned lanes, llvm::function_ref<int64_t(int64_t)> from) {
    SmallVector<int64_t> places;
    for (int64_t lane = 0; lane < static_cast<int64_t>(lanes); ++lane)
      places.push_back(from(lane));
    SmallVector<Value> moved;
    for (Value value : values)
      moved.push_back(b_.create<vector::ShuffleOp>(value, value, places));
    return moved;
  };
  auto scanLanes = [&](SmallVector<Value> values) {
    int64_t lanes = std::max(1u, lanes_);
    for (int64_t by = 1; by < lanes; by *= 2) {
      SmallVector<bool> takes(lanes);
      for (int64_t lane = 0; lane < lanes; ++lane)
        takes[lane] = isReversed ? lane + by < lanes : lane >= by;
      Value mask = b_.create<arith::ConstantOp>(
          DenseElementsAttr::get(VectorType::get({lanes}, b_.getI1Type()), ArrayRef<bool>(takes)));
      SmallVector<Value> before =
          shuffled(values, lanes, [&](int64_t lane) { return takes[lane] ? lane + (isReversed ? by : -by) : lane; });
      for (auto [value, combined] : llvm::zip(values, combine(before, values)))
        value = b_.create<arith::SelectOp>(mask, combined, value);
    }
    return values;
  };

  /// A row of vectors: the first, a loop over whole ones, what is left. Reversed, they are counted from the end.
  auto alongVectors = [&](Coords coords) {
    int64_t step = std::min<int64_t>(vectorLanes_, extent), whole = extent / step * step;
    auto piece = [&](Value place, unsigned lanes, SmallVector<Value> carried) {
      lanes_ = lanes > 1 ? lanes : 0;
      if (isReversed) {
        setInsertion(levels_.size() - 1);
        Value end = b_.create<arith::SubIOp>(e_.index(extent - lanes), place);
        depths_[end] = levels_.size() - 1;
        place = end;
      }
      coords[dim] = {place, lanes > 1};
      SmallVector<Value> values = scanLanes(elements(coords));
      SmallVector<Value> last =
          lanes_ ? shuffled(values, lanes, [&](int64_t) -> int64_t { return isReversed ? 0 : lanes - 1; }) : values;
      if (!carried.empty() && lanesOf(carried[0]) != lanes_)
        carried = cut(carried, 0, lanes); // all lanes are the same
      store(coords, carried.empty() ? values : combine(carried, values));
      return carried.empty() ? last : combine(carried, last);
    };
    SmallVector<Value> carried = piece(e_.index(0), step, {});
    if (whole > step)
      carried = loop(step, e_.index(whole), step, carried, [&](Value counter, ValueRange before) {
        return piece(counter, step, SmallVector<Value>(before));
      });
    if (whole < extent)
      piece(e_.index(whole), extent - whole, carried);
    lanes_ = 0;
  };
  auto alongElements = [&](Coords coords) {
    coords[dim] = {e_.index(isReversed ? extent - 1 : 0)};
    SmallVector<Value> first = elements(coords);
    store(coords, first);
    if (extent == 1)
      return;
    loop(1, e_.index(extent), 1, first, [&](Value counter, ValueRange carried) {
      Value at = counter;
      if (isReversed) {
        setInsertion(levels_.size() - 1);
        at = b_.create<arith::SubIOp>(e_.index(extent - 1), counter);
        depths_[at] = depths_[counter];
      }
      coords[dim] = {at};
      SmallVector<Value> combined = combine(SmallVector<Value>(carried), elements(coords));
      store(coords, combined);
      return combined;
    });
  };

  std::function<void(int, Coords)> dims = [&](int d, Coords coords) {
    if (d == rank) {
      alongLanes ? alongVectors(coords) : alongElements(coords);
      return;
    }
    if (d == dim || group_.shape[d] == 1) {
      dims(d + 1, coords);
      return;
    }
    bool vectorized = d == vectorDim_;
    int64_t step = vectorized ? std::min<int64_t>(group_.shape[d], vectorLanes_) : 1;
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
  lanes_ = 0;
  dims(0, Coords(rank, Coord{e_.index(0)}));
}

} // namespace tenon::cpu
