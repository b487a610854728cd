// SPDX-License-Identifier: Apache-2.0
//
// Folds that hold for every target: operations that change nothing, movements of constants and splats, and integer
// arithmetic on constants (so that sizes computed from parameters are constants to every later pass).
#include "tenon/compiler/dialect/IntegerRules.h"
#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/CommonFolders.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::tile {
namespace {

/// Moving elements around leaves a constant splat a splat of the same element.
OpFoldResult foldMovement(Attribute value, Value operand, Type resultType) {
  if (operand.getType() == resultType)
    return operand;
  if (auto splat = llvm::dyn_cast_if_present<SplatElementsAttr>(value))
    return splat.resizeSplat(llvm::cast<ShapedType>(resultType));
  return {};
}

using IntegerRule = llvm::APInt (*)(const llvm::APInt &, const llvm::APInt &, bool);

OpFoldResult foldInteger(ArrayRef<Attribute> operands, bool isUnsigned, IntegerRule rule) {
  return constFoldBinaryOp<IntegerAttr, llvm::APInt, void>(
      operands, [&](const llvm::APInt &a, const llvm::APInt &b) { return rule(a, b, isUnsigned); });
}

} // namespace

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  if (!adaptor.getValue() || !llvm::isa<IntegerAttr, FloatAttr>(adaptor.getValue()))
    return {};
  return SplatElementsAttr::get(getType(), adaptor.getValue());
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  return foldMovement(adaptor.getValue(), getValue(), getType());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getValue().getDefiningOp<ReshapeOp>()) {
    if (inner.getValue().getType() == getType())
      return inner.getValue();
    setOperand(inner.getValue());
    return getResult();
  }
  return foldMovement(adaptor.getValue(), getValue(), getType());
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  bool isIdentity = true;
  for (auto [d, source] : llvm::enumerate(getPermutation()))
    isIdentity &= static_cast<int64_t>(d) == source;
  if (isIdentity && getValue().getType() == getType()) // the types may still differ in their encoding
    return getValue();
  if (auto splat = llvm::dyn_cast_if_present<SplatElementsAttr>(adaptor.getValue()))
    return splat.resizeSplat(getType());
  return {};
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) { return foldMovement(adaptor.getValue(), getValue(), getType()); }

OpFoldResult ScalarOp::fold(FoldAdaptor adaptor) {
  if (auto splat = getValue().getDefiningOp<SplatOp>())
    return splat.getValue();
  if (auto splat = llvm::dyn_cast_if_present<SplatElementsAttr>(adaptor.getValue()))
    return splat.getSplatValue<Attribute>();
  return {};
}

OpFoldResult CastOp::fold(FoldAdaptor adaptor) {
  if (getValue().getType() == getType())
    return getValue();
  // Integers only: sizes and parameters. Everything else is left to the targets.
  auto width = [](Type type) -> unsigned {
    if (type.isIndex())
      return 64;
    auto integer = llvm::dyn_cast<IntegerType>(type);
    return integer ? integer.getWidth() : 0;
  };
  unsigned from = width(getValue().getType()), to = width(getType());
  auto constant = llvm::dyn_cast_if_present<IntegerAttr>(adaptor.getValue());
  if (!constant || !from || !to)
    return {};
  llvm::APInt value = constant.getValue();
  bool zeroExtends = getIsUnsigned() || from == 1;
  return IntegerAttr::get(getType(), zeroExtends ? value.zextOrTrunc(to) : value.sextOrTrunc(to));
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) { return foldInteger(adaptor.getOperands(), getIsUnsigned(), divide); }
OpFoldResult RemOp::fold(FoldAdaptor adaptor) { return foldInteger(adaptor.getOperands(), getIsUnsigned(), remainder); }
OpFoldResult ShlOp::fold(FoldAdaptor adaptor) { return foldInteger(adaptor.getOperands(), getIsUnsigned(), shiftLeft); }
OpFoldResult ShrOp::fold(FoldAdaptor adaptor) { return foldInteger(adaptor.getOperands(), getIsUnsigned(), shiftRight); }

} // namespace tenon::tile
