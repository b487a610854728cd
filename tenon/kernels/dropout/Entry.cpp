// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/dropout/Reference.h"

#include "tenon/kernels/Problems.h"

#include <cmath>

namespace tenon::zoo {

Entry dropoutEntry() {
  return {
      .name = "dropout",
      .summary = "zeroes elements at random and scales up the rest",
      .kernel = dropout,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"rows", "cols"},
      .demoShape = {4096, 4096},
      .testShapes = oddMatrices(),
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            Problem problem;
            problem.label = labelOf(shape, dtype);
            // A seed of more than 32 bits: both words of the key are in use.
            problem.arguments = {randomTensor(dtype, shape, seed), Tensor::zeros(dtype, shape), 0.1,
                                 static_cast<int64_t>(seed) + 0x123456789};
            problem.outputs = {1};
            problem.params = rowTiles(shape[1], 4096);
            setReferences(problem, dtype, [](auto t, Arguments &a) { dropoutReference<decltype(t)>(a); });
            double elements = static_cast<double>(shape[0]) * shape[1];
            problem.flops = elements;
            problem.bytes = 2 * elements * sizeOf(dtype);
            return problem;
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const float *x = plainData(arguments[0]);
            float *y = plainData(arguments[1]);
            auto probability = static_cast<float>(std::get<double>(arguments[2].value()));
            auto seed = static_cast<uint64_t>(std::get<int64_t>(arguments[3].value()));
            float scale = 1 / (1 - probability);
            uint32_t limit = dropLimit(probability);
            std::array<std::array<uint16_t, 16>, 4> numbers{};
            for (int64_t i = 0; i < arguments[0].tensor().elements(); ++i) {
              if (i % 64 == 0)
                for (int64_t block = 0; block < 4; ++block)
                  numbers[block] = randomHalves(philoxWords(seed, i / 16 + block, 7));
              bool keep = numbers[i / 8 % 4][i / 32 % 2 * 8 + i % 8] >= limit;
              y[i] = keep ? x[i] * scale : 0;
            }
          },
  };
}

} // namespace tenon::zoo
