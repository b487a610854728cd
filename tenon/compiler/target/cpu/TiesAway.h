// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tenon::cpu {

/// Marks roundings of f32 to bf16, on their way to a store, that may take ties away from zero: those of numbers whose
/// last bits nobody is promised, as something relaxed or a sum of floats is in them. It is two integer operations, an
/// addition and a shift, where ties to even take five and a choice for NaN, or an instruction that takes subnormal
/// numbers for zero.
///
///     %s = tile.reduce %x ... addf
///     %q = arith.divf %x, broadcast(%s)
///     %y = tile.cast %q : f32 -> bf16          ->   tile.cast %q {tile.ties_away}
///     tile.store %y
///
/// The addition would carry a NaN whose bits are all ones over into the sign. So it is done where every NaN has but
/// zeros in its lower half: those of operands in bf16 and those that a processor makes. A scalar's are exchanged for
/// such a one.
void allowTiesAway(mlir::func::FuncOp kernel);

} // namespace tenon::cpu
