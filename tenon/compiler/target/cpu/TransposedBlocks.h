// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tenon::cpu {

/// Transposes as many vectors as each has lanes, a power of two: interleaving vector i with vector i + lanes / 2, log2(lanes)
/// times over.
void transposeSquare(mlir::ImplicitLocOpBuilder &b, llvm::SmallVectorImpl<mlir::Value> &rows);

} // namespace tenon::cpu
