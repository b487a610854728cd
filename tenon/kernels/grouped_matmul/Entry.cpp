// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/grouped_matmul/Reference.h"

#include "tenon/kernels/Problems.h"

#include <bit>
#include <numeric>
#include <random>

namespace tenon::zoo {

Tensor expertOffsets(std::span<const int64_t> rows) {
  std::vector<int64_t> offsets(rows.size() + 1, 0);
  std::partial_sum(rows.begin(), rows.end(), offsets.begin() + 1);
  Tensor tensor = Tensor::empty(i32, {static_cast<int64_t>(offsets.size())});
  setValues(tensor, offsets);
  return tensor;
}

int64_t expertSearchSteps(int64_t experts) {
  return experts > 1 ? static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(experts - 1))) : 1;
}

Problem groupedMatmulProblem(const GroupedShape &shape, DType dtype, uint64_t seed) {
  auto experts = static_cast<int64_t>(shape.rows.size());
  int64_t rows = std::accumulate(shape.rows.begin(), shape.rows.end(), int64_t(0)), n = shape.n, k = shape.k;
  // The weights lie in memory as [experts, n, k], as a layer keeps them.
  Tensor weights = randomTensor(dtype, {experts, n, k}, seed + 1, -1, 1);
  Problem problem;
  problem.label = labelOf(std::array{experts, rows, n, k}, dtype);
  problem.arguments = {randomTensor(dtype, {rows, k}, seed, -1, 1), weights.transpose({0, 2, 1}),
                       expertOffsets(shape.rows), Tensor::zeros(dtype, {rows, n})};
  problem.outputs = {3};
  int64_t block = rows <= 64 * experts ? 32 : 64;
  problem.params = {{"bm", block}, {"bn", block}, {"bk", block}, {"search", expertSearchSteps(experts)}, {"pair", 1}};
  setReferences(problem, dtype, [](auto t, Arguments &a) { groupedMatmulReference<decltype(t)>(a); });
  problem.flops = 2.0 * rows * n * k;
  auto busy = static_cast<double>(std::count_if(shape.rows.begin(), shape.rows.end(), [](int64_t r) { return r > 0; }));
  problem.bytes = (double(rows) * k + busy * n * k + double(rows) * n) * sizeOf(dtype) + 4.0 * (experts + 1);
  return problem;
}

namespace {

/// Cuts the rows at random places, so that some experts have many, some few and some none.
std::vector<int64_t> randomRows(int64_t experts, int64_t rows, uint64_t seed) {
  if (experts == 0 && rows > 0)
    throw Error("grouped_matmul: rows need an expert they belong to");
  std::mt19937_64 random(seed);
  std::vector<int64_t> cuts = {0, rows};
  for (int64_t i = 1; i < experts; ++i)
    cuts.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(rows + 1)));
  std::sort(cuts.begin(), cuts.end());
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < experts; ++i)
    sizes.push_back(cuts[i + 1] - cuts[i]);
  return sizes;
}

} // namespace

Entry groupedMatmulEntry() {
  return {
      .name = "grouped_matmul",
      .summary = "rows times the matrix of the expert that each belongs to",
      .kernel = groupedMatmul,
      .dtypes = {f32, f16, bf16, f64},
      .dimensions = {"experts", "rows", "n", "k"},
      .demoShape = {8, 1024, 256, 256},
      .testShapes = {{1, 1, 1, 1}, {3, 17, 33, 40}, {5, 130, 70, 33}, {8, 8, 17, 64}, {7, 3, 20, 17}, {2, 100, 1, 40},
                     {4, 20, 17, 0}, {3, 0, 17, 17}, {0, 0, 17, 17}},
      .makeProblem =
          [](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
            return groupedMatmulProblem({randomRows(shape[0], shape[1], seed), shape[2], shape[3]}, dtype, seed);
          },
      .plainLoop =
          [](const Arguments &arguments) {
            const Tensor &left = arguments[0].tensor(), &right = arguments[1].tensor();
            const float *a = plainData(arguments[0]), *b = plainData(right.transpose({0, 2, 1}));
            float *c = plainData(arguments[3]);
            int64_t k = left.size(1), n = right.size(2);
            const auto *offsets = static_cast<const int32_t *>(arguments[2].tensor().data());
            for (int64_t expert = 0; expert < right.size(0); ++expert)
              for (int64_t i = offsets[expert]; i < offsets[expert + 1]; ++i)
                for (int64_t j = 0; j < n; ++j) {
                  float sum = 0;
                  for (int64_t p = 0; p < k; ++p)
                    sum += a[i * k + p] * b[(expert * n + j) * k + p];
                  c[i * n + j] = sum;
                }
          },
  };
}

} // namespace tenon::zoo
