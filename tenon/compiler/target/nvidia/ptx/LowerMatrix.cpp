// SPDX-License-Identifier: Apache-2.0
//
// Matrix units, and arithmetic that only the GPU has.
#include "tenon/compiler/target/nvidia/ptx/PtxBuilder.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

using Values = SmallVector<Value>;

/// The elements of a vector, each in the register mma wants it in.
Values elements(PtxBuilder &e, Value vector) {
  Values result;
  for (int32_t i = 0; i < int32_t(cast<VectorType>(vector.getType()).getNumElements()); ++i)
    result.push_back(
        e.b.create<LLVM::ExtractElementOp>(vector, e.b.create<LLVM::ConstantOp>(e.b.getI32IntegerAttr(i))));
  return result;
}

Value fromElements(PtxBuilder &e, ValueRange values, Type type) {
  Value vector = e.b.create<LLVM::UndefOp>(type);
  for (auto [i, value] : llvm::enumerate(values)) {
    Value place = e.b.create<LLVM::ConstantOp>(e.b.getI32IntegerAttr(i));
    vector = e.b.create<LLVM::InsertElementOp>(vector, value, place);
  }
  return vector;
}

std::string mmaName(MmaOp op) {
  std::string a = stringifyOperandType(op.getAType()).str(), b = stringifyOperandType(op.getBType()).str();
  switch (op.getAType()) {
  case OperandType::f16:
  case OperandType::bf16:
    return "m16n8k16.row.col.f32." + a + "." + b + ".f32";
  case OperandType::tf32:
    return "m16n8k8.row.col.f32." + a + "." + b + ".f32";
  case OperandType::s8:
  case OperandType::u8:
    return "m16n8k32.row.col.s32." + a + "." + b + ".s32";
  case OperandType::e4m3:
  case OperandType::e5m2:
    return "m16n8k32.row.col.f32." + a + "." + b + ".f32";
  case OperandType::f64:
    return "m8n8k4.row.col.f64.f64.f64.f64";
  }
  return "";
}

Values lowerMma(MmaOp op, MmaOp::Adaptor operands, PtxBuilder &e) {
  Values a = elements(e, operands.getA()), b = elements(e, operands.getB()), c = elements(e, operands.getC());
  SmallVector<Type> types(c.size(), c[0].getType());
  unsigned first = c.size();
  std::string text = "mma.sync.aligned." + mmaName(op) + " " + registerList(0, c.size());
  Values inputs;
  for (const Values &part : {a, b, c}) {
    text += ", " + registerList(first, part.size());
    first += part.size();
    llvm::append_range(inputs, part);
  }
  // All lanes take part, but nothing beyond the result happens: an unused one goes away (see PtxEmitter).
  return {fromElements(e, e.assembly(types, inputs, text + ";", Effect::None), operands.getC().getType())};
}

std::string matrixCount(int64_t count, bool transpose) {
  return ".x" + std::to_string(count) + (transpose ? ".trans" : "");
}

Values lowerLdMatrix(LdMatrixOp op, LdMatrixOp::Adaptor operands, PtxBuilder &e) {
  auto type = cast<VectorType>(op.getType());
  int64_t count = type.getNumElements();
  SmallVector<Type> types(count, e.b.getI32Type());
  Values result = e.assembly(types, {e.sharedAddress(operands.getAddress())},
                             "ldmatrix.sync.aligned.m8n8" + matrixCount(count, op.getTranspose()) +
                                 ".shared::cta.b16 " + registerList(0, count) + ", [$" + std::to_string(count) + "];",
                             Effect::Memory);
  return {fromElements(e, result, type)};
}

Values lowerStMatrix(StMatrixOp op, StMatrixOp::Adaptor operands, PtxBuilder &e) {
  Values inputs = elements(e, operands.getValue());
  int64_t count = inputs.size();
  inputs.push_back(e.sharedAddress(operands.getAddress()));
  e.assembly({}, inputs,
             "stmatrix.sync.aligned.m8n8" + matrixCount(count, op.getTranspose()) + ".shared::cta.b16 [$" +
                 std::to_string(count) + "], " + registerList(0, count) + ";",
             Effect::Memory);
  return {};
}

Values lowerApprox(ApproxOp op, ApproxOp::Adaptor operands, PtxBuilder &e) {
  bool flush = op->hasAttr(flushAttr) && op.getFunction() != ApproxFunction::tanh;
  return e.assembly(e.b.getF32Type(), {operands.getValue()},
                    stringifyApproxFunction(op.getFunction()) + llvm::Twine(flush ? ".approx.ftz" : ".approx") +
                        ".f32 $0, $1;",
                    Effect::None);
}

Values lowerAnything(AnythingOp op, AnythingOp::Adaptor, PtxBuilder &e) {
  return {e.b.create<LLVM::UndefOp>(op.getType())};
}

Values lowerPack(PackOp op, PackOp::Adaptor operands, PtxBuilder &e) {
  return e.assembly(e.b.getI32Type(), {operands.getHigh(), operands.getLow()},
                    "cvt.rn." + llvm::Twine(stringifyOperandType(op.getType())) + "x2.f32 $0, $1, $2;", Effect::None);
}

Values lowerPermuteBytes(PermuteBytesOp, PermuteBytesOp::Adaptor operands, PtxBuilder &e) {
  return e.assembly(e.b.getI32Type(), {operands.getLow(), operands.getHigh(), operands.getSelector()},
                    "prmt.b32 $0, $1, $2, $3;", Effect::None);
}

} // namespace

void addMatrixPatterns(RewritePatternSet &patterns, LLVMTypeConverter &converter, const Architecture &architecture) {
  addPattern<MmaOp>(patterns, converter, architecture, lowerMma);
  addPattern<LdMatrixOp>(patterns, converter, architecture, lowerLdMatrix);
  addPattern<StMatrixOp>(patterns, converter, architecture, lowerStMatrix);
  addPattern<ApproxOp>(patterns, converter, architecture, lowerApprox);
  addPattern<AnythingOp>(patterns, converter, architecture, lowerAnything);
  addPattern<PackOp>(patterns, converter, architecture, lowerPack);
  addPattern<PermuteBytesOp>(patterns, converter, architecture, lowerPermuteBytes);
}

} // namespace tenon::nvidia
