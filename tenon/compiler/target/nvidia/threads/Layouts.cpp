// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/threads/Layouts.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tenon::nvidia {

LayoutAttr toAttribute(MLIRContext *context, const LinearLayout &layout) {
  SmallVector<int64_t> bases[4];
  for (Unit unit : {Unit::Register, Unit::Lane, Unit::Warp, Unit::Block})
    for (unsigned bit = 0; bit < layout.in().log(unit); ++bit)
      llvm::append_range(bases[unsigned(unit)], layout.basis(unit, bit));
  return LayoutAttr::get(context, layout.rank(), bases[0], bases[1], bases[2], bases[3]);
}

LinearLayout toLayout(LayoutAttr attribute) {
  size_t rank = attribute.getRank();
  Shape extents(rank, 1);
  auto bases = [&](Unit unit, ArrayRef<int64_t> flat) {
    LinearLayout::UnitBases list{unit, {}};
    for (size_t i = 0; i < flat.size(); i += rank) {
      list.bases.emplace_back(flat.begin() + i, flat.begin() + i + rank);
      for (size_t d = 0; d < rank; ++d)
        extents[d] += flat[i + d];
    }
    return list;
  };
  std::vector<LinearLayout::UnitBases> all = {
      bases(Unit::Register, attribute.getReg()), bases(Unit::Lane, attribute.getLane()),
      bases(Unit::Warp, attribute.getWarp()), bases(Unit::Block, attribute.getBlock())};
  return LinearLayout(all, extents);
}

LayoutAttr layoutOf(Type tile) {
  return llvm::dyn_cast_or_null<LayoutAttr>(llvm::cast<RankedTensorType>(tile).getEncoding());
}

RankedTensorType withLayout(Type tile, LayoutAttr layout) {
  auto type = llvm::cast<RankedTensorType>(tile);
  return RankedTensorType::get(type.getShape(), type.getElementType(), layout);
}

LayoutAttr projected(LayoutAttr layout, ArrayRef<int64_t> small) {
  std::vector<unsigned> dims;
  for (auto [d, size] : llvm::enumerate(small))
    if (size == 1)
      dims.push_back(d);
  if (dims.empty())
    return layout;
  return toAttribute(layout.getContext(), toLayout(layout).project(dims).removeDuplicateRegisters());
}

LayoutAttr transposed(LayoutAttr layout, ArrayRef<int64_t> permutation) {
  return toAttribute(layout.getContext(),
                     toLayout(layout).transpose(std::vector<unsigned>(permutation.begin(), permutation.end())));
}

std::optional<LayoutAttr> reshaped(LayoutAttr layout, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  auto withoutUnits = [](ArrayRef<int64_t> shape) {
    SmallVector<int64_t> rest;
    llvm::copy_if(shape, std::back_inserter(rest), [](int64_t size) { return size != 1; });
    return rest;
  };
  auto arePowers = [](ArrayRef<int64_t> shape) { return llvm::all_of(shape, [](int64_t n) { return llvm::isPowerOf2_64(n); }); };
  if (withoutUnits(from) != withoutUnits(to) && !(arePowers(from) && arePowers(to)))
    return std::nullopt;
  LinearLayout linear = toLayout(layout);
  Shape extents = powerOfTwoExtents(Shape(to.begin(), to.end()));
  if (linear.shape() != powerOfTwoExtents(Shape(from.begin(), from.end())))
    return std::nullopt; // a fragment larger than the tile
  return toAttribute(layout.getContext(), linear.reshape(extents));
}

namespace {

/// A layout that covers the tile and no more; a fragment may be larger.
bool covers(const LinearLayout &layout, ArrayRef<int64_t> shape) {
  return layout.shape() == powerOfTwoExtents(Shape(shape.begin(), shape.end()));
}

} // namespace

std::optional<LayoutAttr> concatenated(tile::ConcatOp op, LayoutAttr part) {
  auto shapeOf = [](Value tile) { return llvm::cast<RankedTensorType>(tile.getType()).getShape(); };
  ArrayRef<int64_t> shape = shapeOf(op.getValues()[0]);
  auto dim = static_cast<unsigned>(op.getDim());
  bool areEqual = llvm::all_of(op.getValues(), [&](Value tile) { return shapeOf(tile) == shape; });
  if (!areEqual || !llvm::isPowerOf2_64(shape[dim]) || !covers(toLayout(part), shape))
    return std::nullopt;
  // The tile's number is in bits of the register's behind those along the dimension: single elements become neighbours,
  // and halves of a dot's sums what they were.
  size_t rank = shape.size(), at = 0;
  for (size_t i = 0; i < part.getReg().size(); i += rank)
    if (part.getReg()[i + dim])
      at = i + rank;
  SmallVector<int64_t> registers(part.getReg());
  for (int64_t step = shape[dim]; step < shape[dim] * static_cast<int64_t>(op.getValues().size()); step *= 2) {
    SmallVector<int64_t> basis(rank, 0);
    basis[dim] = step;
    registers.insert(registers.begin() + at, basis.begin(), basis.end());
    at += rank;
  }
  return LayoutAttr::get(part.getContext(), rank, registers, part.getLane(), part.getWarp(), part.getBlock());
}

std::optional<LayoutAttr> sliced(tile::SliceOp op, LayoutAttr whole) {
  ArrayRef<int64_t> from = llvm::cast<RankedTensorType>(op.getValue().getType()).getShape();
  ArrayRef<int64_t> to = llvm::cast<RankedTensorType>(op.getType()).getShape();
  size_t rank = from.size();
  if (!covers(toLayout(whole), from))
    return std::nullopt;
  auto leavesOut = [&](ArrayRef<int64_t> basis) {
    return llvm::any_of(llvm::seq<size_t>(0, rank), [&](size_t d) { return from[d] != to[d] && basis[d] >= to[d]; });
  };
  for (auto [size, before, offset] : llvm::zip(to, from, op.getOffsets()))
    if (size != before && (!llvm::isPowerOf2_64(size) || offset % size != 0))
      return std::nullopt;
  for (ArrayRef<int64_t> bases : {whole.getLane(), whole.getWarp(), whole.getBlock()})
    for (size_t i = 0; i < bases.size(); i += rank)
      if (leavesOut(bases.slice(i, rank)))
        return std::nullopt;
  SmallVector<int64_t> registers;
  for (size_t i = 0; i < whole.getReg().size(); i += rank)
    if (ArrayRef<int64_t> basis = whole.getReg().slice(i, rank); !leavesOut(basis))
      llvm::append_range(registers, basis);
  return LayoutAttr::get(whole.getContext(), rank, registers, whole.getLane(), whole.getWarp(), whole.getBlock());
}

std::optional<unsigned> thirdsOf(ArrayRef<int64_t> shape) {
  for (auto [d, size] : llvm::enumerate(shape))
    if (size % 3 == 0 && llvm::isPowerOf2_64(size / 3))
      return d;
  return std::nullopt;
}

bool reshapesInPlace(RankedTensorType from, RankedTensorType to) {
  std::optional<LayoutAttr> expected = reshaped(layoutOf(from), from.getShape(), to.getShape());
  return expected && *expected == layoutOf(to);
}

} // namespace tenon::nvidia
