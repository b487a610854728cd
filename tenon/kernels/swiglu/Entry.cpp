// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/swiglu/Reference.h"

#include "tenon/kernels/Problems.h"

#include <cmath>

namespace tenon::zoo {

Entry swigluEntry() {
  return {
      .name = "swiglu",
      .summary = "y = silu(gate) * up",
      .kernel = swiglu,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"rows", "cols"},
      .demoShape = {4096, 4096},
      .testShapes = oddMatrices(),
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            Problem problem;
            problem.label = labelOf(shape, dtype);
            problem.arguments = {randomTensor(dtype, shape, seed, -8, 8), randomTensor(dtype, shape, seed + 1),
                                 Tensor::zeros(dtype, shape)};
            problem.outputs = {2};
            problem.params = rowTiles(shape[1], 4096);
            setReferences(problem, dtype, [](auto t, Arguments &a) { swigluReference<decltype(t)>(a); });
            double elements = static_cast<double>(shape[0]) * shape[1];
            problem.flops = 6 * elements;
            problem.bytes = 3 * elements * sizeOf(dtype);
            return problem;
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *gate = plainData(arguments[0]), *up = plainData(arguments[1]);
            float *y = plainData(arguments[2]);
            for (int64_t i = 0; i < arguments[0].tensor().elements(); ++i)
              y[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
          },
  };
}

} // namespace tenon::zoo
