// SPDX-License-Identifier: Apache-2.0
//
// Softmax of each row: y = exp(x - max(x)) / sum(exp(x - max(x))). A tile spans whole rows, so each is read once.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel softmax("softmax(x, y, rows=1, cols)", [](View x, View y, Param rows, Param cols) {
  require((x.size(0) == y.size(0)) & (x.size(1) == y.size(1)), "x and y must have the same shape");
  require(x.size(1) <= cols, "the tile must span the row: choose cols at least the number of columns");
  Index i = grid(cdiv(x.size(0), rows));

  // Past the row's end the padding counts as minus infinity: it never is the maximum, and its exponential is zero.
  Tile t = x.load({i * rows, 0}, {rows, cols}, -inf).to(computeType(x));
  t = exp(t - max(t, 1));
  y.store({i * rows, 0}, (t / sum(t, 1)).to(y.dtype()));
});

} // namespace tenon::zoo
