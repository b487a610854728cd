// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/transform/EraseDead.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tenon {

void eraseIfDead(Operation *op) {
  // An operation is in the list once, however many of its users go, so that none is looked at when it is gone.
  llvm::SmallSetVector<Operation *, 8> candidates;
  candidates.insert(op);
  while (!candidates.empty()) {
    Operation *candidate = candidates.pop_back_val();
    if (!isOpTriviallyDead(candidate))
      continue;
    for (Value operand : candidate->getOperands())
      if (Operation *definition = operand.getDefiningOp())
        candidates.insert(definition);
    candidate->erase();
  }
}

} // namespace tenon
