// SPDX-License-Identifier: Apache-2.0
//
// What tests of blocks with more warpgroups than one run in the simulator, whoever has which part of it: a product with an
// epilogue, and a program of two loops of dots.
#pragma once

#include "SimSupport.h"

#include <array>

namespace tenon::test {

inline Problem product(int64_t m, int64_t n, int64_t k, DType dtype = bf16) {
  return zoo::matmulProblem({.m = m, .n = n, .k = k, .bias = true, .activation = zoo::Activation::geluExact,
                             .transposedB = true},
                            dtype, 3);
}

/// Verifies it, and that the compiler says `told`.
inline void expectRight(const Problem &problem, const Kernel &kernel, LaunchOptions options, const char *told) {
  options = withParamsOf(problem, std::move(options));
  expectParts(remarksOf(kernel, problem.arguments, options), {told});
  Verdict verdict = verify(problem, kernel, options);
  EXPECT_TRUE(verdict.passed) << problem.label << ", clusters of " << options.compile.cluster << ": " << verdict.reason;
}

/// Two loops of dots, the second with an operand that was computed: it goes through memory of the warpgroup's own.
inline const Kernel chain("chain(a, b, c, d, bm=64, bn=64, bk=64)",
                          [](View a, View b, View c, View d, Param bm, Param bn, Param bk) {
  promise_no_overlap();
  Index i = grid(cdiv(a.size(0), bm));
  Tile acc = zeros(f32, {bm, bn});
  for (Index k : range(0, a.size(1), bk))
    acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, 0}, {bk, bn}), acc);
  Tile hidden = maximum(acc, 0.0f).to(bf16);
  for (Index j : range(0, d.size(1), bn))
    d.store({i * bm, j}, dot(hidden, c.load({0, j}, {bn, bn}), zeros(f32, {bm, bn})));
});

/// Its arguments; the last one is the result.
inline std::array<Tensor, 4> chainTensors(int64_t m, int64_t k, int64_t n) {
  return {zoo::randomTensor(bf16, {m, k}, 1, -1, 1), zoo::randomTensor(bf16, {k, 64}, 2, -1, 1),
          zoo::randomTensor(bf16, {64, n}, 3, -1, 1), Tensor::zeros(f32, {m, n})};
}

} // namespace tenon::test
