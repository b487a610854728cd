// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy of each row of logits against its target: loss = log(sum(exp(x))) - x[target].
//
// A vocabulary is wider than a tile, so the row is walked block by block with a running maximum m and a running sum s
// of exp(x - m); when a block raises the maximum, the sum so far is scaled down to it.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel crossEntropy("cross_entropy(logits, targets, loss, rows=1, cols=2048)",
                          [](View logits, View targets, View loss, Param rows, Param cols) {
  require((targets.size(0) == logits.size(0)) & (loss.size(0) == logits.size(0)),
          "targets and loss must have one element per row of logits");
  DType compute = computeType(logits);
  Index vocabulary = logits.size(1);
  Index i = grid(cdiv(logits.size(0), rows));

  Tile m = full(compute, {rows, 1}, -inf);
  Tile s = zeros(compute, {rows, 1});
  for (Index j : range(0, vocabulary, cols)) {
    Tile x = logits.load({i * rows, j}, {rows, cols}, -inf).to(compute);
    Tile raised = maximum(m, max(x, 1));
    // While nothing but minus infinity was seen, subtract 0 instead: -inf - -inf would be NaN.
    Tile shift = where(raised == -inf, 0, raised);
    s = s * exp(m - shift) + sum(exp(x - shift), 1);
    m = raised;
  }

  // A target outside the vocabulary (-100 by custom) means that the row does not count.
  Tile target = expand(targets.load({i * rows}, {rows}, -1), 1);
  Tile row = iota(i64, {rows, 1}, 0) + i * rows;
  Tile wanted = logits.gather({row, target}).to(compute);
  Tile counts = (target >= 0) & (target < vocabulary);
  Tile result = where(counts, m + log(s) - wanted, 0);
  loss.store({i * rows}, reshape(result, {rows}).to(loss.dtype()));
});

} // namespace tenon::zoo
