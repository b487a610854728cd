// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tenon {

/// x where the quotient is the sigmoid of x, as the language writes it so that it never overflows:
/// (x >= 0 ? 1 : e) / (1 + e), e = exp(-|x|). Null for anything else.
mlir::Value sigmoidOf(mlir::arith::DivFOp quotient);

} // namespace tenon
