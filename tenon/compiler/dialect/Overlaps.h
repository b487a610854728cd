// SPDX-License-Identifier: Apache-2.0
//
// Argument attributes: which views of a launch have memory in common, where some have.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace tenon::tile {

/// `tile.overlaps = array<i64: ...>`: the arguments with which the view may have memory in common; without it, all of
/// them.
inline constexpr llvm::StringLiteral overlapsAttr = "tile.overlaps";
/// `tile.same_as = n`: the view is that of the earlier argument n: the same address, sizes, strides and type.
inline constexpr llvm::StringLiteral sameAsAttr = "tile.same_as";

} // namespace tenon::tile
