// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Operation.h"

namespace tenon {

/// Erases an operation that nobody needs, and then what it alone needed.
void eraseIfDead(mlir::Operation *op);

} // namespace tenon
