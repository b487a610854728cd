// SPDX-License-Identifier: Apache-2.0
//
// Dropout: each element becomes zero with the given probability, and the others are scaled up to make up for it.
//
// The random numbers come from a counter, the position of the element in the matrix: no mask is stored (the backward
// pass draws it again), and the result does not depend on tile sizes or on the machine.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel dropout("dropout(x, y, probability, seed, rows=1, cols=1024)",
                     [](View x, View y, Scalar probability, Index seed, Param rows, Param cols) {
  require((x.size(0) == y.size(0)) & (x.size(1) == y.size(1)), "x and y must have the same shape");
  auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
  Tile t = x.load({i * rows, j * cols}, {rows, cols}).to(computeType(x));

  Tile row = iota(i64, {rows, 1}, 0) + i * rows;
  Tile column = iota(i64, {1, cols}, 1) + j * cols;
  y.store({i * rows, j * cols}, tenon::dropout(t, probability, seed, row * x.size(1) + column).to(y.dtype()));
});

} // namespace tenon::zoo
