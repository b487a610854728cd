// SPDX-License-Identifier: Apache-2.0
//
// What makes each tile operation well formed. A front end checks its user's program before it builds IR, so a message
// from here means IR written by hand or a defect of a pass.
#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace tenon::tile {

std::string refuseTileType(Type type) {
  auto tensor = llvm::dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return "a tile has a static shape";
  if (tensor.getRank() < 1 || tensor.getRank() > maxRank)
    return "a tile has 1 to " + std::to_string(maxRank) + " dimensions, not " + std::to_string(tensor.getRank());
  int64_t elements = 1;
  for (int64_t extent : tensor.getShape()) {
    if (extent < 1)
      return "every dimension of a tile is at least 1";
    if (extent > maxTileElements || (elements *= extent) > maxTileElements)
      return "a tile has at most " + std::to_string(maxTileElements) + " elements";
  }
  return "";
}

LogicalResult ViewType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, unsigned rank, Type elementType) {
  if (rank < 1 || rank > maxRank)
    return emitError() << "a view has 1 to " << maxRank << " dimensions, not " << rank;
  bool isFloat = elementType.isF64() || elementType.isF32() || elementType.isF16() || elementType.isBF16() ||
                 elementType.isFloat8E4M3FN() || elementType.isFloat8E5M2();
  bool isInteger = llvm::any_of(std::initializer_list<unsigned>{1, 8, 16, 32, 64},
                                [&](unsigned width) { return elementType.isSignlessInteger(width); });
  if (!isFloat && !isInteger)
    return emitError() << "a view's elements are of a tile element type, not " << elementType;
  return success();
}

namespace {

LogicalResult verifyTiles(Operation *op) {
  auto check = [&](TypeRange types) -> LogicalResult {
    for (Type type : types)
      if (llvm::isa<TensorType>(type))
        if (std::string reason = refuseTileType(type); !reason.empty())
          return op->emitOpError(reason);
    return success();
  };
  return failed(check(op->getOperandTypes())) ? failure() : check(op->getResultTypes());
}

LogicalResult verifyTopLevel(Operation *op) {
  if (!llvm::isa_and_nonnull<func::FuncOp>(op->getParentOp()))
    return op->emitOpError("must stand at the top level of a kernel");
  return success();
}

/// One offset per dimension, and tile and view agree on rank and element type.
LogicalResult verifyWindow(Operation *op, ViewType view, RankedTensorType tile, size_t offsets) {
  if (failed(verifyTiles(op)))
    return failure();
  if (tile.getRank() != view.getRank())
    return op->emitOpError() << "tile of rank " << tile.getRank() << " on a view of rank " << view.getRank();
  if (offsets != view.getRank())
    return op->emitOpError() << "needs " << view.getRank() << " offsets, has " << offsets;
  if (tile.getElementType() != view.getElementType())
    return op->emitOpError() << "tile of " << tile.getElementType() << " on a view of " << view.getElementType();
  return success();
}

/// One index tile per dimension of the view; all tiles of one shape; the value has the view's element type.
LogicalResult verifyIndexed(Operation *op, ViewType view, RankedTensorType value, OperandRange indices, Value mask) {
  if (failed(verifyTiles(op)))
    return failure();
  if (indices.size() != view.getRank())
    return op->emitOpError() << "needs " << view.getRank() << " index tiles, has " << indices.size();
  if (value.getElementType() != view.getElementType())
    return op->emitOpError() << "tile of " << value.getElementType() << " on a view of " << view.getElementType();
  for (Value index : indices)
    if (llvm::cast<RankedTensorType>(index.getType()).getShape() != value.getShape())
      return op->emitOpError("index tiles must have the shape of the value");
  if (mask && llvm::cast<RankedTensorType>(mask.getType()).getShape() != value.getShape())
    return op->emitOpError("the mask must have the shape of the value");
  return success();
}

LogicalResult verifyPadding(Operation *op, Value padding, Type element) {
  if (padding && padding.getType() != element)
    return op->emitOpError() << "padding of type " << padding.getType() << " for elements of type " << element;
  return success();
}

LogicalResult verifyAtomicElement(Operation *op, Type element) {
  if (element.getIntOrFloatBitWidth() < 32)
    return op->emitOpError() << "needs elements of 32 or 64 bits, not " << element;
  return success();
}

LogicalResult verifyDim(Operation *op, int64_t dim, int64_t rank) {
  if (dim < 0 || dim >= rank)
    return op->emitOpError() << "dimension " << dim << " of a rank of " << rank;
  return success();
}

/// Shared by reduce and scan: equal operand shapes, and a region that maps 2n scalars to n.
LogicalResult verifyCombine(Operation *op, OperandRange values, ResultRange results, int64_t dim, Region &region) {
  if (failed(verifyTiles(op)))
    return failure();
  if (values.empty() || values.size() != results.size())
    return op->emitOpError("needs as many results as operands, at least one");
  auto first = llvm::cast<RankedTensorType>(values[0].getType());
  if (failed(verifyDim(op, dim, first.getRank())))
    return failure();
  Block &block = region.front();
  if (block.getNumArguments() != 2 * values.size())
    return op->emitOpError() << "the region takes " << 2 * values.size() << " scalars, not " << block.getNumArguments();
  auto yield = llvm::dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getValues().size() != values.size())
    return op->emitOpError() << "the region must end in tile.yield of " << values.size() << " scalars";
  for (auto [i, value] : llvm::enumerate(values)) {
    auto type = llvm::cast<RankedTensorType>(value.getType());
    if (type.getShape() != first.getShape())
      return op->emitOpError("operands differ in shape");
    Type element = type.getElementType();
    if (block.getArgument(i).getType() != element || block.getArgument(i + values.size()).getType() != element ||
        yield.getValues()[i].getType() != element)
      return op->emitOpError() << "the region must combine " << element << " for operand " << i;
    if (llvm::cast<RankedTensorType>(results[i].getType()).getElementType() != element)
      return op->emitOpError() << "result " << i << " must have elements of type " << element;
  }
  for (Operation &inner : block) {
    if (inner.getNumRegions() != 0 || llvm::any_of(inner.getOperands(), [&](Value operand) {
          return operand.getParentRegion() != &region;
        }))
      return inner.emitOpError("a combine region may only use its own arguments, in straight-line code");
    auto isScalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
    // "hidden" is what math looks like while others fold: transform/HideMath.h.
    bool known = llvm::is_contained({"arith", "math", "tile", "hidden"}, inner.getName().getDialectNamespace());
    if (!known || !isMemoryEffectFree(&inner) || !llvm::all_of(inner.getOperandTypes(), isScalar) ||
        !llvm::all_of(inner.getResultTypes(), isScalar))
      return inner.emitOpError("a combine region consists of scalar arith, math and tile ops without side effects");
  }
  return success();
}

} // namespace

LogicalResult GridOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  llvm::append_range(types, adaptor.getExtents().getTypes());
  return success();
}

LogicalResult GridOp::verify() {
  if (getExtents().empty() || getExtents().size() > 3)
    return emitOpError() << "has 1 to 3 axes, not " << getExtents().size();
  if (failed(verifyTopLevel(*this)))
    return failure();
  for (Operation *other = (*this)->getPrevNode(); other; other = other->getPrevNode())
    if (llvm::isa<GridOp>(other))
      return emitOpError("stands once in a kernel");
  return success();
}

LogicalResult RequireOp::verify() { return verifyTopLevel(*this); }

LogicalResult WorkspaceOp::verify() {
  if (getSizes().size() != getView().getType().getRank())
    return emitOpError("needs one size per dimension of its view");
  return verifyTopLevel(*this);
}

LogicalResult SizeOp::verify() { return verifyDim(*this, getDim(), getView().getType().getRank()); }

LogicalResult LoadOp::verify() {
  if (failed(verifyWindow(*this, getView().getType(), getType(), getOffsets().size())))
    return failure();
  return verifyPadding(*this, getPadding(), getType().getElementType());
}

LogicalResult StoreOp::verify() {
  return verifyWindow(*this, getView().getType(), getValue().getType(), getOffsets().size());
}

LogicalResult GatherOp::verify() {
  if (failed(verifyIndexed(*this, getView().getType(), getType(), getIndices(), getMask())))
    return failure();
  return verifyPadding(*this, getPadding(), getType().getElementType());
}

LogicalResult ScatterOp::verify() {
  return verifyIndexed(*this, getView().getType(), getValue().getType(), getIndices(), getMask());
}

LogicalResult AtomicRMWOp::verify() {
  if (failed(verifyIndexed(*this, getView().getType(), getValue().getType(), getIndices(), getMask())))
    return failure();
  return verifyAtomicElement(*this, getValue().getType().getElementType());
}

LogicalResult AtomicCASOp::verify() {
  if (failed(verifyIndexed(*this, getView().getType(), getExpected().getType(), getIndices(), getMask())))
    return failure();
  return verifyAtomicElement(*this, getExpected().getType().getElementType());
}

LogicalResult SplatOp::verify() {
  if (getType().getElementType() != getValue().getType())
    return emitOpError("scalar and tile differ in element type");
  return verifyTiles(*this);
}

LogicalResult IotaOp::verify() {
  return failed(verifyTiles(*this)) ? failure() : verifyDim(*this, getDim(), getType().getRank());
}

LogicalResult BroadcastOp::verify() {
  if (failed(verifyTiles(*this)))
    return failure();
  RankedTensorType from = getValue().getType(), to = getType();
  if (from.getElementType() != to.getElementType() || from.getRank() != to.getRank())
    return emitOpError("operand and result must have the same rank and element type");
  for (auto [a, b] : llvm::zip(from.getShape(), to.getShape()))
    if (a != b && a != 1)
      return emitOpError() << "cannot broadcast a dimension of size " << a << " to " << b;
  return success();
}

LogicalResult ReshapeOp::verify() {
  if (failed(verifyTiles(*this)))
    return failure();
  if (getValue().getType().getElementType() != getType().getElementType() ||
      getValue().getType().getNumElements() != getType().getNumElements())
    return emitOpError("operand and result must have the same elements");
  return success();
}

LogicalResult TransposeOp::verify() {
  if (failed(verifyTiles(*this)))
    return failure();
  RankedTensorType from = getValue().getType(), to = getType();
  ArrayRef<int64_t> permutation = getPermutation();
  if (from.getElementType() != to.getElementType() || from.getRank() != to.getRank() ||
      static_cast<int64_t>(permutation.size()) != from.getRank())
    return emitOpError("operand, result and permutation must have the same rank, operand and result the same elements");
  llvm::SmallBitVector seen(permutation.size());
  for (auto [d, source] : llvm::enumerate(permutation)) {
    if (source < 0 || source >= from.getRank() || seen[source])
      return emitOpError("the permutation must name every dimension once");
    seen.set(source);
    if (to.getDimSize(d) != from.getDimSize(source))
      return emitOpError() << "dimension " << d << " must have size " << from.getDimSize(source);
  }
  return success();
}

LogicalResult SliceOp::verify() {
  if (failed(verifyTiles(*this)))
    return failure();
  RankedTensorType from = getValue().getType(), to = getType();
  if (from.getElementType() != to.getElementType() || from.getRank() != to.getRank() ||
      static_cast<int64_t>(getOffsets().size()) != from.getRank())
    return emitOpError("operand, result and offsets must have the same rank, operand and result the same elements");
  for (auto [offset, size, whole] : llvm::zip(getOffsets(), to.getShape(), from.getShape()))
    if (offset < 0 || size > whole || offset > whole - size)
      return emitOpError() << size << " elements from " << offset << " on, of a dimension of " << whole;
  return success();
}

LogicalResult ConcatOp::verify() {
  if (failed(verifyTiles(*this)))
    return failure();
  RankedTensorType to = getType();
  if (getValues().empty())
    return emitOpError("needs at least one operand");
  if (failed(verifyDim(*this, getDim(), to.getRank())))
    return failure();
  int64_t total = 0;
  for (Value value : getValues()) {
    auto from = llvm::cast<RankedTensorType>(value.getType());
    if (from.getElementType() != to.getElementType() || from.getRank() != to.getRank())
      return emitOpError("operands and result must have the same rank and element type");
    for (int64_t d = 0; d < to.getRank(); ++d)
      if (d != static_cast<int64_t>(getDim()) && from.getDimSize(d) != to.getDimSize(d))
        return emitOpError() << "operands differ in dimension " << d;
    total += from.getDimSize(getDim());
  }
  if (total != to.getDimSize(getDim()))
    return emitOpError() << "the result must have size " << total << " in dimension " << getDim();
  return success();
}

LogicalResult ScalarOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  // Runs before anything is verified.
  auto tile = llvm::dyn_cast<RankedTensorType>(adaptor.getValue().getType());
  if (!tile)
    return failure();
  types.push_back(tile.getElementType());
  return success();
}

LogicalResult ScalarOp::verify() {
  if (failed(verifyTiles(*this)))
    return failure();
  if (getValue().getType().getNumElements() != 1)
    return emitOpError() << "needs a tile of one element, not " << getValue().getType();
  return success();
}

LogicalResult CastOp::verify() {
  auto shape = [](Type type) {
    auto tensor = llvm::dyn_cast<RankedTensorType>(type);
    return tensor ? tensor.getShape() : ArrayRef<int64_t>();
  };
  if (shape(getValue().getType()) != shape(getType()))
    return emitOpError("operand and result must have the same shape");
  return verifyTiles(*this);
}

LogicalResult DivOp::verify() { return verifyTiles(*this); }
LogicalResult RemOp::verify() { return verifyTiles(*this); }
LogicalResult ShlOp::verify() { return verifyTiles(*this); }
LogicalResult ShrOp::verify() { return verifyTiles(*this); }

LogicalResult PhiloxOp::verify() {
  for (Type type : getResultTypes())
    if (llvm::cast<RankedTensorType>(type).getShape() != getCounter().getType().getShape())
      return emitOpError("results must have the shape of the counter");
  return verifyTiles(*this);
}

LogicalResult RandomBitsOp::verify() {
  if (getBits().getType().getShape() != getCounter().getType().getShape())
    return emitOpError("the result must have the shape of the counter");
  if (getRounds() < 7 || getRounds() > 10)
    return emitOpError("the generator has 7 to 10 rounds");
  return verifyTiles(*this);
}

LogicalResult ReduceOp::verify() {
  if (failed(verifyCombine(*this, getValues(), getResults(), getDim(), getCombine())))
    return failure();
  SmallVector<int64_t> shape(llvm::cast<RankedTensorType>(getValues()[0].getType()).getShape());
  shape[getDim()] = 1;
  for (Type type : getResultTypes())
    if (llvm::cast<RankedTensorType>(type).getShape() != ArrayRef<int64_t>(shape))
      return emitOpError("results keep the operands' shape with the reduced dimension of size 1");
  return success();
}

LogicalResult ScanOp::verify() {
  if (failed(verifyCombine(*this, getValues(), getResults(), getDim(), getCombine())))
    return failure();
  for (auto [value, result] : llvm::zip(getValues(), getResults()))
    if (value.getType() != result.getType())
      return emitOpError("results have the operands' types");
  return success();
}

LogicalResult DotOp::verify() {
  if (failed(verifyTiles(*this)))
    return failure();
  RankedTensorType a = getA().getType(), b = getB().getType(), acc = getAcc().getType();
  if (a.getRank() != 2 || b.getRank() != 2 || acc.getRank() != 2)
    return emitOpError("operands are matrices");
  if (a.getDimSize(1) != b.getDimSize(0) || a.getDimSize(0) != acc.getDimSize(0) ||
      b.getDimSize(1) != acc.getDimSize(1))
    return emitOpError() << "shapes do not fit: " << a << " times " << b << " plus " << acc;
  Type ta = a.getElementType(), tb = b.getElementType(), tacc = acc.getElementType();
  auto isF8 = [](Type type) { return type.isFloat8E4M3FN() || type.isFloat8E5M2(); };
  bool isF64 = ta.isF64() && tb.isF64() && tacc.isF64();
  bool isF32 = ((ta == tb && (ta.isF32() || ta.isF16() || ta.isBF16())) || (isF8(ta) && isF8(tb))) && tacc.isF32();
  bool isI8 = ta.isInteger(8) && tb.isInteger(8) && tacc.isInteger(32);
  if (!isF64 && !isF32 && !isI8)
    return emitOpError() << "no dot of " << ta << " and " << tb << " with an accumulator of " << tacc;
  if (getFastAccum() && !isF8(ta))
    return emitOpError() << "fast_accum is about sums of f8, and the operands are of " << ta;
  return success();
}

LogicalResult AssertOp::verify() { return verifyTiles(*this); }
LogicalResult PrintOp::verify() { return verifyTiles(*this); }

} // namespace tenon::tile
