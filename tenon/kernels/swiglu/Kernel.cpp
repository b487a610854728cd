// SPDX-License-Identifier: Apache-2.0
//
// The gated unit of most current feed-forward layers: y = silu(gate) * up, silu(g) = g * sigmoid(g).
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel swiglu("swiglu(gate, up, y, rows=1, cols=1024)",
                    [](View gate, View up, View y, Param rows, Param cols) {
  require((gate.size(0) == y.size(0)) & (gate.size(1) == y.size(1)) & (up.size(0) == y.size(0)) &
              (up.size(1) == y.size(1)),
          "gate, up and y must have the same shape");
  auto [i, j] = grid(cdiv(y.size(0), rows), cdiv(y.size(1), cols));
  Tile g = gate.load({i * rows, j * cols}, {rows, cols}).to(computeType(gate));
  Tile u = up.load({i * rows, j * cols}, {rows, cols}).to(computeType(gate));
  y.store({i * rows, j * cols}, (g * sigmoid(g) * u).to(y.dtype()));
});

} // namespace tenon::zoo
