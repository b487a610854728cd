// SPDX-License-Identifier: Apache-2.0
//
// The products of the zoo where it hurts: no, one and two steps along the shared dimension, a step that overhangs, one
// row or column, every type, either operand in either order, views that begin anywhere, and experts without rows.
#include "tenon/kernels/CpuTiles.h"
#include "tenon/kernels/Problems.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace tenon;

namespace {

constexpr Target targets[] = {Target::cpu, Target::interpreter, Target::sim};

void expectRight(const Problem &problem, const Kernel &kernel, const Params &params = {}) {
  for (Target target : targets) {
    LaunchOptions options;
    options.params = params;
    options.target = target;
    Verdict verdict = verify(problem, kernel, options);
    EXPECT_TRUE(verdict.passed) << kernel.name() << " " << problem.label << " on " << nameOf(target) << ": "
                                << verdict.reason;
  }
}

/// The error of a launch, empty if there is none.
std::string errorOf(const Problem &problem, const Kernel &kernel, const Params &params, Target target) {
  LaunchOptions options;
  options.params = params;
  options.params.insert(problem.params.begin(), problem.params.end());
  options.target = target;
  try {
    launch(kernel, problem.arguments, options);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

void expectRefused(const Problem &problem, const Kernel &kernel, const Params &params, const char *why) {
  for (Target target : targets)
    EXPECT_NE(errorOf(problem, kernel, params, target).find(why), std::string::npos)
        << errorOf(problem, kernel, params, target);
}

/// The same content inside a larger tensor, `by` elements from its start, so that rows begin anywhere.
Tensor offsetBy(const Tensor &tensor, int64_t by) {
  std::vector<int64_t> larger(tensor.sizes().begin(), tensor.sizes().end());
  larger.back() += by + 2;
  Tensor view = Tensor::zeros(tensor.dtype(), larger).slice(tensor.rank() - 1, by, tensor.sizes().back());
  view.copyFrom(tensor);
  return view;
}

//===--- matmul ---------------------------------------------------------------------------------------------------===//

class MatmulTypes : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Zoo, MatmulTypes, testing::Values(f32, f16, bf16, f8e4m3, f8e5m2, i8),
                         [](const auto &info) { return std::string(nameOf(info.param)); });

TEST_P(MatmulTypes, AnyNumberOfStepsInEitherOrder) {
  for (int64_t k : {0, 7, 32, 64, 80, 150})
    for (bool transposed : {false, true}) {
      zoo::MatmulShape shape = {.m = 33, .n = 40, .k = k, .transposedB = transposed};
      expectRight(zoo::matmulProblem(shape, GetParam(), 3), zoo::matmul);
    }
}

TEST_P(MatmulTypes, OneRowOrColumn) {
  for (bool transposed : {false, true}) {
    expectRight(zoo::matmulProblem({.m = 1, .n = 48, .k = 70, .transposedB = transposed}, GetParam(), 3), zoo::matmul);
    expectRight(zoo::matmulProblem({.m = 48, .n = 1, .k = 70, .transposedB = transposed}, GetParam(), 3), zoo::matmul);
  }
}

TEST_P(MatmulTypes, TilesOfMatrixUnits) {
  Problem problem = zoo::matmulProblem({.m = 100, .n = 72, .k = 160, .transposedB = true}, GetParam(), 3);
  expectRight(problem, zoo::matmul, {{"bm", 64}, {"bn", 64}, {"bk", 64}});
  expectRight(problem, zoo::matmul, {{"bm", 128}, {"bn", 48}, {"bk", 32}});
}

TEST_P(MatmulTypes, ViewsThatBeginAnywhere) {
  Problem problem = zoo::matmulProblem({.m = 33, .n = 40, .k = 70}, GetParam(), 3);
  for (size_t argument : {0, 1, 3})
    problem.arguments[argument] = offsetBy(problem.arguments[argument].tensor(), 1 + static_cast<int64_t>(argument));
  expectRight(problem, zoo::matmul);
}

TEST_P(MatmulTypes, TheResultIsOfAnyType) {
  for (DType output : {f32, bf16, f16})
    for (bool bias : {false, true}) {
      zoo::MatmulShape shape = {
          .m = 20, .n = 24, .k = 40, .bias = bias, .activation = bias ? zoo::relu : zoo::none, .output = output};
      if (isInteger(GetParam()) && output == f16)
        continue; // sums of 16-bit products do not fit
      expectRight(zoo::matmulProblem(shape, GetParam(), 3), zoo::matmul);
    }
}

TEST(Matmul, MayRoundToTf32) {
  for (int64_t k : {8, 70, 300})
    expectRight(zoo::matmulProblem({.m = 40, .n = 33, .k = k, .tf32 = true}, f32, 3), zoo::matmul);
}

TEST(Matmul, MayHaveFastSums) { // which CPUs have no use for
  for (int64_t k : {8, 70, 300})
    expectRight(zoo::matmulProblem({.m = 40, .n = 33, .k = k, .fastAccum = true, .output = f32}, f8e4m3, 3),
                zoo::matmul);
}

//===--- batched_matmul -------------------------------------------------------------------------------------------===//

Problem batched(std::vector<int64_t> shape, DType dtype) {
  return zoo::find("batched_matmul").makeProblem(shape, dtype, 5);
}

TEST(BatchedMatmul, AnyNumberOfSteps) {
  for (int64_t k : {0, 7, 32, 64, 80})
    for (DType dtype : {f32, bf16})
      expectRight(batched({3, 33, 40, k}, dtype), zoo::batchedMatmul);
}

TEST(BatchedMatmul, OneMatrixServesAll) {
  Problem problem = batched({3, 33, 40, 50}, bf16);
  Tensor one = Tensor::zeros(bf16, {50, 40});
  one.fillRandom(9, -1, 1);
  problem.arguments[1] = Tensor::borrow(one.data(), one.bufferBytes(), bf16, {3, 50, 40}, {0, 40, 1});
  expectRight(problem, zoo::batchedMatmul);
}

TEST(BatchedMatmul, BatchesThatDoNotFitAreRefused) {
  Problem problem = batched({3, 17, 17, 17}, f32);
  problem.arguments[1] = Tensor::zeros(f32, {2, 17, 17});
  expectRefused(problem, zoo::batchedMatmul, {}, "as many matrices");
}

//===--- gated_mlp ------------------------------------------------------------------------------------------------===//

Problem gated(std::vector<int64_t> shape, DType dtype) { return zoo::find("gated_mlp").makeProblem(shape, dtype, 5); }

TEST(GatedMlp, AnyNumberOfSteps) {
  for (int64_t k : {0, 7, 32, 64, 80})
    for (DType dtype : {f32, f16, bf16})
      expectRight(gated({33, 40, k}, dtype), zoo::gatedMlp);
}

TEST(GatedMlp, WeightsAreHalvesOfOneMatrixInTheOrderOfALayer) {
  Problem problem = gated({33, 40, 70}, bf16);
  Tensor weights = Tensor::zeros(bf16, {80, 70}); // [2 n, k]
  weights.fillRandom(9, -1, 1);
  problem.arguments[1] = weights.slice(0, 0, 40).transpose({1, 0});
  problem.arguments[2] = weights.slice(0, 40, 40).transpose({1, 0});
  expectRight(problem, zoo::gatedMlp);
  expectRight(problem, zoo::gatedMlp, {{"bm", 64}, {"bn", 32}, {"bk", 64}});
}

TEST(GatedMlp, WeightsOfDifferentSizesAreRefused) {
  Problem problem = gated({17, 17, 17}, f32);
  problem.arguments[2] = Tensor::zeros(f32, {17, 18});
  expectRefused(problem, zoo::gatedMlp, {}, "same shape");
}

//===--- dequant_matmul -------------------------------------------------------------------------------------------===//

TEST(DequantMatmul, AnyNumberOfStepsPerColumnAndPerGroup) {
  for (DType dtype : {f32, f16, bf16})
    for (int64_t k : {0, 7, 32, 64, 80}) {
      expectRight(zoo::dequantMatmulProblem({33, 40, k}, dtype, 5), zoo::dequantMatmul);
      expectRight(zoo::dequantMatmulProblem({33, 40, k, 32}, dtype, 5), zoo::dequantMatmul);
    }
  expectRight(zoo::dequantMatmulProblem({20, 24, 150, 64}, bf16, 5), zoo::dequantMatmul, {{"bk", 16}});
}

TEST(DequantMatmul, WeightsInTheOrderOfALayer) {
  Problem problem = zoo::dequantMatmulProblem({33, 40, 70}, bf16, 5);
  Tensor weights = Tensor::zeros(i8, {40, 70});
  weights.fillRandom(9, -127, 127);
  problem.arguments[1] = weights.transpose({1, 0});
  expectRight(problem, zoo::dequantMatmul);
}

TEST(DequantMatmul, StepsAcrossGroupsAreRefused) {
  Problem problem = zoo::dequantMatmulProblem({17, 17, 64, 16}, f32, 5);
  expectRefused(problem, zoo::dequantMatmul, {{"bk", 32}}, "divides group");
  expectRefused(problem, zoo::dequantMatmul, {{"group", 32}}, "one row per group");
  expectRefused(problem, zoo::dequantMatmul, {{"group", 0}}, "name the size of a group");
}

//===--- grouped_matmul -------------------------------------------------------------------------------------------===//

TEST(GroupedMatmul, ExpertsOfAnyNumberOfRows) {
  std::vector<std::vector<int64_t>> all = {
      {0, 1, 31, 32, 33, 0, 64}, {100}, {0, 0, 5}, {5, 0, 0}, {31, 31, 31, 31}, {1, 1, 1, 1, 1, 1, 1, 1, 1}};
  for (const std::vector<int64_t> &rows : all)
    for (DType dtype : {f32, bf16})
      expectRight(zoo::groupedMatmulProblem({rows, 40, 50}, dtype, 5), zoo::groupedMatmul, {{"bm", 32}});
}

TEST(GroupedMatmul, AnyNumberOfSteps) {
  for (int64_t k : {0, 7, 32, 64, 80})
    expectRight(zoo::groupedMatmulProblem({{3, 40, 0, 17}, 33, k}, bf16, 5), zoo::groupedMatmul);
}

/// More steps of the search than needed, and as many as just suffice.
TEST(GroupedMatmul, SearchesAsLongAsAsked) {
  Problem problem = zoo::groupedMatmulProblem({{3, 4, 0, 17, 9}, 20, 24}, f32, 5);
  expectRight(problem, zoo::groupedMatmul, {{"search", 3}});
  expectRight(problem, zoo::groupedMatmul, {{"search", 12}});
  expectRefused(problem, zoo::groupedMatmul, {{"search", 2}}, "choose search");
  problem.arguments[2] = Tensor::zeros(i32, {5});
  expectRefused(problem, zoo::groupedMatmul, {}, "one element more");
}

TEST(GroupedMatmul, RowsBehindTheLastExpertStayAsTheyAre) {
  for (Target target : targets) {
    Problem problem = zoo::groupedMatmulProblem({{10, 40}, 24, 32}, f32, 5);
    problem.arguments[2].tensor().setInt({2}, 30); // the last 20 rows are nobody's
    const Tensor &c = problem.arguments[3].tensor();
    c.fill(-7);
    EXPECT_EQ(errorOf(problem, zoo::groupedMatmul, {}, target), "");
    for (int64_t column = 0; column < 24; ++column) {
      EXPECT_NE(c.get({29, column}), -7) << nameOf(target);
      for (int64_t row = 30; row < 50; ++row)
        EXPECT_EQ(c.get({row, column}), -7) << nameOf(target) << " row " << row;
    }
  }
}

TEST(GroupedMatmul, OffsetsMayBeWide) {
  Problem problem = zoo::groupedMatmulProblem({{3, 40, 0, 17}, 33, 20}, f32, 5);
  Tensor wide = Tensor::zeros(i64, {5});
  setValues(wide, valuesOf<int64_t>(problem.arguments[2].tensor()));
  problem.arguments[2] = wide;
  expectRight(problem, zoo::groupedMatmul);
}

TEST(GroupedMatmul, FindsAsManyExpertsAsThereAre) {
  for (int64_t experts : {1, 2, 3, 4, 5, 64, 65})
    EXPECT_LE(experts, int64_t(1) << zoo::expertSearchSteps(experts));
  EXPECT_EQ(zoo::expertSearchSteps(64), 6);
  EXPECT_THROW(zoo::find("grouped_matmul").makeProblem(std::vector<int64_t>{0, 3, 4, 5}, f32, 1), Error);
}

TEST(CpuTiles, AreAsLargeAsTheCacheAndEnoughForTheThreads) {
  auto instances = [](int64_t m, int64_t n, Params tiles) {
    return ((m + tiles["bm"] - 1) / tiles["bm"]) * ((n + tiles["bn"] - 1) / tiles["bn"]);
  };
  for (DType dtype : {f32, bf16, i8}) {
    EXPECT_EQ(instances(1024, 1024, zoo::matmulCpuTiles(1024, 1024, 1024, dtype, 2, /*matrixTiles=*/false)), 16)
        << "256 x 256";
    EXPECT_EQ(instances(2048, 2048, zoo::matmulCpuTiles(2048, 2048, 2048, dtype, 1, /*matrixTiles=*/false)), 64)
        << "vectors pack b for every tile: few rows would be more packing";
    for (int threads : {1, 2, 8, 16, 32}) {
      Params deep = zoo::matmulCpuTiles(1024, 1024, 1024, dtype, threads, /*matrixTiles=*/true);
      EXPECT_EQ(deep["bk"] == 1024, dtype != f32 && threads < 32) << "what is packed of b stays";
      EXPECT_GE(instances(1024, 1024, deep), deep["bk"] == 1024 ? 4 * threads : threads / 2) << "some are slower";
    }
    for (bool tiles : {false, true}) {
      EXPECT_GE(instances(512, 512, zoo::matmulCpuTiles(512, 512, 512, dtype, 16, tiles)), 32) << "some are slower";
      EXPECT_GE(instances(4096, 4096, zoo::matmulCpuTiles(4096, 4096, 4096, dtype, 16, tiles)),
                tiles && dtype == f32 ? 128 : 256)
          << "enough for all";
      EXPECT_EQ(instances(1, 4096, zoo::matmulCpuTiles(1, 4096, 4096, dtype, 16, tiles)), 16);
      Params even = zoo::matmulCpuTiles(1000, 1000, 1000, dtype, 4, tiles);
      EXPECT_TRUE(1000 % even["bm"] == 0 || even["bm"] % 32 == 0) << "without an edge, or in whole blocks";
      EXPECT_EQ(1000 % even["bk"], 0);
    }
  }
  // 17 tiles would keep 15 of 16 threads waiting for the last.
  EXPECT_NE(instances(17, 4099, zoo::matmulCpuTiles(17, 4099, 1021, bf16, 16)) % 16, 1);
  // Whatever the extents, tiles have some.
  for (int64_t m : {0, 1, 5, 33})
    for (int64_t n : {0, 1, 31})
      for (int threads : {1, 64})
        for (const auto &[name, extent] : zoo::matmulCpuTiles(m, n, 0, bf16, threads))
          EXPECT_GE(extent, 1) << name << " of " << m << " x " << n;
  // Few rows: what is packed of b may be wider.
  EXPECT_GT(zoo::matmulCpuTiles(64, 4096, 4096, bf16, 1)["bn"], 256);
  EXPECT_LT(zoo::attentionCpuTiles(512, 512, 64, f32, false, 16, 16)["bm"], 256) << "32 tiles of 256 for 16 threads";
  EXPECT_EQ(zoo::attentionCpuTiles(8192, 8192, 64, f32, false, 16, 16)["bm"], 256);
  EXPECT_LT(zoo::attentionCpuTiles(2048, 2048, 64, f32, false, 16, 1, /*matrixTiles=*/false)["bn"],
            zoo::attentionCpuTiles(2048, 2048, 64, bf16, false, 16, 1)["bn"])
      << "as many bytes";
  // Of operands that are taken apart, each element costs as much as some products.
  for (DType dtype : {f32, f16}) {
    EXPECT_EQ(zoo::attentionCpuTiles(2048, 2048, 64, dtype, false, 16, 1, /*matrixTiles=*/true)["bn"], 256);
    EXPECT_EQ(zoo::attentionCpuTiles(2048, 2048, 64, dtype, true, 16, 1, /*matrixTiles=*/true)["bm"], 256);
    EXPECT_EQ(zoo::attentionCpuTiles(512, 512, 64, dtype, false, 16, 16, /*matrixTiles=*/true)["bn"], 128)
        << "few rows are multiplied by vectors";
    EXPECT_EQ(zoo::matmulCpuTiles(2048, 2048, 2048, dtype, 1, /*matrixTiles=*/true)["bm"], 512);
    EXPECT_EQ(zoo::matmulCpuTiles(64, 4096, 4096, dtype, 16, /*matrixTiles=*/true),
              zoo::matmulCpuTiles(64, 4096, 4096, dtype, 16, /*matrixTiles=*/false))
        << "too few rows";
  }
  for (int64_t dim : {64, 128})
    EXPECT_EQ(zoo::attentionCpuTiles(2048, 2048, dim, f32, false, 16, 1)["bm"], 32768 / dim) << "as many bytes";
  EXPECT_EQ(zoo::attentionCpuTiles(2048, 2048, 64, bf16, true, 16, 1)["by_head"], 1);
  EXPECT_EQ(zoo::attentionCpuTiles(2048, 2048, 64, bf16, true, 16, 16)["by_head"], 0)
      << "long blocks of all heads first";
}

} // namespace
