// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/ptx/PtxBuilder.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// The letter of a register class in a constraint.
char constraintOf(Type type) {
  if (type.isF32())
    return 'f';
  if (type.isF64())
    return 'd';
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return 'b';
  case 16:
    return 'h';
  case 32:
    return 'r';
  default:
    return 'l';
  }
}

/// Elements of a scalar or vector type, and the type of one.
std::pair<int64_t, Type> elementsOf(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return {vector.getNumElements(), vector.getElementType()};
  return {1, type};
}

} // namespace

std::string registerList(unsigned first, unsigned count) {
  std::string list = "{";
  for (unsigned i = 0; i < count; ++i)
    list += (i ? ", $" : "$") + std::to_string(first + i);
  return list + "}";
}

SmallVector<Value> PtxBuilder::assembly(TypeRange results, ValueRange operands, const llvm::Twine &text,
                                           Effect effect, unsigned tied) {
  std::string constraints;
  auto add = [&](const std::string &one) { constraints += (constraints.empty() ? "" : ",") + one; };
  for (Type type : results)
    add(std::string("=") + constraintOf(type));
  for (auto [index, operand] : llvm::enumerate(operands))
    add(index < tied ? std::to_string(index) : std::string(1, constraintOf(operand.getType())));
  if (effect == Effect::Memory)
    add("~{memory}");
  Type packed;
  if (results.size() == 1)
    packed = results.front();
  else if (results.size() > 1)
    packed = LLVM::LLVMStructType::getLiteral(b.getContext(), llvm::to_vector(results));
  auto asmOp = b.create<LLVM::InlineAsmOp>(packed ? TypeRange(packed) : TypeRange(), operands, text.str(), constraints,
                                           effect != Effect::None, /*is_align_stack=*/false,
                                           LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
                                           ArrayAttr());
  if (results.size() <= 1)
    return SmallVector<Value>(asmOp->getResults());
  SmallVector<Value> values;
  for (int64_t i = 0; i < int64_t(results.size()); ++i)
    values.push_back(b.create<LLVM::ExtractValueOp>(asmOp.getRes(), i));
  return values;
}

Value PtxBuilder::pointer(Space space, Value address, int64_t offset) {
  if (space == Space::global) {
    if (offset)
      address = b.create<LLVM::AddOp>(address, b.create<LLVM::ConstantOp>(b.getI64IntegerAttr(offset)));
    return b.create<LLVM::IntToPtrOp>(LLVM::LLVMPointerType::get(b.getContext(), 1), address);
  }
  auto type = LLVM::LLVMPointerType::get(b.getContext(), 3);
  Value base = b.create<LLVM::AddressOfOp>(type, sharedSymbol);
  Value place = b.create<LLVM::GEPOp>(type, b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{address});
  if (offset)
    place = b.create<LLVM::GEPOp>(type, b.getI8Type(), place, ArrayRef<LLVM::GEPArg>{int32_t(offset)});
  return place;
}

Value PtxBuilder::sharedAddress(Value address) {
  return b.create<LLVM::PtrToIntOp>(b.getI32Type(), pointer(Space::shared, address, 0));
}

SmallVector<Type> PtxBuilder::registerTypes(Type type) {
  auto [count, element] = elementsOf(type);
  int64_t bytes = count * element.getIntOrFloatBitWidth() / 8;
  if (bytes <= 2)
    return {b.getI16Type()};
  if (element.getIntOrFloatBitWidth() == 64)
    return SmallVector<Type>(count, b.getI64Type());
  return SmallVector<Type>(bytes / 4, b.getI32Type());
}

SmallVector<Value> PtxBuilder::registers(Value value) {
  SmallVector<Type> types = registerTypes(value.getType());
  auto [count, element] = elementsOf(value.getType());
  if (count * element.getIntOrFloatBitWidth() == 8) {
    Value byte = b.create<LLVM::BitcastOp>(b.getI8Type(), value);
    return {b.create<LLVM::ZExtOp>(types[0], byte)};
  }
  if (types.size() == 1)
    return {b.create<LLVM::BitcastOp>(types[0], value)};
  Value cast = b.create<LLVM::BitcastOp>(VectorType::get(types.size(), types[0]), value);
  SmallVector<Value> result;
  for (int32_t i = 0; i < int32_t(types.size()); ++i)
    result.push_back(b.create<LLVM::ExtractElementOp>(cast, b.create<LLVM::ConstantOp>(b.getI32IntegerAttr(i))));
  return result;
}

Value PtxBuilder::fromRegisters(ValueRange registers, Type type) {
  auto [count, element] = elementsOf(type);
  if (count * element.getIntOrFloatBitWidth() == 8)
    return b.create<LLVM::BitcastOp>(type, b.create<LLVM::TruncOp>(b.getI8Type(), registers[0]).getResult());
  if (registers.size() == 1)
    return b.create<LLVM::BitcastOp>(type, registers[0]);
  auto packed = VectorType::get(registers.size(), registers[0].getType());
  Value vector = b.create<LLVM::UndefOp>(packed);
  for (auto [i, value] : llvm::enumerate(registers)) {
    Value place = b.create<LLVM::ConstantOp>(b.getI32IntegerAttr(i));
    vector = b.create<LLVM::InsertElementOp>(vector, value, place);
  }
  return b.create<LLVM::BitcastOp>(type, vector);
}

} // namespace tenon::nvidia
