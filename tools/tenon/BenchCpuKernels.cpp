// SPDX-License-Identifier: Apache-2.0
#include "BenchCpuKernels.h"

#include "tenon/kernels/CpuTiles.h"
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
  y.store({i * rows, j * cols}, dropout(active, probability, seed, row * x.size(1) + column).to(y.dtype()));
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
  problem.flops = 11 * elements;
  problem.bytes = (2 * elements + cols) * sizeOf(dtype);
  return problem;
}

const Kernel squaredDistance("squared_distance(a, b, d, bm=64, bn=64, bk=64)",
                             [](View a, View b, View d, Param bm, Param bn, Param bk) {
  require(a.size(1) == b.size(1), "a and b must have as many columns");
  require((a.size(0) == d.size(0)) & (b.size(0) == d.size(1)), "d must have a row for each of a, a column for each of b");
  promise_no_overlap();
  auto [i, j] = grid(cdiv(d.size(0), bm), cdiv(d.size(1), bn));
  Tile products = zeros(f32, {bm, bn}), ofA = zeros(f32, {bm, 1}), ofB = zeros(f32, {bn, 1});
  for (Index k : range(0, a.size(1), bk)) {
    Tile x = a.load({i * bm, k}, {bm, bk}), y = b.load({j * bn, k}, {bn, bk});
    products = dot(x, transpose(y), products);
    ofA = ofA + sum(x.to(f32) * x.to(f32), 1);
    ofB = ofB + sum(y.to(f32) * y.to(f32), 1);
  }
  d.store({i * bm, j * bn}, ofA + transpose(ofB) - 2 * products);
});

namespace {

/// Summed up as the kernel does it, so that what cancels does so in both.
template <class T> void squaredDistanceReference(Arguments &arguments) {
  const Tensor &a = arguments[0].tensor(), &b = arguments[1].tensor();
  std::vector<T> left = valuesOf<T>(a), right = valuesOf<T>(b);
  int64_t m = a.size(0), n = b.size(0), k = a.size(1);
  auto product = [k](const T *x, const T *y) {
    T total = 0;
    for (int64_t l = 0; l < k; ++l)
      total += x[l] * y[l];
    return total;
  };
  std::vector<T> ofB, result;
  for (int64_t j = 0; j < n; ++j)
    ofB.push_back(product(&right[j * k], &right[j * k]));
  for (int64_t i = 0; i < m; ++i) {
    T ofA = product(&left[i * k], &left[i * k]);
    for (int64_t j = 0; j < n; ++j)
      result.push_back(ofA + ofB[j] - 2 * product(&left[i * k], &right[j * k]));
  }
  setValues(arguments[2].tensor(), result);
}

} // namespace

Problem squaredDistanceProblem(int64_t m, int64_t n, int64_t k, DType dtype, uint64_t seed) {
  Problem problem;
  problem.label = zoo::labelOf(std::array{m, n, k}, dtype);
  problem.arguments = {zoo::randomTensor(dtype, {m, k}, seed, -1, 1), zoo::randomTensor(dtype, {n, k}, seed + 1, -1, 1),
                       Tensor::zeros(f32, {m, n})};
  problem.outputs = {2};
  problem.cpuParams = [=](int threads) { return zoo::matmulCpuTiles(m, n, k, dtype, threads); };
  zoo::setReferences(problem, dtype, [](auto t, Arguments &a) { squaredDistanceReference<decltype(t)>(a); });
  problem.flops = 2.0 * m * n * k;
  problem.bytes = (double(m) * k + double(n) * k) * sizeOf(dtype) + double(m) * n * sizeOf(f32);
  return problem;
}

} // namespace tenon::tool
