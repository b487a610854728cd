// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/gelu/Reference.h"

#include "tenon/kernels/Problems.h"

#include <cmath>

namespace tenon::zoo {

namespace {

Problem geluProblem(std::span<const int64_t> shape, DType dtype, uint64_t seed, bool tanhForm) {
  Problem problem;
  problem.label = labelOf(shape, dtype);
  problem.arguments = {randomTensor(dtype, shape, seed, -6, 6), Tensor::zeros(dtype, shape)};
  problem.outputs = {1};
  problem.params = rowTiles(shape[1], 4096);
  problem.params["tanh_form"] = tanhForm;
  problem.withParams = [sizes = std::vector(shape.begin(), shape.end()), dtype, seed, tanhForm](const Params &params) {
    return geluProblem(sizes, dtype, seed, valueOr(params, "tanh_form", tanhForm) != 0);
  };
  setReferences(problem, dtype, [tanhForm](auto t, Arguments &a) { geluReference<decltype(t)>(a, tanhForm); });
  double elements = static_cast<double>(shape[0]) * shape[1];
  problem.flops = (tanhForm ? 9 : 5) * elements;
  problem.bytes = 2 * elements * sizeOf(dtype);
  return problem;
}

} // namespace

Entry geluEntry() {
  return {
      .name = "gelu",
      .summary = "y = x * Phi(x), exact (erf)",
      .kernel = gelu,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"rows", "cols"},
      .demoShape = {4096, 4096},
      .testShapes = oddMatrices(),
      .makeProblem = [](std::span<const int64_t> shape, DType dtype,
                        uint64_t seed) { return geluProblem(shape, dtype, seed, /*tanhForm=*/false); },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *x = plainData(arguments[0]);
            float *y = plainData(arguments[1]);
            for (int64_t i = 0; i < arguments[0].tensor().elements(); ++i)
              y[i] = 0.5f * x[i] * (1 + std::erf(x[i] * 0.70710678f));
          },
  };
}

Entry geluTanhEntry() {
  Entry entry = geluEntry();
  return {
      .name = "gelu_tanh",
      .summary = "the tanh approximation of gelu",
      .kernel = gelu,
      .dtypes = entry.dtypes,
      .dimensions = entry.dimensions,
      .demoShape = entry.demoShape,
      .testShapes = entry.testShapes,
      .makeProblem = [](std::span<const int64_t> shape, DType dtype,
                        uint64_t seed) { return geluProblem(shape, dtype, seed, /*tanhForm=*/true); },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *x = plainData(arguments[0]);
            float *y = plainData(arguments[1]);
            for (int64_t i = 0; i < arguments[0].tensor().elements(); ++i)
              y[i] = 0.5f * x[i] * (1 + std::tanh(0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
          },
  };
}

} // namespace tenon::zoo
