// SPDX-License-Identifier: Apache-2.0
//
// c[p] = a[p] * b[p] for every p of a batch: one tile of one product per program instance.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel batchedMatmul("batched_matmul(a, b, c, bm=64, bn=64, bk=64)",
                           [](View a, View b, View c, Param bm, Param bn, Param bk) {
  require((a.size(0) == c.size(0)) & (b.size(0) == c.size(0)), "a, b and c must be batches of as many matrices");
  require((a.size(1) == c.size(1)) & (b.size(2) == c.size(2)) & (a.size(2) == b.size(1)),
          "a must be P x M x K, b P x K x N and c P x M x N");
  promise_no_overlap();
  auto [i, j, p] = grid(cdiv(c.size(1), bm), cdiv(c.size(2), bn), c.size(0));

  Tile acc = zeros(accumulatorType(a), {bm, bn});
  for (Index k : range(0, a.size(2), bk)) {
    Tile left = reshape(a.load({p, i * bm, k}, {1, bm, bk}), {bm, bk});
    Tile right = reshape(b.load({p, k, j * bn}, {1, bk, bn}), {bk, bn});
    acc = dot(left, right, acc);
  }
  c.store({p, i * bm, j * bn}, reshape(acc.to(c.dtype()), {1, bm, bn}));
});

} // namespace tenon::zoo
