// SPDX-License-Identifier: Apache-2.0
//
// tenon-expand-math: math.exp, exp2, log, log2, sin, cos, tanh, erf and rsqrt become arith ops, math.fma, math.sqrt and
// math.absf, by the functions of compiler/math, with the accuracy stated in docs/maths.md and the same bits on every
// target.
#pragma once

#include <memory>

namespace mlir {
class ImplicitLocOpBuilder;
class Operation;
class Pass;
class Value;
} // namespace mlir

namespace tenon {

/// Builds the expansion of `op` at the insertion point and returns its result; `op` itself stays. Null, and nothing
/// built, when `op` is not one of these functions, its elements are not f32, f64, f16 or bf16 (the last two are
/// extended to f32, and the result is truncated), or its shape is not static.
mlir::Value expandMathOp(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op);

/// Replaces every op that expandMathOp knows, below any op; leaves the others alone.
std::unique_ptr<mlir::Pass> createExpandMathPass();

} // namespace tenon
