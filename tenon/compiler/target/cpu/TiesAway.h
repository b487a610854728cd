// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tenon::cpu {

/// Marks roundings of f32 to bf16, on their way to a store, that may take ties away from zero: those of numbers that
/// are off anyway, since all of them go through something relaxed (RelaxPrecision.h). It is two integer operations, an
/// addition and a shift, where ties to even take five and a choice for NaN, or an instruction that takes subnormal
/// numbers for zero.
///
///     %e = math.exp %x {tile.relaxed}
///     %p = arith.mulf %e, %w
///     %y = tile.cast %p : f32 -> bf16          ->   tile.cast %p {tile.ties_away}
///     tile.store %y
///
/// The addition would carry a NaN whose bits are all ones over into the sign. So it is done where every NaN has but
/// zeros in its lower half: those of operands in bf16 and those that a processor makes. A scalar's are exchanged for
/// such a one.
void allowTiesAway(mlir::func::FuncOp kernel);

} // namespace tenon::cpu
