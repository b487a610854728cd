// SPDX-License-Identifier: Apache-2.0
//
// Shared by the end-to-end tests of what the simulator has to say: launches on it, in several orders of the threads, and
// what the compiler remarked.
#pragma once

#include "LangSupport.h"

#include "tenon/kernels/Problems.h"

#include <cstdlib>
#include <random>

namespace tenon::test {

inline LaunchOptions onSimulator(Params params, int warps = 4) {
  LaunchOptions options;
  options.target = Target::sim;
  options.params = std::move(params);
  options.compile.warps = warps;
  return options;
}

/// The problem's parameters, and over them those that the options have.
inline LaunchOptions withParamsOf(const Problem &problem, LaunchOptions options) {
  options.params.insert(problem.params.begin(), problem.params.end());
  return options;
}

inline std::string remarksOf(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options) {
  std::string all;
  for (const std::string &remark : prepare(kernel, arguments, options).remarks)
    all += remark + "\n";
  return all;
}

inline std::vector<std::byte> bytesOf(std::initializer_list<Tensor> tensors) {
  std::vector<std::byte> all;
  for (const Tensor &tensor : tensors) {
    auto *begin = static_cast<const std::byte *>(tensor.data());
    all.insert(all.end(), begin, begin + tensor.bufferBytes());
  }
  return all;
}

/// Small whole numbers, of which every sum is exact.
inline Tensor smallNumbers(DType dtype, IndexList sizes, uint64_t seed) {
  Tensor tensor = Tensor::zeros(dtype, sizes);
  std::mt19937_64 random(seed);
  std::vector<double> values(static_cast<size_t>(tensor.elements()));
  for (double &value : values)
    value = static_cast<double>(random() % 5) - 2;
  setValues(tensor, values);
  return tensor;
}

/// Threads in another order, while it lives.
struct SimulatorSeed {
  explicit SimulatorSeed(int seed) { ::setenv("TENON_SIM_SEED", std::to_string(seed).c_str(), 1); }
  ~SimulatorSeed() { ::unsetenv("TENON_SIM_SEED"); }
};

} // namespace tenon::test
