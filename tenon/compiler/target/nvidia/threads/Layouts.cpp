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

bool reshapesInPlace(RankedTensorType from, RankedTensorType to) {
  std::optional<LayoutAttr> expected = reshaped(layoutOf(from), from.getShape(), to.getShape());
  return expected && *expected == layoutOf(to);
}

} // namespace tenon::nvidia
