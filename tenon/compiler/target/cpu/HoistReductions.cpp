// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/HoistReductions.h"

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

using Operations = llvm::SetVector<Operation *>;

/// What computes the operands of `op` in its block, from `first` on (null: all of it) and in no order.
Operations sourcesOf(Operation *op, Operation *first) {
  Operations sources;
  SmallVector<Operation *> work = {op};
  while (!work.empty())
    for (Value operand : work.pop_back_val()->getOperands())
      if (Operation *source = operand.getDefiningOp();
          source && source->getBlock() == op->getBlock() &&
          (!first || first == source || first->isBeforeInBlock(source)) && sources.insert(source))
        work.push_back(source);
  return sources;
}

/// Whether the two go over the same elements and some of what they reduce is the same.
bool share(tile::ReduceOp before, tile::ReduceOp op) {
  auto shapeOf = [](tile::ReduceOp one) {
    return llvm::cast<RankedTensorType>(one.getValues()[0].getType()).getShape();
  };
  if (before.getDim() != op.getDim() || shapeOf(before) != shapeOf(op))
    return false;
  Operations sources = sourcesOf(before, nullptr);
  return llvm::any_of(sourcesOf(op, nullptr), [&](Operation *source) {
    return sources.contains(source) && source->getNumOperands() > 0 &&
           llvm::isa<RankedTensorType>(source->getResult(0).getType()) &&
           !llvm::isa<tile::SplatOp, tile::BroadcastOp>(source);
  });
}

/// Moves a reduction, and what is computed for it alone, to the one before it in the block, if it can be there and they
/// share something.
void moveBehind(tile::ReduceOp before, tile::ReduceOp op) {
  Operations between = sourcesOf(op, before);
  bool mayMove = llvm::all_of(between, [&](Operation *source) {
    return source != before && source->getNumRegions() == 0 && isMemoryEffectFree(source) &&
           !llvm::isa<tile::DotOp, tile::ConcatOp, tile::RandomBitsOp>(source); // which have loops of their own
  });
  if (!mayMove || !share(before, op))
    return;
  SmallVector<Operation *> moved = between.takeVector();
  llvm::sort(moved, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  moved.push_back(op);
  Operation *behind = before;
  for (Operation *one : moved) {
    one->moveAfter(behind);
    behind = one;
  }
}

} // namespace

void hoistReductions(func::FuncOp kernel) {
  SmallVector<tile::ReduceOp> reductions;
  kernel.walk([&](tile::ReduceOp op) { reductions.push_back(op); });
  for (tile::ReduceOp op : reductions) {
    // A reduction has no effects, and its region uses nothing from outside.
    Operation *last = nullptr;
    for (Value operand : op.getValues())
      if (Operation *definition = operand.getDefiningOp(); definition && definition->getBlock() == op->getBlock())
        if (!last || last->isBeforeInBlock(definition))
          last = definition;
    if (!last)
      continue;
    Operation *next = last->getNextNode();
    while (next != op.getOperation() && llvm::isa<tile::ReduceOp>(next)) // those keep their order
      next = next->getNextNode();
    if (next != op.getOperation())
      op->moveBefore(next);
  }
  for (tile::ReduceOp op : reductions) {
    Operation *before = op->getPrevNode();
    while (before && !llvm::isa<tile::ReduceOp>(before))
      before = before->getPrevNode();
    if (before)
      moveBehind(llvm::cast<tile::ReduceOp>(before), op);
  }
}

} // namespace tenon::cpu
