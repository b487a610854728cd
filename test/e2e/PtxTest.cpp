// SPDX-License-Identifier: Apache-2.0
//
// Every kernel of the zoo as PTX for every architecture that differs; assembled where ptxas is at hand, without a
// warning, and without spills at the demo shape.
#include "tenon/compiler/target/nvidia/ptx/Assembler.h"
#include "tenon/kernels/Zoo.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace tenon;

namespace {

struct Compiled {
  std::string kernel;
  DType dtype;
  friend void PrintTo(const Compiled &one, std::ostream *stream) { *stream << one.kernel << " " << nameOf(one.dtype); }
};

class Ptx : public testing::TestWithParam<Compiled> {
public:
  static void check(const zoo::Entry &entry, const std::vector<int64_t> &shape, DType dtype, const std::string &gpu,
                    int allowedSpills) {
    Problem problem = entry.makeProblem(shape, dtype, 1);
    LaunchOptions options;
    options.params = problem.params;
    options.compile.gpu = gpu;
    std::string text = emit(entry.kernel, problem.arguments, "ptx", options);
    EXPECT_NE(text.find(".visible .entry " + entry.kernel.name() + "("), std::string::npos);
    EXPECT_NE(text.find(".target " + gpu + "\n"), std::string::npos);
    std::optional<nvidia::AssemblyReport> assembled = nvidia::assemble(text, gpu);
    if (!assembled)
      return;
    SCOPED_TRACE(gpu + ", " + std::to_string(assembled->registers) + " registers");
    EXPECT_LE(assembled->registers, 255);
    EXPECT_LE(assembled->spillStoreBytes, allowedSpills);
    EXPECT_LE(assembled->spillLoadBytes, allowedSpills);
    for (const std::string &warning : assembled->warnings)
      ADD_FAILURE() << warning;
  }
};

TEST_P(Ptx, Assembles) {
  const zoo::Entry &entry = zoo::find(GetParam().kernel);
  for (const char *gpu : {"sm_80", "sm_90", "sm_90a"})
    check(entry, entry.demoShape, GetParam().dtype, gpu, /*allowedSpills=*/0);
}

/// The largest of the test shapes, of those whose sizes are all odd if there are any. Nothing is a multiple of 16 bytes
/// then: an address and a mask for each element, and some of them do not find a register.
TEST_P(Ptx, AssemblesForOddSizes) {
  const zoo::Entry &entry = zoo::find(GetParam().kernel);
  auto order = [](const std::vector<int64_t> &shape) {
    int64_t volume = 1;
    for (int64_t size : shape)
      volume *= size;
    return std::pair(volume % 2, volume);
  };
  check(entry, *std::max_element(entry.testShapes.begin(), entry.testShapes.end(),
                                 [&](const auto &a, const auto &b) { return order(a) < order(b); }),
        GetParam().dtype, "sm_90a", /*allowedSpills=*/256);
}

std::vector<Compiled> everyKernel() {
  std::vector<Compiled> result;
  for (const zoo::Entry &entry : zoo::entries())
    for (DType dtype : {f32, f16, bf16})
      if (std::find(entry.dtypes.begin(), entry.dtypes.end(), dtype) != entry.dtypes.end())
        result.push_back({entry.name, dtype});
  return result;
}
INSTANTIATE_TEST_SUITE_P(Zoo, Ptx, testing::ValuesIn(everyKernel()), [](const auto &info) {
  return info.param.kernel + "_" + std::string(nameOf(info.param.dtype));
});

TEST(PtxRandom, FourElementsShareTheGenerator) {
  const zoo::Entry &entry = zoo::find("dropout");
  auto evaluations = [&](int64_t columns) { // for the elements of one thread
    Problem problem = entry.makeProblem(std::vector<int64_t>{64, columns}, bf16, 1);
    LaunchOptions options;
    options.params = {{"rows", 4}, {"cols", 256}};
    options.compile.warps = 4;
    options.compile.gpu = "sm_90a";
    std::string text = emit(entry.kernel, problem.arguments, "ptx", options);
    int64_t products = 0;
    for (size_t at = 0; (at = text.find("mul.wide.u32 product", at)) != std::string::npos; ++at)
      ++products;
    return static_cast<double>(products) / 19; // two in each of ten rounds, but one of the first is zero
  };
  // 1024 elements for 128 threads.
  EXPECT_EQ(evaluations(1024), 2);
  EXPECT_EQ(evaluations(1022), 4);
  EXPECT_EQ(evaluations(1023), 8);
}

TEST(PtxErrors, UnknownArchitecture) {
  Kernel copy("copy(x)", [](View x) {
    Index i = grid(x.size(0));
    x.store({i}, x.load({i}, {1}));
  });
  LaunchOptions options;
  options.compile.gpu = "sm_12";
  try {
    emit(copy, {Tensor::zeros(f32, {4})}, "ptx", options);
    ADD_FAILURE();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "unknown architecture \"sm_12\": use sm_80, sm_86, sm_89, sm_90 or sm_90a");
  }
}

} // namespace
