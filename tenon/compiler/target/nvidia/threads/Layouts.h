// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/target/nvidia/layout/LinearLayout.h"

#include "llvm/Support/MathExtras.h"

#include <optional>

/// Layouts as attributes of tile types, and the ways they follow from each other.
namespace tenon::nvidia {

LayoutAttr toAttribute(mlir::MLIRContext *context, const LinearLayout &layout);
LinearLayout toLayout(LayoutAttr layout);
/// Whether a block's warps that hold tiles are three warpgroups: the only number that is no power of two.
inline bool isOfThree(int64_t warps) { return warps == 12; }
/// How many warps the layouts of a block's tiles are of: as many as the bits of their numbers make. Of three warpgroups
/// that is one more, which is not there; no tile has elements that only it would hold.
inline int64_t layoutWarps(int64_t warps) { return static_cast<int64_t>(llvm::PowerOf2Ceil(warps)); }
LayoutAttr layoutOf(mlir::Type tile); ///< null for a tile without one
mlir::RankedTensorType withLayout(mlir::Type tile, LayoutAttr layout);

/// Of the tile that has size 1 in the dimensions where `small` has it and whose broadcast has `layout`.
LayoutAttr projected(LayoutAttr layout, llvm::ArrayRef<int64_t> small);
LayoutAttr transposed(LayoutAttr layout, llvm::ArrayRef<int64_t> permutation);
/// The layout in which a reshape moves nothing: known when the shapes differ in dimensions of size 1 only, or all sizes are
/// powers of two.
std::optional<LayoutAttr> reshaped(LayoutAttr layout, llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);
/// The layout in which a concatenation of equal tiles moves nothing, if they have `part`: every thread has its own
/// elements of all of them. Known for tiles that are a power of two along the dimension.
std::optional<LayoutAttr> concatenated(tile::ConcatOp op, LayoutAttr part);
/// The same of a slice of a tile that has `whole`: known where all that it leaves out are other registers of each
/// thread.
std::optional<LayoutAttr> sliced(tile::SliceOp op, LayoutAttr whole);
/// Whether a reshape moves no element to another thread: the layouts agree in row-major order of their extents.
bool reshapesInPlace(mlir::RankedTensorType from, mlir::RankedTensorType to);

/// A dimension that is three times a power of two.
std::optional<unsigned> thirdsOf(llvm::ArrayRef<int64_t> shape);

} // namespace tenon::nvidia
