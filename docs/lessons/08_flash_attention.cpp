// SPDX-License-Identifier: Apache-2.0
//
// Lesson 8: attention without its matrix of scores.
//
// out = softmax(scale * q * k^T) * v. Done step by step, the scores are a matrix of queries x keys: for a long text far
// too much to write to memory and read back. FlashAttention walks over the keys block by block and keeps, for each
// query, three running values: the largest score m so far, the sum l of exp(score - m), and the weighted sum of values
// acc. When a block raises the maximum, what was summed so far is scaled down by exp(old m - new m), and the result is
// the same as if all scores had been there at once. This is the "online" softmax.
#include "Lesson.h"

#include <tenon/tenon.h>

#include <cmath>
#include <vector>

using namespace tenon;

// q, k, v and out are heads x tokens x dim. Causal: a token sees itself and what came before it.
static const Kernel attention("attention(q, k, v, out, scale, bm=32, bn=64, dim, causal=1)",
                              [](View q, View k, View v, View out, Scalar scale, Param bm, Param bn, Param dim,
                                 Param causal) {
  require(q.size(2) <= dim, "the tile must span a head: choose dim at least its size");
  promise_no_overlap();
  Index tokens = k.size(1);
  auto [i, head] = grid(cdiv(q.size(1), bm), q.size(0));

  // dot() takes matrices: drop the dimension of size 1 that the load has for the head.
  Tile query = reshape(q.load({head, i * bm, 0}, {1, bm, dim}), {bm, dim});
  Tile row = iota(i64, {bm, 1}, 0) + i * bm;

  Tile m = full(f32, {bm, 1}, -inf); // running maximum
  Tile l = zeros(f32, {bm, 1});      // running sum
  Tile acc = zeros(f32, {bm, dim});  // running sum of weighted values: three variables carried around one loop

  // With a causal mask, blocks of keys wholly after the last query of this tile are not visited at all.
  Index end = tokens;
  if (causal)
    end = minimum(tokens, (i + 1) * bm);
  for (Index j : range(0, end, bn)) {
    Tile key = reshape(k.load({head, j, 0}, {1, bn, dim}), {bn, dim});
    Tile value = reshape(v.load({head, j, 0}, {1, bn, dim}), {bn, dim});
    Tile score = dot(query, transpose(key)) * scale;

    // What must not count becomes minus infinity: keys past the end of the text, and keys after the query.
    Tile column = iota(i64, {1, bn}, 1) + j;
    Tile visible = column < tokens;
    if (causal)
      visible = visible & (column <= row); // {1, bn} against {bm, 1}: a triangle
    score = where(visible, score, -inf);

    Tile raised = maximum(m, max(score, 1));
    Tile weight = exp(score - raised);
    Tile shrink = exp(m - raised); // 0 the first time, when m is minus infinity
    l = l * shrink + sum(weight, 1);
    acc = dot(weight.to(v.dtype()), value, acc * shrink);
    m = raised;
  }
  out.store({head, i * bm, 0}, reshape((acc / l).to(out.dtype()), {1, bm, dim}));
});

// Step by step, scores and all.
template <class T> static void stepByStep(Arguments &arguments, bool causal) {
  const Tensor &q = arguments[0].tensor(), &k = arguments[1].tensor(), &v = arguments[2].tensor();
  const Tensor &out = arguments[3].tensor();
  T scale = static_cast<T>(std::get<double>(arguments[4].value()));
  int64_t tokens = q.size(1), dim = q.size(2);
  std::vector<T> score(tokens);
  for (int64_t head = 0; head < q.size(0); ++head)
    for (int64_t i = 0; i < tokens; ++i) {
      int64_t seen = causal ? i + 1 : tokens;
      T largest = -INFINITY, total = 0;
      for (int64_t j = 0; j < seen; ++j) {
        T s = 0;
        for (int64_t d = 0; d < dim; ++d)
          s += static_cast<T>(q.get({head, i, d})) * static_cast<T>(k.get({head, j, d}));
        score[j] = s * scale;
        largest = std::max(largest, score[j]);
      }
      for (int64_t j = 0; j < seen; ++j)
        total += score[j] = std::exp(score[j] - largest);
      for (int64_t d = 0; d < dim; ++d) {
        T sum = 0;
        for (int64_t j = 0; j < seen; ++j)
          sum += score[j] / total * static_cast<T>(v.get({head, j, d}));
        out.set({head, i, d}, sum);
      }
    }
}

int main() {
  constexpr int64_t heads = 2, tokens = 150, dim = 40; // no multiples of the tile sizes, on purpose
  for (DType type : {f32, bf16})
    for (bool causal : {false, true}) {
      Problem p;
      for (uint64_t seed : {1, 2, 3}) {
        Tensor t = Tensor::empty(type, {heads, tokens, dim});
        t.fillRandom(seed, -1, 1);
        p.arguments.push_back(t);
      }
      p.arguments.push_back(Tensor::empty(type, {heads, tokens, dim}));
      p.arguments.push_back(1 / std::sqrt(double(dim)));
      p.outputs = {3};
      p.params = {{"dim", 48}, {"causal", causal}};
      p.reference = [=](Arguments &arguments) { stepByStep<double>(arguments, causal); };
      p.plain = [=](Arguments &arguments) { stepByStep<float>(arguments, causal); };
      Verdict verdict = verify(p, attention);
      std::printf("%-4s %-10s error %.1e, allowed %.1e %s\n", std::string(nameOf(type)).c_str(),
                  causal ? "causal" : "full", verdict.error, verdict.allowed, verdict.reason.c_str());
      lesson::expect(verdict.passed, "block by block gives what step by step gives");
    }

  // What it saves: for this many tokens the scores alone would be this large, and the kernel keeps bm x bn of them.
  std::printf("scores of 131072 tokens: %.0f GiB a head in f32; kept by an instance: %d KiB\n",
              131072.0 * 131072 * 4 / (1 << 30), 32 * 64 * 4 / 1024);
  return lesson::finish();
}
