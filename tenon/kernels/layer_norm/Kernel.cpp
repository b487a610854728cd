// SPDX-License-Identifier: Apache-2.0
//
// Layer norm of a residual stream, in one pass over memory:
//     total = x + residual,   y = (total - mean) / sqrt(variance + eps) * weight + bias     (per row)
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel layerNorm("layer_norm(x, residual, weight, bias, total, y, eps, rows=1, cols)",
                       [](View x, View residual, View weight, View bias, View total, View y, Scalar eps, Param rows,
                          Param cols) {
  require((x.size(0) == y.size(0)) & (x.size(1) == y.size(1)) & (residual.size(0) == y.size(0)) &
              (residual.size(1) == y.size(1)) & (total.size(0) == y.size(0)) & (total.size(1) == y.size(1)),
          "x, residual, total and y must have the same shape");
  require((weight.size(0) == y.size(1)) & (bias.size(0) == y.size(1)),
          "weight and bias must have one element per column");
  require(x.size(1) <= cols, "the tile must span the row: choose cols at least the number of columns");
  DType compute = computeType(x);
  Index i = grid(cdiv(x.size(0), rows));

  Tile t = x.load({i * rows, 0}, {rows, cols}).to(compute) + residual.load({i * rows, 0}, {rows, cols}).to(compute);
  total.store({i * rows, 0}, t.to(total.dtype()));

  // The padding past the row's end is zero: it adds nothing to the mean, but its distance from the mean must not count.
  Tile count = x.size(1).to(compute);
  Tile centred = t - sum(t, 1) / count;
  Tile inside = iota(i64, {1, cols}, 1) < x.size(1);
  Tile variance = sum(where(inside, centred * centred, 0), 1) / count;

  Tile normal = centred * rsqrt(variance + eps);
  y.store({i * rows, 0}, (normal * weight.load({0}, {cols}).to(compute) + bias.load({0}, {cols}).to(compute))
                             .to(y.dtype()));
});

} // namespace tenon::zoo
