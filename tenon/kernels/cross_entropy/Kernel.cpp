// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy of each row of logits against its target: loss = log(sum(exp(x))) - x[target].
//
// A vocabulary is wider than a tile, so the row is walked tile by tile with a running maximum m and a running sum s of
// exp(x - m); when a tile raises the maximum, the sum so far is scaled down to it.
//
// Where the vocabulary is known to be no wider (`widest`) nothing runs along: the row's maximum, then its sum. On a CPU
// the loops of two rows are then one.
//
// There may be several `slots` of both, which are brought together at the row's end: runs of `run` elements go to one slot
// after the other, round and round. On a GPU, with the runs that a thread loads at once and a slot for each thread, every
// thread then walks along the row without waiting for others.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {
namespace {

/// Powers of e relative to that of m, as powers of 2. Of logits of 16 bits e^(x - m) is 2^(x scale - m scale), times
/// 2^off for the rounding of m scale: one operation for an element instead of two, and what is off is off for all
/// alike. But 2^off is rounded itself, and a GPU may make 1 + 2^-23 of an off of 2^-25: where logits are longer, and a
/// loss of nothing is to be nothing, the difference comes first, whose power is 1 at m.
struct Powers {
  Tile scale, top;
  bool subtractsFirst;

  Powers(const Tile &m, bool subtractsFirst) : subtractsFirst(subtractsFirst) {
    // While nothing but minus infinity was seen, subtract 0 instead: -inf - -inf would be NaN.
    Tile finite = where(m == -inf, 0, m);
    Tile logarithm = full(m.dtype(), m.shape(), 1.4426950408889634); // of e, to base 2
    // Numbers this large are equal or too far apart for any scale to matter, but one above 1 would make them infinite.
    scale = subtractsFirst ? logarithm : where(abs(finite) < 0x1p126, logarithm, 0.25);
    top = subtractsFirst ? finite : finite * scale;
  }

  Tile of(const Tile &x) const { return exp2(exponent(x)); }
  Tile exponent(const Tile &x) const { return subtractsFirst ? (x - top) * scale : fma(x, scale, -top); }
  /// Of a sum's own m, which is rounded as `top` was when it was added up.
  Tile ofTop(const Tile &m) const { return normalPower(subtractsFirst ? (m - top) * scale : m * scale - top); }
  /// To the logarithm of a sum, what its powers are off by: -ln 2^off.
  Tile withoutOff(const Tile &logSum, const Tile &m) const {
    return subtractsFirst ? logSum : logSum + fma(m, scale, -top) * -0.6931471805599453;
  }

  /// At least 2^-126: a smaller one is nothing beside the largest's, which is 1, and a normal number of f32 costs a GPU
  /// a single instruction. A CPU has no need of it.
  static Tile normalPower(const Tile &x) { return exp2(maximum(x, -126)); }
};

} // namespace

const Kernel crossEntropy("cross_entropy(logits, targets, loss, rows=1, cols=2048, slots=1, run=1, widest=0)",
                          [](View logits, View targets, View loss, Param rows, Param cols, Param slots, Param run,
                             Param widest) {
  require((targets.size(0) == logits.size(0)) & (loss.size(0) == logits.size(0)),
          "targets and loss must have one element per row of logits");
  DType compute = computeType(logits);
  bool subtractsFirst = sizeOf(logits.dtype()) > 2;
  Index vocabulary = logits.size(1);
  Index i = grid(cdiv(logits.size(0), rows));
  Tile m, logSum; // of e^(x - m)
  if (slots > 1) {
    Shape each{rows, 1, slots, 1};
    m = full(compute, each, -inf);
    Tile s = zeros(compute, each);
    for (Index j : range(0, vocabulary, cols)) {
      Tile x = reshape(logits.load({i * rows, j}, {rows, cols}, -inf).to(compute), {rows, cols / slots / run, slots, run});
      Tile raised = maximum(m, max(max(x, 1), 3));
      Powers powers(raised, subtractsFirst);
      s = s * powers.ofTop(m) + sum(sum(Powers::normalPower(powers.exponent(x)), 1), 3);
      m = raised;
    }
    Tile largest = max(m, 2);
    Powers powers(largest, subtractsFirst);
    logSum = reshape(powers.withoutOff(log(sum(s * powers.ofTop(m), 2)), largest), {rows, 1});
    m = reshape(largest, {rows, 1});
  } else if (widest > 0 && widest <= cols) {
    require(vocabulary <= widest, "the vocabulary is wider than `widest`: leave that out, or choose more");
    Tile x = logits.load({i * rows, 0}, {rows, cols}, -inf).to(compute);
    m = max(x, 1);
    Powers powers(m, subtractsFirst);
    logSum = powers.withoutOff(log(sum(powers.of(x), 1)), m);
  } else {
    m = full(compute, {rows, 1}, -inf);
    Tile s = zeros(compute, {rows, 1});
    for (Index j : range(0, vocabulary, cols)) {
      Tile x = logits.load({i * rows, j}, {rows, cols}, -inf).to(compute);
      Tile raised = maximum(m, max(x, 1));
      Powers powers(raised, subtractsFirst);
      s = s * powers.ofTop(m) + sum(powers.of(x), 1);
      m = raised;
    }
    logSum = Powers(m, subtractsFirst).withoutOff(log(s), m);
  }

  // A target outside the vocabulary (-100 by custom) means that the row does not count.
  Tile target = expand(targets.load({i * rows}, {rows}, -1), 1);
  Tile row = iota(i64, {rows, 1}, 0) + i * rows;
  Tile wanted = logits.gather({row, target}).to(compute);
  Tile counts = (target >= 0) & (target < vocabulary);
  Tile result = where(counts, m + logSum - wanted, 0);
  loss.store({i * rows}, reshape(result, {rows}).to(loss.dtype()));
});

} // namespace tenon::zoo
