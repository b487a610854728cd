// SPDX-License-Identifier: Apache-2.0
//
// The last program instances, made by all blocks together, in the simulator: it has room for three blocks, so that 16
// tiles are five rounds and one tile that three blocks share, and it watches for races between those.
#include "SimSupport.h"

#include <algorithm>

using namespace tenon;
using namespace tenon::test;

namespace {

LaunchOptions sharing(Params params, int cluster = 0) {
  LaunchOptions options = onSimulator(std::move(params));
  options.compile.cluster = cluster;
  options.compile.shareTail = true;
  return options;
}

const Params small = {{"bm", 64}, {"bn", 64}, {"bk", 32}};

void expectRight(const Problem &problem, const Kernel &kernel, LaunchOptions options) {
  options = withParamsOf(problem, std::move(options));
  expectParts(remarksOf(kernel, problem.arguments, options), {"the last program instances are shared by all blocks"});
  Verdict verdict = verify(problem, kernel, options); // which finds counters that are not zero again, too
  EXPECT_TRUE(verdict.passed) << problem.label << ", clusters of " << options.compile.cluster << ": " << verdict.reason;
}

Problem product(int64_t m, int64_t n, int64_t k, DType dtype = bf16) {
  return zoo::matmulProblem({.m = m, .n = n, .k = k, .bias = true, .transposedB = true}, dtype, 3);
}

/// c = a b and its rows' sums of squares: another epilogue, and integers.
const Kernel squares("squares(a, b, c, sums, bm=64, bn=64, bk=64)",
                     [](View a, View b, View c, View sums, Param bm, Param bn, Param bk) {
  promise_no_overlap();
  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
  Tile acc = zeros(i32, {bm, bn});
  for (Index k : range(0, a.size(1), bk))
    acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc);
  c.store({i * bm, j * bn}, acc);
  sums.store({i * bm, j}, sum(acc * acc, 1));
});

/// How often the last tile's sums were made in pieces shows in the last bits of f32; in those of integers it must not.
std::vector<std::byte> runSquares(int64_t m, int64_t n, int64_t k, const LaunchOptions &options) {
  Tensor a = zoo::randomTensor(i8, {m, k}, 1, -100, 100);
  Tensor b = zoo::randomTensor(i8, {n, k}, 2, -100, 100).transpose({1, 0});
  Tensor c = Tensor::zeros(i32, {m, n}), sums = Tensor::zeros(i32, {m, (n + 63) / 64});
  launch(squares, {a, b, c, sums}, options);
  std::vector<std::byte> all;
  for (const Tensor &tensor : {c, sums}) {
    auto *begin = static_cast<const std::byte *>(tensor.data());
    all.insert(all.end(), begin, begin + tensor.bufferBytes());
  }
  return all;
}

/// One tile, more than there are blocks, a multiple of them; sizes that end within tiles; as many iterations as pay, and
/// fewer; none.
TEST(ShareTail, Products) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{64, 64, 704}, {256, 256, 640}, {200, 72, 1000}, {192, 64, 480},
                         {256, 256, 64}, {128, 64, 0}})
    expectRight(product(m, n, k), zoo::matmul, sharing(small));
}

/// Clusters that share loads: pieces of each block, and an instance that only its cluster has.
TEST(ShareTail, Clusters) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{256, 192, 640}, {192, 128, 1280}, {64, 64, 960}})
    expectRight(product(m, n, k), zoo::matmul, sharing(small, 2));
}

/// Along an axis that clusters fill, whatever the sizes are, every instance is one of the grid's.
TEST(ShareTail, ClustersAlongAnAxisOfTheirOwn) {
  Kernel halves("halves(a, b, c, bm=64, bn=64, bk=64)", [](View a, View b, View c, Param bm, Param bn, Param bk) {
    promise_no_overlap();
    auto [i, j] = grid(cdiv(c.size(0), bm), 2);
    Tile acc = zeros(i32, {bm, bn});
    for (Index k : range(0, a.size(1), bk))
      acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc);
    c.store({i * bm, j * bn}, acc);
  });
  Tensor a = zoo::randomTensor(i8, {200, 1280}, 1, -100, 100);
  Tensor b = zoo::randomTensor(i8, {128, 1280}, 2, -100, 100).transpose({1, 0});
  Tensor c = Tensor::zeros(i32, {200, 128}), expected = Tensor::zeros(i32, {200, 128});
  launch(halves, {a, b, c}, sharing({}, 2));
  launch(halves, {a, b, expected});
  for (int64_t i = 0; i < 200; ++i)
    for (int64_t j = 0; j < 128; ++j)
      ASSERT_EQ(c.getInt({i, j}), expected.getInt({i, j})) << i << ", " << j;
}

TEST(ShareTail, TwoSums) {
  const zoo::Entry &entry = zoo::find("gated_mlp");
  Problem problem = entry.makeProblem(std::vector<int64_t>{136, 72, 640}, bf16, 3);
  expectRight(problem, entry.kernel, sharing(small));
}

TEST(ShareTail, Integers) {
  LaunchOptions together = sharing({{"bm", 64}, {"bn", 64}, {"bk", 64}}), alone = together;
  alone.compile.shareTail = false;
  for (auto [m, n, k] : {std::array<int64_t, 3>{64, 128, 1280}, {256, 250, 1536}})
    EXPECT_EQ(runSquares(m, n, k, together), runSquares(m, n, k, alone)) << m << " x " << n << " x " << k;
}

/// Warpgroups that take instances in turns take pieces in turns.
TEST(ShareTail, InTurns) {
  LaunchOptions turns = sharing({{"bm", 64}, {"bn", 64}, {"bk", 64}});
  turns.compile.warps = 8;
  turns.compile.pingPong = true;
  LaunchOptions alone = turns;
  alone.compile.shareTail = false;
  for (auto [m, n, k] : {std::array<int64_t, 3>{64, 128, 1280}, {256, 250, 1536}, {192, 64, 1280}, {320, 64, 64}})
    for (int seed : {1, 2}) {
      SimulatorSeed set(seed);
      EXPECT_EQ(runSquares(m, n, k, turns), runSquares(m, n, k, alone)) << m << " x " << n << " x " << k;
    }
  const zoo::Entry &entry = zoo::find("gated_mlp");
  Problem problem = entry.makeProblem(std::vector<int64_t>{136, 72, 640}, bf16, 3);
  turns.params = small;
  expectRight(problem, entry.kernel, turns);
  expectParts(remarksOf(entry.kernel, problem.arguments, withParamsOf(problem, turns)), {"in turns (ping-pong)"});
  expectRight(product(200, 72, 1000), zoo::matmul, turns);
}

/// The result does not depend on who is last.
TEST(ShareTail, ThreadsInAnyOrder) {
  Problem problem = product(128, 64, 1280);
  LaunchOptions options = withParamsOf(problem, sharing(small));
  std::vector<double> expected;
  for (int seed : {1, 2, 3, 4}) {
    SimulatorSeed set(seed);
    launch(zoo::matmul, problem.arguments, options);
    std::vector<double> got = valuesOf<double>(problem.arguments[3].tensor());
    if (expected.empty())
      expected = got;
    EXPECT_EQ(got, expected) << seed;
  }
}

/// How deep the product is stands in memory, for all instances alike: read before the grid, it decides how long a loop
/// takes, so that blocks take instances when they are free, and nothing is left to share.
const Kernel deep("deep(a, b, depth, c, bm=64, bn=64, bk=64)",
                  [](View a, View b, View depth, View c, Param bm, Param bn, Param bk) {
  promise_no_overlap();
  Index steps = Index(depth.at({0}));
  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
  Tile acc = zeros(i32, {bm, bn});
  for (Index k : range(0, steps, bk))
    acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc);
  c.store({i * bm, j * bn}, acc);
});

TEST(ShareTail, WhereBlocksTakeTheNextInstance) {
  Tensor a = zoo::randomTensor(i8, {256, 1280}, 1, -100, 100);
  Tensor b = zoo::randomTensor(i8, {64, 1280}, 2, -100, 100).transpose({1, 0});
  Tensor depth = Tensor::zeros(i32, {1});
  *static_cast<int32_t *>(depth.data()) = 1280;
  Tensor together = Tensor::zeros(i32, {256, 64}), alone = Tensor::zeros(i32, {256, 64});
  LaunchOptions options = sharing({{"bm", 64}, {"bn", 64}, {"bk", 64}});
  launch(deep, {a, b, depth, together}, options);
  options.compile.shareTail = false;
  launch(deep, {a, b, depth, alone}, options);
  EXPECT_EQ(valuesOf<double>(together), valuesOf<double>(alone));
  std::vector<double> sums = valuesOf<double>(alone);
  EXPECT_TRUE(std::any_of(sums.begin(), sums.end(), [](double sum) { return sum != 0; }));
}

/// Where blocks do not take one instance after the other there is nothing to share.
TEST(ShareTail, WithoutRoles) {
  Problem problem = product(128, 128, 640);
  LaunchOptions options = sharing(problem.params);
  options.compile.gpu = "sm_80";
  expectParts(remarksOf(zoo::matmul, problem.arguments, options),
              {"no program instance is shared by all blocks: each block has one of them"});
  Verdict verdict = verify(problem, zoo::matmul, options);
  EXPECT_TRUE(verdict.passed) << verdict.reason;
}

TEST(ShareTail, Refused) {
  const zoo::Entry &entry = zoo::find("softmax");
  Problem problem = entry.makeProblem(std::vector<int64_t>{4, 64}, f32, 3);
  LaunchOptions options = sharing(problem.params);
  expectParts(remarksOf(entry.kernel, problem.arguments, options),
              {"the last program instances are not shared by all blocks, for want of a loop that only adds up: there is "
               "none at the top level"});
  options.compile.split = 2;
  expectParts(errorOf([&] { prepare(entry.kernel, problem.arguments, options); }),
              {"a loop is split among program instances, or the last instances are shared by all blocks, not both"});
}

} // namespace
