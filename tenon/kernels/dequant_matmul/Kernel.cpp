// SPDX-License-Identifier: Apache-2.0
//
// c = a * (scale * b) with b in 8-bit integers, which become numbers of a's type on their way to the product: the
// weights are read from memory at half the bytes or fewer.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel dequantMatmul("dequant_matmul(a, b, scale, c, bm=64, bn=64, bk=64, group=0)",
                           [](View a, View b, View scale, View c, Param bm, Param bn, Param bk, Param group) {
  require((a.size(0) == c.size(0)) & (b.size(1) == c.size(1)) & (a.size(1) == b.size(0)),
          "a must be M x K, b K x N and c M x N");
  require(scale.size(1) == c.size(1), "scale must have one column per column of c");
  if (group) {
    require(group % bk == 0, "a step must lie in one group: choose bk so that it divides group");
    require(scale.size(0) == cdiv(a.size(1), group), "scale must have one row per group of rows of b");
  } else {
    require(scale.size(0) == 1, "scale must have one row: name the size of a group if there are more");
  }
  promise_no_overlap();
  DType compute = computeType(a);
  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));

  Tile acc = zeros(compute, {bm, bn});
  for (Index k : range(0, a.size(1), bk)) {
    Index row = group ? Index(k / group) : Index(0);
    Tile weight = b.load({k, j * bn}, {bk, bn}).to(compute) * scale.load({row, j * bn}, {1, bn}).to(compute);
    acc = dot(a.load({i * bm, k}, {bm, bk}), weight.to(a.dtype()), acc);
  }
  c.store({i * bm, j * bn}, acc.to(c.dtype()));
});

} // namespace tenon::zoo
