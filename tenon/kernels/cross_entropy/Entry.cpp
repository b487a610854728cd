// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/cross_entropy/Reference.h"

#include "tenon/kernels/Problems.h"

#include <cmath>

namespace tenon::zoo {

Entry crossEntropyEntry() {
  return {
      .name = "cross_entropy",
      .summary = "loss of each row of logits against its target",
      .kernel = crossEntropy,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"rows", "vocabulary"},
      .demoShape = {512, 32768},
      .testShapes = {{1, 1}, {17, 1}, {1, 17}, {64, 64}, {17, 1023}, {3, 4097}, {1, 50257}, {1023, 17}, {0, 17},
                     {5, 0}},
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            Tensor targets = Tensor::zeros(i64, {shape[0]});
            if (shape[1] > 0)
              targets.fillRandom(seed + 1, 0, static_cast<double>(shape[1] - 1));
            for (int64_t row = 3; row < shape[0]; row += 16)
              targets.setInt({row}, -100); // some rows do not count
            DType lossType = dtype == f64 ? f64 : f32;

            Problem problem;
            problem.label = labelOf(shape, dtype);
            problem.arguments = {randomTensor(dtype, shape, seed, -8, 8), targets,
                                 Tensor::zeros(lossType, {shape[0]})};
            problem.outputs = {2};
            problem.params = rowTiles(shape[1], 4096);
            if (shape[1] > 0 && shape[1] <= 4096)
              problem.params["widest"] = shape[1];
            setReferences(problem, dtype, [](auto t, Arguments &a) { crossEntropyReference<decltype(t)>(a); });
            double elements = static_cast<double>(shape[0]) * shape[1];
            problem.flops = 5 * elements; // maximum, multiply-add, power, sum
            problem.bytes = elements * sizeOf(dtype) + shape[0] * (8.0 + sizeOf(lossType));
            return problem;
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *logits = plainData(arguments[0]);
            std::vector<int64_t> targets = valuesOf<int64_t>(arguments[1].tensor());
            float *loss = plainData(arguments[2]);
            int64_t rows = arguments[0].tensor().size(0), vocabulary = arguments[0].tensor().size(1);
            for (int64_t row = 0; row < rows; ++row, logits += vocabulary) {
              float largest = -INFINITY, total = 0;
              for (int64_t col = 0; col < vocabulary; ++col)
                largest = std::max(largest, logits[col]);
              for (int64_t col = 0; col < vocabulary; ++col)
                total += std::exp(logits[col] - largest);
              bool counts = targets[row] >= 0 && targets[row] < vocabulary;
              loss[row] = counts ? largest + std::log(total) - logits[targets[row]] : 0;
            }
          },
  };
}

} // namespace tenon::zoo
