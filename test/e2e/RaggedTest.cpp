// SPDX-License-Identifier: Apache-2.0
//
// What does not come in whole tiles, in the simulator, which watches every access: rows that begin at addresses which are
// no multiples of 16 bytes, and program instances that take different times.
#include "SimSupport.h"

#include <array>

using namespace tenon;
using namespace tenon::test;

namespace {

std::string remarksOf(const Kernel &kernel, const Problem &problem, const LaunchOptions &options) {
  return test::remarksOf(kernel, problem.arguments, withParamsOf(problem, options));
}

void expectRight(const Problem &problem, const Kernel &kernel, const LaunchOptions &options) {
  Verdict verdict = verify(problem, kernel, options);
  EXPECT_TRUE(verdict.passed) << problem.label << ": " << verdict.reason;
}

const Params smallTiles = {{"bm", 64}, {"bn", 64}, {"bk", 64}};

/// Rows of every remainder modulo 8; no, one and several iterations; columns that end within a vector.
TEST(Ragged, ProductOfOddRows) {
  for (int64_t k : {0, 1, 65, 68, 135})
    for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 70}, {65, 129}})
      for (bool transposed : {false, true}) {
        Problem problem = zoo::matmulProblem({.m = m, .n = n, .k = k, .transposedB = transposed}, bf16, 3);
        expectRight(problem, zoo::matmul, onSimulator(smallTiles));
      }
  Problem problem = zoo::matmulProblem({.m = 200, .n = 129, .k = 135, .transposedB = true}, bf16, 3);
  expectParts(remarksOf(zoo::matmul, problem, onSimulator({{"bm", 128}, {"bn", 64}, {"bk", 64}})),
              {"load is made by the threads one iteration ahead of its loop", "load of 16 bytes a thread at any address",
               "store of 16 bytes a thread at any address", "wgmma.m64"});
}

TEST(Ragged, ProductOfEveryShape) {
  for (auto [bm, bn, warps] : {std::tuple<int, int, int>{128, 64, 8}, {64, 256, 8}, {128, 256, 8}}) {
    Problem problem = zoo::matmulProblem({.m = 200, .n = 150, .k = 133, .transposedB = true}, bf16, 3);
    expectRight(problem, zoo::matmul, onSimulator({{"bm", bm}, {"bn", bn}, {"bk", 64}}, warps));
  }
}

TEST(Ragged, ProductOfEveryType) {
  for (DType type : {f16, f8e4m3, i8, f32}) {
    Problem problem =
        zoo::matmulProblem({.m = 130, .n = 70, .k = 133, .transposedB = true, .tf32 = type == f32}, type, 3);
    Params tiles = {{"bm", 128}, {"bn", 64}, {"bk", 128 / static_cast<int64_t>(sizeOf(type))}};
    expectRight(problem, zoo::matmul, onSimulator(tiles, 8));
  }
}

/// Two dots of one operand, and one whose operand is computed.
TEST(Ragged, OtherProducts) {
  for (const char *name : {"gated_mlp", "dequant_matmul"}) {
    const zoo::Entry &entry = zoo::find(name);
    expectRight(entry.makeProblem(std::vector<int64_t>{70, 67, 131}, bf16, 3), entry.kernel, onSimulator(smallTiles));
  }
}

/// Every beginning of a row and of a view, tiles that overhang at both ends, several rows a warp and a row of several.
TEST(Ragged, RowsThatBeginAnywhere) {
  Kernel copy("copy(x, y, first, rows=4, cols=64)", [](View x, View y, Index first, Param rows, Param cols) {
    promise_no_overlap();
    auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1) - first, cols));
    y.store({i * rows, j * cols + first}, x.load({i * rows, j * cols + first}, {rows, cols}));
  });
  for (DType type : {bf16, f32, i8})
    for (auto [rows, columns] : {std::pair<int64_t, int64_t>{4, 64}, {1, 512}, {64, 16}})
      for (int64_t width : {65, 131})
        for (int64_t begin : {0, 1, 7}) {
          Tensor memory = Tensor::zeros(type, {2000}), result = Tensor::zeros(type, {2000});
          for (int64_t i = 0; i < 2000; ++i)
            memory.set({i}, static_cast<double>(i % 100));
          Tensor x = memory.slice(0, begin, 9 * width).reshape({9, width});
          Tensor y = result.slice(0, begin + 1, 9 * width).reshape({9, width});
          for (int64_t first : {0, -3, 5}) {
            y.fill(-1);
            launch(copy, {x, y, first}, onSimulator({{"rows", rows}, {"cols", columns}}));
            for (int64_t i = 0; i < 9; ++i)
              for (int64_t j = 0; j < width; ++j)
                ASSERT_EQ(y.get({i, j}), j < first ? -1 : x.get({i, j}))
                    << rows << " x " << columns << ", width " << width << ", from " << first << ", " << i << ", " << j;
            EXPECT_EQ(result.get({begin}), 0);
            EXPECT_EQ(result.get({begin + 1 + 9 * width}), 0);
          }
        }
}

/// How long an instance takes is in memory: blocks take the next one when they are free.
TEST(Ragged, InstancesOfDifferentLengths) {
  Params tiles = {{"bm", 64}, {"bn", 64}, {"bk", 64}};
  for (std::vector<int64_t> rows : {std::vector<int64_t>{0, 1, 100, 64, 0, 130}, {5}, {0, 0}, {64, 64, 64}}) {
    Problem problem = zoo::groupedMatmulProblem({rows, 136, 200}, bf16, 5);
    expectRight(problem, zoo::groupedMatmul, onSimulator(tiles));
  }
  Problem problem = zoo::groupedMatmulProblem({{100, 3}, 136, 200}, bf16, 5);
  expectParts(remarksOf(zoo::groupedMatmul, problem, onSimulator(tiles)),
              {"blocks take the next one when they are free", "handed over by the thread that loads"});

  Kernel depths("depths(a, b, depth, c)", [](View a, View b, View depth, View c) {
    promise_no_overlap();
    auto [i, j] = grid(cdiv(c.size(0), 64), cdiv(c.size(1), 64));
    Tile sum = zeros(f32, {64, 64});
    for (Index k : range(0, Index(depth.at({i})), 64))
      sum = dot(a.load({i * 64, k}, {64, 64}), b.load({k, j * 64}, {64, 64}), sum);
    c.store({i * 64, j * 64}, sum);
  });
  Tensor a = Tensor::zeros(bf16, {320, 256}), b = Tensor::zeros(bf16, {256, 128}), c = Tensor::zeros(f32, {320, 128});
  a.fill(1);
  b.fill(2);
  Tensor depth = Tensor::zeros(i32, {5});
  for (int64_t i = 0; i < 5; ++i)
    depth.setInt({i}, std::vector<int64_t>{64, 0, 256, 192, 64}[i]);
  for (int cluster : {0, 2}) // blocks that share a's tiles take instances together
    for (int seed : {0, 1, 2}) {
      SimulatorSeed set(seed);
      LaunchOptions options = onSimulator({});
      options.compile.cluster = cluster;
      c.fill(-1);
      launch(depths, {a, b, depth, c}, options);
      for (int64_t i = 0; i < 320; ++i)
        for (int64_t j = 0; j < 128; ++j)
          ASSERT_EQ(c.get({i, j}), 2 * depth.get({i / 64})) << i << ", " << j;
    }
}

/// One block of a cluster takes the next number for all; there are fewer numbers than clusters, as many, and more, and
/// instances that only their cluster has.
TEST(Ragged, ClustersTakeInstances) {
  Params tiles = {{"bm", 128}, {"bn", 64}, {"bk", 64}, {"pair", 2}};
  auto run = [&](std::vector<int64_t> rows, int64_t pair, int cluster) {
    tiles["pair"] = pair;
    LaunchOptions options = onSimulator(tiles, 8);
    options.compile.cluster = cluster;
    expectRight(zoo::groupedMatmulProblem({std::move(rows), 72, 136}, bf16, 5), zoo::groupedMatmul, options);
  };
  for (int seed : {0, 1}) {
    SimulatorSeed set(seed);
    run({0, 1, 300, 64, 0, 130, 257}, 2, 2);
    run({5}, 2, 2);
    run({0, 0}, 2, 2);
    run({70, 200}, 3, 2);
    run({130}, 4, 4);
    run({600}, 4, 4); // four tiles of rows, and one in four columns
  }
  tiles["pair"] = 2;
  Problem problem = zoo::groupedMatmulProblem({{100, 3}, 136, 200}, bf16, 5);
  LaunchOptions options = onSimulator(tiles, 8);
  options.compile.cluster = 2;
  expectParts(remarksOf(zoo::groupedMatmul, problem, options),
              {"blocks take the next one when they are free", "each of 2 blocks a part for all where it is the same",
               "rows that are all masked out multiply nothing"});
}

/// Nobody has to see to the counter before a launch: the last one to ask leaves it at zero, which the simulator checks
/// where it is promised.
TEST(Ragged, TheCounterIsLeftAtZero) {
  Problem problem = zoo::groupedMatmulProblem({{100, 3}, 136, 200}, bf16, 5);
  std::string program = emit(zoo::groupedMatmul, problem.arguments, "layouts",
                             withParamsOf(problem, onSimulator({{"bm", 64}, {"bn", 64}, {"bk", 64}})));
  size_t counter = program.find("nvidia.counts_instances");
  ASSERT_NE(counter, std::string::npos);
  EXPECT_NE(program.substr(program.rfind('\n', counter), 120).find("initial = 2"), std::string::npos) << program;
}

/// The thread that loads finds in memory where an instance begins and ends, and tells the others. What it does not need
/// itself, what is no number and what others may see (an assert) is the others' business.
TEST(Ragged, WhatIsFoundInMemory) {
  Kernel ranges("ranges(a, b, ends, places, scales, c, d, counts=0, checks=0)",
                [](View a, View b, View ends, View places, View scales, View c, View d, Param counts, Param checks) {
    promise_no_overlap();
    auto [i, j] = grid(cdiv(c.size(0), 64), cdiv(c.size(1), 64));
    Index begin = 0, end = ends.at({0}), seen = 0;
    for (Index step : range(0, i)) {
      if (checks)
        device_assert(Tile(Index(ends.at({step}))) >= 0, "an end before the beginning");
      begin = end;
      end = end + Index(ends.at({step + 1}));
      seen = seen + Index(ends.at({step}));
    }
    Tile sum = zeros(f32, {64, 64});
    Index row = places.at({i});
    for (Index k : range(begin * 64, end * 64, 64))
      sum = dot(a.load({row, k}, {64, 64}), b.load({k, j * 64}, {64, 64}), sum);
    Tile scale = scales.at({i}).to(f32);
    c.store({row, j * 64}, sum * scale + Tile(end).to(f32));
    if (counts)
      d.store({i, j}, full(i64, {1, 1}, seen));
  });
  std::vector<int64_t> lengths = {1, 0, 2, 1}; // of 64; the next begins where one ends
  Tensor a = Tensor::zeros(bf16, {256, 256}), b = Tensor::zeros(bf16, {256, 128}), c = Tensor::zeros(f32, {256, 128});
  Tensor ends = Tensor::zeros(i32, {4}), places = Tensor::zeros(i64, {4}), scales = Tensor::zeros(f32, {4});
  Tensor d = Tensor::zeros(i64, {4, 2});
  a.fill(1);
  b.fill(2);
  for (int64_t i = 0; i < 4; ++i) {
    ends.setInt({i}, lengths[static_cast<size_t>(i)]);
    scales.set({i}, static_cast<double>(i) + 0.5);
    places.setInt({i}, (i ^ 1) * 64);
  }
  for (auto [counts, checks, cluster] : {std::array{0, 0, 0}, {0, 1, 0}, {1, 0, 0}, {1, 1, 0}, {0, 0, 2}, {1, 1, 2}}) {
    LaunchOptions options = onSimulator({{"counts", counts}, {"checks", checks}});
    options.compile.cluster = cluster;
    Arguments arguments = {a, b, ends, places, scales, c, d};
    std::string remarks;
    for (const std::string &remark : prepare(ranges, arguments, options).remarks)
      remarks += remark + "\n";
    expectParts(remarks, {"blocks take the next one when they are free"});
    expectParts(remarks, {std::string("handed over by the thread that loads; numbers for each program instance: ") +
                          (checks ? "2" : "4")});
    c.fill(-1);
    d.fill(-1);
    launch(ranges, arguments, options);
    int64_t end = 0, seen = 0;
    for (int64_t i = 0; i < 4; ++i) {
      int64_t length = lengths[static_cast<size_t>(i)];
      end += length;
      for (int64_t j = 0; j < 128; ++j)
        ASSERT_EQ(c.get({(i ^ 1) * 64 + 5, j}),
                  static_cast<double>(128 * length) * scales.get({i}) + static_cast<double>(end));
      EXPECT_EQ(d.getInt({i, 1}), counts ? seen : -1);
      seen += length;
    }
  }
}

} // namespace
