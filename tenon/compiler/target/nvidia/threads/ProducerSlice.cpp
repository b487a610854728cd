// SPDX-License-Identifier: Apache-2.0
//
// What another warp has to compute to know where a load reads: its offsets, and the loops and branches around it, as
// long as all of that is scalars.
#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"
#include "tenon/compiler/target/nvidia/threads/InPlace.h"
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::nvidia {

ProducerSlice producerSlice(ArrayRef<tile::LoadOp> loads) {
  ProducerSlice slice;
  SmallVector<Value> open;
  llvm::DenseSet<Value> seen;
  auto kernel = llvm::ArrayRef(loads).front()->getParentOfType<func::FuncOp>();
  auto need = [&](Value value) {
    if (seen.insert(value).second)
      open.push_back(value);
  };
  auto needAround = [&](Operation *op) {
    for (Operation *parent = op->getParentOp(); parent != kernel; parent = parent->getParentOp()) {
      if (!slice.ops.insert(parent).second)
        return;
      if (auto loop = llvm::dyn_cast<scf::ForOp>(parent)) {
        need(loop.getLowerBound());
        need(loop.getUpperBound());
        need(loop.getStep());
      } else if (auto branch = llvm::dyn_cast<scf::IfOp>(parent)) {
        need(branch.getCondition());
      }
    }
  };
  for (tile::LoadOp load : loads) {
    for (Value offset : load.getOffsets())
      need(offset);
    needAround(load);
  }
  auto isOne = [](Type type) {
    auto tile = llvm::dyn_cast<RankedTensorType>(type);
    return !tile || tile.getNumElements() == 1;
  };
  while (!open.empty() && slice.refusal.empty()) {
    Value value = open.pop_back_val();
    if (!isOne(value.getType())) {
      slice.refusal = "its address depends on the elements of a tile";
      break;
    }
    if (auto argument = llvm::dyn_cast<BlockArgument>(value)) {
      auto loop = llvm::dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!loop)
        continue;
      needAround(loop);
      if (slice.ops.insert(loop).second) {
        need(loop.getLowerBound());
        need(loop.getUpperBound());
        need(loop.getStep());
      }
      if (argument == loop.getInductionVar())
        continue;
      slice.arguments.insert(argument);
      need(loop.getTiedLoopInit(argument)->get());
      need(loop.getTiedLoopYieldedValue(argument)->get());
      continue;
    }
    Operation *op = value.getDefiningOp();
    needAround(op);
    if (auto loop = llvm::dyn_cast<scf::ForOp>(op)) {
      need(loop.getRegionIterArg(llvm::cast<OpResult>(value).getResultNumber()));
      continue;
    }
    if (auto branch = llvm::dyn_cast<scf::IfOp>(op)) {
      slice.ops.insert(op);
      need(branch.getCondition());
      unsigned number = llvm::cast<OpResult>(value).getResultNumber();
      need(branch.thenYield().getOperand(number));
      need(branch.elseYield().getOperand(number));
      slice.arguments.insert(value);
      continue;
    }
    if (auto load = llvm::dyn_cast<tile::LoadOp>(op); load && mayBeWritten(load.getView()))
      slice.refusal = "its address is read from memory that the kernel may write";
    bool isScalar = llvm::isa<arith::ConstantOp, tile::SizeOp, tile::GridOp, tile::LoadOp, tile::ScalarOp,
                              tile::SplatOp, tile::ReshapeOp, ShareOp>(op) ||
                    lower::isElementwise(op);
    if (!isScalar)
      slice.refusal = "its address depends on " + op->getName().getStringRef().str();
    slice.ops.insert(op);
    for (Value operand : op->getOperands())
      if (!llvm::isa<tile::ViewType>(operand.getType()))
        need(operand);
  }
  return slice;
}

} // namespace tenon::nvidia
