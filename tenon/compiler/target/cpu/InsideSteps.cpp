// SPDX-License-Identifier: Apache-2.0
//
// A tile of 1024 columns over a view of 1000: all steps of its loops are inside of the view but the last. Where a nest
// is not inside as a whole, each step asks whether it is:
//
//     scf.for %i = 0 to 8 { scf.for %j = 0 to 1024 step 32 {
//       scf.if %inside & %i < %rows & %first <= %j & %j + 32 <= %columns { vectors, plain loads and stores }
//       else { the same, masked }
//
// %rows and %columns are how far all windows reach along a dimension of the nest, %first is where the last of them to
// begin does (one that looks back, as a causal convolution's, begins before its view), and %inside is whether they are
// inside wherever it is not known which dimension it is. The order of what is added up is that of the nest that is
// inside. Where results go past the cache, those of such steps do (Streaming.cpp).
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::cpu {

/// Where what a nest computes is read.
void Nest::findPlaces(Value tile, Place place, llvm::DenseMap<Operation *, Place> &places,
                      std::set<std::pair<void *, Place>> &seen) const {
  Operation *op = tile.getDefiningOp();
  if (!op || !llvm::isa<RankedTensorType>(tile.getType()) || e_.buffer(tile) ||
      !seen.insert({tile.getAsOpaquePointer(), place}).second)
    return;
  if (llvm::isa<tile::LoadOp>(op))
    places[op] = std::max(places.lookup(op), place);
  auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op);
  bool moves = llvm::isa<tile::BroadcastOp, tile::TransposeOp>(op) || (reshape && isUnitReshape(reshape));
  Place next = isElementwise(op) ? place : moves ? std::max(place, Place::moved) : Place::unknown;
  for (Value operand : op->getOperands())
    findPlaces(operand, next, places, seen);
}

/// Along which dimension of the nest one of a window lies; -1: it is not known.
int Nest::dimOf(const Window &window, size_t dim, Place place) const {
  int64_t extent = window.shape[dim];
  if (extent == 1 || place == Place::unknown)
    return -1;
  if (place == Place::same)
    return static_cast<int>(dim);
  const int64_t *found = llvm::find(group_.shape, extent);
  return llvm::count(group_.shape, extent) == 1 && llvm::count(window.shape, extent) == 1
             ? static_cast<int>(found - group_.shape.begin())
             : -1;
}

/// How far the windows reach, where it is worth asking each step.
void Nest::findInside() {
  constexpr int64_t leastSteps = 4; // of fewer, one that is masked is too many of them anyway
  int64_t elements = 1;
  for (int64_t extent : group_.shape)
    elements *= extent;
  if (vectorDim_ < 0 || group_.shape[vectorDim_] < vectorLanes_ || elements < leastSteps * vectorLanes_)
    return;
  llvm::DenseMap<Operation *, Place> places;
  std::set<std::pair<void *, Place>> seen;
  for (const NestRoot &root : group_.roots)
    if (!root.op)
      findPlaces(root.value, Place::same, places, seen);
    else
      for (Value operand : root.op->getOperands())
        findPlaces(operand, Place::same, places, seen);
  reach_.assign(group_.shape.size(), Value());
  first_ = reach_;
  Value inside;
  for (const Window &window : windows()) {
    b_.setLoc(window.op->getLoc());
    for (size_t d = 0; d < window.shape.size(); ++d) {
      int dim = dimOf(window, d, places.lookup(window.op));
      if (dim < 0) {
        inside = both(inside, isInside(window, d));
        continue;
      }
      Value start = e_.scalar(window.offsets[d]), left = b_.create<arith::SubIOp>(window.view->sizes[d], start);
      Value begin = b_.create<arith::SubIOp>(e_.index(0), start);
      reach_[dim] = reach_[dim] ? b_.create<arith::MinSIOp>(reach_[dim], left).getResult() : left;
      first_[dim] = first_[dim] ? b_.create<arith::MaxSIOp>(first_[dim], begin).getResult() : begin;
    }
  }
  if (llvm::any_of(reach_, [](Value reach) { return reach != nullptr; }))
    inside_ = inside ? inside : b_.create<arith::ConstantIntOp>(1, /*width=*/1).getResult();
}

/// The body of a step, for one that is inside and for one that need not be.
SmallVector<Value> Nest::eitherStep(Coords coords, TypeRange results,
                                    llvm::function_ref<SmallVector<Value>(const Coords &)> body) {
  if (!inside_ || !checked_ || lanes_ != vectorLanes_)
    return body(coords);
  setInsertion(levels_.size() - 1);
  noteLoop(coords);
  Value isInside = inside_;
  for (auto [coord, first, reach] : llvm::zip(coords, first_, reach_))
    if (reach) {
      Value end = b_.create<arith::AddIOp>(coord.base, e_.index(coord.lanes ? lanes_ : 1));
      isInside = both(isInside, b_.create<arith::CmpIOp>(arith::CmpIPredicate::sle, end, reach));
      isInside = both(isInside, b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, coord.base, first));
    }
  auto branch = results.empty() ? b_.create<scf::IfOp>(isInside, /*withElseRegion=*/true)
                                : b_.create<scf::IfOp>(results, isInside, /*withElseRegion=*/true);
  Operation *outerAnchor = levels_.back().anchor;
  levels_.back().anchor = branch;
  for (bool holds : {true, false}) {
    levels_.push_back(Level(holds ? branch.thenBlock() : branch.elseBlock()));
    size_t depth = levels_.size() - 1;
    setInsertion(depth);
    Coords here = coords;
    for (Coord &coord : here) { // what depends on them belongs into this branch
      if (depths_.lookup(coord.base) + 1 != depth)
        continue;
      coord.base = b_.create<arith::AddIOp>(coord.base, e_.index(0));
      depths_[coord.base] = depth;
    }
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
