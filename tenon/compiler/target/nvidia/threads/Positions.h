// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/threads/Distribution.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <optional>

namespace tenon::nvidia {

/// A comparison of 64-bit positions (a mask: iota + j < n) as one of 32 bits for each register; nothing where it is
/// none, or the tile has so few registers that it would not pay. `coordinates`: what the thread's number contributes to
/// each (i32); `scalar`: the value of one of the program's.
std::optional<llvm::SmallVector<mlir::Value>>
comparePositions(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op, const Distribution &tile,
                 llvm::function_ref<llvm::ArrayRef<mlir::Value>()> coordinates,
                 llvm::function_ref<mlir::Value(mlir::Value)> scalar);

} // namespace tenon::nvidia
