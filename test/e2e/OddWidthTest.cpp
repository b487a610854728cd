// SPDX-License-Identifier: Apache-2.0
//
// Stores by the tensor memory accelerator of tiles whose rows are an odd number of 16 bytes, in the simulator: panels
// that need no swizzle, one of them or several, whole tiles and slices.
#include "SimSupport.h"

using namespace tenon;
using namespace tenon::test;

namespace {

LaunchOptions with(int64_t bm, int64_t bn, int warps, int cluster = 0) {
  LaunchOptions options = onSimulator({{"bm", bm}, {"bn", bn}, {"bk", 64}}, warps);
  options.compile.cluster = cluster;
  return options;
}

/// Whole rows, where shared memory is enough for them. Sizes that end within tiles, and with them.
TEST(OddWidth, Products) {
  struct Case {
    int64_t bm, bn;
    int warps, cluster;
    int64_t m, n, k;
    const char *told;
  };
  for (const Case &one : {Case{128, 200, 8, 0, 130, 400, 320, "through 51200 bytes of shared memory"},
                          Case{128, 200, 8, 4, 260, 208, 128, "through 51200 bytes of shared memory"},
                          Case{128, 200, 8, 8, 250, 600, 328, "each of 8 blocks a part"},
                          Case{64, 200, 4, 2, 100, 232, 192, "through 25600 bytes of shared memory"},
                          Case{128, 72, 4, 4, 100, 300 * 8, 64, "through 18432 bytes of shared memory"},
                          Case{64, 184, 4, 0, 64, 400, 64, "through 23552 bytes of shared memory"},
                          Case{64, 120, 4, 0, 40, 88, 128, "through 15360 bytes of shared memory"},
                          Case{64, 24, 4, 0, 64, 48, 64, "through 3072 bytes of shared memory"}}) {
    Problem problem =
        zoo::matmulProblem({.m = one.m, .n = one.n, .k = one.k, .bias = true, .transposedB = true}, bf16, 3);
    LaunchOptions options = withParamsOf(problem, with(one.bm, one.bn, one.warps, one.cluster));
    expectParts(remarksOf(zoo::matmul, problem.arguments, options),
                {"store is made by the tensor memory accelerator", one.told});
    for (int seed : {1, 2}) {
      SimulatorSeed order(seed);
      Verdict verdict = verify(problem, zoo::matmul, options);
      EXPECT_TRUE(verdict.passed) << problem.label << ", " << one.bn << " columns: " << verdict.reason;
    }
  }
}

/// Teams that take turns have a tile each, and whole rows of both would be slots of the rings: three panels of 56
/// columns, one after the other.
TEST(OddWidth, SlicesInTurns) {
  Problem problem = zoo::matmulProblem({.m = 130, .n = 344, .k = 128, .transposedB = true}, bf16, 3);
  LaunchOptions options = withParamsOf(problem, with(128, 168, 8));
  options.compile.pingPong = true;
  expectParts(remarksOf(zoo::matmul, problem.arguments, options),
              {"through 14336 bytes of shared memory, in 3 slices"});
  Verdict verdict = verify(problem, zoo::matmul, options);
  EXPECT_TRUE(verdict.passed) << verdict.reason;
}

/// Of each pair of a batch: boxes of three dimensions.
TEST(OddWidth, Batches) {
  const zoo::Entry &entry = zoo::find("batched_matmul");
  Problem problem = entry.makeProblem(std::vector<int64_t>{2, 130, 208, 64}, bf16, 3);
  LaunchOptions options = withParamsOf(problem, with(128, 200, 8));
  expectParts(remarksOf(entry.kernel, problem.arguments, options), {"through 51200 bytes of shared memory"});
  Verdict verdict = verify(problem, entry.kernel, options);
  EXPECT_TRUE(verdict.passed) << verdict.reason;
}

Kernel twoWeights("two_weights(a, b, c, y)", [](View a, View b, View c, View y) {
  auto [i, j] = grid(cdiv(y.size(0), 128), cdiv(y.size(1), 200));
  Tile first = zeros(f32, {128, 200}), second = zeros(f32, {128, 200});
  for (Index k : range(0, a.size(1), 64)) {
    Tile x = a.load({i * 128, k}, {128, 64});
    first = dot(x, transpose(b.load({j * 200, k}, {200, 64})), first);
    second = dot(x, transpose(c.load({j * 200, k}, {200, 64})), second);
  }
  y.store({i * 128, j * 200}, (first * second).to(bf16));
});

/// Slots of the rings come first: with whole rows there would be two of them.
TEST(OddWidth, ThreeSlotsAreLeft) {
  Tensor a = Tensor::zeros(bf16, {128, 128}), b = Tensor::zeros(bf16, {200, 128}), y = Tensor::zeros(bf16, {128, 200});
  for (int stages : {0, 3}) {
    LaunchOptions options = onSimulator({}, 8);
    options.compile.stages = stages;
    expectParts(remarksOf(twoWeights, {a, b, b.clone(), y}, options), {"through 3 slots", "slices"});
  }
}

Kernel fourResults("four_results(a, b, c, d, e, f)", [](View a, View b, View c, View d, View e, View f) {
  auto [i, j] = grid(cdiv(c.size(0), 128), cdiv(c.size(1), 200));
  Tile acc = zeros(f32, {128, 200});
  for (Index k : range(0, a.size(1), 64))
    acc = dot(a.load({i * 128, k}, {128, 64}), b.load({k, j * 200}, {64, 200}), acc);
  c.store({i * 128, j * 200}, acc.to(bf16));
  d.store({i * 128, j * 200}, (acc * 2).to(bf16));
  e.store({i * 128, j * 200}, (acc * 3).to(bf16));
  f.store({i * 128, j * 200}, (acc * 4).to(bf16));
});

/// Whole rows of all of them would leave no room for a slot.
TEST(OddWidth, FourResults) {
  Tensor a = Tensor::zeros(bf16, {128, 64}), b = Tensor::zeros(bf16, {64, 200});
  std::vector<Argument> arguments = {a, b};
  for (int i = 0; i < 4; ++i)
    arguments.push_back(Tensor::zeros(bf16, {128, 200}));
  expectParts(remarksOf(fourResults, arguments, onSimulator({}, 8)), {"slots of shared memory", "slices"});
}

/// Rows that do not end at multiples of 16 bytes cannot be stored so.
TEST(OddWidth, RowsThatEndAnywhere) {
  Problem problem = zoo::matmulProblem({.m = 64, .n = 203, .k = 64, .transposedB = true}, bf16, 3);
  LaunchOptions options = withParamsOf(problem, with(64, 200, 4));
  EXPECT_EQ(remarksOf(zoo::matmul, problem.arguments, options).find("store is made by the tensor"), std::string::npos);
  Verdict verdict = verify(problem, zoo::matmul, options);
  EXPECT_TRUE(verdict.passed) << verdict.reason;
}

/// Results of another type and another layout: maxima of the products and a tile that no dot made, whose threads have
/// 16 bytes each. 24 columns of f16, 48 of i8.
TEST(OddWidth, TilesOfOtherLayouts) {
  Kernel clip("clip(a, b, x, c, d, e)", [](View a, View b, View x, View c, View d, View e) {
    promise_no_overlap();
    auto [i, j] = grid(cdiv(c.size(0), 64), cdiv(c.size(1), 24));
    Tile sums = zeros(f32, {64, 24});
    for (Index k : range(0, a.size(1), 64))
      sums = dot(a.load({i * 64, k}, {64, 64}), b.load({k, j * 24}, {64, 24}), sums);
    c.store({i * 64, j * 24}, minimum(sums, 1.0f).to(f16));
    d.store({i * 64, j * 24}, (x.load({i * 64, j * 24}, {64, 24}) * 2.0f).to(f16));
    e.store({i * 64, j * 48}, (full(f32, {64, 48}, 3.0) + 1.0f).to(i8));
  });
  for (auto [rows, columns] : {std::array<int64_t, 2>{64, 24}, {100, 56}}) {
    Tensor a = zoo::randomTensor(f16, {rows, 128}, 1, -1, 1), b = zoo::randomTensor(f16, {128, columns}, 2, -1, 1);
    Tensor x = zoo::randomTensor(f16, {rows, columns}, 3, -1, 1);
    auto run = [&](const char *without) {
      Tensor c = Tensor::zeros(f16, {rows, columns}), d = Tensor::zeros(f16, {rows, columns});
      Tensor e = Tensor::zeros(i8, {rows, 2 * columns});
      LaunchOptions options = onSimulator({});
      options.compile.without = without;
      std::string remarks = remarksOf(clip, {a, b, x, c, d, e}, options);
      size_t stores = 0;
      for (size_t at = 0; (at = remarks.find("store is made by the tensor", at)) != std::string::npos; ++at)
        ++stores;
      EXPECT_EQ(stores, *without ? 0u : 3u) << remarks;
      launch(clip, {a, b, x, c, d, e}, options);
      std::vector<float> all = valuesOf<float>(c), more = valuesOf<float>(d), last = valuesOf<float>(e);
      all.insert(all.end(), more.begin(), more.end());
      all.insert(all.end(), last.begin(), last.end());
      return all;
    };
    EXPECT_EQ(run(""), run("bulk-stores"));
  }
}

} // namespace
