// SPDX-License-Identifier: Apache-2.0
//
// 1 + erf(x) and 1 + tanh(x) of f32, and what is made of them that is one function with them: half of the sum, and the
// product of that half with what the function is of, as in GELU.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <optional>

namespace tenon {

/// One number, or a known number of them.
bool hasFixedShape(mlir::Type type);

/// x and s where the value is s x with a positive constant s, as GELU's argument of erf is; else the value and 1.
std::pair<mlir::Value, float> takeScale(mlir::Value value);

struct SumWithOne {
  mlir::arith::AddFOp sum;
  mlir::Operation *function; ///< erf or tanh, which nothing else wants
  mlir::arith::MulFOp half;  ///< by which the sum is halved, if that is its only use

  bool isErf();

  /// The product of half of the sum with x, or of the sum with half of x, where nothing else wants the half, or the
  /// sum; null else.
  mlir::arith::MulFOp productWith(mlir::Value x);

  /// Puts `result` in the place of the product, or of half of the sum, or of the sum, whichever of them is there, and
  /// erases what nobody wants then.
  void replaceBy(mlir::Value result, mlir::arith::MulFOp product = {});
};

std::optional<SumWithOne> matchSumWithOne(mlir::arith::AddFOp sum);

} // namespace tenon
