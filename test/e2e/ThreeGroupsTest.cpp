// SPDX-License-Identifier: Apache-2.0
//
// Blocks of three warpgroups (12 warps), each with a third of the rows or columns of a dot's result, in the simulator,
// which watches for races and for barriers that nobody comes to: layouts have a fourth warpgroup, which is not there.
#include "WarpgroupSupport.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr const char *done = "runs in blocks of 384 threads and 128 that load for them";

LaunchOptions byThree(Params params, int cluster = 0) {
  LaunchOptions options = onSimulator(std::move(params), 12);
  options.compile.cluster = cluster;
  return options;
}

const Params rows = {{"bm", 192}, {"bn", 32}, {"bk", 32}};

void expectRight(const Problem &problem, const Kernel &kernel, LaunchOptions options) {
  test::expectRight(problem, kernel, std::move(options), done);
}

/// What is stored is not what the dot computes: rows are normalised (softmax), and added up along columns, which crosses
/// warpgroups, one of which there is not; and the running sums of a part of the columns, which each has for itself.
const Kernel weigh("weigh(a, b, c, sums, running, bm=192, bn=32, bk=32)",
                   [](View a, View b, View c, View sums, View running, Param bm, Param bn, Param bk) {
  promise_no_overlap();
  auto [i, j] = grid(cdiv(a.size(0), bm), cdiv(c.size(0), bn));
  Tile acc = zeros(f32, {bm, bn});
  for (Index k : range(0, a.size(1), bk))
    acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc);
  Tile weight = exp(acc - max(acc, 1));
  c.store({j * bn, i * bm}, transpose(weight / sum(weight, 1)));
  sums.store({i, j * bn}, sum(acc, 0));
  running.store({i * bm, j * bn}, cumsum(acc, 0));
});

/// An operand with no thirds is computed from what a reduction across warps gives of it.
const Kernel centred("centred(a, b, c, bm=192, bn=64, bk=64)", [](View a, View b, View c, Param bm, Param bn, Param bk) {
  promise_no_overlap();
  auto [i, j] = grid(cdiv(a.size(0), bm), cdiv(c.size(1), bn));
  Tile acc = zeros(f32, {bm, bn});
  for (Index k : range(0, a.size(1), bk)) {
    Tile weights = b.load({k, j * bn}, {bk, bn}).to(f32);
    acc = dot(a.load({i * bm, k}, {bm, bk}), (weights - max(weights, 0)).to(bf16), acc);
  }
  c.store({i * bm, j * bn}, acc);
});

void expectThree(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options) {
  if (options.compile.warps == 12)
    expectParts(remarksOf(kernel, arguments, options), {done});
  launch(kernel, arguments, options);
}

std::vector<std::byte> runWeigh(int64_t m, int64_t n, int64_t k, const LaunchOptions &options) {
  Tensor a = smallNumbers(bf16, {m, k}, 1), b = smallNumbers(bf16, {k, n}, 2);
  Tensor c = Tensor::zeros(f32, {n, m}), sums = Tensor::zeros(f32, {(m + 191) / 192, n});
  Tensor running = Tensor::zeros(f32, {m, n});
  expectThree(weigh, {a, b, c, sums, running}, options);
  return bytesOf({c, sums, running});
}

std::vector<std::byte> runCentred(int64_t m, int64_t n, int64_t k, const LaunchOptions &options) {
  Tensor a = zoo::randomTensor(bf16, {m, k}, 1, -1, 1), b = zoo::randomTensor(bf16, {k, n}, 2, -1, 1);
  Tensor c = Tensor::zeros(f32, {m, n});
  expectThree(centred, {a, b, c}, options);
  return bytesOf({c});
}

std::vector<std::byte> runChain(int64_t m, int64_t k, int64_t n, const LaunchOptions &options) {
  auto [a, b, c, d] = chainTensors(m, k, n);
  expectThree(chain, {a, b, c, d}, options);
  return bytesOf({d});
}

/// Sizes that end within tiles, and within the rows of each warpgroup; rows and columns of one.
TEST(ThreeGroups, AnySizes) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{192, 64, 64}, {200, 72, 104}, {577, 136, 32}, {320, 40, 40}, {1, 72, 64},
                         {264, 1, 64}})
    expectRight(product(m, n, k), zoo::matmul, byThree(rows));
}

/// One, two, one that overhangs, more than there are slots.
TEST(ThreeGroups, AnyNumberOfIterations) {
  for (int64_t k : {32, 64, 40, 600})
    expectRight(product(384, 64, k), zoo::matmul, byThree(rows));
}

TEST(ThreeGroups, LargeTiles) {
  expectRight(product(264, 264, 136), zoo::matmul, byThree({{"bm", 192}, {"bn", 128}, {"bk", 64}}));
  expectRight(product(264, 168, 136), zoo::matmul, byThree({{"bm", 192}, {"bn", 160}, {"bk", 64}}));
  expectRight(product(200, 264, 136), zoo::matmul, byThree({{"bm", 192}, {"bn", 192}, {"bk", 64}}));
  expectRight(product(400, 72, 272, f8e4m3), zoo::matmul, byThree({{"bm", 384}, {"bn", 64}, {"bk", 128}}));
}

/// Thirds of the columns, and of the columns that are the instruction's rows.
TEST(ThreeGroups, Columns) {
  expectRight(product(72, 264, 136), zoo::matmul, byThree({{"bm", 64}, {"bn", 192}, {"bk", 64}}));
  expectRight(product(72, 200, 72), zoo::matmul, byThree({{"bm", 64}, {"bn", 96}, {"bk", 64}}));
  expectRight(product(20, 264, 136), zoo::matmul, byThree({{"bm", 16}, {"bn", 192}, {"bk", 64}}));
}

/// Blocks that share loads, few slots, loops that several instances share, and each step of the way left out.
TEST(ThreeGroups, BesideOtherOptions) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{384, 64, 96}, {200, 64, 200}, {64, 32, 64}})
    expectRight(product(m, n, k), zoo::matmul, byThree(rows, 2));
  LaunchOptions options = byThree(rows);
  for (int stages : {1, 2}) {
    options.compile.stages = stages;
    expectRight(product(200, 64, 128), zoo::matmul, options);
  }
  options = byThree(rows);
  options.compile.split = 3;
  expectRight(product(200, 40, 416), zoo::matmul, options);
  options.compile.split = 0;
  options.compile.shareTail = true;
  expectRight(product(777, 72, 192), zoo::matmul, options);
  options.compile.shareTail = false;
  for (const std::string &step : gpuSteps()) {
    if (step == "warpgroups")
      continue;
    options.compile.without = step;
    expectRight(product(200, 72, 96), zoo::matmul, options);
  }
}

TEST(ThreeGroups, TwoDots) {
  const zoo::Entry &entry = zoo::find("gated_mlp");
  for (int seed : {1, 2}) {
    SimulatorSeed set(seed);
    expectRight(entry.makeProblem(std::vector<int64_t>{200, 72, 136}, bf16, 3), entry.kernel, byThree(rows));
  }
}

/// Dots one after the other in a loop, with row maxima and sums between them.
TEST(ThreeGroups, Attention) {
  const zoo::Entry &entry = zoo::find("attention");
  Problem problem = entry.makeProblem(std::vector<int64_t>{1, 2, 1, 200, 64}, bf16, 3);
  for (int seed : {1, 2}) {
    SimulatorSeed set(seed);
    expectRight(problem, entry.kernel, byThree({{"bm", 192}, {"bn", 64}}));
  }
}

/// Instances that blocks take when they are free, and rows under a mask, each warpgroup's in pieces of 16 bytes.
TEST(ThreeGroups, InstancesThatAreTaken) {
  const zoo::Entry &entry = zoo::find("grouped_matmul");
  Problem problem = entry.makeProblem(std::vector<int64_t>{5, 500, 72, 64}, bf16, 3);
  LaunchOptions options = byThree({{"bm", 192}, {"bn", 64}, {"bk", 32}});
  expectParts(remarksOf(entry.kernel, problem.arguments, withParamsOf(problem, options)),
              {"scatter in pieces of 16 bytes"});
  for (int seed : {1, 2}) {
    SimulatorSeed set(seed);
    expectRight(problem, entry.kernel, options);
  }
}

/// The same sums in the same order as with one warpgroup for each 64 rows, whoever comes first.
TEST(ThreeGroups, OtherPrograms) {
  Params small = {{"bm", 192}};
  LaunchOptions four = onSimulator(small, 4), three = byThree(small);
  for (int64_t m : {192, 200, 400})
    EXPECT_EQ(runWeigh(m, 40, 72, three), runWeigh(m, 40, 72, four)) << m;
  for (int64_t m : {64, 200})
    EXPECT_EQ(runCentred(m, 72, 136, three), runCentred(m, 72, 136, four)) << m;
  std::vector<std::byte> chains = runChain(200, 136, 72, four);
  for (int seed : {1, 2, 3}) {
    SimulatorSeed set(seed);
    EXPECT_EQ(runChain(200, 136, 72, three), chains) << seed;
    EXPECT_EQ(runCentred(200, 72, 136, three), runCentred(200, 72, 136, four)) << seed;
  }
}

TEST(ThreeGroups, Declined) {
  Problem problem = product(256, 256, 128);
  auto declined = [&](LaunchOptions options, const char *why) {
    options = withParamsOf(problem, std::move(options));
    std::string text = remarksOf(zoo::matmul, problem.arguments, options);
    expectParts(text, {"no block of three warpgroups: ", why});
    EXPECT_EQ(text.find(done), std::string::npos);
    Verdict verdict = verify(problem, zoo::matmul, options);
    EXPECT_TRUE(verdict.passed) << verdict.reason;
  };
  declined(byThree({{"bm", 128}, {"bn", 64}, {"bk", 32}}), "a dot does not run on three warpgroups: its sizes");
  declined(byThree({{"bm", 384}, {"bn", 256}, {"bk", 32}}), "a thread of them would have 256 sums, more than 128");
  LaunchOptions options = byThree(rows);
  options.compile.gpu = "sm_80";
  declined(options, "only sm_90a multiplies by warpgroup");
  options = byThree(rows);
  options.compile.without = "warpgroups";
  declined(options, "no dot reads what the tensor memory accelerator loads");
  const zoo::Entry &softmax = zoo::find("softmax");
  Problem lines = softmax.makeProblem(std::vector<int64_t>{4, 64}, f32, 3);
  expectParts(remarksOf(softmax.kernel, lines.arguments, withParamsOf(lines, byThree({}))),
              {"no block of three warpgroups: "});
}

} // namespace
