// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/softmax/Reference.h"

#include "tenon/kernels/CpuTiles.h"
#include "tenon/kernels/Problems.h"

#include <cmath>

namespace tenon::zoo {

Entry softmaxEntry() {
  return {
      .name = "softmax",
      .summary = "softmax of each row",
      .kernel = softmax,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"rows", "cols"},
      .demoShape = {4096, 4096},
      .testShapes = oddMatrices(),
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            Problem problem;
            problem.label = labelOf(shape, dtype);
            problem.arguments = {randomTensor(dtype, shape, seed, -8, 8), Tensor::zeros(dtype, shape)};
            problem.outputs = {1};
            problem.params = fullRowTiles(shape[1]);
            problem.cpuParams = [cols = shape[1]](int) { return fullRowCpuTiles(cols); };
            setReferences(problem, dtype, [](auto t, Arguments &a) { softmaxReference<decltype(t)>(a); });
            double elements = static_cast<double>(shape[0]) * shape[1];
            problem.flops = 5 * elements;
            problem.bytes = 2 * elements * sizeOf(dtype);
            return problem;
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *x = plainData(arguments[0]);
            float *y = plainData(arguments[1]);
            int64_t rows = arguments[0].tensor().size(0), cols = arguments[0].tensor().size(1);
            for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
              float largest = -INFINITY, total = 0;
              for (int64_t col = 0; col < cols; ++col)
                largest = std::max(largest, x[col]);
              for (int64_t col = 0; col < cols; ++col)
                total += y[col] = std::exp(x[col] - largest);
              for (int64_t col = 0; col < cols; ++col)
                y[col] /= total;
            }
          },
  };
}

} // namespace tenon::zoo
