// SPDX-License-Identifier: Apache-2.0
//
// out = x + y: the smallest useful kernel. Each program instance adds one block of the vectors.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel vectorAdd("vector_add(x, y, out, block=4096)", [](View x, View y, View out, Param block) {
  require((x.size(0) == out.size(0)) & (y.size(0) == out.size(0)), "x, y and out must have the same length");
  Index i = grid(cdiv(out.size(0), block));

  // The last block may hang over the end: what is loaded there is zero and what is stored there is dropped.
  Tile sum = x.load({i * block}, {block}) + y.load({i * block}, {block});
  out.store({i * block}, sum);
});

} // namespace tenon::zoo
