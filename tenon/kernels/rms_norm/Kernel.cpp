// SPDX-License-Identifier: Apache-2.0
//
// Root-mean-square norm of each row: y = x / sqrt(mean(x^2) + eps) * weight.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel rmsNorm("rms_norm(x, weight, y, eps, rows=1, cols)",
                     [](View x, View weight, View y, Scalar eps, Param rows, Param cols) {
  require((x.size(0) == y.size(0)) & (x.size(1) == y.size(1)), "x and y must have the same shape");
  require(weight.size(0) == y.size(1), "weight must have one element per column");
  require(x.size(1) <= cols, "the tile must span the row: choose cols at least the number of columns");
  DType compute = computeType(x);
  Index i = grid(cdiv(x.size(0), rows));

  // The padding past the row's end is zero and adds nothing to the sum of squares.
  Tile t = x.load({i * rows, 0}, {rows, cols}).to(compute);
  Tile meanSquare = sum(t * t, 1) / x.size(1).to(compute);
  y.store({i * rows, 0}, (t * rsqrt(meanSquare + eps) * weight.load({0}, {cols}).to(compute)).to(y.dtype()));
});

} // namespace tenon::zoo
