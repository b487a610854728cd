// SPDX-License-Identifier: Apache-2.0
//
// Tiles that no other program instance reads, of matrices that no cache holds, are loaded as what the L2 cache drops
// first: which loads know that of themselves, and what becomes of it.
#include "PtxSupport.h"
#include "SimSupport.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// Every instance multiplies rows of its own, which one alone reads, with a matrix of all.
const Kernel project("project(x, w, y, bm=64, bn=64, bk=64)", [](View x, View w, View y, Param bm, Param bn, Param bk) {
  promise_no_overlap();
  Index i = grid(cdiv(y.size(0), bm));
  Tile sums = zeros(f32, {bm, bn});
  for (Index k : range(0, x.size(1), bk))
    sums = dot(x.load({i * bm, k}, {bm, bk}), w.load({k, 0}, {bk, bn}), sums);
  y.store({i * bm, 0}, maximum(sums, 0.0f));
});

LaunchOptions with(Params params, int cluster = 0, const char *without = "") {
  LaunchOptions options = onSimulator(std::move(params));
  options.compile.cluster = cluster;
  options.compile.without = without;
  return options;
}

std::string textOf(const Problem &problem, const Kernel &kernel, const char *phase, LaunchOptions options) {
  return emit(kernel, problem.arguments, phase, withParamsOf(problem, std::move(options)));
}

Problem product(int64_t m, int64_t n, int64_t k) {
  return zoo::matmulProblem({.m = m, .n = n, .k = k, .bias = true, .transposedB = true}, bf16, 3);
}

const Params small = {{"bm", 64}, {"bn", 64}, {"bk", 64}};
const std::string hint = "L2::cache_hint", load = "cp.async.bulk.tensor.2d.shared::cluster";

/// Two of each: with the hint, and without saying anything.
TEST(Streams, EveryLoadMayBeOne) {
  Problem problem = product(64, 256, 512);
  for (int cluster : {0, 2}) {
    std::string text = textOf(problem, zoo::matmul, "ptx", with(small, cluster));
    EXPECT_GT(count(text, hint), 0u);
    EXPECT_EQ(2 * count(text, hint), count(text, load));
    EXPECT_EQ(count(textOf(problem, zoo::matmul, "ptx", with(small, cluster, "streams")), hint), 0u);
  }
  Tensor x = Tensor::zeros(f16, {256, 512}), w = Tensor::zeros(f16, {512, 64}), y = Tensor::zeros(f32, {256, 64});
  std::string text = emit(project, {x, w, y}, "ptx", with({}));
  EXPECT_GT(count(text, hint), 0u);
  EXPECT_EQ(2 * count(text, hint), count(text, load));
}

/// What is read by how many depends on the axes of the grid that its place does not: rows of A on the columns', and the
/// other way round; of `project`, x on none and w on the only one.
TEST(Streams, ReadersAreCountedAlongTheOtherAxes) {
  std::string text = textOf(product(64, 256, 512), zoo::matmul, "threads", with(small));
  EXPECT_EQ(2 * count(text, " once "), count(text, "nvidia.tma_load"));
  Tensor x = Tensor::zeros(f16, {256, 512}), w = Tensor::zeros(f16, {512, 64}), y = Tensor::zeros(f32, {256, 64});
  std::string one = emit(project, {x, w, y}, "threads", with({}));
  // Both matrices must be large; of x that is all there is to it.
  EXPECT_EQ(count(one, "arith.constant 67108864 : i64"), 1u) << one;
  EXPECT_EQ(count(one, " once "), 2u) << one;
}

/// What is multiplied with many rows waits for the matrix unit; heads that share their keys read them again, and so
/// does a loop that its place does not depend on.
TEST(Streams, NotWhatIsReadAgain) {
  EXPECT_EQ(
      count(textOf(product(256, 256, 512), zoo::matmul, "ptx", with({{"bm", 128}, {"bn", 128}, {"bk", 64}})), hint),
      0u);
  auto again = [](bool shares, bool repeats) {
    return Kernel("again(x, w, y)", [=](View x, View w, View y) {
      promise_no_overlap();
      auto [i, h] = grid(cdiv(x.size(0), 64), 4);
      Index column = shares ? h / 2 : h;
      Tile sums = zeros(f32, {64, 64});
      auto add = [&] {
        for (Index k : range(0, x.size(1), 64))
          sums = dot(x.load({i * 64, k}, {64, 64}), w.load({k, column * 64}, {64, 64}), sums);
      };
      if (repeats)
        for ([[maybe_unused]] Index t : range(0, y.size(1), 64))
          add();
      else
        add();
      y.store({i * 64, h * 64}, sums);
    });
  };
  Tensor x = Tensor::zeros(f16, {64, 512}), w = Tensor::zeros(f16, {512, 256}), y = Tensor::zeros(f32, {64, 256});
  size_t once = count(emit(again(false, false), {x, w, y}, "ptx", with({})), hint);
  EXPECT_GT(once, 0u);
  EXPECT_LT(count(emit(again(true, false), {x, w, y}, "ptx", with({})), hint), once);
  EXPECT_LT(count(emit(again(false, true), {x, w, y}, "ptx", with({})), hint), once);
}

/// Where instances are taken from a counter, nobody knows who reads what.
TEST(Streams, NotWhereInstancesAreTaken) {
  const zoo::Entry &entry = zoo::find("grouped_matmul");
  Problem problem = entry.makeProblem(std::vector<int64_t>{3, 300, 128, 256}, bf16, 1);
  EXPECT_EQ(count(textOf(problem, entry.kernel, "ptx", with(small)), hint), 0u);
}

TEST(Streams, ResultsAreRight) {
  for (auto [m, n, k, cluster] :
       {std::array<int, 4>{64, 192, 256, 0}, {40, 200, 520, 0}, {128, 192, 64, 2}, {1, 64, 0, 0}}) {
    Problem problem = product(m, n, k);
    Verdict verdict = verify(problem, zoo::matmul, withParamsOf(problem, with(small, cluster)));
    EXPECT_TRUE(verdict.passed) << problem.label << ", clusters of " << cluster << ": " << verdict.reason;
  }
  Tensor x = zoo::randomTensor(f16, {200, 320}, 1, -2, 2), w = zoo::randomTensor(f16, {320, 64}, 2, -2, 2);
  Tensor y = Tensor::zeros(f32, {200, 64}), plain = Tensor::zeros(f32, {200, 64});
  launch(project, {x, w, y}, with({}));
  launch(project, {x, w, plain}, with({}, 0, "streams"));
  EXPECT_EQ(valuesOf<float>(y), valuesOf<float>(plain));
}

} // namespace
