// SPDX-License-Identifier: Apache-2.0
//
// Two warpgroups that take program instances in turns, in the simulator, which watches for races and for warpgroups that
// wait for each other for ever. It has room for three blocks, so that a block has several instances, or one, or none.
#include "WarpgroupSupport.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr const char *done = "two warpgroups take program instances in turns";

LaunchOptions inTurns(Params params, int cluster = 0) {
  LaunchOptions options = onSimulator(std::move(params), 8);
  options.compile.cluster = cluster;
  options.compile.pingPong = true;
  return options;
}

const Params square = {{"bm", 128}, {"bn", 128}, {"bk", 64}};
const Params small = {{"bm", 64}, {"bn", 64}, {"bk", 32}};

void expectRight(const Problem &problem, const Kernel &kernel, LaunchOptions options) {
  test::expectRight(problem, kernel, std::move(options), done);
}

/// As deep as the rows of the tile are far down: instances of different length. Sums of columns, which cross warps, and the
/// tile transposed, which crosses threads: the memory for both is each warpgroup's own.
const Kernel triangle("triangle(a, b, c, sums, bm=64, bn=64, bk=32)",
                      [](View a, View b, View c, View sums, Param bm, Param bn, Param bk) {
  promise_no_overlap();
  auto [i, j] = grid(cdiv(c.size(1), bm), cdiv(c.size(0), bn));
  Tile acc = zeros(i32, {bm, bn});
  for (Index k : range(0, i * bm, bk))
    acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc);
  c.store({j * bn, i * bm}, transpose(acc));
  sums.store({i, j * bn}, sum(acc, 0));
});

std::vector<std::byte> runTriangle(int64_t m, int64_t n, const LaunchOptions &options) {
  Tensor a = zoo::randomTensor(i8, {m, m}, 1, -100, 100);
  Tensor b = zoo::randomTensor(i8, {n, m}, 2, -100, 100).transpose({1, 0});
  Tensor c = Tensor::zeros(i32, {n, m}), sums = Tensor::zeros(i32, {(m + 63) / 64, n});
  if (options.compile.pingPong)
    expectParts(remarksOf(triangle, {a, b, c, sums}, options), {done});
  launch(triangle, {a, b, c, sums}, options);
  return bytesOf({c, sums});
}

std::vector<std::byte> runChain(int64_t m, int64_t k, int64_t n, const LaunchOptions &options) {
  auto [a, b, c, d] = chainTensors(m, k, n);
  if (options.compile.pingPong)
    expectParts(remarksOf(chain, {a, b, c, d}, options), {done});
  launch(chain, {a, b, c, d}, options);
  return bytesOf({d});
}

/// One tile (the second warpgroup has none), two, an odd number of them, more than all blocks have at a time; sizes that
/// end within tiles, rows and columns of one.
TEST(PingPong, AnyNumberOfInstances) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{64, 64, 96}, {128, 64, 96}, {192, 64, 64}, {448, 192, 96}, {200, 72, 104},
                         {1, 264, 64}, {264, 1, 64}})
    expectRight(product(m, n, k), zoo::matmul, inTurns(small));
}

/// One, two, one that overhangs, more than there are slots; none at all has the triangle below.
TEST(PingPong, AnyNumberOfIterations) {
  for (int64_t k : {32, 64, 40, 600})
    expectRight(product(512, 128, k), zoo::matmul, inTurns(small));
}

TEST(PingPong, LargeTiles) {
  expectRight(product(264, 392, 200), zoo::matmul, inTurns(square));
  expectRight(product(200, 520, 136), zoo::matmul, inTurns({{"bm", 64}, {"bn", 256}, {"bk", 64}}));
  expectRight(product(264, 392, 136), zoo::matmul, inTurns({{"bm", 128}, {"bn", 192}, {"bk", 64}}));
  expectRight(product(264, 272, 272, f8e4m3), zoo::matmul, inTurns({{"bm", 128}, {"bn", 128}, {"bk", 128}}));
}

TEST(PingPong, OneSlot) {
  LaunchOptions options = inTurns(small);
  for (int stages : {1, 2}) {
    options.compile.stages = stages;
    expectRight(product(320, 128, 128), zoo::matmul, options);
  }
}

/// Blocks that share loads, and an instance that only its cluster has.
TEST(PingPong, Clusters) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{256, 192, 96}, {192, 128, 200}, {64, 64, 64}, {832, 128, 32}})
    expectRight(product(m, n, k), zoo::matmul, inTurns(small, 2));
}

TEST(PingPong, TwoDots) {
  const zoo::Entry &entry = zoo::find("gated_mlp");
  expectRight(entry.makeProblem(std::vector<int64_t>{136, 200, 192}, bf16, 3), entry.kernel, inTurns(small));
}

/// Instances of different length, which blocks take when they are free.
TEST(PingPong, InstancesThatAreTaken) {
  const zoo::Entry &entry = zoo::find("grouped_matmul");
  for (const std::vector<int64_t> &shape : {std::vector<int64_t>{5, 300, 136, 96}, {1, 40, 64, 64}, {9, 700, 64, 200}})
    expectRight(entry.makeProblem(shape, bf16, 3), entry.kernel, inTurns(small));
  // In slices through one buffer, rows under a mask too.
  Problem problem = entry.makeProblem(std::vector<int64_t>{5, 300, 264, 96}, bf16, 3);
  LaunchOptions options = inTurns({{"bm", 64}, {"bn", 192}, {"bk", 32}});
  expectParts(remarksOf(entry.kernel, problem.arguments, withParamsOf(problem, options)),
              {"through 8192 bytes of shared memory, in 3 slices", "scatter in pieces of 16 bytes"});
  for (int seed : {1, 2}) {
    SimulatorSeed set(seed);
    expectRight(problem, entry.kernel, options);
  }
}

/// The same sums in the same order, whoever makes them and whoever comes first.
TEST(PingPong, OtherPrograms) {
  LaunchOptions alone = onSimulator({}), turns = inTurns({});
  for (int64_t m : {64, 208, 528})
    EXPECT_EQ(runTriangle(m, 136, turns), runTriangle(m, 136, alone)) << m;
  for (int64_t m : {64, 320, 712})
    EXPECT_EQ(runChain(m, 200, 136, turns), runChain(m, 200, 136, alone)) << m;
  std::vector<std::byte> triangles = runTriangle(272, 192, alone), chains = runChain(520, 136, 192, alone);
  for (int seed : {1, 2, 3, 4}) {
    SimulatorSeed set(seed);
    EXPECT_EQ(runTriangle(272, 192, turns), triangles) << seed;
    EXPECT_EQ(runChain(520, 136, 192, turns), chains) << seed;
    expectRight(product(328, 200, 96), zoo::matmul, inTurns(small));
  }
}

/// Loops that several instances share, and what is written past the accelerator.
TEST(PingPong, BesideOtherOptions) {
  LaunchOptions options = inTurns(small);
  options.compile.split = 3;
  expectRight(product(136, 200, 416), zoo::matmul, options);
  options.compile.split = 0;
  for (const std::string &step : gpuSteps()) {
    if (step == "warpgroups")
      continue;
    options.compile.without = step;
    expectRight(product(136, 264, 96), zoo::matmul, options);
  }
}

TEST(PingPong, Declined) {
  Problem problem = product(256, 256, 128);
  auto remarks = [&](LaunchOptions options) {
    return remarksOf(zoo::matmul, problem.arguments, withParamsOf(problem, std::move(options)));
  };
  auto declined = [&](LaunchOptions options, const char *why) {
    std::string text = remarks(options);
    expectParts(text, {"warpgroups do not take turns (no ping-pong): ", why});
    EXPECT_EQ(text.find(done), std::string::npos);
    Verdict verdict = verify(problem, zoo::matmul, withParamsOf(problem, std::move(options)));
    EXPECT_TRUE(verdict.passed) << verdict.reason;
  };
  declined(inTurns({{"bm", 128}, {"bn", 256}, {"bk", 64}}),
           "a dot does not run on one warpgroup: a thread would have more than 192 accumulators");
  LaunchOptions options = inTurns(small);
  options.compile.warps = 4;
  declined(options, "it takes 8 warps, not 4");
  options = inTurns(small);
  options.compile.gpu = "sm_80";
  declined(options, "only sm_90a multiplies by warpgroup");
  options = inTurns(small);
  options.compile.without = "warpgroups";
  declined(options, "no dot reads what the tensor memory accelerator loads");
  Problem odd = product(129, 131, 133); // rows that begin anywhere
  expectParts(remarksOf(zoo::matmul, odd.arguments, withParamsOf(odd, inTurns(small))),
              {"warpgroups do not take turns (no ping-pong): "});
  const zoo::Entry &softmax = zoo::find("softmax");
  Problem rows = softmax.makeProblem(std::vector<int64_t>{4, 64}, f32, 3);
  expectParts(remarksOf(softmax.kernel, rows.arguments, withParamsOf(rows, inTurns({}))),
              {"warpgroups do not take turns (no ping-pong): "});
}

} // namespace
