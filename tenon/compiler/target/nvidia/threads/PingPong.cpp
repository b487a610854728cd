// SPDX-License-Identifier: Apache-2.0
//
// Warpgroups that take program instances in turns ("ping-pong"). What follows an instance's products (an epilogue, the
// store) leaves the matrix units idle when all warpgroups of a block come to it at the same time. Here each of two
// warpgroups, a team, has whole program instances, every second one of the block's, and they take turns at the products:
// while one multiplies, with all slots of the rings to itself, the other is behind its loop.
//
//     team t, for instance t, t + teams, t + 2 teams, ... of the block:
//       what comes before the products
//       wait for turn[t];  slots and phases of the rings = state[t]
//       the products, all of them started
//       state[next team] = slots and phases;  arrive on turn[next team]
//       wait for the products;  what follows them
//
// The warp that loads knows nothing of it: it fills the rings for one instance after the other, and whoever's turn it is
// goes on where the last one stopped. How many slots an instance takes is nobody's business, so that loops may be of any
// length. A team's program is emitted as if the block had no other; SeparateTeams.cpp gives each its memory and barrier.
#include "tenon/compiler/target/nvidia/threads/Rings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// Whether an operation takes tiles out of rings, or multiplies them.
bool usesRings(Operation *op) {
  return op
      ->walk([](Operation *inside) {
        bool takes = isTransfer(inside) && !inside->hasAttr(lateAttr); // those have slots of the team's own
        return takes || inside->hasAttr(warpgroupAttr) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

void ThreadEmitter::planTurns(ArrayRef<Operation *> program) {
  if (options_.teams == 1)
    return;
  turns_.emplace();
  turns_->first = turns_->last = nullptr;
  turns_->isPassed = false;
  for (Operation *op : program)
    if (usesRings(op)) {
      turns_->first = turns_->first ? turns_->first : op;
      turns_->last = op;
    }
  turns_->team = b_.create<arith::ShRUIOp>(threadOfBlock_, i32(llvm::Log2_64(options_.threads)));
  turns_->bytes = 4 * static_cast<int64_t>(rings_.size());
  turns_->barriers = allocateShared(8 * options_.teams, 8);
  turns_->states = allocateShared(options_.teams * turns_->bytes, 8);
  turns_->group = newGroup();
}

/// By one thread, before anybody uses them. The first team finds the rings at their beginning.
void ThreadEmitter::initialiseTurns() {
  if (!turns_)
    return;
  SharedWindow window{turns_->states, turns_->states + options_.teams * turns_->bytes};
  for (int64_t team = 0; team < options_.teams; ++team)
    b_.create<MbarrierInitOp>(i32(turns_->barriers + 8 * team), i32(options_.threads / 32));
  for (int64_t ring = 0; ring < static_cast<int64_t>(rings_.size()); ++ring)
    storeShared(i32(0), i32(0), turns_->states + 4 * ring, {}, window, turns_->group);
}

/// The first team's first turn comes by itself: waiting for the phase before the first returns at once.
void ThreadEmitter::awaitTurn() {
  Value isFirst = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, turns_->team, i32(0));
  Value parity = b_.create<arith::XOrIOp>(turns_->phase, b_.create<arith::ExtUIOp>(b_.getI32Type(), isFirst));
  b_.create<MbarrierWaitOp>(barrierAt(turns_->barriers, turns_->team), parity);
  SharedWindow window{turns_->states, turns_->states + options_.teams * turns_->bytes};
  Value mine = b_.create<arith::MulIOp>(turns_->team, i32(turns_->bytes));
  for (auto [number, ring] : llvm::enumerate(rings_)) {
    if (!ring->steps.empty()) // the team's own
      continue;
    Value state = loadShared(b_.getI32Type(), mine, turns_->states + 4 * static_cast<int64_t>(number), {}, window,
                             turns_->group);
    ring->slot = b_.create<arith::ShRUIOp>(state, i32(1));
    ring->phase = b_.create<arith::AndIOp>(state, i32(1));
  }
}

/// Each warp arrives, when its lanes have read what they found; one thread leaves behind what the next team is to find.
void ThreadEmitter::passTurn() {
  Value next = b_.create<arith::AddIOp>(turns_->team, i32(1));
  Value wraps = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, next, i32(options_.teams));
  next = b_.create<arith::SelectOp>(wraps, i32(0), next);
  SharedWindow window{turns_->states, turns_->states + options_.teams * turns_->bytes};
  Value theirs = b_.create<arith::MulIOp>(next, i32(turns_->bytes)), isLeader = warpgroupLeader();
  for (auto [number, ring] : llvm::enumerate(rings_)) {
    if (!ring->steps.empty())
      continue;
    Value state = b_.create<arith::OrIOp>(b_.create<arith::ShLIOp>(ring->slot, i32(1)), ring->phase);
    storeShared(state, theirs, turns_->states + 4 * static_cast<int64_t>(number), isLeader, window, turns_->group);
  }
  arriveByWarp(barrierAt(turns_->barriers, next));
}

} // namespace tenon::nvidia
