// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/KeepOperands.h"

#include "tenon/compiler/target/cpu/DotPlan.h"
#include "tenon/compiler/target/cpu/Placement.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

/// Whether the dot reads its left operand, as it lies in scratch, as bits of bf16.
bool readsBits(tile::DotOp dot, const Isa &isa) {
  DotPlan plan = planDot(dot, isa);
  RankedTensorType type = dot.getA().getType();
  return type.getElementType().isBF16() && !plan.thin && plan.packed.isInteger(16) &&
         type.getDimSize(0) % plan.rowStep == 0 && type.getDimSize(1) % plan.depthStep == 0;
}

/// Where a rounded tile is best computed: with the reductions of what it rounds. Null if there are none.
Operation *lastReductionOf(tile::CastOp cast) {
  Value source = cast.getValue();
  Operation *definition = source.getDefiningOp();
  if (!definition || definition->getBlock() != cast->getBlock() || !isPulled(definition) ||
      !llvm::cast<RankedTensorType>(source.getType()).getElementType().isF32())
    return nullptr;
  Operation *last = nullptr;
  for (Operation *next = definition->getNextNode(); next && llvm::isa<tile::ReduceOp>(next); next = next->getNextNode())
    if (llvm::is_contained(next->getOperands(), source))
      last = next;
  return last;
}

/// The bits of the operand that an earlier dot had kept. Null if there are none.
Operation *keptBits(Value operand) {
  auto found = llvm::find_if(operand.getUsers(), [](Operation *user) { return user->hasAttr(operandAttr); });
  return found == operand.user_end() ? nullptr : *found;
}

void readBits(tile::DotOp dot, Operation *bits) {
  OpBuilder b(dot);
  dot.getAMutable().assign(b.create<arith::BitcastOp>(dot.getLoc(), dot.getA().getType(), bits->getResult(0)));
}

void keep(tile::DotOp dot) {
  Value operand = dot.getA();
  Operation *definition = operand.getDefiningOp();
  if (!definition || !isPulled(definition))
    return;
  if (Operation *bits = keptBits(operand))
    return readBits(dot, bits);
  if (definition->getBlock() == dot->getBlock()) {
    auto cast = llvm::dyn_cast<tile::CastOp>(definition);
    Operation *reduction = cast && operand.hasOneUse() ? lastReductionOf(cast) : nullptr;
    if (!reduction)
      return;
    cast->moveAfter(reduction);
  } else if (!llvm::all_of(operand.getUsers(), [](Operation *user) { return llvm::isa<tile::DotOp>(user); })) {
    return;
  }
  OpBuilder b(definition);
  b.setInsertionPointAfter(definition);
  auto type = llvm::cast<RankedTensorType>(operand.getType());
  auto bits = b.create<arith::BitcastOp>(definition->getLoc(), type.clone(b.getI16Type()), operand);
  bits->setAttr(operandAttr, b.getUnitAttr());
  readBits(dot, bits);
}

} // namespace

void keepOperands(func::FuncOp kernel, const Isa &isa) {
  SmallVector<tile::DotOp> dots;
  kernel.walk([&](tile::DotOp dot) { dots.push_back(dot); });
  for (tile::DotOp dot : dots)
    if (readsBits(dot, isa))
      keep(dot);
}

} // namespace tenon::cpu
