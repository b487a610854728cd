// SPDX-License-Identifier: Apache-2.0
//
// Warpgroups that multiply side by side in a loop come to its end at the same time, and what follows (an epilogue, the
// store) leaves the matrix units idle. So they begin one after the other, each when the one before it has started the
// products of a few iterations, and stay so far apart in all program instances of the block: while one of them is behind
// the loop the next one still multiplies, and has the units for itself.
//
//     first instance, warpgroup g:   wait for turn[g - 1] (g > 0)
//                                    for k: products; in iteration `depth` - 1, or the last one: arrive at turn[g]
//
// The rings limit how far they can be apart: a slot is free when all have read it. Measured on an H200, with epilogues
// of few and of many instructions, that is too little to gain anything (docs/nvidia.md), so it is done on demand only.
#include "tenon/compiler/target/nvidia/threads/Rings.h"

#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// Whether nothing in the loop makes warpgroups wait for each other: it has dots of transferred tiles, and else only
/// what each thread computes for itself.
bool isFreeOfExchanges(scf::ForOp loop) {
  bool hasDot = false;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto dot = llvm::dyn_cast<tile::DotOp>(op)) {
      if (!dot->hasAttr(warpgroupAttr) || !traceToLoad(dot.getA()) || !traceToLoad(dot.getB()))
        return false;
      hasDot = true;
    } else if (auto load = llvm::dyn_cast<tile::LoadOp>(op)) {
      if (!load->hasAttr(bulkAttr))
        return false;
    } else if (llvm::isa<tile::TransposeOp, tile::ReshapeOp, ConvertOp>(op)) {
      if (!traceToLoad(op.getResult(0)))
        return false;
    } else if (!llvm::isa<arith::ConstantOp, tile::SizeOp>(op) && !lower::isElementwise(&op)) {
      return false;
    }
  }
  return hasDot;
}

} // namespace

void ThreadEmitter::planStagger() {
  int64_t groups = options_.threads / 128;
  if (!options_.stagger || groups < 2 || schedule_) // instances that are taken have no first one
    return;
  for (auto loop : kernel_.getBody().front().getOps<scf::ForOp>()) {
    if (!isFreeOfExchanges(loop))
      continue;
    int64_t stages = std::numeric_limits<int64_t>::max();
    for (Ring *ring : ringsIn(loop))
      stages = std::min(stages, ring->stages);
    turnDepth_ = std::min(options_.stagger, stages);
    staggered_ = loop;
    turns_ = allocateShared(8 * (groups - 1), 8);
    remark(loop.getLoc(), "warpgroups begin " + std::to_string(turnDepth_) +
                              (turnDepth_ == 1 ? " iteration" : " iterations") + " after each other");
    return; // one loop is enough to set them apart
  }
}

void ThreadEmitter::initialiseStagger() {
  for (int64_t group = 1; staggered_ && group < options_.threads / 128; ++group)
    b_.create<MbarrierInitOp>(i32(turns_ + 8 * (group - 1)), i32(1));
}

void ThreadEmitter::awaitTurn(scf::ForOp loop) {
  if (loop != staggered_)
    return;
  Value lower = scalar(loop.getLowerBound()), upper = scalar(loop.getUpperBound()), step = scalar(loop.getStep());
  Value runs = b_.create<arith::CmpIOp>(arith::CmpIPredicate::slt, lower, upper);
  Value acts = b_.create<arith::AndIOp>(isFirstInstance_, runs);
  Value group = b_.create<arith::ShRUIOp>(threadId_, i32(7));
  Value waits = b_.create<arith::AndIOp>(acts, b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, group, i32(0)));
  auto wait = b_.create<scf::IfOp>(waits);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(wait.thenBlock());
    Value before = b_.create<arith::SubIOp>(group, i32(1));
    b_.create<MbarrierWaitOp>(barrierAt(turns_, before), i32(0));
  }
  // Iteration depth - 1, or the last one. `upper` is none.
  Type type = lower.getType();
  auto number = [&](int64_t value) -> Value {
    return b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getIntegerAttr(type, value)));
  };
  Value length = b_.create<arith::SubIOp>(b_.create<arith::SubIOp>(upper, lower), number(1));
  Value last = b_.create<arith::MinSIOp>(b_.create<arith::DivUIOp>(length, step), number(turnDepth_ - 1));
  Value at = b_.create<arith::AddIOp>(lower, b_.create<arith::MulIOp>(last, step));
  turnAt_ = b_.create<arith::SelectOp>(acts, at, upper);
}

void ThreadEmitter::passTurn(scf::ForOp loop) {
  if (loop != staggered_)
    return;
  Value now = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, scalar(loop.getInductionVar()), turnAt_);
  Value group = b_.create<arith::ShRUIOp>(threadId_, i32(7));
  Value hasNext = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, group, i32(options_.threads / 128 - 1));
  auto pass = b_.create<scf::IfOp>(both(both(warpgroupLeader(), hasNext), now));
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(pass.thenBlock());
  b_.create<MbarrierArriveOp>(barrierAt(turns_, group), /*bytes=*/Value(), /*cluster=*/false);
}

} // namespace tenon::nvidia
