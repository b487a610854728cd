// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tenon::cpu {

/// Moves every tile.reduce up to where its operands are computed. Roots arrive in program order, and one that stands
/// next to what it reduces shares its loop: attention's weights are then summed as they are computed, and not read once
/// more. Then those that share something become neighbours, with what is computed for each alone, whatever stands
/// between them: three sums of t * e, each added to an accumulator of its own, compute e once.
void hoistReductions(mlir::func::FuncOp kernel);

} // namespace tenon::cpu
