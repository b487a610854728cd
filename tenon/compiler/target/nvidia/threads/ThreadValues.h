// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

/// What a tile, a view and a piece of shared memory are to one thread.
namespace tenon::nvidia {

/// A tile in the registers of one thread, by register number of its Distribution; null where no element exists.
using Registers = llvm::SmallVector<mlir::Value>;

/// A view taken apart.
struct ViewWords {
  mlir::Value address;                           ///< i64
  llvm::SmallVector<mlir::Value> sizes, strides; ///< i64
  int unitStride = -1;
  mlir::Type element;
};

/// Bytes of shared memory that one exchange uses.
struct SharedWindow {
  int64_t begin = 0, end = 0;
};

/// A partial result of a reduction or scan: a value per operand, and whether there is anything in it (null: always).
struct Partial {
  llvm::SmallVector<mlir::Value> values;
  mlir::Value filled;
};

} // namespace tenon::nvidia
