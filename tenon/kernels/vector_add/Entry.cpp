// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/vector_add/Reference.h"

#include "tenon/kernels/Problems.h"

namespace tenon::zoo {

Entry vectorAddEntry() {
  return {
      .name = "vector_add",
      .summary = "out = x + y",
      .kernel = vectorAdd,
      .dtypes = {f32, f16, bf16, f64, i32, u8},
      .dimensions = {"length"},
      .demoShape = {1 << 24},
      .testShapes = {{1}, {17}, {1023}, {4096}, {4097}, {100000}, {0}},
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            Problem problem;
            problem.label = labelOf(shape, dtype);
            // Wide enough for bytes to wrap.
            double lo = dtype == u8 ? 0 : -1000, hi = dtype == u8 ? 255 : 1000;
            problem.arguments = {randomTensor(dtype, shape, seed, lo, hi), randomTensor(dtype, shape, seed + 1, lo, hi),
                                 Tensor::zeros(dtype, shape)};
            problem.outputs = {2};
            if (isFloat(dtype))
              setReferences(problem, dtype, [](auto t, Arguments &a) { vectorAddReference<decltype(t)>(a); });
            else
              problem.reference = problem.plain = vectorAddReference<int64_t>;
            problem.flops = static_cast<double>(shape[0]);
            problem.bytes = 3.0 * shape[0] * sizeOf(dtype);
            return problem;
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *x = plainData(arguments[0]), *y = plainData(arguments[1]);
            float *out = plainData(arguments[2]);
            for (int64_t i = 0; i < arguments[0].tensor().elements(); ++i)
              out[i] = x[i] + y[i];
          },
  };
}

} // namespace tenon::zoo
