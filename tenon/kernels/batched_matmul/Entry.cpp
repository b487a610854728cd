// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/batched_matmul/Reference.h"

#include "tenon/kernels/Problems.h"

namespace tenon::zoo {

Entry batchedMatmulEntry() {
  return {
      .name = "batched_matmul",
      .summary = "c = a * b for every pair of a batch",
      .kernel = batchedMatmul,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"batch", "m", "n", "k"},
      .demoShape = {16, 256, 256, 256},
      .testShapes = {{1, 1, 1, 1}, {3, 17, 33, 40}, {2, 65, 70, 33}, {5, 1, 40, 17}, {4, 33, 1, 64}, {2, 17, 17, 0},
                     {0, 17, 17, 17}, {3, 0, 17, 17}},
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            int64_t batch = shape[0], m = shape[1], n = shape[2], k = shape[3];
            Problem problem;
            problem.label = labelOf(shape, dtype);
            problem.arguments = {randomTensor(dtype, {batch, m, k}, seed, -1, 1),
                                 randomTensor(dtype, {batch, k, n}, seed + 1, -1, 1),
                                 Tensor::zeros(dtype, {batch, m, n})};
            problem.outputs = {2};
            int64_t block = std::min(m, n) <= 64 ? 32 : 64;
            problem.params = {{"bm", block}, {"bn", block}, {"bk", block}};
            setReferences(problem, dtype, [](auto t, Arguments &a) { batchedMatmulReference<decltype(t)>(a); });
            problem.flops = 2.0 * batch * m * n * k;
            problem.bytes = double(batch) * (m * k + k * n + m * n) * sizeOf(dtype);
            return problem;
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *a = plainData(arguments[0]), *b = plainData(arguments[1]);
            float *c = plainData(arguments[2]);
            const Tensor &left = arguments[0].tensor();
            int64_t m = left.size(1), k = left.size(2), n = arguments[1].tensor().size(2);
            for (int64_t p = 0; p < left.size(0); ++p, b += k * n)
              for (int64_t i = 0; i < m; ++i, a += k, c += n) {
                std::fill_n(c, n, 0.0f);
                for (int64_t q = 0; q < k; ++q)
                  for (int64_t j = 0; j < n; ++j)
                    c[j] += a[q] * b[q * n + j];
              }
          },
  };
}

} // namespace tenon::zoo
