// SPDX-License-Identifier: Apache-2.0
//
// Half of 1 + erf(s x) or 1 + tanh(a x + b x^3), and its product with x, by a table of cubics (math/Tabulated.h), where
// the sum is marked for it, whole registers are computed, and the table is good enough:
//
//     1 + erf(s x) {tile.tabulated}       vrangeps      t = min(|x|, bound)
//     0.5 * ...                           vfmadd        t / length + magic, whose low bits are the index
//     x * ...                             vpermt2ps x4  the coefficients
//     f * ...                             vfmadd    x3  f t c
//                                         vfixupimmps   max(x, 0), but NaN for minus infinity
//                                         vfmsub        f max(x, 0) - f t c
//
// Eleven instructions where the polynomials have 18; the others are left to tenon-expand-math. A factor f that is one
// number for all iterations of a loop (a dropout's scale) is in the coefficients and costs nothing. One that is infinite,
// or makes coefficients infinite, would make NaN of other results: a constant one is left out of the table, one that is
// only known at run time does (docs/numerics.md).
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace tenon::cpu {

/// On a sum with 1 that is only ever seen rounded to bf16 or less, where one that is very small may be 0.
inline constexpr llvm::StringLiteral tabulatedAttr = "tile.tabulated";

void tabulateMath(mlir::ModuleOp module);

} // namespace tenon::cpu
