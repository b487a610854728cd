// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/HoistReductions.h"

#include "tenon/compiler/dialect/TileDialect.h"

using namespace mlir;

namespace tenon::cpu {

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
}

} // namespace tenon::cpu
