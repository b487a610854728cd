// SPDX-License-Identifier: Apache-2.0
//
// Loops that several program instances share: the same kernel gives the same as without, whatever the number of parts,
// the length of the loop and what comes after it. In the simulator, which watches that whoever adds the parts up was
// told of them, and runs fewer blocks than there are instances where blocks are persistent.
#include "SimSupport.h"


using namespace tenon;
using namespace tenon::test;

namespace {

LaunchOptions splitIn(int split, Params params = {}, const char *gpu = "sm_90a") {
  LaunchOptions options;
  options.target = Target::sim;
  options.params = std::move(params);
  options.compile.split = split;
  options.compile.gpu = gpu;
  return options;
}

void expectRight(const Problem &problem, const Kernel &kernel, const LaunchOptions &options) {
  Verdict verdict = verify(problem, kernel, options);
  EXPECT_TRUE(verdict.passed) << problem.label << ", split in " << options.compile.split << " on "
                              << options.compile.gpu << ": " << verdict.reason;
}

std::vector<std::byte> outputOf(const Problem &problem, const Kernel &kernel, LaunchOptions options) {
  options.params.insert(problem.params.begin(), problem.params.end());
  Arguments arguments = problem.arguments;
  size_t output = problem.outputs.front();
  arguments[output] = arguments[output].tensor().clone();
  arguments[output].tensor().fillBytes(0xff);
  launch(kernel, arguments, options);
  const Tensor &tensor = arguments[output].tensor();
  auto *begin = static_cast<const std::byte *>(tensor.data());
  return {begin, begin + tensor.bufferBytes()};
}

const Params smallTiles = {{"bm", 32}, {"bn", 32}, {"bk", 16}};
const Params warpgroupTiles = {{"bm", 64}, {"bn", 64}, {"bk", 64}};

/// No iteration, one, fewer than instances, a last one that overhangs, a last instance with fewer.
TEST(Split, ProductOfAnyLength) {
  for (int64_t k : {0, 5, 16, 40, 100, 115})
    for (int split : {2, 3, 4, 7})
      for (const char *gpu : {"sm_80", "sm_90a"})
        expectRight(zoo::matmulProblem({.m = 33, .n = 40, .k = k}, f16, 3), zoo::matmul,
                    splitIn(split, smallTiles, gpu));
}

/// Loads by the tensor memory accelerator, in a warp of their own, which has to find its share of the loop.
TEST(Split, ProductOnWarpgroups) {
  for (int64_t k : {0, 48, 64, 200, 512})
    for (int split : {2, 3, 7}) {
      Problem problem = zoo::matmulProblem({.m = 100, .n = 136, .k = k, .transposedB = true}, bf16, 3);
      LaunchOptions options = splitIn(split, warpgroupTiles);
      expectRight(problem, zoo::matmul, options);
      options.params.insert(problem.params.begin(), problem.params.end());
      if (k > 0) // else there is nothing to load, nor an address to know something of
        expectParts(remarksOf(zoo::matmul, problem.arguments, options),
                    {"load is made by the tensor memory accelerator",
                     "loop is shared by " + std::to_string(split) + " program instances"});
    }
}

TEST(Split, ProductsOfEveryType) {
  for (DType type : {f32, bf16, f8e4m3, i8})
    expectRight(zoo::matmulProblem({.m = 70, .n = 33, .k = 150}, type, 3), zoo::matmul, splitIn(3, smallTiles));
}

TEST(Split, WhatComesAfterSeesTheWholeSum) {
  for (zoo::Activation activation : {zoo::Activation::relu, zoo::Activation::geluExact, zoo::Activation::silu})
    for (const Params &tiles : {smallTiles, warpgroupTiles})
      expectRight(zoo::matmulProblem({.m = 64, .n = 72, .k = 256, .bias = true, .activation = activation}, bf16, 3),
                  zoo::matmul, splitIn(4, tiles));
}

/// Threads and blocks in another order each time: who is last does not show.
TEST(Split, GivesTheSameBitsInEveryRun) {
  for (const Params &tiles : {smallTiles, warpgroupTiles}) {
    Problem problem = zoo::matmulProblem({.m = 64, .n = 128, .k = 320, .transposedB = true, .output = f32}, bf16, 3);
    std::vector<std::byte> first = outputOf(problem, zoo::matmul, splitIn(3, tiles));
    for (int seed : {0, 1, 2, 3}) {
      SimulatorSeed set(seed);
      EXPECT_EQ(outputOf(problem, zoo::matmul, splitIn(3, tiles)), first) << "seed " << seed;
    }
  }
}

/// Not a product: columns of a matrix, their sums and how many there are.
const Kernel columnSums("columnSums(x, sums, counts, block=32)", [](View x, View sums, View counts, Param block) {
  Index j = grid(cdiv(x.size(1), block));
  Tile total = zeros(x.dtype(), {8, block}), positive = zeros(i32, {8, block});
  for (Index i : range(0, x.size(0), 8)) {
    Tile rows = x.load({i, j * block}, {8, block});
    total = total + rows;
    positive = positive + (rows > 0).to(i32);
  }
  sums.store({j * block}, reshape(sum(total, 0), {block}));
  counts.store({j * block}, reshape(sum(positive, 0), {block}));
});

TEST(Split, SumsOfColumns) {
  for (int64_t rows : {0, 3, 8, 50, 170}) {
    constexpr int64_t columns = 75;
    Tensor x = Tensor::zeros(f32, {rows, columns});
    std::vector<double> sums(columns);
    std::vector<int64_t> counts(columns);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double value = static_cast<double>((i * 7 + j * 3) % 11 - 4); // sums are exact in every order
        x.set({i, j}, value);
        sums[j] += value;
        counts[j] += value > 0;
      }
    for (int split : {0, 1, 2, 5}) {
      Tensor got = Tensor::empty(f32, {columns}), positive = Tensor::empty(i32, {columns});
      got.fillBytes(0xff);
      positive.fillBytes(0xff);
      launch(columnSums, {x, got, positive}, splitIn(split));
      EXPECT_EQ(valuesOf(got), sums) << rows << " rows, split in " << split;
      EXPECT_EQ(intsOf(positive), counts) << rows << " rows, split in " << split;
    }
  }
}

/// The loop reads what the program replaces after it: all parts are there before anything is replaced.
TEST(Split, InPlace) {
  Kernel kernel("inPlace(x)", [](View x) {
    grid(Index(1));
    Tile total = zeros(f32, {4, 64});
    for (Index i : range(0, x.size(0), 4))
      total = total + x.load({i, 0}, {4, 64});
    x.store({0, 0}, total);
  });
  Tensor x = Tensor::empty(f32, {32, 64});
  x.fill(1);
  launch(kernel, {x}, splitIn(4));
  for (int64_t i = 0; i < 32; ++i)
    for (int64_t j = 0; j < 64; ++j)
      ASSERT_EQ(x.get({i, j}), i < 4 ? 8 : 1);
}

TEST(Split, IsDeclinedWithAReason) {
  Problem problem = zoo::find("softmax").makeProblem(std::vector<int64_t>{3, 64}, f32, 1);
  LaunchOptions options = splitIn(2);
  expectRight(problem, zoo::find("softmax").kernel, options);
  options.params = problem.params;
  expectParts(remarksOf(zoo::find("softmax").kernel, problem.arguments, options),
              {"no loop is shared by several program instances: there is none at the top level"});
}

TEST(Split, OfNobodyOrTooManyIsRefused) {
  Problem problem = zoo::matmulProblem({.m = 8, .n = 8, .k = 8}, f32, 1);
  for (int split : {-1, 257})
    expectParts(errorOf([&] { outputOf(problem, zoo::matmul, splitIn(split, smallTiles)); }),
                {"1 to 256", std::to_string(split)});
}

/// A grid of nothing stays one.
TEST(Split, OfAnEmptyGrid) {
  Tensor x = Tensor::zeros(f32, {8, 0}), sums = Tensor::zeros(f32, {0}), counts = Tensor::zeros(i32, {0});
  EXPECT_NO_THROW(launch(columnSums, {x, sums, counts}, splitIn(3)));
}

/// What a kernel may do by itself, with tiles that all threads hold parts of: an atomic tells of all their work.
TEST(Atomics, TellOtherInstancesOfWhatAllThreadsDid) {
  Kernel kernel("meet(x, y)", [](View x, View y) {
    Index parts = x.size(0);
    View left = workspace(f32, {parts, 512}), arrived = workspace(i32, {1});
    Index i = grid(parts);
    left.store({i, 0}, x.load({i, 0}, {1, 512}) * 2);
    Tile before = arrived.atomic_add({zeros(i32, {1})}, full(i32, {1}, 1));
    if_(scalar(before.to(i64)) == parts - 1, [&] {
      Tile total = zeros(f32, {1, 512});
      for (Index k : range(parts))
        total += left.load({k, 0}, {1, 512});
      y.store({0, 0}, total);
    });
  });
  for (int warps : {1, 4}) {
    Tensor x = Tensor::empty(f32, {5, 512}), y = Tensor::zeros(f32, {1, 512});
    x.fill(1);
    LaunchOptions options = splitIn(0);
    options.compile.warps = warps;
    launch(kernel, {x, y}, options);
    for (int64_t j = 0; j < 512; ++j)
      ASSERT_EQ(y.get({0, j}), 10);
  }
}

} // namespace
