// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tenon::cpu {

/// Marks exponentials of what cannot be positive (nor infinite, but for minus infinity): -|x|, or |x| times a negative
/// constant; x less the largest of the same x, or the larger of that and another, as every softmax has it. They need no
/// bound above. Where the largest is minus infinity a program takes something else in its place, which is no smaller.
///
///     %m = tile.reduce %x ... maximumf
///     %d = arith.subf %x, broadcast(maximumf %old, %m)
///     %e = math.exp %d                                       ->   math.exp %d {tile.non_positive}
void markNonPositive(mlir::func::FuncOp kernel);

} // namespace tenon::cpu
