// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/dequant_matmul/Reference.h"

#include "tenon/kernels/Problems.h"

namespace tenon::zoo {

Problem dequantMatmulProblem(const DequantShape &shape, DType dtype, uint64_t seed) {
  auto [m, n, k, group] = shape;
  int64_t groups = group ? (k + group - 1) / group : 1;
  DType scaleType = dtype == f64 ? f64 : f32;
  Problem problem;
  problem.label = labelOf(std::array{m, n, k}, dtype) + (group ? ", groups of " + std::to_string(group) : "");
  problem.arguments = {randomTensor(dtype, {m, k}, seed, -1, 1), randomTensor(i8, {k, n}, seed + 1, -127, 127),
                       randomTensor(scaleType, {groups, n}, seed + 2, 0.002, 0.01), Tensor::zeros(dtype, {m, n})};
  problem.outputs = {3};
  int64_t block = std::min(m, n) <= 64 ? 32 : 64;
  problem.params = {{"bm", block}, {"bn", block}, {"bk", group ? std::min(block, group) : block}, {"group", group}};
  // The kernel rounds scaled weights to the type of a for the product; computing plainly does the same.
  setReferences(problem, dtype, [group = group, dtype](auto t, Arguments &a) {
    bool isPlain = std::is_same_v<decltype(t), float>;
    dequantMatmulReference<decltype(t)>(a, group, isPlain ? dtype : f64);
  });
  problem.flops = 2.0 * m * n * k;
  problem.bytes = double(k) * n + (double(m) * k + double(m) * n) * sizeOf(dtype) +
                  double(groups) * n * sizeOf(scaleType);
  return problem;
}

Entry dequantMatmulEntry() {
  return {
      .name = "dequant_matmul",
      .summary = "c = a * (scale * b), b in 8-bit integers",
      .kernel = dequantMatmul,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"m", "n", "k"},
      .demoShape = {512, 512, 512},
      .testShapes = {{1, 1, 1}, {17, 33, 40}, {65, 70, 33}, {1, 1023, 17}, {127, 1, 64}, {17, 17, 0}, {0, 17, 17},
                     {17, 0, 17}},
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            return dequantMatmulProblem({shape[0], shape[1], shape[2]}, dtype, seed);
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *a = plainData(arguments[0]), *scale = plainData(arguments[2]);
            float *c = plainData(arguments[3]);
            const auto *b = static_cast<const int8_t *>(arguments[1].tensor().data());
            int64_t m = arguments[0].tensor().size(0), k = arguments[0].tensor().size(1);
            int64_t n = arguments[1].tensor().size(1);
            for (int64_t i = 0; i < m; ++i, a += k, c += n) {
              std::fill_n(c, n, 0.0f);
              for (int64_t p = 0; p < k; ++p)
                for (int64_t j = 0; j < n; ++j)
                  c[j] += a[p] * (static_cast<float>(b[p * n + j]) * scale[j]);
            }
          },
  };
}

} // namespace tenon::zoo
