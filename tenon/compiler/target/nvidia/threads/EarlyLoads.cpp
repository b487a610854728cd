// SPDX-License-Identifier: Apache-2.0
//
// tenon-nvidia-early-loads: what is loaded behind a loop of dots, a bias or a scale for example, is loaded in front of it,
// so that nobody waits for it there. Only where it fits a few registers, is memory that the kernel does not write, and
// its address is known before the loop.
//
//     %sum = scf.for ... tile.dot ...            %x = tile.load %bias[%j] ...
//     %x = tile.load %bias[%j] ...         ->    %sum = scf.for ... tile.dot ...
//     ... %sum + %x                              ... %sum + %x
#include "tenon/compiler/target/nvidia/threads/Passes.h"

#include "tenon/compiler/lower/KernelInfo.h"
#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// A loop of dots has few to spare.
constexpr int mostRegisters = 4;

bool isWritten(func::FuncOp kernel, Value view) {
  return kernel
      .walk([&](Operation *op) {
        Value target = lower::viewWrittenBy(op);
        return target && mayOverlap(kernel, target, view) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool hasWarpgroupDot(scf::ForOp loop) {
  return loop.walk([](tile::DotOp dot) {
               return dot->hasAttr(warpgroupAttr) ? WalkResult::interrupt() : WalkResult::advance();
             }).wasInterrupted();
}

/// Moves an op in front of the loop, with what it needs of the ops between; false where it needs the loop.
bool moveBefore(Operation *op, scf::ForOp loop) {
  SmallVector<Operation *> needed = {op};
  for (size_t i = 0; i < needed.size(); ++i)
    for (Value operand : needed[i]->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (!definition || definition->getBlock() != loop->getBlock() || definition->isBeforeInBlock(loop))
        continue;
      if (definition == loop || !isMemoryEffectFree(definition) || definition->getNumRegions() ||
          llvm::isa<RankedTensorType>(operand.getType()))
        return false;
      if (!llvm::is_contained(needed, definition))
        needed.push_back(definition);
    }
  llvm::sort(needed, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *each : needed)
    each->moveBefore(loop);
  return true;
}

struct EarlyLoads : PassWrapper<EarlyLoads, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EarlyLoads)
  StringRef getArgument() const override { return "tenon-nvidia-early-loads"; }
  StringRef getDescription() const override { return "Load before a loop of dots what is needed after it"; }

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (hasWarpgroupDot(loop))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      SmallVector<tile::LoadOp> loads;
      for (Operation *op = loop->getNextNode(); op; op = op->getNextNode())
        if (auto load = llvm::dyn_cast<tile::LoadOp>(op); load && !load->hasAttr(bulkAttr))
          loads.push_back(load);
      for (tile::LoadOp load : loads)
        if (Distribution(layoutOf(load.getType()), load.getType().getShape()).registers() <= mostRegisters &&
            !isWritten(getOperation(), load.getView()))
          (void)moveBefore(load, loop);
    }
  }
};

} // namespace

std::unique_ptr<Pass> createEarlyLoadsPass() { return std::make_unique<EarlyLoads>(); }

} // namespace tenon::nvidia
