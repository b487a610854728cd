// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/rotary/Reference.h"

#include "tenon/kernels/Problems.h"

#include <cmath>

namespace tenon::zoo {

Entry rotaryEntry() {
  return {
      .name = "rotary",
      .summary = "rotary position embedding, rotate-half form",
      .kernel = rotary,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"tokens", "heads", "dim"},
      .demoShape = {4096, 32, 128},
      .testShapes = {{1, 1, 2}, {17, 3, 34}, {1023, 1, 16}, {5, 17, 64}, {1, 4097, 4}, {2, 3, 1024}, {0, 8, 64},
                     {7, 0, 64}},
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            int64_t tokens = shape[0], heads = shape[1], half = shape[2] / 2;
            if (shape[2] % 2 != 0 || half == 0)
              throw Error("rotary turns pairs of elements: dim must be even and at least 2");
            std::vector<double> cosine, sine;
            for (int64_t token = 0; token < tokens; ++token)
              for (int64_t d = 0; d < half; ++d) {
                double angle = token * std::pow(10000.0, -static_cast<double>(d) / half);
                cosine.push_back(std::cos(angle));
                sine.push_back(std::sin(angle));
              }
            Tensor cosineTable = Tensor::empty(dtype, {tokens, half}), sineTable = cosineTable.clone();
            setValues(cosineTable, cosine);
            setValues(sineTable, sine);

            Problem problem;
            problem.label = labelOf(shape, dtype);
            problem.arguments = {randomTensor(dtype, shape, seed), cosineTable, sineTable,
                                 Tensor::zeros(dtype, shape)};
            problem.outputs = {3};
            problem.params = {{"half", half}, {"heads", std::clamp<int64_t>(heads, 1, 8)}};
            setReferences(problem, dtype, [](auto t, Arguments &a) { rotaryReference<decltype(t)>(a); });
            double elements = static_cast<double>(tokens) * heads * shape[2];
            problem.flops = 3 * elements;
            problem.bytes = (2 * elements + 2.0 * tokens * half) * sizeOf(dtype);
            return problem;
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *x = plainData(arguments[0]);
            const float *cosine = plainData(arguments[1]), *sine = plainData(arguments[2]);
            float *y = plainData(arguments[3]);
            int64_t tokens = arguments[0].tensor().size(0), heads = arguments[0].tensor().size(1);
            int64_t half = arguments[0].tensor().size(2) / 2;
            for (int64_t token = 0; token < tokens; ++token, cosine += half, sine += half)
              for (int64_t head = 0; head < heads; ++head, x += 2 * half, y += 2 * half)
                for (int64_t d = 0; d < half; ++d) {
                  y[d] = x[d] * cosine[d] - x[d + half] * sine[d];
                  y[d + half] = x[d + half] * cosine[d] + x[d] * sine[d];
                }
          },
  };
}

} // namespace tenon::zoo
