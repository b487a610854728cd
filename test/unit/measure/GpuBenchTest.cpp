// SPDX-License-Identifier: Apache-2.0
//
// RepeatedProblem on the CPU, where kernels really run; bursts over the fake driver, where they do not.
#include "../runtime/FakeCuda.h"

#include "tenon/base/Error.h"
#include "tenon/measure/GpuBench.h"
#include "tenon/measure/GpuCeilings.h"
#include "tenon/measure/LaunchCost.h"
#include "tenon/measure/Rotation.h"
#include "tenon/verify/Values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>

using namespace tenon;

namespace {

/// y = x * weight, row by row; from row `wrongFrom` on, something else.
Kernel scaleKernel() {
  return Kernel("scale(x, weight, y, wrongFrom, cols=8)", [](View x, View weight, View y, Index wrongFrom, Param cols) {
    Index i = grid(x.size(0));
    Tile t = x.load({i, 0}, {1, cols}) * weight.load({0}, {cols});
    y.store({i, 0}, where(i < wrongFrom, t, t + 1));
  });
}

std::function<Problem(int64_t)> scaleProblems(int64_t wrongFrom) {
  return [wrongFrom](int64_t rows) {
    Tensor x = Tensor::empty(DType::f32, {rows, 8}), weight = Tensor::empty(DType::f32, {8});
    x.fillRandom(1, -2, 2);
    weight.fillRandom(2, 1, 2);
    Problem problem;
    problem.label = std::to_string(rows) + "x8";
    problem.arguments = {x, weight, Tensor::zeros(DType::f32, {rows, 8}), wrongFrom};
    problem.outputs = {2};
    problem.reference = problem.plain = [](Arguments &arguments) {
      std::vector<double> values = valuesOf<double>(arguments[0].tensor()), w = valuesOf<double>(arguments[1].tensor());
      for (size_t i = 0; i < values.size(); ++i)
        values[i] *= w[i % 8];
      setValues(arguments[2].tensor(), values);
    };
    return problem;
  };
}

TEST(RepeatedProblem, RepeatsWhatHasRows) {
  // As many rows in the block as columns: only two problems of different height tell x from weight.
  RepeatedProblem problem(scaleProblems(64), 40, 8, Device::cpu());
  const Tensor &x = problem.arguments()[0].tensor(), &weight = problem.arguments()[1].tensor();
  EXPECT_EQ(x.size(0), 40);
  EXPECT_EQ(weight.size(0), 8);
  EXPECT_EQ(problem.arguments()[2].tensor().size(0), 40);
  EXPECT_EQ(problem.bytes(), (2 * 40 * 8 + 8) * sizeof(float));
  std::vector<float> values = valuesOf<float>(x), block = valuesOf<float>(scaleProblems(0)(8).arguments[0].tensor());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], block[i % block.size()]);
}

TEST(RepeatedProblem, JudgesTheFirstRowsAndTheLast) {
  Kernel kernel = scaleKernel();
  auto verdictFor = [&](int64_t wrongFrom, bool sameRows) {
    return RepeatedProblem(scaleProblems(wrongFrom), 40, 8, Device::cpu()).verify(kernel, {}, sameRows);
  };
  EXPECT_TRUE(verdictFor(64, true).passed) << verdictFor(64, true).reason;
  EXPECT_FALSE(verdictFor(3, true).passed);
  Verdict last = verdictFor(35, true);
  EXPECT_FALSE(last.passed);
  EXPECT_NE(last.reason.find("the last 8 rows differ"), std::string::npos) << last.reason;
  EXPECT_TRUE(verdictFor(35, false).passed);
}

TEST(RepeatedProblem, CopiesShareNothing) {
  RepeatedProblem problem(scaleProblems(64), 16, 8, Device::cpu());
  std::vector<Arguments> sets = problem.copies(3);
  ASSERT_EQ(sets.size(), 3u);
  EXPECT_EQ(sets[0][0].tensor().data(), problem.arguments()[0].tensor().data());
  EXPECT_FALSE(sets[1][0].tensor().overlaps(sets[0][0].tensor()));
  EXPECT_FALSE(sets[2][0].tensor().overlaps(sets[1][0].tensor()));
  EXPECT_EQ(valuesOf<float>(sets[2][0].tensor()), valuesOf<float>(sets[0][0].tensor()));
}

class Gpu : public testing::Test {
protected:
  static void SetUpTestSuite() { ::setenv("TENON_CUDA_DRIVER", TENON_FAKE_CUDA, 1); }
};

TEST_F(Gpu, SetsExceedTheCache) {
  size_t cache = static_cast<size_t>(cudaProperties(0).l2Bytes);
  EXPECT_EQ(setsToExceedCache(3 * cache, Device::cuda(0)), 1u);
  size_t sets = setsToExceedCache(cache / 4, Device::cuda(0));
  EXPECT_GT((sets - 1) * (cache / 4), 2 * cache);
}

TEST_F(Gpu, ArgumentsRotateOnTheDevice) {
  Device device = Device::cuda(0);
  Tensor whole = Tensor::empty(DType::f32, {6, 8});
  whole.fillRandom(1, -2, 2);
  Arguments arguments = {whole.slice(1, 2, 4), 3, whole.slice(0, 5, 6, -1), Tensor::empty(DType::f32, {0, 4})};
  Rotation rotation(arguments, {.device = device, .cacheBytes = 1000, .maxSets = 3});
  EXPECT_EQ(rotation.sets(), 3u);
  const Arguments &first = rotation.next(), &second = rotation.next();
  for (const Arguments &set : {first, second})
    for (size_t i : {0, 2, 3}) {
      const Tensor &copy = set[i].tensor(), &original = arguments[i].tensor();
      EXPECT_EQ(copy.device(), device);
      EXPECT_TRUE(std::ranges::equal(copy.strides(), original.strides()) || original.elements() == 0);
      EXPECT_EQ(valuesOf<float>(copy.to(Device::cpu())), valuesOf<float>(original.clone()));
    }
  EXPECT_TRUE(first[0].tensor().overlaps(first[2].tensor())) << "still views of one memory";
  EXPECT_FALSE(first[0].tensor().overlaps(second[0].tensor()));
  size_t cache = static_cast<size_t>(cudaProperties(0).l2Bytes);
  Rotation large({Tensor::empty(DType::u8, {static_cast<int64_t>(cache)})}, {.device = device, .maxBytes = 4 * cache});
  EXPECT_EQ(large.sets(), 4u) << "by the device's cache";
  EXPECT_TRUE(large.cold());
}

TEST_F(Gpu, BurstsOfLaunchesAndOfGraphs) {
  Kernel kernel = scaleKernel();
  RepeatedProblem problem(scaleProblems(64), 16, 8, Device::cuda(0));
  LaunchOptions options;
  options.target = Target::cuda;
  GpuBursts plain(kernel, problem.copies(2), options);
  EXPECT_GT(plain(), 0);
  GpuBursts graph(kernel, problem.copies(1), options, {.graphLaunches = 5});
  EXPECT_GT(graph(), 0);
  EXPECT_EQ(graph.launches() % 5, 0u);
  EXPECT_THROW(GpuBursts(kernel, {scaleProblems(64)(8).arguments}, options), Error);
}

TEST_F(Gpu, LaunchCost) {
  uint64_t before = fake::launchCount();
  LaunchCost cost = measureLaunchCost(1000, Device::cuda(0));
  EXPECT_EQ(cost.launches, 1000u);
  EXPECT_EQ(fake::launchCount() - before, 6 * (3 * 200 + 1)) << "six rounds of three kinds, and one to count its work";
  EXPECT_GT(cost.launch.median, 0);
  EXPECT_GT(cost.profiled.median, 0);
  EXPECT_GT(cost.driver.median, 0);
  LaunchCost onCpu = measureLaunchCost(400, Device::cpu());
  EXPECT_EQ(onCpu.launches, 400u);
  EXPECT_GT(onCpu.launch.median, 0);
  EXPECT_EQ(onCpu.driver.median, 0);
}

//===--- Ceilings -------------------------------------------------------------------------------------------------===//

TEST(GpuCeilings, TheProductIsOne) {
  Tensor a = Tensor::empty(f32, {16, 64}), b = Tensor::empty(f32, {64, 32}), c = Tensor::zeros(f32, {48, 32});
  a.fillRandom(1, -1, 1);
  b.fillRandom(2, -1, 1);
  LaunchOptions options;
  options.params = {{"rows", 16}, {"cols", 32}, {"depth", 16}};
  launch(matrixRateKernel, {a, b, c}, options);
  for (int64_t row : {0, 15, 16, 47})
    for (int64_t col : {0, 31}) {
      double sum = 0;
      for (int64_t k = 0; k < 64; ++k)
        sum += a.get({row % 16, k}) * b.get({k, col});
      EXPECT_NEAR(c.get({row, col}), sum, 1e-5);
    }
}

/// The rate of the fastest instructions, or the roof would be too low.
TEST(GpuCeilings, ByTheFastestInstructions) {
  for (auto [type, operands] :
       {std::pair(bf16, "f32.bf16.bf16"), std::pair(f16, "f32.f16.f16"), std::pair(f8e4m3, "f32.e4m3.e4m3")}) {
    Tensor a = Tensor::zeros(type, {128, 1024}), b = Tensor::zeros(type, {256, 1024}).transpose({1, 0});
    Tensor c = Tensor::zeros(bf16, {256, 256});
    LaunchOptions options;
    options.target = Target::sim;
    options.compile.gpu = "sm_90a";
    options.compile.warps = 8;
    options.params = {{"depth", 128 / static_cast<int64_t>(sizeOf(type))}};
    std::string ptx = emit(matrixRateKernel, {a, b, c}, "ptx", options);
    std::regex product("wgmma\\.mma_async\\.sync\\.aligned\\.m64n(128|256)k[0-9]+\\." + std::string(operands));
    EXPECT_TRUE(std::regex_search(ptx, product)) << nameOf(type);
    EXPECT_EQ(ptx.find("st.local"), std::string::npos) << nameOf(type);
  }
}

TEST_F(Gpu, CeilingsAreMeasured) {
  model::Ceilings ceilings = measureGpuCeilings(0);
  EXPECT_TRUE(ceilings.measured && ceilings.isGpu);
  for (const auto &level : ceilings.levels)
    EXPECT_GT(level.copyBytesPerSecond, 0) << level.name;
  EXPECT_GT(ceilings.vectorRate(model::Precision::f32), 0);
  auto sheet = model::gpuDatasheet(cudaProperties(0).name);
  for (size_t i = 0; sheet && i < model::precisions; ++i)
    EXPECT_LE(ceilings.matrix[i], sheet->matrix[i]) << i;
  for (const fake::Launch &launch : fake::launches())
    EXPECT_TRUE(launch.aligned) << launch.name;
}

// A device that fails is an error; only what the compiler has no code for is left out.
TEST_F(Gpu, AProductThatFailsIsNoCeilingOfZero) {
  fake::failNext("cuTensorMapEncodeTiled", 1);
  EXPECT_THROW(measureGpuCeilings(0), Error);
}

} // namespace
