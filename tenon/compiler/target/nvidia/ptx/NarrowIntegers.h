// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mlir {
class Operation;
} // namespace mlir

namespace tenon::nvidia {

/// Integers of 8 and 16 bits become floats without a conversion.
void convertNarrowIntegers(mlir::Operation *function);

} // namespace tenon::nvidia
