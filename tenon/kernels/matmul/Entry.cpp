// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/matmul/Reference.h"

#include "tenon/kernels/CpuTiles.h"
#include "tenon/kernels/Problems.h"

#include <cmath>

namespace tenon::zoo {

Problem matmulProblem(const MatmulShape &shape, DType dtype, uint64_t seed) {
  auto [m, n, k, useBias, activation, transposedB, tf32, fastAccum, output] = shape;
  DType out = output.value_or(productType(dtype)), biasType = isInteger(dtype) ? f32 : productType(dtype);
  // Integers: all of i8, so that sums need more than 16 bits.
  double limit = isInteger(dtype) ? 127 : 1;
  Tensor b = transposedB ? randomTensor(dtype, {n, k}, seed + 1, -limit, limit).transpose({1, 0})
                         : randomTensor(dtype, {k, n}, seed + 1, -limit, limit);
  Problem problem;
  problem.label = labelOf(std::array{m, n, k}, dtype);
  problem.arguments = {randomTensor(dtype, {m, k}, seed, -limit, limit), b,
                       randomTensor(biasType, {useBias ? n : 0}, seed + 2, -1, 1), Tensor::zeros(out, {m, n})};
  problem.outputs = {3};
  int64_t block = std::min(m, n) <= 64 ? 32 : 64;
  problem.params = {{"bm", block},
                    {"bn", block},
                    {"bk", block},
                    {"use_bias", useBias},
                    {"activation", activation},
                    {"tf32", tf32},
                    {"fast_accum", fastAccum}};
  problem.withParams = [shape, dtype, seed](const Params &params) {
    MatmulShape other = shape;
    auto read = [&](const char *name, int64_t otherwise) { return valueOr(params, name, otherwise); };
    other.bias = read("use_bias", shape.bias) != 0;
    int64_t activation = read("activation", shape.activation);
    if (activation < Activation::none || activation > Activation::silu)
      throw Error("activation=" + std::to_string(activation) + ": 0 is none, 1 ReLU, 2 GELU, 3 SiLU");
    other.activation = static_cast<Activation>(activation);
    other.tf32 = read("tf32", shape.tf32) != 0;
    other.fastAccum = read("fast_accum", shape.fastAccum) != 0;
    return matmulProblem(other, dtype, seed);
  };
  problem.cpuParams = [m = m, n = n, k = k, dtype](int threads) { return matmulCpuTiles(m, n, k, dtype, threads); };
  Roundings allowed = {.tf32 = tf32, .fastAccum = fastAccum};
  setReferences(problem, dtype, [useBias = useBias, activation = activation, allowed](auto t, Arguments &a) {
    bool isPlain = std::is_same_v<decltype(t), float>;
    matmulReference<decltype(t)>(a, useBias, activation, isPlain ? allowed : Roundings());
  });
  problem.flops = 2.0 * m * n * k;
  problem.bytes = (double(m) * k + double(k) * n) * sizeOf(dtype) + double(m) * n * sizeOf(out) +
                  (useBias ? n : 0) * sizeOf(biasType);
  return problem;
}

namespace {

void plainMatmul(const Arguments &arguments, bool biasAndGelu) {
  const float *a = plainData(arguments[0]), *b = plainData(arguments[1]), *bias = plainData(arguments[2]);
  float *c = plainData(arguments[3]);
  int64_t m = arguments[0].tensor().size(0), k = arguments[0].tensor().size(1), n = arguments[1].tensor().size(1);
  for (int64_t i = 0; i < m; ++i, c += n) {
    std::fill_n(c, n, 0.0f);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        c[j] += a[i * k + p] * b[p * n + j];
    for (int64_t j = 0; biasAndGelu && j < n; ++j) {
      float value = c[j] + bias[j];
      c[j] = 0.5f * value * (1 + std::erf(value * 0.70710678f));
    }
  }
}

} // namespace

Entry matmulEntry() {
  return {
      .name = "matmul",
      .summary = "c = a * b",
      .kernel = matmul,
      .dtypes = {f32, f16, bf16, f64, f8e4m3, f8e5m2, i8},
      .dimensions = {"m", "n", "k"},
      .demoShape = {1024, 1024, 1024},
      .testShapes = {{1, 1, 1}, {17, 17, 17}, {32, 32, 64}, {65, 127, 33}, {1, 1023, 17}, {1023, 1, 17}, {3, 5, 4097},
                     {0, 17, 17}, {17, 0, 17}, {17, 17, 0}},
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            return matmulProblem({shape[0], shape[1], shape[2]}, dtype, seed);
          },
      .plainLoop = [](const Arguments &arguments) { plainMatmul(arguments, /*biasAndGelu=*/false); },
  };
}

Entry linearEntry() {
  return {
      .name = "linear",
      .summary = "c = a * b, the weights b in memory as [n, k]",
      .kernel = matmul,
      .dtypes = {f32, f16, bf16, f64, f8e4m3, f8e5m2, i8},
      .dimensions = {"m", "n", "k"},
      .demoShape = {1024, 1024, 1024},
      .testShapes = {{1, 1, 1}, {17, 33, 65}, {65, 127, 33}, {1, 1023, 17}, {3, 5, 4097}, {17, 17, 0}},
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            MatmulShape turned = {shape[0], shape[1], shape[2]};
            turned.transposedB = true;
            return matmulProblem(turned, dtype, seed);
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *a = plainData(arguments[0]), *b = plainData(arguments[1].tensor().transpose({1, 0}));
            float *c = plainData(arguments[3]);
            int64_t m = arguments[0].tensor().size(0), k = arguments[0].tensor().size(1);
            int64_t n = arguments[1].tensor().size(1);
            for (int64_t i = 0; i < m; ++i)
              for (int64_t j = 0; j < n; ++j) {
                float sum = 0;
                for (int64_t p = 0; p < k; ++p)
                  sum += a[i * k + p] * b[j * k + p];
                c[i * n + j] = sum;
              }
          },
  };
}

Entry matmulBiasGeluEntry() {
  return {
      .name = "matmul_bias_gelu",
      .summary = "c = gelu(a * b + bias), the epilogue fused",
      .kernel = matmul,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"m", "n", "k"},
      .demoShape = {1024, 1024, 1024},
      .testShapes = {{1, 1, 1}, {17, 33, 65}, {65, 127, 33}, {17, 17, 0}},
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            return matmulProblem({shape[0], shape[1], shape[2], /*bias=*/true, Activation::geluExact}, dtype, seed);
          },
      .plainLoop = [](const Arguments &arguments) { plainMatmul(arguments, /*biasAndGelu=*/true); },
  };
}

} // namespace tenon::zoo
