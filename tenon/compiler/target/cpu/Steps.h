// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"

#include <optional>

namespace tenon::cpu {

/// By how much an integer tile grows from one element to the next along a dimension, where that is the same everywhere
/// and can be told from how the tile is made. Sums wrap around in the tile's own type.
std::optional<int64_t> stepAlong(mlir::Value tile, int dim);

} // namespace tenon::cpu
