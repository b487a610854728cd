// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/rms_norm/Reference.h"

#include "tenon/kernels/CpuTiles.h"
#include "tenon/kernels/Problems.h"

#include <cmath>

namespace tenon::zoo {

Entry rmsNormEntry() {
  return {
      .name = "rms_norm",
      .summary = "root-mean-square norm of each row",
      .kernel = rmsNorm,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"rows", "cols"},
      .demoShape = {4096, 4096},
      .testShapes = oddMatrices(),
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            Problem problem;
            problem.label = labelOf(shape, dtype);
            problem.arguments = {randomTensor(dtype, shape, seed),
                                 randomTensor(dtype, {shape[1]}, seed + 1, 0.5, 1.5), Tensor::zeros(dtype, shape),
                                 1e-6};
            problem.outputs = {2};
            problem.params = fullRowTiles(shape[1]);
            problem.cpuParams = [cols = shape[1]](int) { return fullRowCpuTiles(cols); };
            setReferences(problem, dtype, [](auto t, Arguments &a) { rmsNormReference<decltype(t)>(a); });
            double elements = static_cast<double>(shape[0]) * shape[1];
            problem.flops = 4 * elements;
            problem.bytes = (2 * elements + shape[1]) * sizeOf(dtype);
            return problem;
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *x = plainData(arguments[0]), *weight = plainData(arguments[1]);
            float *y = plainData(arguments[2]);
            auto eps = static_cast<float>(std::get<double>(arguments[3].value()));
            int64_t rows = arguments[0].tensor().size(0), cols = arguments[0].tensor().size(1);
            for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
              float squares = 0;
              for (int64_t col = 0; col < cols; ++col)
                squares += x[col] * x[col];
              float scale = 1 / std::sqrt(squares / cols + eps);
              for (int64_t col = 0; col < cols; ++col)
                y[col] = x[col] * scale * weight[col];
            }
          },
  };
}

} // namespace tenon::zoo
