// SPDX-License-Identifier: Apache-2.0
//
// Operands of dots on warpgroups that a loop computes: dequantised weights, activations on their way in. Each iteration
// writes them to another of three buffers, so that they are computed while the matrix unit multiplies what the
// iterations before have written.
//
//     barrier                                    // whoever used the memory before is done
//     for i:
//       compute the operand, write it to buffer i % 3; fence
//       barrier                                  // all parts of buffer i are written
//       start the dots, which read buffer i
//       wait until those of iteration i - 1 are complete
//
// What iteration i + 1 writes over was read in iteration i - 2, whose dots every warpgroup has waited for before it
// came to the barrier of iteration i. With two buffers it would have to wait before that barrier, where the matrix unit
// would stand still; and the assembler, which then sees the accumulators of no iteration, would make every dot wait.
//
// The barriers order everything in the loop, so that its accesses are one group.
#include "tenon/compiler/target/nvidia/threads/OperandBuffers.h"

#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

constexpr int64_t buffersOfLoop = 3;

} // namespace

std::unique_ptr<ThreadEmitter::OperandBuffers> ThreadEmitter::planOperandBuffers(ArrayRef<tile::DotOp> dots) {
  auto buffers = std::make_unique<OperandBuffers>();
  buffers->group = newGroup();
  SmallVector<tile::DotOp> all;
  for (tile::DotOp last : dots)
    llvm::append_range(all, addedBy(last));
  for (tile::DotOp dot : all) {
    DotPlan plan = planDot(dot, options_.architecture);
    for (int64_t kDim : {1, 0}) {
      Value value = kDim == 1 ? dot.getA() : dot.getB();
      OperandKey key = operandKey(value, plan, kDim);
      bool isKnown = llvm::any_of(buffers->operands, [&](OperandBuffers::Operand &operand) {
        return key == operandKey(operand.value(), planDot(operand.dot, options_.architecture), operand.kDim);
      });
      if (traceToLoad(value) || isKnown)
        continue;
      OperandBuffers::Operand operand{dot, kDim, planStaged(value, plan, kDim), buffers->bytes};
      operand.staged.group = buffers->group;
      buffers->bytes += llvm::alignTo(operand.staged.tile.bytes(), panelAlignment);
      buffers->operands.push_back(operand);
      remark(value.getLoc(), "operand of a dot is computed while the dots of the iterations before are under way, in " +
                                 std::to_string(buffersOfLoop) + " buffers of shared memory");
    }
  }
  if (buffers->operands.empty())
    return nullptr;
  buffersOperands_ = true;
  b_.setLoc(buffers->operands.front().dot.getLoc());
  int64_t begin = allocateShared(buffersOfLoop * buffers->bytes, panelAlignment);
  buffers->window = {begin, begin + buffersOfLoop * buffers->bytes};
  for (OperandBuffers::Operand &operand : buffers->operands) {
    operand.begin += begin;
    operand.staged.window = buffers->window;
  }
  return buffers;
}

void ThreadEmitter::startOperandBuffers(const OperandBuffers &buffers) {
  blockBarrier();
  for (const OperandBuffers::Operand &operand : buffers.operands)
    for (int64_t buffer = 0; buffer < buffersOfLoop; ++buffer)
      zeroPadding(operand.staged.tile, operand.begin + buffer * buffers.bytes, buffers.window, buffers.group);
}

void ThreadEmitter::enterOperandBuffers(OperandBuffers &buffers, Value at) {
  buffers.body = b_.getInsertionBlock();
  buffers.at = at;
}

Value ThreadEmitter::nextBuffer(const OperandBuffers &buffers) {
  Value next = b_.create<arith::AddIOp>(buffers.at, i32(buffers.bytes));
  Value wraps = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, next, i32(buffersOfLoop * buffers.bytes));
  return b_.create<arith::SelectOp>(wraps, i32(0), next);
}

std::optional<ThreadEmitter::StagedOperand> ThreadEmitter::bufferedOperand(Value value, const DotPlan &plan,
                                                                           int64_t kDim) {
  if (!buffers_ || b_.getInsertionBlock() != buffers_->body) // a branch may not be taken
    return std::nullopt;
  for (OperandBuffers::Operand &operand : buffers_->operands)
    if (operand.isWritten && operandKey(value, plan, kDim) ==
                                 operandKey(operand.value(), planDot(operand.dot, options_.architecture), operand.kDim))
      return operand.staged;
  return std::nullopt;
}

/// Those that are there already, not only this dot's: there is one barrier for all of them.
void ThreadEmitter::publishOperands(tile::DotOp dot) {
  if (!buffers_ || !carriedDots_.contains(dot))
    return;
  bool hasWritten = false;
  for (OperandBuffers::Operand &operand : buffers_->operands) {
    Operation *definition = operand.value().getDefiningOp();
    if (operand.isWritten ||
        (definition && definition->getBlock() == dot->getBlock() && !definition->isBeforeInBlock(dot)))
      continue;
    if (isUnderWay(operand.value()))
      settle();
    writeOperand(operand.value(), operand.staged, planDot(operand.dot, options_.architecture), operand.kDim,
                 operand.begin, buffers_->group, buffers_->at);
    operand.staged.at = b_.create<arith::AddIOp>(buffers_->at, i32(operand.begin));
    operand.isWritten = hasWritten = true;
  }
  if (!hasWritten)
    return;
  b_.create<FenceOp>(FenceKind::proxy_async); // the instruction reads past what threads see
  blockBarrier();
}

} // namespace tenon::nvidia
