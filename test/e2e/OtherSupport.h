// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests of kernels that nobody here wrote: problems, and everywhere they must be right.
#pragma once

#include "SimSupport.h"

namespace tenon::test {

inline Tensor random(DType type, std::vector<int64_t> sizes, uint64_t seed, double low = -1, double high = 1) {
  return zoo::randomTensor(type, sizes, seed, low, high);
}

/// Where the kernel rounds between two products, so does the plain computation.
template <class T> T rounded(T value, DType type) {
  if (sizeof(T) == sizeof(double) || type == f32)
    return value;
  Tensor one = Tensor::empty(type, {1});
  one.set({0}, value);
  return static_cast<T>(one.get({0}));
}

template <class F>
Problem problemOf(std::string label, Arguments arguments, std::vector<size_t> outputs, Params params, F compute) {
  Problem problem;
  problem.label = std::move(label);
  problem.arguments = std::move(arguments);
  problem.outputs = std::move(outputs);
  problem.params = std::move(params);
  problem.reference = [compute](Arguments &a) { compute(double(), a); };
  problem.plain = [compute](Arguments &a) { compute(float(), a); };
  return problem;
}

inline void expectRightEverywhere(const Problem &problem, const Kernel &kernel) {
  auto expectRight = [&](const std::string &where, LaunchOptions options) {
    options.params = problem.params;
    Verdict verdict = verify(problem, kernel, options);
    EXPECT_TRUE(verdict.passed) << kernel.name() << ", " << problem.label << ", " << where << ": " << verdict.reason;
  };
  LaunchOptions options;
  for (options.threads = 1; options.threads <= 2; ++options.threads)
    expectRight(std::to_string(options.threads) + " threads", options);
  options.target = Target::sim;
  for (const char *gpu : {"sm_80", "sm_90a"}) {
    options.compile.gpu = gpu;
    expectRight(gpu, options);
  }
  SimulatorSeed other(7);
  expectRight("sm_90a, in another order", options);
}

inline std::string labelOf(DType type, std::initializer_list<int64_t> sizes) {
  std::string text(nameOf(type));
  for (int64_t size : sizes)
    text += " " + std::to_string(size);
  return text;
}

} // namespace tenon::test
