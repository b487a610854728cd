// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/attention/Reference.h"

#include "tenon/kernels/CpuTiles.h"
#include "tenon/kernels/Problems.h"

#include <cmath>

namespace tenon::zoo {

Problem attentionProblem(const AttentionShape &shape, DType dtype, uint64_t seed) {
  auto [batch, heads, kvHeads, queries, keys, dim, causal] = shape;
  if (kvHeads == 0 ? heads != 0 : heads % kvHeads != 0)
    throw Error("attention: the number of heads must be a multiple of the number of key heads");
  Problem problem;
  problem.label = labelOf(std::array{batch, heads, kvHeads, queries, keys, dim}, dtype) + (causal ? " causal" : "");
  problem.arguments = {randomTensor(dtype, {batch, heads, queries, dim}, seed),
                       randomTensor(dtype, {batch, kvHeads, keys, dim}, seed + 1),
                       randomTensor(dtype, {batch, kvHeads, keys, dim}, seed + 2),
                       Tensor::zeros(dtype, {batch, heads, queries, dim}),
                       dim > 0 ? 1 / std::sqrt(static_cast<double>(dim)) : 1.0};
  problem.outputs = {3};
  int64_t block = std::max(queries, keys) < 256 ? 32 : 64;
  problem.params = {{"bm", block},
                    {"bn", block},
                    {"dim", std::max<int64_t>(roundUp(dim, 16), 16)},
                    {"causal", causal}};
  problem.withParams = [shape, dtype, seed](const Params &params) {
    AttentionShape other = shape;
    other.causal = valueOr(params, "causal", shape.causal) != 0;
    return attentionProblem(other, dtype, seed);
  };
  problem.cpuParams = [queries = queries, keys = keys, dim = dim, dtype, causal = causal, all = batch * heads](
                          int threads) { return attentionCpuTiles(queries, keys, dim, dtype, causal, all, threads); };
  // The kernel rounds probabilities to the type of the values for the second product; computing plainly does the same.
  setReferences(problem, dtype, [causal = causal, dtype](auto t, Arguments &a) {
    bool isPlain = std::is_same_v<decltype(t), float>;
    attentionReference<decltype(t)>(a, causal, isPlain ? dtype : f64);
  });
  double pairs = 0; // of a query and a key it sees
  for (int64_t i = 0; i < queries; ++i)
    pairs += static_cast<double>(causal ? std::clamp<int64_t>(i + 1 + keys - queries, 0, keys) : keys);
  problem.flops = 4 * pairs * batch * heads * dim;
  problem.bytes = 2.0 * batch * (heads * queries + kvHeads * keys) * dim * sizeOf(dtype);
  return problem;
}

namespace {

/// Row by row with a row of scores at hand, as one writes it from the formula.
void plainAttention(const Arguments &arguments, bool causal) {
  const float *q = plainData(arguments[0]);
  float *out = plainData(arguments[3]);
  auto scale = static_cast<float>(std::get<double>(arguments[4].value()));
  auto size = [&](size_t argument, int64_t d) { return arguments[argument].tensor().size(d); };
  int64_t heads = size(0, 1), kvHeads = size(1, 1), queries = size(0, 2), keys = size(1, 2), dim = size(0, 3);
  std::vector<float> score(static_cast<size_t>(keys));
  for (int64_t batch = 0; batch < size(0, 0); ++batch)
    for (int64_t head = 0; head < heads; ++head) {
      int64_t shared = (batch * kvHeads + head / (heads / kvHeads)) * keys * dim;
      const float *k = plainData(arguments[1]) + shared, *v = plainData(arguments[2]) + shared;
      for (int64_t i = 0; i < queries; ++i, q += dim, out += dim) {
        int64_t visible = causal ? std::clamp<int64_t>(i + 1 + keys - queries, 0, keys) : keys;
        float largest = -INFINITY, total = 0;
        for (int64_t j = 0; j < visible; ++j) {
          float dot = 0;
          for (int64_t d = 0; d < dim; ++d)
            dot += q[d] * k[j * dim + d];
          score[j] = dot * scale;
          largest = std::max(largest, score[j]);
        }
        std::fill_n(out, dim, 0.0f);
        for (int64_t j = 0; j < visible; ++j) {
          float weight = std::exp(score[j] - largest);
          total += weight;
          for (int64_t d = 0; d < dim; ++d)
            out[d] += weight * v[j * dim + d];
        }
        for (int64_t d = 0; d < dim && total > 0; ++d)
          out[d] /= total;
      }
    }
}

} // namespace

Entry attentionEntry() {
  return {
      .name = "attention",
      .summary = "softmax(scale * q * k^T) * v without the matrix of scores",
      .kernel = attention,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"batch", "heads", "kv_heads", "sequence", "dim"},
      .demoShape = {1, 8, 8, 1024, 64},
      .testShapes = {{1, 1, 1, 1, 16}, {1, 2, 1, 17, 17}, {2, 4, 2, 65, 32}, {1, 2, 2, 129, 64}, {1, 1, 1, 257, 8},
                     {1, 1, 1, 0, 16}, {0, 2, 1, 17, 16}},
      .makeProblem =
          [](std::span<const int64_t> s, DType dtype, uint64_t seed) {
            return attentionProblem({s[0], s[1], s[2], s[3], s[3], s[4], /*causal=*/true}, dtype, seed);
          },
      .plainLoop = [](const Arguments &arguments) { plainAttention(arguments, /*causal=*/true); },
  };
}

} // namespace tenon::zoo
