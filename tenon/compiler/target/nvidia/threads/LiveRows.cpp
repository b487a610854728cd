// SPDX-License-Identifier: Apache-2.0
//
// Warpgroups whose rows nobody will see multiply nothing. Where memory decides how many rows a tile has (an expert's
// last one), what is behind them is computed with the others and masked out when it is written. If those are all the
// rows of a warpgroup, it goes through the loop of dots for the barriers only, and the matrix unit is the other's.
//
//     for k: acc = dot(...)                          needs(r) = whole & true | !whole & row + r < end
//     if whole: store acc                      ->    if needs(first row of the warpgroup): for k: acc = dot(...)
//     else: scatter acc, mask row + iota < end       else: for k: wait for the slot, let it go
//
// A row is needed if one of the places that write it may: a store, or a scatter whose mask is true for rows up to a
// bound, each under the conditions of the branches that it stands in. Anything else that reads the sums needs all rows.
#include "tenon/compiler/target/nvidia/threads/Rings.h"

#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// The tile, but for how it lies in registers and how often a row is repeated in it.
Value withoutMoves(Value tile) {
  for (Operation *op = tile.getDefiningOp(); llvm::isa_and_nonnull<tile::BroadcastOp, ConvertOp>(op);
       op = tile.getDefiningOp())
    tile = op->getOperand(0);
  return tile;
}

/// What all elements of a tile are; null if they are not the same.
Value splatOf(Value tile) {
  auto splat = withoutMoves(tile).getDefiningOp<tile::SplatOp>();
  return splat ? splat.getValue() : Value();
}

/// A mask of so many rows is true in no other rows r than those with `first` + r < `limit`.
struct RowBound {
  Value first, limit;
};
std::optional<RowBound> rowBound(Value mask, int64_t rows) {
  if (auto both = withoutMoves(mask).getDefiningOp<arith::AndIOp>()) {
    std::optional<RowBound> bound = rowBound(both.getLhs(), rows);
    return bound ? bound : rowBound(both.getRhs(), rows);
  }
  auto compare = withoutMoves(mask).getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  Value numbers = compare.getLhs(), limit = compare.getRhs();
  if (compare.getPredicate() == arith::CmpIPredicate::sgt)
    std::swap(numbers, limit);
  else if (compare.getPredicate() != arith::CmpIPredicate::slt)
    return std::nullopt;
  auto sum = withoutMoves(numbers).getDefiningOp<arith::AddIOp>();
  if (!sum || !(limit = splatOf(limit)))
    return std::nullopt;
  for (auto [counted, first] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())}) {
    auto iota = withoutMoves(counted).getDefiningOp<tile::IotaOp>();
    if (iota && iota.getDim() == 0 && iota.getType().getDimSize(0) == rows && splatOf(first) &&
        getElementTypeOrSelf(sum.getType()).isInteger(64)) // a narrower sum may wrap
      return RowBound{splatOf(first), limit};
  }
  return std::nullopt;
}

/// A place that writes rows of a tile.
struct Sink {
  SmallVector<std::pair<Value, bool>> conditions; ///< i1, and what each has to be
  std::optional<RowBound> bound;                  ///< none: all rows
};

/// Where what is computed from a tile row by row is written; whether that is all that becomes of it.
bool collectSinks(Value tile, Block *around, SmallVectorImpl<Sink> &sinks) {
  for (OpOperand &use : tile.getUses()) {
    Operation *user = use.getOwner();
    auto scatter = llvm::dyn_cast<tile::ScatterOp>(user);
    auto store = llvm::dyn_cast<tile::StoreOp>(user);
    if (!scatter && !store) {
      bool byRows = (lower::isElementwise(user) || llvm::isa<ConvertOp>(user)) && user->getNumResults() == 1;
      if (!byRows || !collectSinks(user->getResult(0), around, sinks))
        return false;
      continue;
    }
    Sink sink;
    if (scatter) {
      if (use.get() != scatter.getValue() || llvm::is_contained(scatter.getIndices(), tile) || !scatter.getMask())
        return false;
      sink.bound = rowBound(scatter.getMask(), llvm::cast<RankedTensorType>(tile.getType()).getDimSize(0));
      if (!sink.bound)
        return false;
    }
    for (Operation *inner = user; inner->getBlock() != around;) {
      auto branch = llvm::dyn_cast<scf::IfOp>(inner->getParentOp());
      if (!branch)
        return false;
      sink.conditions.emplace_back(branch.getCondition(), inner->getBlock() == branch.thenBlock());
      inner = branch;
    }
    sinks.push_back(std::move(sink));
  }
  return true;
}

} // namespace

/// A scalar that may be computed behind the loop only, in front of it; null where that takes more than arithmetic.
Value ThreadEmitter::scalarAhead(Value value, scf::ForOp loop) {
  Operation *op = value.getDefiningOp();
  Operation *here = op ? op->getBlock()->findAncestorOpInBlock(*loop) : nullptr;
  if (!op || (here && op->isBeforeInBlock(here)))
    return scalar(value);
  if (llvm::isa<RankedTensorType>(value.getType()))
    return {};
  if (auto constant = llvm::dyn_cast<arith::ConstantOp>(op)) {
    emitConstant(constant);
    return scalar(value);
  }
  if (!lower::isElementwise(op))
    return {};
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    if (!operands.emplace_back(scalarAhead(operand, loop)))
      return {};
  return lower::elementwise(b_, op, operands);
}

/// Whether a loop does nothing but add products to rows that each warpgroup has for itself, the same of all results,
/// from one ring.
bool ThreadEmitter::onlyMultiplies(scf::ForOp loop, const CarriedRings &rings) {
  int64_t groups = options_.threads / 128;
  if (groups == 1 || turns_ || rings.dots.size() != loop.getNumResults() || rings.rings.size() != 1 ||
      rings.rings[0]->block != loop.getBody() || rings.rings[0]->isRead)
    return false;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto dot = llvm::dyn_cast<tile::DotOp>(op)) {
      std::optional<WarpgroupShape> shape = warpgroupShape(dot, options_.threads / 32);
      if (!carriedDots_.contains(dot) || !traceToLoad(dot.getA()) || !traceToLoad(dot.getB()) || shape->swapped ||
          shape->overRows != groups || typeOf(dot).getDimSize(0) != typeOf(loop.getResult(0)).getDimSize(0))
        return false;
      continue;
    }
    auto load = llvm::dyn_cast<tile::LoadOp>(op);
    if (!(load && load->hasAttr(bulkAttr)) && !isPure(&op))
      return false;
  }
  return true;
}

/// Whether this warpgroup's rows of the loop's results are needed, i1; null: they always are.
Value ThreadEmitter::needsRows(scf::ForOp loop, const CarriedRings &rings) {
  if (!options_.steps.liveRows || !onlyMultiplies(loop, rings))
    return {};
  SmallVector<Sink> sinks;
  for (Value result : loop.getResults())
    if (!collectSinks(result, loop->getBlock(), sinks))
      return {};
  if (!llvm::any_of(sinks, [](const Sink &sink) { return sink.bound.has_value(); }))
    return {};
  int64_t rows = typeOf(loop.getResult(0)).getDimSize(0) / (options_.threads / 128);
  Value number = b_.create<arith::ShRUIOp>(threadId_, i32(7));
  Value first = b_.create<arith::ExtUIOp>(b_.getI64Type(), b_.create<arith::MulIOp>(number, i32(rows)));
  Value any = boolean(false);
  for (const Sink &sink : sinks) {
    Value all = boolean(true);
    for (auto [condition, wanted] : sink.conditions) {
      Value is = scalarAhead(condition, loop);
      if (!is)
        return {};
      all = b_.create<arith::AndIOp>(all, wanted ? is : b_.create<arith::XOrIOp>(is, boolean(true)).getResult());
    }
    if (sink.bound) {
      Value from = scalarAhead(sink.bound->first, loop);
      Value limit = scalarAhead(sink.bound->limit, loop);
      if (!from || !limit)
        return {};
      Value row = b_.create<arith::AddIOp>(toI64(from), first);
      all = b_.create<arith::AndIOp>(all, b_.create<arith::CmpIOp>(arith::CmpIPredicate::slt, row, toI64(limit)));
    }
    any = b_.create<arith::OrIOp>(any, all);
  }
  remark(loop.getLoc(), "warpgroups of " + std::to_string(rows) + " rows that are all masked out multiply nothing");
  return any;
}

/// The loop's way through its ring, without the dots. Those that let go are those that wait, since a slot that is free
/// is filled again while others may still be about to wait for it: one thread, or where blocks fill the slot together
/// one for each of them, without whose arrival its part does not come. The rest wait for them, or would be rounds
/// ahead. Returns the slot and phase behind the loop; the ring's stay as they are.
std::array<Value, 2> ThreadEmitter::passSlots(scf::ForOp loop, Ring &ring) {
  auto [slot, phase] = std::pair(ring.slot, ring.phase);
  auto lowered = b_.create<scf::ForOp>(scalar(loop.getLowerBound()), scalar(loop.getUpperBound()),
                                       scalar(loop.getStep()), ValueRange{slot, phase});
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(lowered.getBody());
    ring.current = ring.slot = lowered.getRegionIterArg(0);
    ring.currentPhase = ring.phase = lowered.getRegionIterArg(1);
    auto only = b_.create<scf::IfOp>(letsGo(ring));
    b_.setInsertionPointToStart(only.thenBlock());
    waitForFull(ring);
    releaseSlot(ring, ring.current);
    b_.setInsertionPointAfter(only);
    advance(ring);
    b_.create<scf::YieldOp>(ValueRange{ring.slot, ring.phase});
  }
  ring.slot = slot;
  ring.phase = phase;
  groupBarrier(b_.create<arith::ShRUIOp>(threadId_, i32(7)), options_.threads / 128);
  return {lowered.getResult(0), lowered.getResult(1)};
}

} // namespace tenon::nvidia
