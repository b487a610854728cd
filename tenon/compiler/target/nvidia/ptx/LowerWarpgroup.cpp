// SPDX-License-Identifier: Apache-2.0
//
// Matrix units by warpgroup. Accumulators are operands and results of the same registers, of the multiplication and of
// the wait: neither LLVM nor the assembler then finds a reason to copy them while the unit writes them, for which the
// assembler would have to finish each multiplication before the next (its warning C7510).
#include "tenon/compiler/target/nvidia/ptx/PtxBuilder.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

using Values = SmallVector<Value>;

/// A descriptor's field of the address, which counts in 16 bytes.
constexpr int64_t addressField = 0x3fff;

Values statement(PtxBuilder &e, const llvm::Twine &text) {
  e.assembly({}, {}, text, Effect::Memory);
  return {};
}

Values lowerWgmmaFence(WgmmaFenceOp, WgmmaFenceOp::Adaptor operands, PtxBuilder &e) {
  return e.assembly(operands.getRegisters().getTypes(), operands.getRegisters(), "wgmma.fence.sync.aligned;",
                    Effect::Memory, operands.getRegisters().size());
}

Values lowerWgmmaCommit(WgmmaCommitOp, WgmmaCommitOp::Adaptor, PtxBuilder &e) {
  return statement(e, "wgmma.commit_group.sync.aligned;");
}

Values lowerWgmmaWait(WgmmaWaitOp op, WgmmaWaitOp::Adaptor operands, PtxBuilder &e) {
  return e.assembly(operands.getAccumulators().getTypes(), operands.getAccumulators(),
                    "wgmma.wait_group.sync.aligned " + llvm::Twine(op.getPending()) + ";", Effect::Memory,
                    op.getAccumulators().size());
}

/// The descriptor with an absolute address. The field lies in the low half, and the sum does not leave it: the high
/// half, mostly constant, stays out of the addition. In a cluster the upper bits of an address say which block it is in:
/// they are no part of the field, and would change the offset beside it.
Value absoluteDescriptor(PtxBuilder &e, Value descriptor) {
  Type i32 = e.b.getI32Type(), i64 = e.b.getI64Type();
  auto shift = [&](Type type, int64_t by) { return e.b.create<LLVM::ConstantOp>(e.b.getIntegerAttr(type, by)); };
  Value base = e.sharedAddress(shift(i32, 0));
  Value first = e.b.create<LLVM::AndOp>(e.b.create<LLVM::LShrOp>(base, shift(i32, 4)), shift(i32, addressField));
  Value low = e.b.create<LLVM::AddOp>(e.b.create<LLVM::TruncOp>(i32, descriptor), first);
  Value high = e.b.create<LLVM::ShlOp>(e.b.create<LLVM::LShrOp>(descriptor, shift(i64, 32)), shift(i64, 32));
  return e.b.create<LLVM::OrOp>(high, e.b.create<LLVM::ZExtOp>(i64, low));
}

/// ".m64n128k16.f32.bf16.bf16"
std::string shapeOf(WgmmaOp op) {
  const char *k = "32", *sum = "f32";
  switch (op.getAType()) {
  case OperandType::f16:
  case OperandType::bf16:
    k = "16";
    break;
  case OperandType::tf32:
    k = "8";
    break;
  case OperandType::s8:
  case OperandType::u8:
    sum = "s32";
    break;
  default:
    break;
  }
  return ".m64n" + std::to_string(op.getN()) + "k" + k + "." + sum + "." + stringifyOperandType(op.getAType()).str() +
         "." + stringifyOperandType(op.getBType()).str();
}

Values lowerWgmma(WgmmaOp op, WgmmaOp::Adaptor operands, PtxBuilder &e) {
  unsigned count = op.getAccumulators().size(), next = 2 * count;
  bool fromRegisters = op.getA().size() == 4;
  Values inputs(operands.getAccumulators());
  std::string text = "wgmma.mma_async.sync.aligned" + shapeOf(op) + " " + registerList(0, count) + ", ";
  if (fromRegisters) {
    llvm::append_range(inputs, operands.getA());
    text += registerList(next, 4);
    next += 4;
  } else {
    inputs.push_back(absoluteDescriptor(e, operands.getA()[0]));
    text += "$" + std::to_string(next++);
  }
  inputs.push_back(absoluteDescriptor(e, operands.getB()));
  inputs.push_back(operands.getScaleD());
  text += ", $" + std::to_string(next) + ", $" + std::to_string(next + 1);
  bool isInteger = op.getAType() == OperandType::s8 || op.getAType() == OperandType::u8;
  if (!isInteger)
    text += ", 1, 1"; // neither operand negated
  if (op.getAType() == OperandType::f16 || op.getAType() == OperandType::bf16) {
    if (!fromRegisters)
      text += op.getTransA() ? ", 1" : ", 0";
    text += op.getTransB() ? ", 1" : ", 0";
  }
  return e.assembly(operands.getAccumulators().getTypes(), inputs, text + ";", Effect::Exchange, count);
}

Values lowerSetMaxRegisters(SetMaxRegistersOp op, SetMaxRegistersOp::Adaptor, PtxBuilder &e) {
  return statement(e, llvm::Twine(setMaxRegisters) + (op.getIncrease() ? ".inc" : ".dec") + ".sync.aligned.u32 " +
                          llvm::Twine(op.getCount()) + ";");
}

} // namespace

void addWarpgroupPatterns(RewritePatternSet &patterns, LLVMTypeConverter &converter,
                          const Architecture &architecture) {
  addPattern<WgmmaFenceOp>(patterns, converter, architecture, lowerWgmmaFence);
  addPattern<WgmmaOp>(patterns, converter, architecture, lowerWgmma);
  addPattern<WgmmaCommitOp>(patterns, converter, architecture, lowerWgmmaCommit);
  addPattern<WgmmaWaitOp>(patterns, converter, architecture, lowerWgmmaWait);
  addPattern<SetMaxRegistersOp>(patterns, converter, architecture, lowerSetMaxRegisters);
}

} // namespace tenon::nvidia
