// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace tenon::cpu {

unsigned preferredLanes(const Isa &isa) { return 2 * isa.vectorBytes / 4; }

namespace {

constexpr int64_t longRow = 512; ///< elements

/// What is left of a row after whole steps, in pieces that fill registers: 2, 4, ... of them at a time, then the part
/// of one that remains. Vectors of other lengths (three registers, say) are taken apart lane by lane wherever they are
/// shuffled.
SmallVector<int64_t, 4> piecesOf(int64_t rest, int64_t registerLanes) {
  SmallVector<int64_t, 4> pieces;
  while (rest >= registerLanes) {
    pieces.push_back(llvm::bit_floor(static_cast<uint64_t>(rest)));
    rest -= pieces.back();
  }
  if (rest)
    pieces.push_back(rest);
  return pieces;
}

} // namespace

int64_t Nest::stepOf(int dim) const {
  int64_t extent = group_.shape[dim];
  if (dim != vectorDim_)
    return 1;
  return extent >= vectorLanes_ ? vectorLanes_ : piecesOf(extent, e_.isa().vectorBytes / 4).front();
}

/// How far whole steps go: along a long row that is reduced as far in all loops, whatever their steps, since these can
/// be one (Overlap.cpp).
int64_t Nest::wholeSteps(int dim) const {
  int64_t extent = group_.shape[dim], step = stepOf(dim), longest = 2 * preferredLanes(e_.isa());
  auto reducesSuch = [&](tile::ReduceOp reduce) {
    auto shape = llvm::cast<RankedTensorType>(reduce.getValues()[0].getType()).getShape();
    bool isSuch = shape == ArrayRef(group_.shape) && static_cast<int>(reduce.getDim()) == dim;
    return isSuch ? WalkResult::interrupt() : WalkResult::advance();
  };
  if (dim == vectorDim_ && e_.isa().overlapsRows && extent >= longRow && longest % step == 0 &&
      e_.kernel().walk(reducesSuch).wasInterrupted())
    step = longest;
  return extent / step * step;
}

void Nest::forPieces(int dim, llvm::function_ref<void(Value, unsigned)> body) {
  int64_t extent = group_.shape[dim], at = wholeSteps(dim);
  for (int64_t lanes : piecesOf(extent - at, e_.isa().vectorBytes / 4)) {
    body(e_.index(at), static_cast<unsigned>(lanes));
    at += lanes;
  }
}

//===--- The shape of the nest ------------------------------------------------------------------------------------===//

void Nest::emit() {
  int rank = group_.shape.size();
  if (!group_.scalarOnly)
    for (int d = 0; d < rank; ++d)
      if (group_.shape[d] > 1)
        vectorDim_ = d;
  for (int d = 0; d < rank; ++d)
    if (d != vectorDim_ && d != group_.reduceDim)
      loopDims_.push_back(d);
  if (vectorDim_ >= 0 && vectorDim_ != group_.reduceDim)
    loopDims_.push_back(vectorDim_);

  auto draws = group_.roots.size() == 1 && !group_.roots[0].op
                   ? group_.roots[0].value.getDefiningOp<tile::RandomBitsOp>()
                   : tile::RandomBitsOp();
  vectorLanes_ = preferredLanes(e_.isa()) * (reducesLongRows() ? 2 : 1);
  if (int64_t lanes = draws ? lanesOfDrawLoop(e_.isa(), draws, vectorDim_) : 0)
    vectorLanes_ = lanes;
  for (const NestRoot &root : group_.drawn)
    drawnLanes_ =
        std::max(drawnLanes_, lanesOfDraw(e_.isa(), root.value.getDefiningOp<tile::RandomBitsOp>(), vectorDim_));
  paired_ = pairsLanes();
  e_.prefetch().beginNest(b_.getInsertionBlock(), group_.shape, vectorDim_, vectorLanes_);
  findLiveRows();
  findBlocks();
  Value inside = inBounds();
  if (Value holds = masksHold())
    inside = inside ? b_.create<arith::AndIOp>(inside, holds).getResult() : holds;
  SmallVector<const ViewParts *> views;
  std::optional<NestGroup> longRow = asLongRow(views);
  if (!inside) {
    if (longRow)
      Nest(e_, *longRow).emitLongRow();
    else
      emitLoops();
    return;
  }
  auto either = [&](Value condition, llvm::function_ref<void(bool)> emitTwin) {
    auto branch = b_.create<scf::IfOp>(condition, /*withElseRegion=*/true);
    for (bool holds : {true, false}) {
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPoint((holds ? branch.thenBlock() : branch.elseBlock())->getTerminator());
      emitTwin(holds);
    }
  };
  Value past = streams(), follow;
  if (longRow)
    for (const ViewParts *view : views) {
      Value isDense = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, view->strides[vectorDim_ - 1],
                                               e_.index(group_.shape[vectorDim_]));
      follow = follow ? b_.create<arith::AndIOp>(follow, isDense).getResult() : isDense;
    }
  for (auto [live, extent] : llvm::zip(live_, group_.shape))
    if (follow && live) // windows were only asked to have room for rows that are needed
      follow =
          b_.create<arith::AndIOp>(follow, b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, live, e_.index(extent)));
  Value wholeLines = storesWholeLines();
  auto emitPlain = [&] {
    if (!wholeLines)
      return emitLoops();
    either(wholeLines, [&](bool areWhole) {
      takesBlocks_ = areWhole;
      emitLoops();
    });
    takesBlocks_ = true;
  };
  auto eitherWay = [&](llvm::function_ref<void()> emitThroughCache) {
    if (!past)
      return emitThroughCache();
    either(past, [&](bool isStreaming) {
      streaming_ = isStreaming;
      isStreaming ? emitLoops() : emitThroughCache();
    });
    streaming_ = false;
  };
  auto emitUnchecked = [&] { eitherWay(emitPlain); };
  either(inside, [&](bool isInside) {
    checked_ = !isInside;
    if (!isInside) {
      findInside();
      inside_ ? eitherWay([&] { emitLoops(); }) : emitLoops();
      inside_ = {};
    } else if (!longRow) {
      emitUnchecked();
    } else if (!follow) { // rows of no view
      Nest(e_, *longRow).emitLongRow();
    } else {
      either(follow, [&](bool isLong) { isLong ? Nest(e_, *longRow).emitLongRow() : emitUnchecked(); });
    }
  });
}

/// Whether this is a loop along rows that only reduces (or keeps what it computes): twice the lanes are four chains, which
/// hide each other's latency better, where there are registers for them. With stores it does not pay.
bool Nest::reducesLongRows() const {
  constexpr unsigned manyRegisters = 64; // bytes of a vector: AVX-512 has 32 of them
  return vectorDim_ >= 0 && vectorDim_ == group_.reduceDim && group_.shape[vectorDim_] >= longRow &&
         e_.isa().vectorBytes >= manyRegisters && llvm::all_of(group_.roots, [](const NestRoot &root) {
           return !root.op || llvm::isa<tile::ReduceOp>(root.op);
         });
}

void Nest::start() {
  levels_.clear();
  depths_.clear();
  offsets_.clear();
  levels_.push_back(Level(b_.getInsertionBlock()));
  if (b_.getInsertionPoint() != b_.getInsertionBlock()->end())
    levels_.back().anchor = &*b_.getInsertionPoint();
}

void Nest::emitLoops() {
  start();
  lanes_ = 0;
  SmallVector<int> dims = loopDims_;
  if (blockDim_ >= 0 && !checked_ && takesBlocks_) { // innermost: what is beside the rows that a block has read is next
    llvm::erase(loopDims_, blockDim_);
    loopDims_.push_back(blockDim_);
  }
  emitDims(0, Coords(group_.shape.size(), Coord{e_.index(0)}));
  loopDims_ = std::move(dims);
}

void Nest::emitDims(size_t position, Coords coords) {
  if (position == loopDims_.size()) {
    if (group_.reduceDim >= 0)
      emitReduction(group_.reduceDim, coords);
    else if (!blockPlaces_.empty())
      emitBlock(coords);
    else
      eitherStep(coords, {}, [&](const Coords &at) { return body(at); });
    return;
  }
  int dim = loopDims_[position];
  bool vectorized = dim == vectorDim_;
  int64_t step = stepOf(dim);
  int64_t whole = wholeSteps(dim);
  auto inner = [&](Value counter, unsigned lanes) {
    unsigned outerLanes = lanes_;
    if (vectorized)
      lanes_ = lanes;
    coords[dim] = {counter, vectorized && lanes > 1};
    emitDims(position + 1, coords);
    lanes_ = outerLanes;
  };
  if (dim == blockDim_ && !checked_ && takesBlocks_)
    return loopOverBlocks([&](Value counter) { inner(counter, 1); });
  bool draws = vectorized && drawnLanes_;
  int64_t parts = vectorized && streaming_ ? partsOfRow(whole, draws ? drawnLanes_ : step) : 1, part = whole / parts;
  auto over = [&](Value end, int64_t by, llvm::function_ref<void(Value)> each) {
    loop(0, end, by, {}, [&](Value counter, ValueRange) -> SmallVector<Value> {
      each(counter);
      return {};
    });
  };
  auto sum = [&](Value x, Value y) {
    Value place = b_.create<arith::AddIOp>(x, y);
    depths_[place] = levels_.size() - 1;
    return place;
  };
  // What is `counter` elements after the begin of each part.
  auto inParts = [&](Value counter, llvm::function_ref<void(Value)> each) {
    if (part == whole)
      each(counter);
    else
      over(e_.index(whole), part, [&](Value start) { each(sum(start, counter)); });
  };
  if (draws) {
    constexpr int64_t mostDrawn = 512; // of all parts, before they are used
    int64_t lump = drawnLanes_;
    while (2 * lump * parts <= mostDrawn && part % (2 * lump) == 0)
      lump *= 2;
    over(e_.index(part), lump, [&](Value begin) {
      over(e_.index(lump), drawnLanes_,
           [&](Value counter) { inParts(sum(begin, counter), [&](Value place) { drawNumbers(coords, place); }); });
      over(e_.index(lump), step,
           [&](Value counter) { inParts(sum(begin, counter), [&](Value place) { inner(place, step); }); });
    });
  } else if (whole == step) {
    inner(e_.index(0), step);
  } else {
    loopOverParts(0, live_[dim] ? live_[dim] : e_.index(part), whole, parts, step, {},
                  [&](Value place, ValueRange) -> SmallVector<Value> {
                    inner(place, step);
                    return {};
                  });
  }
  forPieces(dim, inner);
}

SmallVector<Value> Nest::loop(int64_t begin, Value end, int64_t step, ArrayRef<Value> inits,
                              llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  setInsertion(levels_.size() - 1);
  auto op = b_.create<scf::ForOp>(e_.index(begin), end, e_.index(step), inits);
  Operation *outerAnchor = levels_.back().anchor;
  levels_.back().anchor = op;
  levels_.push_back(Level(op.getBody()));
  depths_[op.getInductionVar()] = levels_.size() - 1;
  setInsertion(levels_.size() - 1);
  SmallVector<Value> yields = body(op.getInductionVar(), op.getRegionIterArgs());
  setInsertion(levels_.size() - 1);
  if (!inits.empty())
    b_.create<scf::YieldOp>(yields);
  levels_.pop_back();
  // Values of this level that come later still go before the loop (they do not depend on it), except what the code after
  // the loop emits in place.
  levels_.back().anchor = outerAnchor;
  b_.setInsertionPointAfter(op);
  levels_.back().memo.clear(); // entries made during the loop stand before it and stay valid, but keep this simple
  return SmallVector<Value>(op.getResults());
}

void Nest::setInsertion(unsigned depth) {
  Level &level = levels_[depth];
  if (level.anchor)
    b_.setInsertionPoint(level.anchor);
  else if (!level.block->empty() && level.block->back().hasTrait<OpTrait::IsTerminator>())
    b_.setInsertionPoint(&level.block->back());
  else
    b_.setInsertionPointToEnd(level.block);
}

unsigned Nest::depthOf(const Coords &coords) {
  unsigned depth = 0;
  for (const Coord &coord : coords)
    depth = std::max(depth, depths_.lookup(coord.base));
  return depth;
}

Value Nest::offsetBase(Value base, int64_t offset) {
  if (offset == 0)
    return base;
  Value &moved = offsets_[{base.getAsOpaquePointer(), offset}];
  if (moved)
    return moved;
  unsigned depth = depths_.lookup(base);
  OpBuilder::InsertionGuard guard(b_);
  setInsertion(depth);
  moved = b_.create<arith::AddIOp>(base, e_.index(offset));
  depths_[moved] = depth;
  return moved;
}

unsigned Nest::lanesIn(const Coords &coords) const {
  for (const Coord &coord : coords)
    if (coord.lanes)
      return lanes_;
  return 0;
}

//===--- Reductions -----------------------------------------------------------------------------------------------===//

SmallVector<Value> Nest::combineAll(ArrayRef<Value> left, ArrayRef<Value> right) {
  SmallVector<Value> results;
  size_t at = 0;
  for (const NestRoot &root : group_.roots)
    if (auto reduce = llvm::dyn_cast_if_present<tile::ReduceOp>(root.op)) {
      size_t n = reduce.getValues().size();
      if (byHalves_.contains(reduce))
        results.push_back(combineHalves(reduce, left[at], right[at]));
      else
        llvm::append_range(results,
                           combineElements(b_, reduce.getCombine(), left.slice(at, n), right.slice(at, n)));
      at += n;
    }
  return results;
}

void Nest::storeReduced(ArrayRef<Value> values, Coords coords) {
  coords[group_.reduceDim] = {e_.index(0)};
  size_t at = 0;
  for (const NestRoot &root : group_.roots)
    if (auto reduce = llvm::dyn_cast_if_present<tile::ReduceOp>(root.op))
      for (Value result : reduce.getResults())
        storeBuffer(*e_.buffer(result), coords, values[at++]);
}

void Nest::emitReduction(int dim, Coords coords) {
  int64_t extent = group_.shape[dim];
  bool vectorized = dim == vectorDim_;
  unsigned outerLanes = lanes_;
  int64_t step = stepOf(dim);
  int64_t whole = wholeSteps(dim);

  // Neutral starting values where every combination has them; otherwise the first step is peeled off.
  SmallVector<Value> inits;
  if (vectorized)
    lanes_ = step;
  unsigned accumulatorLanes = lanes_ > 1 ? lanes_ : 0;
  bool peels = false;
  for (const NestRoot &root : group_.roots)
    if (auto reduce = llvm::dyn_cast_if_present<tile::ReduceOp>(root.op)) {
      auto neutral = neutralElements(reduce.getCombine());
      peels |= !neutral;
      if (neutral)
        for (TypedAttr attribute : *neutral)
          inits.push_back(splatTo(b_, b_.create<arith::ConstantOp>(attribute), accumulatorLanes));
    }
  size_t taken = inits.size(); // before NaNs are known otherwise
  auto at = [&](const Coords &place) {
    SmallVector<Value> values = body(place);
    for (Value &value : values)
      value = splatTo(b_, value, accumulatorLanes); // a constant tile is one scalar for all lanes
    return values;
  };
  auto step_ = [&](Value counter) {
    coords[dim] = {counter, vectorized && lanes_ > 1};
    return peels ? at(coords) : eitherStep(coords, ValueRange(inits).take_front(taken).getTypes(), at);
  };
  int64_t first = 0;
  if (peels || whole == step) {
    inits = step_(e_.index(0));
    first = step;
  }
  SmallVector<Value> total = inits, ordered, orderedHalves;
  SmallVector<size_t> extremes, halves;
  if (first < whole) {
    extremes = extremesOfLanes();
    if (first == 0)
      halves = takeHalves(extremes, inits);
    for (size_t at : llvm::concat<size_t>(extremes, halves))
      llvm::append_range(inits, orderedLanes(inits[at]));
    size_t count = total.size();
    int64_t parts = vectorized && first == 0 ? partsOfRow(whole, step) : 1;
    total = loopOverParts(first, e_.index(whole / parts), whole, parts, step, inits,
                          [&](Value counter, ValueRange carried) {
                            return combineOrdered(SmallVector<Value>(carried), step_(counter), extremes, halves);
                          });
    byHalves_.clear();
    for (size_t at : halves)
      total[at] = widenHalves(total[at]);
    for (Value mask : llvm::drop_begin(total, count))
      (lanesOf(mask) == pairedLanes ? orderedHalves : ordered).push_back(mask);
    total.truncate(count);
  }
  if (vectorized) {
    forPieces(dim, [&](Value counter, unsigned lanes) { // into the same accumulators, so that lanes are added up once
      lanes_ = lanes;
      accumulatorLanes = lanes > 1 ? lanes : 0;
      total = combineInto(total, step_(counter));
    });
    // The masks know of every NaN of whole steps, but not of the pieces.
    SmallVector<size_t> known;
    if (whole == extent)
      known.append(llvm::to_vector(llvm::concat<size_t>(extremes, halves)));
    total = horizontal(total, known);
    restoreNans(total, ordered, extremes);
  }
  lanes_ = outerLanes;
  storeReduced(total, coords);
  reduceAgain(halves, total, orderedHalves, coords);
}

//===--- One vector of elements -----------------------------------------------------------------------------------===//

SmallVector<Value> Nest::body(const Coords &coords) {
  setInsertion(levels_.size() - 1);
  noteLoop(coords);
  levels_.back().memo.clear(); // what was computed for another place in this block
  SmallVector<Value> reduced;
  if (group_.isInterleaved && lanes_ > 1) {
    storeColumns(coords);
    return reduced;
  }
  for (const NestRoot &root : group_.roots) {
    if (!root.op) {
      Value wide = roundedByOperand(root.value, coords), value = compute(wide ? wide : root.value, coords);
      setInsertion(levels_.size() - 1);
      storeBuffer(root.buffer, coords, wide ? roundOperand(value) : value);
      continue;
    }
    b_.setLoc(root.op->getLoc());
    llvm::TypeSwitch<Operation *>(root.op)
        .Case<tile::StoreOp>([&](auto op) { storeWindow(op, coords); })
        .Case<tile::ScatterOp>([&](auto op) { scatter(op, coords, compute(op.getValue(), coords)); })
        .Case<tile::AtomicRMWOp, tile::AtomicCASOp>([&](Operation *op) {
          if (root.tally)
            return addTo(*root.tally, llvm::cast<tile::AtomicRMWOp>(op), coords);
          atomic(op, coords, op->getResult(0).use_empty() ? nullptr : e_.buffer(op->getResult(0)));
        })
        .Case<tile::AssertOp>([&](auto op) { check(op, coords); })
        .Case<tile::ReduceOp>([&](auto op) {
          if (byHalves_.contains(op))
            return reduced.push_back(loadHalves(loadOfHalves(op), coords));
          for (Value value : op.getValues())
            reduced.push_back(compute(value, coords));
        });
  }
  setInsertion(levels_.size() - 1);
  return reduced;
}

/// Tells Prefetch of the innermost loop, if that goes over whole vectors of what is known to be inside.
void Nest::noteLoop(const Coords &coords) {
  auto loop = llvm::dyn_cast<scf::ForOp>(b_.getInsertionBlock()->getParentOp());
  if (isLongRow_ || isAgain_)
    return;
  bool isOutside = levels_.size() == 1; // a first step that stands before the loops: the loop is the kernel's
  if ((checked_ && !inside_) || vectorDim_ < 0 || lanes_ != vectorLanes_ || !loop || isOutside ||
      depths_.lookup(coords[vectorDim_].base) != levels_.size() - 1)
    return;
  SmallVector<Value> bases;
  for (const Coord &coord : coords)
    bases.push_back(coord.base);
  e_.prefetch().addLoop(loop, bases, streaming_);
}

Value Nest::compute(Value tile, Coords coords) {
  auto type = llvm::cast<RankedTensorType>(tile.getType());
  for (auto [coord, extent] : llvm::zip(coords, type.getShape()))
    if (extent == 1)
      coord = {e_.index(0)};
  unsigned depth = depthOf(coords);
  std::vector<std::pair<void *, bool>> key;
  for (const Coord &coord : coords)
    key.push_back({coord.base.getAsOpaquePointer(), coord.lanes});
  // What is outside of the branch for a step that is inside is computed for others, too.
  llvm::SaveAndRestore checksOutside(checked_, checked_ || depth < insideDepth_);
  auto at = std::make_pair(tile.getAsOpaquePointer(), std::move(key));
  if (auto found = levels_[depth].memo.find(at); found != levels_[depth].memo.end())
    return found->second;
  OpBuilder::InsertionGuard guard(b_);
  setInsertion(depth);
  Value value = computeHere(tile, coords);
  levels_[depth].memo[at] = value;
  return value;
}

Value Nest::computeHere(Value tile, const Coords &coords) {
  if (const Buffer *buffer = e_.buffer(tile))
    return loadBuffer(*buffer, coords);
  Operation *op = tile.getDefiningOp();
  auto type = llvm::cast<RankedTensorType>(tile.getType());
  unsigned depth = depthOf(coords);
  auto pull = [&](Value operand, Coords at) {
    Value value = compute(operand, std::move(at));
    setInsertion(depth);
    return value;
  };
  b_.setLoc(op->getLoc());
  if (auto constant = llvm::dyn_cast<arith::ConstantOp>(op)) {
    auto splat = llvm::cast<SplatElementsAttr>(constant.getValue());
    Type element = registerType(type.getElementType());
    if (llvm::isa<FloatType>(element))
      return constantLike(b_, element, splat.getSplatValue<FloatAttr>().getValueAsDouble());
    return b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(splat.getSplatValue<Attribute>()));
  }
  if (auto splat = llvm::dyn_cast<tile::SplatOp>(op))
    return e_.scalar(splat.getValue());
  if (auto iota = llvm::dyn_cast<tile::IotaOp>(op)) {
    const Coord &coord = coords[iota.getDim()];
    Value base = b_.create<arith::IndexCastOp>(type.getElementType(), coord.base);
    if (!coord.lanes)
      return base;
    return b_.create<arith::AddIOp>(splatTo(b_, base, lanes_), placesOfLanes(type.getElementType()));
  }
  if (auto broadcast = llvm::dyn_cast<tile::BroadcastOp>(op))
    return pull(broadcast.getValue(), coords); // compute() resets the dimensions of size 1
  if (auto transpose = llvm::dyn_cast<tile::TransposeOp>(op)) {
    Coords source(coords.size());
    for (auto [d, from] : llvm::enumerate(transpose.getPermutation()))
      source[from] = coords[d];
    return pull(transpose.getValue(), source);
  }
  if (auto slice = llvm::dyn_cast<tile::SliceOp>(op)) {
    Coords source = coords;
    for (auto [d, offset] : llvm::enumerate(slice.getOffsets()))
      source[d].base = offsetBase(source[d].base, offset);
    return pull(slice.getValue(), source);
  }
  if (auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op)) { // the others have their operand's buffer
    Coords source;
    size_t d = 0;
    for (int64_t extent : reshape.getValue().getType().getShape()) {
      if (extent == 1) {
        source.push_back({e_.index(0)});
        continue;
      }
      while (type.getDimSize(d) == 1)
        ++d;
      source.push_back(coords[d++]);
    }
    return pull(reshape.getValue(), source);
  }
  if (auto load = llvm::dyn_cast<tile::LoadOp>(op))
    return loadWindow(load, coords);
  if (auto gatherOp = llvm::dyn_cast<tile::GatherOp>(op))
    return gather(gatherOp, coords);
  if (auto random = llvm::dyn_cast<tile::RandomBitsOp>(op))
    return randomBits(random, coords);
  bool masksHold = !checked_ && !insideDepth_;
  if (auto select = llvm::dyn_cast<arith::SelectOp>(op);
      select && masksHold && holding_.contains(select.getCondition()))
    return pull(select.getTrueValue(), coords);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) // one condition may choose between whole tiles
    operands.push_back(llvm::isa<RankedTensorType>(operand.getType()) ? pull(operand, coords) : e_.scalar(operand));
  b_.setLoc(op->getLoc());
  if (auto quotient = llvm::dyn_cast<arith::DivFOp>(op); quotient && lanesOf(operands[0]) && !lanesOf(operands[1]))
    if (Value shared = byReciprocal(quotient, operands[0], operands[1]))
      return shared;
  return elementwise(b_, op, operands);
}

//===--- Scans and single elements --------------------------------------------------------------------------------===//

Value Nest::emitScalar(Value tile) {
  start();
  checked_ = true; // one element: a test costs less than a second copy
  auto rank = llvm::cast<RankedTensorType>(tile.getType()).getRank();
  return compute(tile, Coords(rank, Coord{e_.index(0)}));
}

Value Nest::emitVector(Value tile, const Coords &coords, unsigned lanes) {
  if (levels_.empty())
    start();
  lanes_ = lanes;
  Value value = compute(tile, coords);
  auto type = VectorType::get({lanes}, getElementTypeOrSelf(value.getType()));
  return value.getType() == type ? value : b_.create<vector::SplatOp>(type, value).getResult();
}

} // namespace tenon::cpu
