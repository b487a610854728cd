// SPDX-License-Identifier: Apache-2.0
//
// What follows the first projection of a feed-forward layer with biases: y = gelu(x + bias), the tanh form of gelu.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel biasGelu("bias_gelu(x, bias, y, rows=1, cols=1024)",
                      [](View x, View bias, View y, Param rows, Param cols) {
  require((x.size(0) == y.size(0)) & (x.size(1) == y.size(1)), "x and y must have the same shape");
  require(bias.size(0) == y.size(1), "bias must have one element per column");
  DType compute = computeType(x);
  auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));

  // One row of biases serves every row of the tile: {cols} broadcasts against {rows, cols}.
  Tile t = x.load({i * rows, j * cols}, {rows, cols}).to(compute) + bias.load({j * cols}, {cols}).to(compute);
  Tile phi = 0.5 * (1 + tanh(0.7978845608028654 * (t + 0.044715 * t * t * t))); // sqrt(2 / pi)
  y.store({i * rows, j * cols}, (t * phi).to(y.dtype()));
});

} // namespace tenon::zoo
