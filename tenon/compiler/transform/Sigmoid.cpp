// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/transform/Sigmoid.h"

#include "tenon/compiler/transform/Cubic.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tenon {

Value sigmoidOf(arith::DivFOp quotient) {
  auto choice = quotient.getLhs().getDefiningOp<arith::SelectOp>();
  auto sum = quotient.getRhs().getDefiningOp<arith::AddFOp>();
  if (!choice || !sum || constantOf(choice.getTrueValue()) != 1)
    return {};
  Value power = choice.getFalseValue();
  bool isOneMore = (sum.getLhs() == power && constantOf(sum.getRhs()) == 1) ||
                   (sum.getRhs() == power && constantOf(sum.getLhs()) == 1);
  auto exp = power.getDefiningOp<math::ExpOp>();
  auto minus = exp ? exp.getOperand().getDefiningOp<arith::NegFOp>() : arith::NegFOp();
  auto magnitude = minus ? minus.getOperand().getDefiningOp<math::AbsFOp>() : math::AbsFOp();
  auto sign = choice.getCondition().getDefiningOp<arith::CmpFOp>();
  if (!isOneMore || !magnitude || !sign || sign.getPredicate() != arith::CmpFPredicate::OGE ||
      sign.getLhs() != magnitude.getOperand() || constantOf(sign.getRhs()) != 0)
    return {};
  return magnitude.getOperand();
}

} // namespace tenon
