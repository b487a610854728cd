// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/target/nvidia/threads/Divisibility.h"

namespace tenon::nvidia {

/// How many consecutive elements one access may move: as the view's alignment allows, and such that bounds cannot cut in
/// the middle.
struct AccessWidth {
  int64_t elements, widest;
  const char *limit; ///< why not the widest

  void limitTo(int64_t most, const char *reason) {
    if (most < elements) {
      elements = std::max<int64_t>(most, 1);
      limit = reason;
    }
  }
};
AccessWidth accessWidth(mlir::Value view, mlir::ValueRange offsets, llvm::ArrayRef<int64_t> shape,
                        Divisibility &divisibility);

/// Elements of 16 bytes, if accesses of that many can be made at any address (Unaligned.cpp), and whether a load or a
/// store whose known alignment gives it accesses of `width` elements should be.
std::optional<int64_t> unalignedWidth(mlir::Value view, llvm::ArrayRef<int64_t> shape);
bool prefersUnaligned(tile::LoadOp load, int64_t width);
bool prefersUnaligned(tile::StoreOp store, int64_t width);

} // namespace tenon::nvidia
