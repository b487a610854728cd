// SPDX-License-Identifier: Apache-2.0
//
// Marks what may be less exact because it is only ever seen rounded to 16 bits or fewer: exp, exp2, 1 + erf(x) and 1 +
// tanh(x), which are then computed in fewer steps (math/Relaxed.h), and quotients, which share the reciprocal of a
// divisor that is one for a whole row (Quotients.cpp). What is rounded to bf16 or less is marked coarse besides: one
// step fewer, and quotients may be products with an approximate reciprocal. With AVX-512, such sums are found in a
// table (TabulateMath.h) where they are but multiplied. So are those that somebody sees as they are, in a finer table.
//
// Exponentials that somebody sees as they are, but only in the sum of a row, are marked too: in two steps less they are
// off by what three additions are.
#include "tenon/compiler/target/cpu/RelaxPrecision.h"

#include "tenon/compiler/target/cpu/TabulateMath.h"
#include "tenon/compiler/transform/Relaxable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

void allow(arith::ArithFastMathInterface op, arith::FastMathFlags freedom) {
  auto flags = op.getFastMathFlagsAttr() ? op.getFastMathFlagsAttr().getValue() : arith::FastMathFlags::none;
  op->setAttr(op.getFastMathAttrName(), arith::FastMathFlagsAttr::get(op->getContext(), flags | freedom));
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
    allow(difference, arith::FastMathFlags::contract);
    allow(product, arith::FastMathFlags::contract);
  }
}

/// Whether the reciprocal of every element is a number, unless the element is 0. That of a sum with a constant c is:
/// where the other summand is less than |c| / 2, at least |c| / 2 remains, and otherwise both are multiples of half a
/// unit in the last place of c, and so is what remains of them.
bool hasReciprocal(Value divisor) {
  auto sum = divisor.getDefiningOp<arith::AddFOp>();
  if (!sum)
    return false;
  return llvm::any_of(sum->getOperands(), [](Value summand) {
    llvm::APFloat constant(0.0);
    return matchPattern(summand, m_ConstantFloat(&constant)) && std::abs(constant.convertToDouble()) >= 0x1p-100;
  });
}

/// Whether all that becomes of a value on its way to a rounding is that it is multiplied, divided, chosen or moved: 0
/// instead of a very small number is then an error in absolute terms, and no infinity.
bool mayVanish(Value value) {
  llvm::SetVector<Value> all;
  all.insert(value);
  for (size_t at = 0; at < all.size(); ++at)
    for (OpOperand &use : all[at].getUses()) {
      Operation *user = use.getOwner();
      if (auto cast = llvm::dyn_cast<tile::CastOp>(user);
          cast && llvm::cast<FloatType>(getElementTypeOrSelf(cast.getType())).getFPMantissaWidth() <= bitsOfBf16)
        continue;
      bool isDivisor = llvm::isa<arith::DivFOp>(user) && use.getOperandNumber() == 1;
      if (isDivisor || !llvm::isa<tile::CastOp, arith::MulFOp, arith::DivFOp, arith::SelectOp, arith::NegFOp,
                                  tile::BroadcastOp, tile::ReshapeOp>(user))
        return false;
      all.insert(user->getResult(0));
    }
  return true;
}

/// Whether all that becomes of a value is that it is added up along its last dimension, with so many others that the
/// order is the processor's business.
bool isOnlyAddedUp(Value value) {
  constexpr int64_t leastSummands = 64;
  ArrayRef<int64_t> shape = llvm::cast<RankedTensorType>(value.getType()).getShape();
  return !shape.empty() && shape.back() >= leastSummands && llvm::all_of(value.getUsers(), [&](Operation *user) {
    auto reduce = llvm::dyn_cast<tile::ReduceOp>(user);
    if (!reduce || reduce.getValues().size() != 1 || reduce.getDim() + 1 != shape.size())
      return false;
    Block &block = reduce.getCombine().front();
    return std::distance(block.begin(), block.end()) == 2 && llvm::isa<arith::AddFOp>(block.front());
  });
}

} // namespace

void relaxPrecision(func::FuncOp kernel, const Isa &isa) {
  Relaxable relaxable(/*throughLoops=*/true), coarse(/*throughLoops=*/true, bitsOfBf16);
  kernel.walk([&](Operation *op) {
    bool isPower = llvm::isa<math::ExpOp, math::Exp2Op>(op);
    bool isKnown = isPower || llvm::isa<arith::DivFOp>(op) || isSumWith(op, "math.erf") || isSumWith(op, "math.tanh");
    if (!isKnown || !llvm::isa<RankedTensorType>(op->getResult(0).getType()) ||
        !getElementTypeOrSelf(op->getResult(0).getType()).isF32())
      return;
    if (relaxable(op->getResult(0))) {
      op->setAttr(tile::relaxedAttr, UnitAttr::get(op->getContext()));
      if (isPower)
        contractArgument(op);
      if (!coarse(op->getResult(0)))
        return;
      op->setAttr(coarseAttr, UnitAttr::get(op->getContext()));
      if (llvm::isa<arith::AddFOp>(op) && isa.vectorBytes >= 64 && mayVanish(op->getResult(0)))
        op->setAttr(tabulatedAttr, UnitAttr::get(op->getContext()));
      if (auto quotient = llvm::dyn_cast<arith::DivFOp>(op); quotient && hasReciprocal(quotient.getRhs()))
        allow(quotient, arith::FastMathFlags::arcp);
    } else if (isPower && isOnlyAddedUp(op->getResult(0))) {
      op->setAttr(summedAttr, UnitAttr::get(op->getContext()));
    } else if (llvm::isa<arith::AddFOp>(op) && isa.vectorBytes >= 64) {
      op->setAttr(tabulatedAttr, UnitAttr::get(op->getContext()));
    }
  });
}

} // namespace tenon::cpu
