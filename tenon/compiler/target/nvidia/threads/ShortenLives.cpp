// SPDX-License-Identifier: Apache-2.0
//
// tenon-nvidia-shorten-lives: on thread functions, puts every pure operation in front of the first one that uses it.
//
// Tiles are lowered one operation after the other, so that a chain of them, element by element, is all its first steps,
// then all its second ones; each step's results wait for the next in as many registers as the tile has:
//
//     %a0 = f %x0                            %a0 = f %x0
//     %a1 = f %x1                            %b0 = g %a0
//     %b0 = g %a0                  ->        %s0 = addf %s, %b0
//     %b1 = g %a1                            %a1 = f %x1
//     %s0 = addf %s, %b0                     %b1 = g %a1
//     %s1 = addf %s0, %b1                    %s1 = addf %s0, %b1
//
// LLVM keeps the order of a block, and the assembler moves operations apart again as far as registers allow it, to hide
// latencies; the other way round it does less well. Functions with matrix instructions are left alone: their registers
// have an order of their own.
#include "tenon/compiler/target/nvidia/threads/Passes.h"

#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

void shortenLives(Block &block) {
  SmallVector<Operation *> ops;
  // Until the kernels before this one are waited for, time is free: nothing moves from before that to behind it.
  llvm::DenseSet<Operation *> seen, early;
  for (Operation &op : block.without_terminator()) {
    if (llvm::isa<AwaitEarlierLaunchesOp>(op))
      early = seen;
    seen.insert(&op);
    if (isPure(&op) && op.getNumRegions() == 0)
      ops.push_back(&op);
  }
  for (Operation *op : llvm::reverse(ops)) { // users are in their places before what they use
    Operation *first = nullptr;
    for (Operation *user : op->getUsers()) {
      Operation *inBlock = block.findAncestorOpInBlock(*user);
      if (inBlock && (!first || inBlock->isBeforeInBlock(first)))
        first = inBlock;
    }
    if (first && early.contains(op) == early.contains(first))
      op->moveBefore(first);
  }
}

struct ShortenLives : PassWrapper<ShortenLives, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ShortenLives)
  StringRef getArgument() const override { return "tenon-nvidia-shorten-lives"; }
  StringRef getDescription() const override { return "Put pure operations of a thread in front of their first use"; }
  void runOnOperation() override {
    bool hasMatrices = getOperation()
                           .walk([](Operation *op) {
                             return llvm::isa<MmaOp, WgmmaOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
                           })
                           .wasInterrupted();
    if (hasMatrices)
      return;
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      shortenLives(*block);
  }
};

} // namespace

std::unique_ptr<Pass> createShortenLivesPass() { return std::make_unique<ShortenLives>(); }

} // namespace tenon::nvidia
