// SPDX-License-Identifier: Apache-2.0
//
// Operands of dots that something else reads as well: the norms of what is multiplied, the sums of a gradient's
// columns. Shared memory is where the dot wants them, and registers are where the rest of the program does. So the dot
// gets a load of its own, before it is decided how dots and loads are made:
//
//     %x = tile.load %v[%i, %k]                  %own = tile.load %v[%i, %k]
//     %y = arith.mulf %x, %x               ->    %x = tile.load %v[%i, %k]
//     %d = tile.dot %x, %b, %c                   %y = arith.mulf %x, %x
//                                                %d = tile.dot %own, %b, %c
//
// Where no accelerator makes it in the end, one load is cheaper, and the two are joined again.
#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"
#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tenon::nvidia {

SmallVector<OwnLoad> giveDotsLoadsOfTheirOwn(ArrayRef<tile::DotOp> dots) {
  llvm::MapVector<Operation *, tile::LoadOp> owned;
  for (tile::DotOp dot : dots)
    for (OpOperand &operand : dot->getOpOperands().take_front(2)) {
      std::optional<LoadedOperand> loaded = traceToLoad(operand.get());
      Operation *other = nullptr;
      if (!loaded)
        continue;
      auto known = owned.find(loaded->load);
      if (known == owned.end()) {
        dotUses(loaded->load, other);
        if (!other)
          continue;
        OpBuilder b(loaded->load);
        known = owned.insert({loaded->load, llvm::cast<tile::LoadOp>(b.clone(*loaded->load))}).first;
      }
      // What stands between the load and the dot only gives its elements other places.
      SmallVector<Operation *> between;
      for (Operation *op = operand.get().getDefiningOp(); op != loaded->load; op = op->getOperand(0).getDefiningOp())
        between.push_back(op);
      Value value = known->second;
      for (Operation *op : llvm::reverse(between)) {
        OpBuilder b(op);
        Operation *copy = b.clone(*op);
        copy->setOperand(0, value);
        value = copy->getResult(0);
      }
      operand.set(value);
      for (Operation *op : between)
        if (op->use_empty())
          op->erase();
    }
  SmallVector<OwnLoad> loads;
  for (auto [rest, own] : owned)
    loads.push_back({own, llvm::cast<tile::LoadOp>(rest)});
  return loads;
}

void joinLoads(OwnLoad load) {
  load.ofDots.replaceAllUsesWith(load.ofOthers.getResult());
  load.ofDots.erase();
}

} // namespace tenon::nvidia
