// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/layer_norm/Reference.h"

#include "tenon/kernels/CpuTiles.h"
#include "tenon/kernels/Problems.h"

#include <cmath>

namespace tenon::zoo {

Entry layerNormEntry() {
  return {
      .name = "layer_norm",
      .summary = "total = x + residual, y = layer norm of total",
      .kernel = layerNorm,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"rows", "cols"},
      .demoShape = {4096, 4096},
      .testShapes = oddMatrices(),
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            Problem problem;
            problem.label = labelOf(shape, dtype);
            problem.arguments = {randomTensor(dtype, shape, seed),
                                 randomTensor(dtype, shape, seed + 1),
                                 randomTensor(dtype, {shape[1]}, seed + 2, 0.5, 1.5),
                                 randomTensor(dtype, {shape[1]}, seed + 3, -0.5, 0.5),
                                 Tensor::zeros(dtype, shape),
                                 Tensor::zeros(dtype, shape),
                                 1e-5};
            problem.outputs = {4, 5};
            problem.params = fullRowTiles(shape[1]);
            problem.cpuParams = [cols = shape[1]](int) { return fullRowCpuTiles(cols); };
            setReferences(problem, dtype, [](auto t, Arguments &a) { layerNormReference<decltype(t)>(a); });
            double elements = static_cast<double>(shape[0]) * shape[1];
            problem.flops = 8 * elements;
            problem.bytes = (4 * elements + 2.0 * shape[1]) * sizeOf(dtype);
            return problem;
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *x = plainData(arguments[0]), *residual = plainData(arguments[1]);
            const float *weight = plainData(arguments[2]), *bias = plainData(arguments[3]);
            float *total = plainData(arguments[4]), *y = plainData(arguments[5]);
            auto eps = static_cast<float>(std::get<double>(arguments[6].value()));
            int64_t rows = arguments[0].tensor().size(0), cols = arguments[0].tensor().size(1);
            for (int64_t row = 0; row < rows; ++row, x += cols, residual += cols, total += cols, y += cols) {
              float mean = 0, variance = 0;
              for (int64_t col = 0; col < cols; ++col)
                mean += total[col] = x[col] + residual[col];
              mean /= cols;
              for (int64_t col = 0; col < cols; ++col)
                variance += (total[col] - mean) * (total[col] - mean);
              float scale = 1 / std::sqrt(variance / cols + eps);
              for (int64_t col = 0; col < cols; ++col)
                y[col] = (total[col] - mean) * scale * weight[col] + bias[col];
            }
          },
  };
}

} // namespace tenon::zoo
