// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/bias_gelu/Reference.h"

#include "tenon/kernels/Problems.h"

#include <cmath>

namespace tenon::zoo {

Entry biasGeluEntry() {
  return {
      .name = "bias_gelu",
      .summary = "y = gelu(x + bias), tanh form",
      .kernel = biasGelu,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"rows", "cols"},
      .demoShape = {4096, 4096},
      .testShapes = oddMatrices(),
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            Problem problem;
            problem.label = labelOf(shape, dtype);
            problem.arguments = {randomTensor(dtype, shape, seed, -4, 4), randomTensor(dtype, {shape[1]}, seed + 1),
                                 Tensor::zeros(dtype, shape)};
            problem.outputs = {2};
            problem.params = rowTiles(shape[1], 4096);
            setReferences(problem, dtype, [](auto t, Arguments &a) { biasGeluReference<decltype(t)>(a); });
            double elements = static_cast<double>(shape[0]) * shape[1];
            problem.flops = 10 * elements;
            problem.bytes = (2 * elements + shape[1]) * sizeOf(dtype);
            return problem;
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *x = plainData(arguments[0]), *bias = plainData(arguments[1]);
            float *y = plainData(arguments[2]);
            int64_t rows = arguments[0].tensor().size(0), cols = arguments[0].tensor().size(1);
            for (int64_t row = 0; row < rows; ++row, x += cols, y += cols)
              for (int64_t col = 0; col < cols; ++col) {
                float t = x[col] + bias[col];
                y[col] = 0.5f * t * (1 + std::tanh(0.79788456f * (t + 0.044715f * t * t * t)));
              }
          },
  };
}

} // namespace tenon::zoo
