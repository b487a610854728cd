// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Value.h"

#include <optional>

namespace tenon {

/// first x + third x^3.
struct Cubic {
  mlir::Value x;
  double first = 0, third = 0;
};

/// What products and sums of f32 with constants amount to, if that is such a polynomial in one value and both factors
/// are of one sign and of ordinary size: the argument of GELU's tanh. Terms that cancel are not added up, since what
/// their roundings leave is what is asked for.
///
///     0.8 * (x + 0.045 * x * x * x)   ->   x, 0.8, 0.036
std::optional<Cubic> cubicOf(mlir::Value value);

/// A constant, or as many of it as there are lanes.
std::optional<double> constantOf(mlir::Value value);

} // namespace tenon
