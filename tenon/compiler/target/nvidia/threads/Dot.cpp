// SPDX-License-Identifier: Apache-2.0
//
// tile.dot: which instruction, and its operands in shared memory. An operand is there already when it is loaded
// asynchronously (Pipeline.cpp) or when a loop around the dot does not change it (keepOperands); otherwise it is
// written just before, from the registers it is in, rows along the dimension in which a thread has neighbours: a
// transposed operand is transposed on its way back, by ldmatrix.
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"
#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {

LogicalResult ThreadEmitter::emitDot(tile::DotOp op) {
  DotPlan plan = planDot(op, options_.architecture);
  auto a = typeOf(op.getA()), b = typeOf(op.getB());
  int64_t m = a.getDimSize(0), n = b.getDimSize(1), k = a.getDimSize(1);
  auto sizes = [](int64_t m, int64_t n, int64_t k) {
    return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
  };
  std::string text = "dot of " + sizes(m, n, k) + ": " + plan.instruction;
  if (!plan.limit.empty())
    text += " (" + plan.limit + ")";
  if (plan.promotes)
    text += ", sums of each " + std::to_string(k) + " of K added up in f32";
  if (plan.matrixUnit && !plan.warpgroup) {
    int64_t paddedM = llvm::alignTo(m, 16), paddedN = llvm::alignTo(n, 8), paddedK = llvm::alignTo(k, plan.depth);
    if (paddedM != m || paddedN != n || paddedK != k)
      text += ", padded to " + sizes(paddedM, paddedN, paddedK);
  }
  remark(op.getLoc(), text);

  int64_t mark = markShared();
  if (plan.warpgroup)
    emitWarpgroupDot(op, plan);
  else if (plan.matrixUnit)
    emitMatrixDot(op, plan);
  else
    emitPlainDot(op, plan);
  releaseShared(mark);
  return success();
}

ThreadEmitter::OperandKey ThreadEmitter::operandKey(Value value, const DotPlan &plan, int64_t kDim) {
  return {value, kDim + 2 * plan.matrixUnit + 4 * plan.warpgroup + 8 * plan.elementBytes};
}

ThreadEmitter::StagedOperand ThreadEmitter::operandOf(Value value, const DotPlan &plan, int64_t kDim) {
  if (isAsync(value)) {
    LoadedOperand loaded = *traceToLoad(value);
    StagedOperand operand = copied_.find(loaded.load)->second;
    operand.alongK = loaded.dims[kDim] == *contiguousDim(loaded.load.getView());
    return operand;
  }
  if (auto kept = keptOperands_.find(operandKey(value, plan, kDim)); kept != keptOperands_.end())
    return kept->second;
  if (std::optional<StagedOperand> buffered = bufferedOperand(value, plan, kDim))
    return *buffered;
  return stageOperand(value, plan, kDim);
}

void ThreadEmitter::keepOperands(scf::ForOp loop, SmallVectorImpl<OperandKey> &kept) {
  loop.walk([&](tile::DotOp dot) {
    DotPlan plan = planDot(dot, options_.architecture);
    for (int64_t kDim : {1, 0}) {
      Value value = kDim == 1 ? dot.getA() : dot.getB();
      OperandKey key = operandKey(value, plan, kDim);
      if (!loop.isDefinedOutsideOfLoop(value) || isAsync(value) || keptOperands_.contains(key))
        continue;
      if (kDim == 1 && plan.matrixUnit && !plan.warpgroup && holdsFragments(value, distribution(dot), plan))
        continue;
      keptOperands_[key] = stageOperand(value, plan, kDim);
      kept.push_back(key);
    }
  });
}

ThreadEmitter::StagedOperand ThreadEmitter::planStaged(Value value, const DotPlan &plan, int64_t kDim) {
  const Distribution &matrix = distribution(value);
  StagedOperand operand;
  operand.alongK = plan.mustRunAlongK() || matrix.consecutive(kDim) >= matrix.consecutive(1 - kDim);
  int64_t columnDim = operand.alongK ? kDim : 1 - kDim, rowDim = 1 - columnDim;
  int64_t rowsInMemory = matrix.shape()[rowDim], columnsInMemory = matrix.shape()[columnDim];
  operand.tile =
      plan.warpgroup
          ? planPanelTile(rowsInMemory, columnsInMemory, plan.elementBytes,
                          panelBytes(columnsInMemory * plan.elementBytes, /*padded=*/!operand.alongK))
          : planOperandTile(rowsInMemory, columnsInMemory, plan.elementBytes, operandMultiple(plan, rowDim == kDim),
                            operandMultiple(plan, columnDim == kDim), useOf(plan, operand.alongK));
  return operand;
}

ThreadEmitter::StagedOperand ThreadEmitter::stageOperand(Value value, const DotPlan &plan, int64_t kDim) {
  StagedOperand operand = planStaged(value, plan, kDim);
  const OperandTile &tile = operand.tile;
  int64_t begin = allocateShared(tile.bytes(), tile.panel ? panelAlignment : 16);
  operand.window = {begin, begin + tile.bytes()};
  operand.at = i32(begin);
  operand.group = newGroup();
  int group = newGroup();
  writeOperand(value, operand, plan, kDim, begin, group);
  zeroPadding(tile, begin, operand.window, group);
  if (plan.warpgroup)
    b_.create<FenceOp>(FenceKind::proxy_async); // the instruction reads past what threads see
  return operand;
}

void ThreadEmitter::writeOperand(Value value, const StagedOperand &operand, const DotPlan &plan, int64_t kDim,
                                 int64_t begin, int group, Value slot) {
  const Distribution &matrix = distribution(value);
  int64_t columnDim = operand.alongK ? kDim : 1 - kDim, rowDim = 1 - columnDim;
  if (plan.mustRunAlongK() && matrix.consecutive(rowDim) > matrix.consecutive(columnDim))
    remark(value.getLoc(), "operand of a dot is transposed on its way to shared memory, element by element: its memory "
                           "is not contiguous along K, and only 16-bit elements are transposed by the instruction");
  writeMatrix(value, kDim == 1 ? plan.stagedA : plan.stagedB, operand.tile, begin, rowDim, columnDim, operand.window,
              group, {}, slot);
}

} // namespace tenon::nvidia
