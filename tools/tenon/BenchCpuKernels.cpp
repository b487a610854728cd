// SPDX-License-Identifier: Apache-2.0
#include "BenchCpuKernels.h"

#include "tenon/kernels/Problems.h"
#include "tenon/kernels/bias_gelu/Reference.h"
#include "tenon/kernels/dropout/Reference.h"

namespace tenon::tool {

const Kernel biasGeluDropout("bias_gelu_dropout(x, bias, y, probability, seed, rows=1, cols=1024)",
                             [](View x, View bias, View y, Scalar probability, Index seed, Param rows, Param cols) {
  require((x.size(0) == y.size(0)) & (x.size(1) == y.size(1)), "x and y must have the same shape");
  require(bias.size(0) == y.size(1), "bias must have one element per column");
  DType compute = zoo::computeType(x);
  auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
  Tile t = x.load({i * rows, j * cols}, {rows, cols}).to(compute) + bias.load({j * cols}, {cols}).to(compute);
  Tile active = t * (0.5 * (1 + tanh(0.7978845608028654 * (t + 0.044715 * t * t * t)))); // sqrt(2 / pi)
  Tile row = iota(i64, {rows, 1}, 0) + i * rows;
  Tile column = iota(i64, {1, cols}, 1) + j * cols;
  Tile keep = random_uniform(seed, row * x.size(1) + column) >= probability;
  y.store({i * rows, j * cols}, where(keep, active / (1 - probability), 0).to(y.dtype()));
});

Problem biasGeluDropoutProblem(int64_t rows, int64_t cols, DType dtype, uint64_t seed) {
  Problem problem;
  problem.label = zoo::labelOf(std::array{rows, cols}, dtype);
  problem.arguments = {zoo::randomTensor(dtype, {rows, cols}, seed, -4, 4), zoo::randomTensor(dtype, {cols}, seed + 1),
                       Tensor::zeros(dtype, {rows, cols}), 0.1, static_cast<int64_t>(seed) + 0x123456789};
  problem.outputs = {2};
  problem.params = zoo::rowTiles(cols, 4096);
  zoo::setReferences(problem, dtype, [](auto t, Arguments &a) {
    using T = decltype(t);
    // In the computation's own type in between: only the end is rounded.
    constexpr DType type = sizeof(T) == 4 ? f32 : f64;
    Tensor active = Tensor::empty(type, a[0].tensor().sizes());
    Arguments gelu = {a[0], a[1], active}, dropout = {active, a[2], a[3], a[4]};
    zoo::biasGeluReference<T>(gelu);
    zoo::dropoutReference<T>(dropout);
  });
  double elements = static_cast<double>(rows) * cols;
  problem.flops = 12 * elements;
  problem.bytes = (2 * elements + cols) * sizeOf(dtype);
  return problem;
}

} // namespace tenon::tool
