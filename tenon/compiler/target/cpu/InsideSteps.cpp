// SPDX-License-Identifier: Apache-2.0
//
// A tile of 1024 columns over a view of 1000: all steps of its loops are inside of the view but the last. Where a nest is
// not inside as a whole, each step along its vectors asks whether it is:
//
//     scf.for %j = 0 to 1024 step 32 {
//       scf.if %j + 32 <= %inside { vectors, plain loads and stores } else { the same, masked }
//
// %inside is how far all windows reach, and 0 where they hang over in any other dimension. The order of what is added up
// is that of the nest that is inside. Where results go past the cache, those of such steps do (Streaming.cpp).
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::cpu {

/// Elements along the vectors, from the first one on, that are inside of every window; null where steps are not asked.
Value Nest::findInside() {
  constexpr int64_t leastSteps = 4; // of fewer, one that is masked is too many of them anyway
  if (vectorDim_ < 0 || group_.shape[vectorDim_] < leastSteps * vectorLanes_ ||
      llvm::count(group_.shape, group_.shape[vectorDim_]) != 1)
    return {};
  int64_t extent = group_.shape[vectorDim_];
  Value inside, reach;
  for (const Window &window : windows()) {
    // The nest has one such dimension, so it is that of a window, unless the window has two.
    bool isAlong = llvm::count(window.shape, extent) == 1;
    b_.setLoc(window.op->getLoc());
    for (auto [d, size] : llvm::enumerate(window.shape)) {
      if (!isAlong || size != extent) {
        inside = both(inside, isInside(window, d));
        continue;
      }
      Value start = e_.scalar(window.offsets[d]);
      Value left = b_.create<arith::SubIOp>(window.view->sizes[d], start);
      reach = reach ? b_.create<arith::MinSIOp>(reach, left).getResult() : left;
      inside = both(inside, b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, start, e_.index(0)));
    }
  }
  return reach ? b_.create<arith::SelectOp>(inside, reach, e_.index(0)).getResult() : Value();
}

/// The body of a step at a place along the vectors, for one that is inside and for one that need not be.
SmallVector<Value> Nest::eitherStep(Coords coords, Value place, TypeRange results,
                                    llvm::function_ref<SmallVector<Value>(Value)> body) {
  if (!inside_ || !checked_ || lanes_ != vectorLanes_)
    return body(place);
  setInsertion(levels_.size() - 1);
  coords[vectorDim_].base = place;
  noteLoop(coords);
  Value end = b_.create<arith::AddIOp>(place, e_.index(lanes_));
  Value isInside = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sle, end, inside_);
  auto branch = results.empty() ? b_.create<scf::IfOp>(isInside, /*withElseRegion=*/true)
                                : b_.create<scf::IfOp>(results, isInside, /*withElseRegion=*/true);
  Operation *outerAnchor = levels_.back().anchor;
  levels_.back().anchor = branch;
  for (bool holds : {true, false}) {
    levels_.push_back(Level(holds ? branch.thenBlock() : branch.elseBlock()));
    size_t depth = levels_.size() - 1;
    setInsertion(depth);
    Value here = b_.create<arith::AddIOp>(place, e_.index(0)); // what depends on it belongs into this branch
    depths_[here] = depth;
    checked_ = !holds;
    insideDepth_ = holds ? depth : 0;
    SmallVector<Value> values = body(here);
    setInsertion(depth);
    if (!results.empty())
      b_.create<scf::YieldOp>(values);
    levels_.pop_back();
  }
  checked_ = true;
  insideDepth_ = 0;
  levels_.back().anchor = outerAnchor;
  levels_.back().memo.clear();
  b_.setInsertionPointAfter(branch);
  return SmallVector<Value>(branch.getResults());
}

} // namespace tenon::cpu
