// SPDX-License-Identifier: Apache-2.0
//
// Marks what may be less exact because it is only ever seen rounded to 16 bits or fewer: exp, exp2, 1 + erf(x) and 1 + tanh(x),
// which are then computed in fewer steps (math/Relaxed.h), and quotients, which share the reciprocal of a divisor that is
// one for a whole row (Nest.cpp).
#include "tenon/compiler/target/cpu/RelaxPrecision.h"

#include "tenon/compiler/transform/Relaxable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

void allowContraction(arith::ArithFastMathInterface op) {
  auto flags = op.getFastMathFlagsAttr() ? op.getFastMathFlagsAttr().getValue() : arith::FastMathFlags::none;
  op->setAttr(op.getFastMathAttrName(), arith::FastMathFlagsAttr::get(op->getContext(), flags | arith::FastMathFlags::contract));
}

/// x y - z, as the argument of a power that need not be exact: the product is not rounded on its own where the processor has
/// an instruction that does not.
void contractArgument(Operation *power) {
  auto difference = power->getOperand(0).getDefiningOp<arith::SubFOp>();
  if (!difference || !difference->hasOneUse()) // who else reads it wants what it says
    return;
  Operation *from = difference.getLhs().getDefiningOp();
  if (auto select = llvm::dyn_cast_if_present<arith::SelectOp>(from)) // most tiles need no mask, and then it is not there
    from = select.getTrueValue().getDefiningOp();
  if (auto product = llvm::dyn_cast_if_present<arith::MulFOp>(from)) {
    allowContraction(difference);
    allowContraction(product);
  }
}

} // namespace

void relaxPrecision(func::FuncOp kernel) {
  Relaxable relaxable(/*throughLoops=*/true);
  kernel.walk([&](Operation *op) {
    bool isKnown = llvm::isa<math::ExpOp, math::Exp2Op, arith::DivFOp>(op) || isSumWith(op, "math.erf") || isSumWith(op, "math.tanh");
    if (isKnown && llvm::isa<RankedTensorType>(op->getResult(0).getType()) &&
        getElementTypeOrSelf(op->getResult(0).getType()).isF32() && relaxable(op->getResult(0))) {
      op->setAttr(tile::relaxedAttr, UnitAttr::get(op->getContext()));
      if (llvm::isa<math::ExpOp, math::Exp2Op>(op))
        contractArgument(op);
    }
  });
}

} // namespace tenon::cpu
