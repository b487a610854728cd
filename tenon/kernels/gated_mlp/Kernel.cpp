// SPDX-License-Identifier: Apache-2.0
//
// The first half of a gated feed-forward layer: y = silu(x * gate) * (x * up). Both projections walk along x together,
// so that it is read once, and neither is stored.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel gatedMlp("gated_mlp(x, gate, up, y, bm=64, bn=64, bk=64)",
                      [](View x, View gate, View up, View y, Param bm, Param bn, Param bk) {
  require((x.size(0) == y.size(0)) & (gate.size(1) == y.size(1)) & (x.size(1) == gate.size(0)),
          "x must be M x K, gate K x N and y M x N");
  require((up.size(0) == gate.size(0)) & (up.size(1) == gate.size(1)), "gate and up must have the same shape");
  promise_no_overlap();
  auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));

  Tile g = zeros(computeType(x), {bm, bn}), u = zeros(computeType(x), {bm, bn});
  for (Index k : range(0, x.size(1), bk)) {
    Tile rows = x.load({i * bm, k}, {bm, bk});
    g = dot(rows, gate.load({k, j * bn}, {bk, bn}), g);
    u = dot(rows, up.load({k, j * bn}, {bk, bn}), u);
  }
  y.store({i * bm, j * bn}, (g * sigmoid(g) * u).to(y.dtype()));
});

} // namespace tenon::zoo
