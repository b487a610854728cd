// SPDX-License-Identifier: Apache-2.0
//
// Attention without the matrix of scores: out = softmax(scale * q * k^T) * v, one block of queries per program
// instance, walking over blocks of keys with the running maximum and sum of an online softmax.
//
// q and out are batch x heads x queries x dim; k and v batch x kv_heads x keys x dim, where heads is a multiple of
// kv_heads and consecutive query heads share a key head. Causal: the last query sees every key, the one before it all
// but the last, and so on.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel attention("attention(q, k, v, out, scale, bm=64, bn=64, dim, causal=0, by_head=0, scaled=0)",
                       [](View q, View k, View v, View out, Scalar scale, Param bm, Param bn, Param dim, Param causal,
                          Param by_head, Param scaled) {
  Index heads = q.size(1), kvHeads = k.size(1), queries = q.size(2), keys = k.size(2);
  require(q.size(3) <= dim, "the tile must span a head: choose dim at least its size");
  require(heads % kvHeads == 0, "the number of query heads must be a multiple of the number of key heads");
  require((k.size(0) == q.size(0)) & (v.size(0) == q.size(0)) & (v.size(1) == kvHeads) & (v.size(2) == keys) &
              (k.size(3) == q.size(3)) & (v.size(3) == q.size(3)),
          "q, k and v must agree in batch and head size, k and v in heads and keys");
  require((out.size(0) == q.size(0)) & (out.size(1) == heads) & (out.size(2) == queries) &
              (out.size(3) == q.size(3)),
          "q and out must have the same shape");
  promise_no_overlap();
  DType compute = computeType(q);
  Index blocks = cdiv(queries, bm);
  // By head, the blocks of queries that share keys and values follow one another, and find them in a cache.
  auto [outer, head, inner] = by_head ? grid(q.size(0), heads, blocks) : grid(blocks, heads, q.size(0));
  Index number = by_head ? inner : outer, batch = by_head ? outer : inner;
  // Causal: the last queries see the most keys. They come first (of all heads, or of each), so that the short ones fill
  // up what is left at the end.
  Index i = causal ? Index(blocks - 1 - number) : number;
  Index kvHead = head / (heads / kvHeads);

  Tile query = reshape(q.load({batch, head, i * bm, 0}, {1, 1, bm, dim}), {bm, dim});
  Tile row = iota(i64, {bm, 1}, 0) + i * bm;

  // exp(x) = 2^(x log2(e)): the constant joins the scale, which is applied anyway.
  Tile scale2 = scale * 1.4426950408889634;
  // Queries are scaled once, scores for every block of keys. (Of a short type they would be rounded to it.)
  require(!scaled || q.dtype() == compute, "only queries of f32 or f64 can be scaled ahead");
  if (scaled)
    query = query * scale2;
  Tile m = full(compute, {bm, 1}, -inf); // running maximum
  Tile l = zeros(compute, {bm, 1});      // running sum
  Tile acc = zeros(compute, {bm, dim});  // running sum of weighted values

  // A query sees the keys up to its own position, counted from the end; blocks past the last row's are not visited.
  Index ahead = keys - queries;
  Index end = causal ? Index(minimum(keys, (i + 1) * bm + ahead)) : keys;
  for (Index j : range(0, end, bn)) {
    Tile key = reshape(k.load({batch, kvHead, j, 0}, {1, 1, bn, dim}), {bn, dim});
    Tile value = reshape(v.load({batch, kvHead, j, 0}, {1, 1, bn, dim}), {bn, dim});
    Tile column = iota(i64, {1, bn}, 1) + j;
    Tile visible = column < keys;
    if (causal)
      visible = visible & (column <= row + ahead);
    Tile product = dot(query, transpose(key));
    Tile score = where(visible, scaled ? product : product * scale2, -inf);

    Tile raised = maximum(m, max(score, 1));
    // While nothing was visible, subtract 0 instead: -inf - -inf would be NaN.
    Tile shift = where(raised == -inf, 0, raised);
    Tile weight = exp2(score - shift);
    Tile shrink = exp2(m - shift);
    l = l * shrink + sum(weight, 1);
    acc = dot(weight.to(v.dtype()), value, acc * shrink);
    m = raised;
  }

  // A query that sees no key at all gets zero.
  Tile result = where(l == 0, 0, acc / l);
  out.store({batch, head, i * bm, 0}, reshape(result.to(out.dtype()), {1, 1, bm, dim}));
});

} // namespace tenon::zoo
