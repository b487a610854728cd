// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding, rotate-half form: element d of the first half of a head and element d of the second half
// are a point of the plane, turned by the angle of (token, d).
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel rotary("rotary(x, cosine, sine, y, half, heads=8)",
                    [](View x, View cosine, View sine, View y, Param half, Param heads) {
  require((x.size(0) == y.size(0)) & (x.size(1) == y.size(1)) & (x.size(2) == y.size(2)),
          "x and y must have the same shape");
  require(x.size(2) == 2 * half, "half must be half the size of a head");
  require((cosine.size(0) == x.size(0)) & (cosine.size(1) == half) & (sine.size(0) == x.size(0)) &
              (sine.size(1) == half),
          "cosine and sine must have one row per token and one column per pair");
  DType compute = computeType(x);
  auto [token, j] = grid(x.size(0), cdiv(x.size(1), heads));

  Tile first = x.load({token, j * heads, 0}, {1, heads, half}).to(compute);
  Tile second = x.load({token, j * heads, half}, {1, heads, half}).to(compute);
  // One row of the tables serves every head of the token: {1, half} broadcasts against {1, heads, half}.
  Tile c = cosine.load({token, 0}, {1, half}).to(compute);
  Tile s = sine.load({token, 0}, {1, half}).to(compute);

  y.store({token, j * heads, 0}, (first * c - second * s).to(y.dtype()));
  y.store({token, j * heads, half}, (second * c + first * s).to(y.dtype()));
});

} // namespace tenon::zoo
