// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy of each row of logits against its target: loss = log(sum(exp(x))) - x[target].
//
// A vocabulary is wider than a tile, so the row is walked tile by tile with a running maximum m and a running sum s of
// exp(x - m); when a tile raises the maximum, the sum so far is scaled down to it.
//
// There may be several `slots` of both, element i of a tile in slot i mod slots, which are brought together at the row's
// end: on a GPU, with as many as threads have elements side by side, a thread then walks along the row without waiting
// for others.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel crossEntropy("cross_entropy(logits, targets, loss, rows=1, cols=2048, slots=1)",
                          [](View logits, View targets, View loss, Param rows, Param cols, Param slots) {
  require((targets.size(0) == logits.size(0)) & (loss.size(0) == logits.size(0)),
          "targets and loss must have one element per row of logits");
  DType compute = computeType(logits);
  Index vocabulary = logits.size(1);
  Index i = grid(cdiv(logits.size(0), rows));
  bool inSlots = slots > 1;
  Shape each = inSlots ? Shape{rows, 1, slots} : Shape{rows, 1};
  // In slots exp is a power of 2, of at least 2^-126: a smaller one is nothing beside the largest's, which is 1, and a
  // normal number of f32 costs a GPU a single instruction.
  auto power = [&](const Tile &x) { return inSlots ? exp2(maximum(x * 1.4426950408889634, -126)) : exp(x); };

  Tile m = full(compute, each, -inf);
  Tile s = zeros(compute, each);
  for (Index j : range(0, vocabulary, cols)) {
    Tile x = logits.load({i * rows, j}, {rows, cols}, -inf).to(compute);
    if (inSlots)
      x = reshape(x, {rows, cols / slots, slots});
    Tile raised = maximum(m, max(x, 1));
    // While nothing but minus infinity was seen, subtract 0 instead: -inf - -inf would be NaN.
    Tile shift = where(raised == -inf, 0, raised);
    s = s * power(m - shift) + sum(power(x - shift), 1);
    m = raised;
  }
  if (inSlots) {
    Tile largest = max(m, 2);
    s = reshape(sum(s * power(m - where(largest == -inf, 0, largest)), 2), {rows, 1});
    m = reshape(largest, {rows, 1});
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
