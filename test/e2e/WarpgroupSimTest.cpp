// SPDX-License-Identifier: Apache-2.0
//
// What comes behind a loop of dots on warpgroups, in the simulator, which watches for races and for warpgroups that wait
// for each other for ever: exchanges within one, stores in slices, loads before the loop. Each step
// can be left out, and the result is the same; blocks take several program instances.
#include "SimSupport.h"

#include "tenon/verify/Judge.h"

#include <algorithm>

using namespace tenon;
using namespace tenon::test;

namespace {

LaunchOptions onSim(Params params, std::string without = "") {
  LaunchOptions options = onSimulator(std::move(params), 8);
  options.compile.without = std::move(without);
  return options;
}

void expectRight(const Problem &problem, const Kernel &kernel, LaunchOptions options) {
  options = withParamsOf(problem, std::move(options));
  Verdict verdict = verify(problem, kernel, options);
  EXPECT_TRUE(verdict.passed) << problem.label << ", without '" << options.compile.without << "': " << verdict.reason;
}

Problem biasGelu(int64_t m, int64_t n, int64_t k) {
  return zoo::matmulProblem({.m = m, .n = n, .k = k, .bias = true, .activation = zoo::Activation::geluExact,
                             .transposedB = true},
                            bf16, 3);
}

const Params wide = {{"bm", 128}, {"bn", 256}, {"bk", 64}};
const Params square = {{"bm", 128}, {"bn", 128}, {"bk", 64}};

/// An epilogue of another kind: a scale for each row, one for each column, the tile and its square to two places.
const Kernel scaled("scaled(a, b, rows, columns, c, d, bm=128, bn=128, bk=64)",
                    [](View a, View b, View rows, View columns, View c, View d, Param bm, Param bn, Param bk) {
  promise_no_overlap();
  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
  Tile acc = zeros(f32, {bm, bn});
  for (Index k : range(0, a.size(1), bk))
    acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc);
  Tile x = acc * expand(rows.load({i * bm}, {bm}), 1) + columns.load({j * bn}, {bn}).to(f32);
  c.store({i * bm, j * bn}, x.to(c.dtype()));
  d.store({i * bm, j * bn}, x * x);
});

struct Scaled {
  Tensor a, b, rows, columns, c, d;
  Scaled(int64_t m, int64_t n, int64_t k)
      : a(zoo::randomTensor(bf16, {m, k}, 1, -1, 1)), b(zoo::randomTensor(bf16, {n, k}, 2, -1, 1).transpose({1, 0})),
        rows(zoo::randomTensor(f32, {m}, 3, -1, 1)), columns(zoo::randomTensor(bf16, {n}, 4, -1, 1)),
        c(Tensor::zeros(bf16, {m, n})), d(Tensor::zeros(f32, {m, n})) {}
  Arguments arguments() const { return {a, b, rows, columns, c, d}; }
  /// Bytes of both results.
  std::vector<std::byte> run(const LaunchOptions &options) {
    std::vector<std::byte> all;
    for (Tensor &tensor : {std::ref(c), std::ref(d)})
      tensor.fillBytes(0xff);
    launch(scaled, arguments(), options);
    for (const Tensor &tensor : {c, d}) {
      auto *begin = static_cast<const std::byte *>(tensor.data());
      all.insert(all.end(), begin, begin + tensor.bufferBytes());
    }
    return all;
  }
};

TEST(WarpgroupSim, WhatIsDone) {
  Problem problem = biasGelu(256, 512, 512);
  LaunchOptions options = onSim(problem.params);
  for (const auto &[name, value] : wide)
    options.params[name] = value;
  expectParts(remarksOf(zoo::matmul, problem.arguments, options),
              {"through 4 slots of shared memory", "in 4 slices", "layout conversion within each warpgroup"});
  options.compile.without = "slices,group-exchange";
  std::string without = remarksOf(zoo::matmul, problem.arguments, options);
  expectParts(without, {"through 3 slots of shared memory"});
  for (const char *what : {"slices", "within each warpgroup"})
    EXPECT_EQ(without.find(what), std::string::npos) << without;
  // Three slots leave room for the whole tile; five are too many even with slices, and four it has with them.
  options.compile.without = "";
  options.compile.stages = 3;
  std::string three = remarksOf(zoo::matmul, problem.arguments, options);
  expectParts(three, {"through 3 slots of shared memory", "through 65536 bytes of shared memory"});
  EXPECT_EQ(three.find("slices"), std::string::npos) << three;
  for (int stages : {4, 5}) {
    options.compile.stages = stages;
    expectParts(remarksOf(zoo::matmul, problem.arguments, options), {"through 4 slots of shared memory", "in 4 slices"});
  }
  // Four slots of narrower tiles leave enough for whole ones, and a fifth would not fit with slices either.
  options.compile.stages = 0;
  options.params["bn"] = 192;
  std::string narrower = remarksOf(zoo::matmul, problem.arguments, options);
  expectParts(narrower, {"through 4 slots of shared memory", "through 49152 bytes of shared memory"});
  EXPECT_EQ(narrower.find("slices"), std::string::npos) << narrower;
  Scaled other(128, 128, 256);
  expectParts(remarksOf(scaled, other.arguments(), onSim(square)),
              {"layout conversion within each warpgroup", "in 4 slices"}); // d, in f32
}

/// No iteration, one, one that overhangs; sizes that end within a tile; more instances than blocks.
TEST(WarpgroupSim, AnyNumberOfIterations) {
  for (int64_t k : {0, 64, 200})
    expectRight(biasGelu(140, 520, k), zoo::matmul, onSim(wide));
}

/// As many rows of tiles as are walked together, and one by one: behind the last instance there is no next one.
TEST(WarpgroupSim, WholeGroupsOfRows) {
  LaunchOptions options = onSim({{"bm", 128}, {"bn", 64}, {"bk", 64}});
  options.compile.warps = 4;
  expectRight(biasGelu(1024, 64, 64), zoo::matmul, options);
  options.compile.without = "order";
  expectRight(biasGelu(256, 64, 64), zoo::matmul, options);
}

/// Few columns of tiles and many rows, the other way round, neither, and several such planes; groups that end early.
TEST(WarpgroupSim, InstancesInAnyOrder) {
  LaunchOptions options = onSim({{"bm", 64}, {"bn", 64}, {"bk", 64}});
  options.compile.warps = 4;
  expectRight(biasGelu(64 * 19, 70, 64), zoo::matmul, options);
  expectRight(biasGelu(70, 64 * 19, 64), zoo::matmul, options);
  expectRight(biasGelu(64 * 9 + 1, 64 * 12, 64), zoo::matmul, options);
  const zoo::Entry &batched = zoo::find("batched_matmul");
  for (std::vector<int64_t> shape : {std::vector<int64_t>{3, 300, 70, 64}, {3, 70, 300, 64}})
    expectRight(batched.makeProblem(shape, bf16, 1), batched.kernel, options);
}

TEST(WarpgroupSim, AFullBlockHasNoRoomForThoseThatLoad) {
  LaunchOptions options;
  options.target = Target::sim;
  options.params = {{"bm", 64}, {"bn", 64}, {"bk", 64}};
  options.compile.warps = 32;
  expectRight(biasGelu(64, 64, 64), zoo::matmul, options);
}

TEST(WarpgroupSim, EachStepLeftOut) {
  Problem problem = biasGelu(136, 264, 128);
  expectRight(problem, zoo::matmul, onSim(wide));
  Scaled other(136, 136, 128);
  std::vector<std::byte> expected = other.run(onSim(square));
  for (const std::string &step : gpuSteps()) {
    expectRight(problem, zoo::matmul, onSim(wide, step));
    if (step != "warpgroups") // sums in another order
      EXPECT_EQ(other.run(onSim(square, step)), expected) << step;
  }
}

TEST(WarpgroupSim, ThreadsInAnyOrder) {
  Scaled other(256, 264, 128);
  std::vector<std::byte> expected = other.run(onSim(square));
  for (int seed : {1, 2, 3}) {
    SimulatorSeed set(seed);
    expectRight(biasGelu(256, 512, 128), zoo::matmul, onSim(wide));
    EXPECT_EQ(other.run(onSim(square)), expected) << seed;
  }
}

/// Parts of a shared tile that begin anywhere in the pattern of its swizzle (50 rows each), and, with rows of 64 bytes,
/// parts that cannot be equal: 136 for eight are 16 each and eight more for the first.
TEST(WarpgroupSim, PartsOfAnySize) {
  struct Case {
    int64_t columns, bk;
    int cluster;
  };
  for (auto [columns, bk, cluster] : {Case{200, 64, 4}, {136, 64, 2}, {104, 64, 4}, {136, 32, 8}}) {
    LaunchOptions options = onSim({{"bm", 128}, {"bn", columns}, {"bk", bk}});
    options.compile.cluster = cluster;
    expectRight(biasGelu(520, 2 * columns, 200), zoo::matmul, options); // and a cluster that reaches beyond the grid
    Scaled other(512, columns, 128), alone(512, columns, 128);
    expectParts(remarksOf(scaled, other.arguments(), options), {"blocks a part for all"});
    EXPECT_EQ(other.run(options), alone.run(onSim(options.params))) << columns;
  }
}

/// Which operand neighbours have in common may be a matter of numbers, here of memory: of four tiles, two and two side
/// by side or one above the other. A cluster shares the one or the other, as the program goes.
TEST(WarpgroupSim, WhatIsSharedMayDependOnNumbers) {
  Kernel quads("quads(a, b, sideBySide, c)", [](View a, View b, View sideBySide, View c) {
    promise_no_overlap();
    auto [i, part] = grid(cdiv(c.size(0), 256) * 2, 2);
    Index quad = i / 2, which = i % 2;
    Tile beside = Index(sideBySide.at({quad})) > 0;
    Index row = (quad * 2 + where(beside, which, part)) * 128, column = where(beside, part, which) * 136;
    Tile sum = zeros(f32, {128, 136});
    for (Index k : range(0, a.size(1), 64))
      sum = dot(a.load({row, k}, {128, 64}), b.load({k, column}, {64, 136}), sum);
    c.store({row, column}, sum);
  });
  constexpr int64_t m = 1100, n = 264, k = 136;
  Tensor a = zoo::randomTensor(bf16, {m, k}, 1, -1, 1), b = zoo::randomTensor(bf16, {n, k}, 2, -1, 1).transpose({1, 0});
  Tensor sideBySide = Tensor::zeros(i32, {5}), c = Tensor::zeros(f32, {m, n}), expected = Tensor::zeros(f32, {m, n});
  for (int64_t quad : {0, 1, 3})
    sideBySide.setInt({quad}, 1);
  LaunchOptions options = onSim({}), shared = onSim({});
  shared.compile.cluster = 2;
  launch(quads, {a, b, sideBySide, expected}, options);
  for (int64_t row : {0, 129, 300, 640, 1099})
    for (int64_t column : {0, 135, 136, 263}) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i)
        sum += a.get({row, i}) * b.get({i, column});
      EXPECT_NEAR(expected.get({row, column}), sum, 1e-3) << row << ", " << column;
    }
  expectParts(remarksOf(quads, {a, b, sideBySide, c}, shared),
              {"each of 2 blocks a part for all where it is the same"});
  for (int seed : {0, 1, 2}) {
    SimulatorSeed set(seed);
    c.fillBytes(0xff);
    launch(quads, {a, b, sideBySide, c}, shared);
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column)
        ASSERT_EQ(c.get({row, column}), expected.get({row, column})) << row << ", " << column;
  }
}

/// Triangular weights: how long the loop is depends on one axis of the grid, whichever that is, and along the other one
/// blocks share what they read.
TEST(WarpgroupSim, LoopsThatAreLongerAlongOneAxis) {
  Kernel triangular("triangular(a, u, c, turned)", [](View a, View u, View c, Param turned) {
    promise_no_overlap();
    Index rows = cdiv(c.size(0), 128), columns = cdiv(c.size(1), 128);
    auto [first, second] = turned ? grid(columns, rows) : grid(rows, columns);
    Index i = turned ? second : first, j = turned ? first : second;
    Tile sum = zeros(f32, {128, 128});
    for (Index k : range(0, (j + 1) * 128, 64))
      sum = dot(a.load({i * 128, k}, {128, 64}), u.load({k, j * 128}, {64, 128}), sum);
    c.store({i * 128, j * 128}, sum);
  });
  Tensor a = zoo::randomTensor(bf16, {264, 200}, 1, -1, 1);
  Tensor u = zoo::randomTensor(bf16, {200, 200}, 2, -1, 1).transpose({1, 0});
  Tensor c = Tensor::zeros(f32, {264, 200}), expected = Tensor::zeros(f32, {264, 200});
  for (int64_t turned : {0, 1}) {
    LaunchOptions alone = onSim({{"turned", turned}}), shared = alone;
    shared.compile.cluster = 2;
    expectParts(remarksOf(triangular, {a, u, c}, shared), {"each of 2 blocks a part for all"});
    launch(triangular, {a, u, expected}, alone);
    for (int seed : {0, 1}) {
      SimulatorSeed set(seed);
      c.fillBytes(0xff);
      launch(triangular, {a, u, c}, shared);
      for (int64_t row = 0; row < c.size(0); ++row)
        for (int64_t column = 0; column < c.size(1); ++column)
          ASSERT_EQ(c.get({row, column}), expected.get({row, column})) << row << ", " << column;
    }
  }
}

/// Registers that move where two blocks divide them: the simulator gives no thread more than there are.
TEST(WarpgroupSim, RegistersForTwoBlocks) {
  const zoo::Entry &attention = zoo::find("attention");
  LaunchOptions options = onSim({{"bm", 64}, {"bn", 96}});
  options.compile.warps = 4;
  options.compile.stages = 2;
  expectRight(attention.makeProblem(std::vector<int64_t>{1, 2, 2, 192, 64}, bf16, 1), attention.kernel, options);
  options.params = {{"bm", 64}, {"bn", 128}, {"bk", 64}};
  expectRight(biasGelu(200, 264, 200), zoo::matmul, options);
}

/// Sums of f8 are added up in f32, in pieces where there are not registers for them and the accumulators.
TEST(WarpgroupSim, F8InPieces) {
  for (auto [bm, bn] : {std::pair<int64_t, int64_t>{128, 128}, {128, 192}, {128, 256}, {256, 128}}) {
    Params tiles = {{"bm", bm}, {"bn", bn}, {"bk", 128}};
    Problem problem = zoo::matmulProblem({.m = 200, .n = 272, .k = 272, .transposedB = true}, f8e4m3, 3);
    expectRight(problem, zoo::matmul, onSim(tiles));
    LaunchOptions options = onSim(problem.params);
    for (const auto &[name, value] : tiles)
      options.params[name] = value;
    expectParts(remarksOf(zoo::matmul, problem.arguments, options), {"wgmma.m64k32 e4m3"});
  }
}

/// Asked for, sums of f8 are the matrix unit's, bit for bit, and nothing is added up beside it.
TEST(WarpgroupSim, FastSumsOfF8) {
  for (DType type : {f8e4m3, f8e5m2})
    for (int64_t bn : {64, 256}) {
      zoo::MatmulShape shape = {.m = 136, .n = 264, .k = 656, .transposedB = true, .fastAccum = true, .output = f32};
      Problem problem = zoo::matmulProblem(shape, type, 3);
      Params tiles = {{"bm", 128}, {"bn", bn}, {"bk", 128}};
      expectRight(problem, zoo::matmul, onSim(tiles));
      LaunchOptions options = onSim(problem.params);
      for (const auto &[name, value] : tiles)
        options.params[name] = value;
      std::string remarks = remarksOf(zoo::matmul, problem.arguments, options);
      expectParts(remarks, {type == f8e4m3 ? "wgmma.m64k32 e4m3" : "wgmma.m64k32 e5m2"});
      EXPECT_EQ(remarks.find("added up in f32"), std::string::npos) << remarks;
      launch(zoo::matmul, problem.arguments, options);
      Tensor c = problem.arguments[3].tensor().clone();
      problem.plain(problem.arguments);
      EXPECT_EQ(firstDifference(c, problem.arguments[3].tensor()), std::nullopt);
    }
}

/// One dot of a kernel has them, the other has not.
TEST(WarpgroupSim, FastSumsOfOneDot) {
  Kernel both("both(a, b, c, d)", [](View a, View b, View c, View d) {
    promise_no_overlap();
    auto [i, j] = grid(cdiv(c.size(0), 128), cdiv(c.size(1), 128));
    Tile fast = zeros(f32, {128, 128}), exact = zeros(f32, {128, 128});
    for (Index k : range(0, a.size(1), 64)) {
      Tile x = a.load({i * 128, k}, {128, 64}), y = b.load({k, j * 128}, {64, 128});
      fast = dot(x, y, fast, {.fast_accum = true});
      exact = dot(x, y, exact);
    }
    c.store({i * 128, j * 128}, fast);
    d.store({i * 128, j * 128}, maximum(exact, 0));
  });
  Tensor a = zoo::randomTensor(f8e4m3, {128, 1024}, 1, 0, 1);
  Tensor b = zoo::randomTensor(f8e4m3, {128, 1024}, 2, 0, 1).transpose({1, 0});
  Tensor c = Tensor::zeros(f32, {128, 128}), d = Tensor::zeros(f32, {128, 128}),
         wanted = Tensor::zeros(f32, {128, 128});
  LaunchOptions options = onSim({});
  options.compile.warps = 8;
  expectParts(remarksOf(both, {a, b, c, d}, options), {"sums of each 64 of K added up in f32"});
  launch(both, {a, b, c, d}, options);
  Tensor other = Tensor::zeros(f32, {128, 128});
  LaunchOptions interpreted;
  interpreted.target = Target::interpreter;
  launch(both, {a, b, wanted, other}, interpreted);
  double coarse = 0, fine = 0;
  for (int64_t i = 0; i < 128; ++i)
    for (int64_t j = 0; j < 128; ++j) {
      double right = wanted.get({i, j});
      coarse = std::max(coarse, std::abs(c.get({i, j}) / right - 1));
      fine = std::max(fine, std::abs(d.get({i, j}) / right - 1));
    }
  // All terms are positive. Up to 2^-13 of the sum so far is cut off each of 1024 terms, or of the 64 of a tile of K.
  EXPECT_LT(coarse, 1024 * 0x1p-13);
  EXPECT_GT(coarse, 10 * fine);
  EXPECT_LT(fine, 64 * 0x1p-13);
}

/// 160 accumulators of a thread, in two blocks of rows; ends within tiles, and another epilogue.
TEST(WarpgroupSim, MoreAccumulatorsOfOneDot) {
  Params tiles = {{"bm", 256}, {"bn", 160}, {"bk", 64}};
  Problem problem = zoo::matmulProblem({.m = 264, .n = 328, .k = 136, .transposedB = true}, bf16, 3);
  expectRight(problem, zoo::matmul, onSim(tiles));
  const zoo::Entry &batched = zoo::find("batched_matmul");
  expectRight(batched.makeProblem(std::vector<int64_t>{2, 256, 168, 72}, f16, 3), batched.kernel, onSim(tiles));
}

/// Two products that share an operand.
TEST(WarpgroupSim, TwoDots) {
  const zoo::Entry &entry = zoo::find("gated_mlp");
  Problem problem = entry.makeProblem(std::vector<int64_t>{136, 264, 192}, bf16, 3);
  expectRight(problem, entry.kernel, onSim(square));
  expectRight(problem, entry.kernel, onSim(wide)); // 256 accumulators that a thread waits for at once
}

/// What is stored first is overwritten, not the other way round: the accelerator takes its time.
TEST(WarpgroupSim, StoresInOrder) {
  Kernel twice("twice(a, b, c)", [](View a, View b, View c) {
    promise_no_overlap();
    auto [i, j] = grid(cdiv(c.size(0), 64), cdiv(c.size(1), 64));
    Tile acc = zeros(f32, {64, 64});
    for (Index k : range(0, a.size(1), 64))
      acc = dot(a.load({i * 64, k}, {64, 64}), b.load({k, j * 64}, {64, 64}), acc);
    for (Index round : range(0, 3)) // in the same place
      c.store({i * 64, j * 64}, (acc * Tile(round).to(f32)).to(c.dtype()));
    Tile rows = iota(i64, {64, 1}, 0) + i * 64, columns = iota(i64, {1, 64}, 1) + j * 64;
    c.scatter({rows, columns}, zeros(c.dtype(), {64, 64}), rows % 2 == 0);
    c.store({i * 64 + 8, j * 64}, full(c.dtype(), {16, 64}, 1));
  });
  Tensor a = Tensor::zeros(bf16, {64, 64}), b = Tensor::zeros(bf16, {64, 64}), c = Tensor::zeros(bf16, {64, 64});
  a.fill(1);
  b.fill(2);
  for (int seed : {1, 2}) {
    SimulatorSeed set(seed);
    LaunchOptions options = onSim({});
    options.compile.warps = 4;
    c.fill(-1);
    launch(twice, {a, b, c}, options);
    for (int64_t i = 0; i < 64; ++i)
      for (int64_t j = 0; j < 64; ++j)
        ASSERT_EQ(c.get({i, j}), i >= 8 && i < 24 ? 1 : i % 2 == 0 ? 0 : 256) << i << ", " << j;
  }
}

TEST(WarpgroupSim, UnknownSteps) {
  Problem problem = biasGelu(128, 128, 64);
  LaunchOptions options = onSim(problem.params, "order,speed");
  expectParts(errorOf([&] { prepare(zoo::matmul, problem.arguments, options); }),
              {"there is no step 'speed' to leave out: the steps are warpgroups, "});
}

} // namespace
