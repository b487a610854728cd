// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/gated_mlp/Reference.h"

#include "tenon/kernels/Problems.h"

namespace tenon::zoo {

Entry gatedMlpEntry() {
  return {
      .name = "gated_mlp",
      .summary = "y = silu(x * gate) * (x * up), two products that share x",
      .kernel = gatedMlp,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"m", "n", "k"},
      .demoShape = {512, 512, 512},
      .testShapes = {{1, 1, 1}, {17, 33, 40}, {65, 70, 33}, {1, 1023, 17}, {127, 1, 64}, {17, 17, 0}, {0, 17, 17},
                     {17, 0, 17}},
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            int64_t m = shape[0], n = shape[1], k = shape[2];
            Problem problem;
            problem.label = labelOf(shape, dtype);
            problem.arguments = {
                randomTensor(dtype, {m, k}, seed, -1, 1), randomTensor(dtype, {k, n}, seed + 1, -1, 1),
                randomTensor(dtype, {k, n}, seed + 2, -1, 1), Tensor::zeros(dtype, {m, n})};
            problem.outputs = {3};
            int64_t block = std::min(m, n) <= 64 ? 32 : 64;
            problem.params = {{"bm", block}, {"bn", block}, {"bk", block}};
            setReferences(problem, dtype, [](auto t, Arguments &a) { gatedMlpReference<decltype(t)>(a); });
            problem.flops = 4.0 * m * n * k + 6.0 * m * n;
            problem.bytes = (double(m) * k + 2.0 * k * n + double(m) * n) * sizeOf(dtype);
            return problem;
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *x = plainData(arguments[0]), *gate = plainData(arguments[1]), *up = plainData(arguments[2]);
            float *y = plainData(arguments[3]);
            int64_t m = arguments[0].tensor().size(0), k = arguments[0].tensor().size(1);
            int64_t n = arguments[1].tensor().size(1);
            std::vector<float> g(static_cast<size_t>(n)), u(static_cast<size_t>(n));
            for (int64_t i = 0; i < m; ++i, x += k, y += n) {
              std::fill(g.begin(), g.end(), 0.0f);
              std::fill(u.begin(), u.end(), 0.0f);
              for (int64_t p = 0; p < k; ++p)
                for (int64_t j = 0; j < n; ++j) {
                  g[j] += x[p] * gate[p * n + j];
                  u[j] += x[p] * up[p * n + j];
                }
              for (int64_t j = 0; j < n; ++j)
                y[j] = g[j] / (1 + std::exp(-g[j])) * u[j];
            }
          },
  };
}

} // namespace tenon::zoo
