// SPDX-License-Identifier: Apache-2.0
//
// What is computed of each element on its own: one operation for every register that a thread has of a tile.
#include "tenon/compiler/target/nvidia/threads/Positions.h"
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {
namespace {

bool isTile(Value value) { return llvm::isa<RankedTensorType>(value.getType()); }

} // namespace

void ThreadEmitter::emitConstant(arith::ConstantOp op) {
  auto make = [&](TypedAttr value, Type element) -> Value {
    Type type = registerType(element);
    if (auto number = llvm::dyn_cast<FloatAttr>(value))
      return constantLike(b_, type, number.getValueAsDouble());
    if (type.isIndex())
      return b_.create<arith::ConstantIndexOp>(llvm::cast<IntegerAttr>(value).getInt());
    return b_.create<arith::ConstantOp>(value);
  };
  if (!isTile(op)) {
    scalars_[op] = make(op.getValue(), op.getType());
    return;
  }
  auto elements = llvm::cast<DenseElementsAttr>(op.getValue());
  const Distribution &tile = distribution(op);
  if (elements.isSplat()) {
    registers(op).assign(tile.registers(), make(llvm::cast<TypedAttr>(elements.getSplatValue<Attribute>()),
                                                elements.getElementType()));
    return;
  }
  // A table: the thread's elements, chosen by its coordinates. Only small tables come from the language.
  Registers values(tile.registers());
  for (int reg = 0; reg < tile.registers(); ++reg) {
    if (!tile.exists(reg))
      continue;
    Value linear = i64(0);
    for (int64_t d = 0; d < tile.rank(); ++d)
      linear = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(linear, i64(tile.shape()[d])), coordinate(tile, reg, d));
    Value chosen;
    for (auto [i, value] : llvm::enumerate(elements.getValues<Attribute>())) {
      Value candidate = make(llvm::cast<TypedAttr>(value), elements.getElementType());
      Value here = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, linear, i64(i));
      chosen = chosen ? b_.create<arith::SelectOp>(here, candidate, chosen).getResult() : candidate;
    }
    values[reg] = chosen;
  }
  registers(op) = std::move(values);
}

void ThreadEmitter::emitElementwise(Operation &op) {
  Value result = op.getResult(0);
  if (!isTile(result)) {
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      operands.push_back(scalar(operand));
    scalars_[result] = elementwise(b_, &op, operands);
    return;
  }
  const Distribution &tile = distribution(result);
  if (auto flags = comparePositions(
          b_, &op, tile, [&] { return threadCoords(tile); }, [&](Value value) { return scalar(value); }))
    return void(registers(result) = std::move(*flags));
  // The GPU rounds to bf16 two at a time.
  bool inPairs = typeOf(result).getElementType().isBF16() && roundsResult(&op);
  Registers values(tile.registers());
  for (int reg = 0; reg < tile.registers(); ++reg) {
    if (!tile.exists(reg))
      continue;
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      operands.push_back(isTile(operand) ? registers(operand)[reg] : scalar(operand));
    values[reg] = elementwise(b_, &op, operands, inPairs ? Rounding::later : Rounding::now);
  }
  if (inPairs)
    roundPairs(values);
  registers(result) = std::move(values);
}

/// f32 values to the nearest bf16 ones, still as f32.
void ThreadEmitter::roundPairs(Registers &values) {
  SmallVector<Value *> present;
  for (Value &value : values)
    if (value)
      present.push_back(&value);
  for (size_t i = 0; i < present.size(); i += 2) {
    Value low = *present[i], high = i + 1 < present.size() ? *present[i + 1] : low;
    Value packed = b_.create<PackOp>(b_.getI32Type(), OperandType::bf16, low, high);
    *present[i] = b_.create<arith::BitcastOp>(b_.getF32Type(), b_.create<arith::ShLIOp>(packed, i32(16)));
    if (i + 1 < present.size())
      *present[i + 1] =
          b_.create<arith::BitcastOp>(b_.getF32Type(), b_.create<arith::AndIOp>(packed, i32(0xffff0000)));
  }
}

} // namespace tenon::nvidia
