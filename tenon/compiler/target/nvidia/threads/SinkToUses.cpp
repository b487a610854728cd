// SPDX-License-Identifier: Apache-2.0
//
// tenon-nvidia-sink-to-uses: on thread functions, computes values where they are used. Emission goes op by op over all
// registers of a tile; here that becomes one chain after the other, so that few intermediate values live at a time.
//
//     a0 = ext x0    a1 = ext x1  ...            a0 = ext x0
//     b0 = a0 + y0   b1 = a1 + y1 ...            b0 = a0 + y0
//     c0 = f b0      c1 = f b1    ...    ->      c0 = f b0
//     store c0                                   store c0
//     store c1                                   a1 = ext x1
//     ...                                        ...
//
// Ops without effects, but for addresses and conditions, move down, within their block, to in front of the first op that needs them, past ops that give no
// values (stores, barriers, branches). They do not move past ops that do (loads, exchanges, loops): there more would be
// alive, not less; nor past a wait for data that is under way, before which time is free.
#include "tenon/compiler/target/nvidia/threads/Passes.h"

#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// Whether it is of integers alone, as far as its operands and users tell: an address or a condition, which emission has
/// put where it is needed, and of which several uses have parts in common.
bool isOfIntegers(Operation *op) {
  auto isInteger = [](Type type) { return type.isIntOrIndex(); };
  return llvm::all_of(op->getOperandTypes(), isInteger) && llvm::all_of(op->getResultTypes(), isInteger) &&
         llvm::all_of(op->getUsers(), [&](Operation *user) { return llvm::all_of(user->getResultTypes(), isInteger); });
}

bool hasNoEffect(Operation *op) {
  return isMemoryEffectFree(op) && op->getNumRegions() == 0 && op->getNumResults() > 0 &&
         !op->hasTrait<OpTrait::IsTerminator>();
}

bool waitsForData(Operation *op) {
  return op
      ->walk([](Operation *inside) {
        bool waits = llvm::isa<MbarrierWaitOp, CpAsyncWaitOp, AwaitEarlierLaunchesOp>(inside) &&
                     !inside->hasAttr(lateAttr); // in the midst of what they are needed for
        return waits ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The body of a loop without loops in it. Its order is that of loads that run ahead, and better left alone.
bool isInnermostLoop(Block *block) {
  auto loop = llvm::dyn_cast<scf::ForOp>(block->getParentOp());
  return loop && !loop.getBody()
                      ->walk([](scf::ForOp) { return WalkResult::interrupt(); })
                      .wasInterrupted();
}

class BlockSinker {
public:
  void run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (llvm::isa<arith::ConstantOp>(op))
        continue;
      bool isPure = hasNoEffect(&op);
      if (isPure && !isOfIntegers(&op))
        open_.insert(&op);
      else if (isPure)
        placeOperands(&op, &op);
      else if (op.getNumResults() > 0 || op.hasTrait<OpTrait::IsTerminator>() || waitsForData(&op))
        placeAll(&op);
      else
        op.walk([&](Operation *inside) { placeOperands(inside, &op); });
    }
  }

private:
  void placeOperands(Operation *user, Operation *before) {
    for (Value operand : user->getOperands())
      if (Operation *definition = operand.getDefiningOp(); definition && open_.contains(definition))
        place(definition, before);
  }

  void place(Operation *op, Operation *before) {
    open_.remove(op);
    placeOperands(op, before);
    op->moveBefore(before);
  }

  /// What is needed later goes in front of `before`, each value with what it is made of.
  void placeAll(Operation *before) {
    llvm::SetVector<Operation *> open = open_;
    for (bool wanted : {true, false})
      for (Operation *op : open) {
        bool isNeededLater = llvm::any_of(op->getUsers(), [&](Operation *user) { return !open.contains(user); });
        if (isNeededLater == wanted && open_.contains(op))
          place(op, before);
      }
  }

  llvm::SetVector<Operation *> open_; ///< not yet placed, in program order
};

struct SinkToUses : PassWrapper<SinkToUses, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SinkToUses)
  StringRef getArgument() const override { return "tenon-nvidia-sink-to-uses"; }
  StringRef getDescription() const override { return "Compute values where they are used"; }
  void runOnOperation() override {
    getOperation()->walk([](Block *block) {
      if (!isInnermostLoop(block))
        BlockSinker().run(*block);
    });
  }
};

} // namespace

std::unique_ptr<Pass> createSinkToUsesPass() { return std::make_unique<SinkToUses>(); }

} // namespace tenon::nvidia
