// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tenon::cpu {

/// Moves every tile.reduce up to where its operands are computed. Roots arrive in program order, and one that stands
/// next to what it reduces shares its loop: attention's weights are then summed as they are computed, and not read once
/// more.
void hoistReductions(mlir::func::FuncOp kernel);

} // namespace tenon::cpu
