// SPDX-License-Identifier: Apache-2.0
//
// Marks what may be less exact because it is only ever seen rounded to 16 bits or fewer: exp, 1 + erf(x) and 1 + tanh(x),
// which are then computed in fewer steps (math/Relaxed.h), and quotients, which share the reciprocal of a divisor that is
// one for a whole row (Nest.cpp).
#include "tenon/compiler/target/cpu/RelaxPrecision.h"

#include "tenon/compiler/transform/Relaxable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tenon::cpu {

void relaxPrecision(func::FuncOp kernel) {
  Relaxable relaxable;
  kernel.walk([&](Operation *op) {
    bool isKnown = llvm::isa<math::ExpOp, arith::DivFOp>(op) || isSumWith(op, "math.erf") || isSumWith(op, "math.tanh");
    if (isKnown && llvm::isa<RankedTensorType>(op->getResult(0).getType()) &&
        getElementTypeOrSelf(op->getResult(0).getType()).isF32() && relaxable(op->getResult(0)))
      op->setAttr(tile::relaxedAttr, UnitAttr::get(op->getContext()));
  });
}

} // namespace tenon::cpu
