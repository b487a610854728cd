// SPDX-License-Identifier: Apache-2.0
//
// Memory that a kernel both reads and writes: sums that are added to what is there (D = A B + D), be it one argument of
// the kernel or the same tensor twice.
//
//     %x = tile.load %y[%i, %j] ...
//     tile.store %sum + %x, %y[%i, %j]
//
// Nothing orders program instances where none waits for another by atomic updates, and within one the store of an
// element waits for the element that was loaded, since it is computed from it. So whoever loads may be ahead, in pieces
// (LateLoads.cpp), and whoever stores may be behind (BulkStore.cpp), as if the two were different memory. Not in loops:
// the next iteration's load would be ahead of this one's store.
#include "tenon/compiler/target/nvidia/threads/InPlace.h"

#include "tenon/compiler/dialect/Overlaps.h"
#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/lower/KernelInfo.h"
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// The first argument of the kernel that is the view, or the view.
Value firstOf(Value view) {
  auto argument = llvm::dyn_cast<BlockArgument>(view);
  auto kernel = argument ? llvm::dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  if (!kernel)
    return view;
  auto same = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), tile::sameAsAttr);
  return same ? Value(kernel.getArgument(static_cast<unsigned>(same.getInt()))) : view;
}

bool isDistinct(Value view) {
  auto argument = llvm::dyn_cast<BlockArgument>(view);
  auto kernel = argument ? llvm::dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return kernel && kernel.getArgAttr(argument.getArgNumber(), tile::distinctAttr);
}

/// Whether each element of a tile is computed from the element of another at the same place.
bool isOfEachElement(Value tile, Value other) {
  llvm::SetVector<Value> open;
  open.insert(tile);
  for (size_t i = 0; i < open.size(); ++i) {
    if (open[i] == other)
      return true;
    Operation *op = open[i].getDefiningOp();
    if (op && lower::isElementwise(op))
      open.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

bool hasAtomics(func::FuncOp kernel) {
  return kernel
      .walk([](Operation *op) {
        return llvm::isa<tile::AtomicRMWOp, tile::AtomicCASOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

bool mayBeWritten(Value view, LeavesOut leavesOut) {
  auto kernel = view.getParentRegion()->getParentOfType<func::FuncOp>();
  return kernel
      .walk([&](Operation *op) {
        Value target = lower::viewWrittenBy(op);
        bool is = target && mayOverlap(kernel, target, view) && !(leavesOut && leavesOut(op));
        return is ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool mayBeRead(Value view, LeavesOut leavesOut) {
  auto kernel = view.getParentRegion()->getParentOfType<func::FuncOp>();
  return kernel
      .walk([&](Operation *op) {
        Value source;
        if (auto load = llvm::dyn_cast<tile::LoadOp>(op))
          source = load.getView();
        else if (auto gather = llvm::dyn_cast<tile::GatherOp>(op))
          source = gather.getView();
        else if (llvm::isa<tile::AtomicRMWOp, tile::AtomicCASOp>(op))
          source = lower::viewWrittenBy(op);
        bool is = source && mayOverlap(kernel, source, view) && !(leavesOut && leavesOut(op));
        return is ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool replaces(Operation *op, tile::LoadOp load) {
  auto store = llvm::dyn_cast<tile::StoreOp>(op);
  return store && !hasAtomics(load->getParentOfType<func::FuncOp>()) && store->getBlock() == load->getBlock() &&
         llvm::isa<func::FuncOp>(load->getParentOp()) && load->isBeforeInBlock(store) &&
         firstOf(store.getView()) == firstOf(load.getView()) && isDistinct(store.getView()) &&
         store.getOffsets() == load.getOffsets() &&
         llvm::cast<RankedTensorType>(store.getValue().getType()).getShape() == load.getType().getShape() &&
         isOfEachElement(store.getValue(), load);
}

} // namespace tenon::nvidia
