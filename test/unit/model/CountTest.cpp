// SPDX-License-Identifier: Apache-2.0
//
// Kernels as text, counted by hand and by the interpreter, which tells of every element that it reads or writes.
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/interpret/Interpreter.h"
#include "tenon/model/Count.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <set>

using namespace tenon;
using namespace tenon::model;

namespace {

class CountTest : public ::testing::Test {
protected:
  CountTest() { tile::loadTileDialects(context); }

  mlir::func::FuncOp parse(const std::string &parameters, const std::string &body) {
    std::string text = "func.func @kernel(" + parameters + ") {\n" + body + "\nreturn }";
    module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context), "kernel.mlir");
    EXPECT_TRUE(module) << text;
    return module ? *module->getOps<mlir::func::FuncOp>().begin() : mlir::func::FuncOp();
  }

  /// A row-major view of f32 zeros that lives as long as the test.
  void view(std::vector<int64_t> sizes) {
    int64_t elements = 1;
    std::vector<int64_t> strides(sizes.size());
    for (size_t d = sizes.size(); d-- > 0;) {
      strides[d] = elements;
      elements *= sizes[d];
    }
    memory.emplace_back(static_cast<size_t>(elements + 1));
    ranges.push_back({memory.back().data(), memory.back().data() + elements});
    words.push_back(reinterpret_cast<int64_t>(memory.back().data()));
    words.insert(words.end(), sizes.begin(), sizes.end());
    words.insert(words.end(), strides.begin(), strides.end());
  }
  void clear() {
    memory.clear();
    ranges.clear();
    words.clear();
  }

  struct Seen {
    double requested = 0;
    std::set<const void *> unique;
  };
  /// What the interpreter does to the views, in their order.
  struct Traced {
    std::vector<Seen> read, written;
  };
  Traced interpret(mlir::func::FuncOp kernel) {
    Traced traced{std::vector<Seen>(ranges.size()), std::vector<Seen>(ranges.size())};
    interpret::Options options;
    options.access = [&](const void *address, size_t bytes, bool isWrite) {
      for (size_t i = 0; i < ranges.size(); ++i)
        if (address >= ranges[i].first && address < ranges[i].second) {
          Seen &seen = (isWrite ? traced.written : traced.read)[i];
          seen.requested += static_cast<double>(bytes);
          seen.unique.insert(address);
        }
    };
    EXPECT_EQ(interpret::interpretLaunch(kernel, words, options), "");
    return traced;
  }

  /// Counts against the interpreter, exactly.
  Counts expectAgrees(mlir::func::FuncOp kernel, bool isExact = true) {
    Counts counts = CountPlan::fromTileIr(kernel).count(words);
    EXPECT_EQ(counts.refusal, "");
    Traced traced = interpret(kernel);
    std::vector<ViewCounts> byArgument(ranges.size());
    size_t number = 0;
    for (size_t i = 0; i < ranges.size(); ++i)
      for (const ViewCounts &one : counts.views)
        if (one.argument == static_cast<int>(i))
          byArgument[i] = one;
    for (const ViewCounts &one : byArgument) {
      const Seen &read = traced.read[number], &written = traced.written[number];
      double unique = 4.0 * static_cast<double>(read.unique.size());
      double uniqueWritten = 4.0 * static_cast<double>(written.unique.size());
      if (isExact) {
        EXPECT_DOUBLE_EQ(one.read.requested, read.requested) << number;
        EXPECT_DOUBLE_EQ(one.written.requested, written.requested) << number;
        EXPECT_DOUBLE_EQ(one.read.compulsory, unique) << number;
        EXPECT_DOUBLE_EQ(one.written.compulsory, uniqueWritten) << number;
      } else {
        EXPECT_GE(one.read.requested, read.requested) << number;
        EXPECT_GE(one.written.requested, written.requested) << number;
        EXPECT_GE(one.read.compulsory, unique) << number;
        EXPECT_GE(one.written.compulsory, uniqueWritten) << number;
      }
      ++number;
    }
    EXPECT_EQ(counts.exact, isExact) << (counts.notes.empty() ? "" : counts.notes.front());
    return counts;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<std::vector<float>> memory;
  std::vector<std::pair<float *, float *>> ranges;
  std::vector<int64_t> words;
};

std::string matmulText(int64_t bm, int64_t bn, int64_t bk) {
  auto n = [](int64_t value) { return std::to_string(value); };
  std::string a = "tensor<" + n(bm) + "x" + n(bk) + "xf32>", b = "tensor<" + n(bk) + "x" + n(bn) + "xf32>",
              c = "tensor<" + n(bm) + "x" + n(bn) + "xf32>";
  return "%c0 = arith.constant 0 : index\n%zero = arith.constant dense<0.0> : " + c + "\n%bm = arith.constant " +
         n(bm) + " : index\n%bn = arith.constant " + n(bn) + " : index\n%bk = arith.constant " + n(bk) +
         " : index\n" + R"(
    %m = tile.size %a, 0 : <2, f32>
    %n = tile.size %b, 1 : <2, f32>
    %k = tile.size %a, 1 : <2, f32>
    %gm = arith.ceildivsi %m, %bm : index
    %gn = arith.ceildivsi %n, %bn : index
    %i, %j = tile.grid %gm, %gn
    %row = arith.muli %i, %bm : index
    %col = arith.muli %j, %bn : index
    %r = scf.for %p = %c0 to %k step %bk iter_args(%acc = %zero) -> ()" + c + R"() {
      %x = tile.load %a[%row, %p] : <2, f32> -> )" + a + R"(
      %y = tile.load %b[%p, %col] : <2, f32> -> )" + b + R"(
      %z = tile.dot %x, %y, %acc : )" + a + ", " + b + ", " + c + R"(
      scf.yield %z : )" + c + R"(
    }
    tile.store %r, %c[%row, %col] : )" + c + ", <2, f32>";
}
const char *const threeMatrices = "%a: !tile.view<2, f32>, %b: !tile.view<2, f32>, %c: !tile.view<2, f32>";

TEST_F(CountTest, MatmulByHand) {
  auto kernel = parse(threeMatrices, matmulText(16, 8, 4));
  view({17, 9}), view({9, 20}), view({17, 20});
  Counts counts = expectAgrees(kernel);
  EXPECT_EQ(counts.grid[0], 2);
  EXPECT_EQ(counts.grid[1], 3);
  EXPECT_DOUBLE_EQ(counts.useful.flops(), 2 * 17 * 20 * 9);
  EXPECT_DOUBLE_EQ(counts.useful.matrix[static_cast<size_t>(Precision::f32)], 2 * 17 * 20 * 9);
  EXPECT_DOUBLE_EQ(counts.executed.flops(), 6 * 3 * 2 * 16 * 8 * 4.0); // whole tiles
  EXPECT_DOUBLE_EQ(counts.bytes(), 4 * (17 * 9 + 9 * 20 + 17 * 20));
  // a is read once for each of three columns of blocks, b for each of two rows.
  EXPECT_DOUBLE_EQ(counts.requestedBytes(), 4 * (3 * 17 * 9 + 2 * 9 * 20 + 17 * 20));
  EXPECT_DOUBLE_EQ(counts.loopLoadBytes, 4 * (16 * 4 + 4 * 8));
  EXPECT_DOUBLE_EQ(counts.loopIterations, 3);
  EXPECT_DOUBLE_EQ(counts.liveTileBytes, 4 * (16 * 8 + 16 * 8 + 16 * 4 + 4 * 8)); // acc, its successor, x, y
  EXPECT_DOUBLE_EQ(counts.loopTileBytes, counts.liveTileBytes);
  EXPECT_DOUBLE_EQ(counts.inLoops.flops(), counts.executed.flops());
  ASSERT_EQ(counts.loopLoads.size(), 2u);
  EXPECT_TRUE(counts.loopLoads[0].byThreads) << "rows of 36 bytes";
  EXPECT_FALSE(counts.loopLoads[1].byThreads) << "rows of 80 bytes";
}

// Tiles of b lie side by side in its rows: where one ends within a line of 128 bytes, the next one begins there.
TEST_F(CountTest, TilesThatBeginWithinALineTouchMoreOfThem) {
  struct Case {
    int64_t columns, n;
    double cut; // of each panel of a line
  };
  for (auto [columns, n, cut] : {Case{32, 4096, 0},
                                 {48, 4096, 0.5 / 2},
                                 {40, 4096, 0.75 / 2},
                                 {8, 4096, 0},
                                 {12, 4096, 32. / 128},
                                 {48, 48, 0}}) { // the last begins each row
    clear();
    auto kernel = parse(threeMatrices, matmulText(64, columns, 32));
    view({64, 64}), view({64, n}), view({64, n});
    Counts counts = expectAgrees(kernel);
    ASSERT_EQ(counts.loopLoads.size(), 2u);
    EXPECT_EQ(counts.loopLoads[0].cut, 0) << "steps of whole lines";
    EXPECT_FLOAT_EQ(counts.loopLoads[1].cut, static_cast<float>(cut)) << columns << " of " << n;
  }
}

TEST_F(CountTest, MatmulOfRandomShapes) {
  std::mt19937 random(3);
  auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  for (int round = 0; round < 40; ++round) {
    clear();
    int64_t m = pick(1, 40), n = pick(1, 40), k = pick(0, 40);
    auto kernel = parse(threeMatrices, matmulText(pick(1, 16), pick(1, 16), pick(1, 16)));
    view({m, k}), view({k, n}), view({m, n});
    Counts counts = expectAgrees(kernel);
    EXPECT_DOUBLE_EQ(counts.useful.flops(), 2.0 * static_cast<double>(m * n * k));
  }
}

TEST_F(CountTest, MillionsOfInstancesAreAHandfulOfClasses) {
  auto kernel = parse(threeMatrices, matmulText(16, 16, 16));
  constexpr int64_t size = 100001;
  for (int i = 0; i < 3; ++i)
    words.insert(words.end(), {0, size, size, size, 1});
  CountPlan plan = CountPlan::fromTileIr(kernel);
  Counts counts = plan.count(words, /*maxClasses=*/64); // is enough
  EXPECT_TRUE(counts.exact);
  EXPECT_DOUBLE_EQ(counts.instances, 6251.0 * 6251);
  EXPECT_DOUBLE_EQ(counts.useful.flops(), 2.0 * size * size * size);
  EXPECT_DOUBLE_EQ(counts.bytes(), 3 * 4.0 * size * size);
}

TEST_F(CountTest, TheTextbook) {
  auto kernel = parse("%a: !tile.view<1, f16>, %b: !tile.view<1, f16>, %c: !tile.view<1, f16>", R"(
    %block = arith.constant 256 : index
    %n = tile.size %c, 0 : <1, f16>
    %g = arith.ceildivsi %n, %block : index
    %i = tile.grid %g
    %o = arith.muli %i, %block : index
    %x = tile.load %a[%o] : <1, f16> -> tensor<256xf16>
    %y = tile.load %b[%o] : <1, f16> -> tensor<256xf16>
    %s = arith.addf %x, %y : tensor<256xf16>
    tile.store %s, %c[%o] : tensor<256xf16>, <1, f16>)");
  for (int i = 0; i < 3; ++i)
    words.insert(words.end(), {0, 1000000, 1});
  Counts counts = CountPlan::fromTileIr(kernel).count(words);
  EXPECT_DOUBLE_EQ(counts.useful.vector[static_cast<size_t>(Precision::f16)], 1e6);
  EXPECT_DOUBLE_EQ(counts.intensity(), 1.0 / 6);
  EXPECT_GT(counts.executed.flops(), counts.useful.flops()); // 3907 blocks of 256
  EXPECT_DOUBLE_EQ(counts.busiestShare, 1e6 / 1e6 * counts.instances * (256 * 7.0) / (1e6 * 6 + 3907 * 256));
}

TEST_F(CountTest, EffortsByUnit) {
  auto kernel = parse("%a: !tile.view<2, f32>, %b: !tile.view<2, f32>", R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i = tile.grid %c1
    %x = tile.load %a[%c0, %c0] : <2, f32> -> tensor<4x16xf32>
    %unused = math.exp %x : tensor<4x16xf32>
    %s = tile.reduce %x dim 1 : (tensor<4x16xf32>) -> tensor<4x1xf32> {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      tile.yield %r : f32
    }
    %w = tile.broadcast %s : tensor<4x1xf32> -> tensor<4x16xf32>
    %d = arith.divf %x, %w : tensor<4x16xf32>
    %f = math.fma %d, %d, %x : tensor<4x16xf32>
    %k = arith.cmpf olt, %f, %x : tensor<4x16xf32>
    %e = arith.select %k, %f, %x : tensor<4x16xi1>, tensor<4x16xf32>
    tile.store %e, %b[%c0, %c0] : tensor<4x16xf32>, <2, f32>)");
  view({3, 10}), view({3, 10});
  Counts counts = expectAgrees(kernel);
  EXPECT_DOUBLE_EQ(counts.useful.vectorFlops(), 30 + 2 * 30);  // the sum, the multiply-add
  EXPECT_DOUBLE_EQ(counts.useful.specialFlops(), 30);          // the division; the exponential is not used
  EXPECT_DOUBLE_EQ(counts.useful.integer, 30 + 30);            // comparison, selection
  EXPECT_DOUBLE_EQ(counts.executed.vectorFlops(), 64 + 2 * 64);
}

TEST_F(CountTest, CausalLoopsAndBranches) {
  const char *body = R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c3 = arith.constant 3 : index
    %n = tile.size %a, 0 : <2, f32>
    %g = arith.ceildivsi %n, %c4 : index
    %i = tile.grid %g
    %row = arith.muli %i, %c4 : index
    %next = arith.addi %row, %c4 : index
    %end = arith.minsi %n, %next : index
    %odd = tile.rem %i, %c3 : index
    %often = arith.cmpi eq, %odd, %c1 : index
    scf.for %j = %c0 to %end step %c3 {
      %x = tile.load %a[%j, %c0] : <2, f32> -> tensor<3x8xf32>
      %y = arith.addf %x, %x : tensor<3x8xf32>
      scf.if %often {
        tile.store %y, %b[%j, %c1] : tensor<3x8xf32>, <2, f32>
      }
    })";
  auto kernel = parse("%a: !tile.view<2, f32>, %b: !tile.view<2, f32>", body);
  for (int64_t rows : {1, 3, 4, 5, 12, 13, 40, 97}) {
    clear();
    view({rows, 7}), view({rows, 6});
    Counts counts = CountPlan::fromTileIr(kernel).count(words);
    Traced traced = interpret(kernel);
    ASSERT_FALSE(counts.views.empty());
    EXPECT_DOUBLE_EQ(counts.views[0].read.requested, traced.read[0].requested) << rows;
    EXPECT_DOUBLE_EQ(counts.views[0].read.compulsory, 4.0 * static_cast<double>(traced.read[0].unique.size())) << rows;
    double written = counts.views.size() > 1 ? counts.views[1].written.requested : 0;
    EXPECT_DOUBLE_EQ(written, traced.written[1].requested) << rows;
  }
}

TEST_F(CountTest, OffsetsBeforeAndPastTheView) {
  const char *body = R"(
    %c0 = arith.constant 0 : index
    %c5 = arith.constant 5 : index
    %c3 = arith.constant 3 : index
    %c9 = arith.constant 9 : index
    %i, %j = tile.grid %c9, %c5
    %x = arith.muli %i, %c3 : index
    %y = arith.subi %x, %c5 : index
    %z = arith.muli %j, %c5 : index
    %t = tile.load %a[%y, %z] : <2, f32> -> tensor<2x3xf32>
    tile.store %t, %b[%y, %z] : tensor<2x3xf32>, <2, f32>)";
  auto kernel = parse("%a: !tile.view<2, f32>, %b: !tile.view<2, f32>", body);
  for (int64_t rows = 1; rows < 24; ++rows) {
    clear();
    view({rows, 17}), view({rows, 23});
    Counts counts = CountPlan::fromTileIr(kernel).count(words);
    Traced traced = interpret(kernel);
    if (traced.read[0].requested == 0) { // every tile lies outside
      EXPECT_TRUE(counts.views.empty()) << rows;
      continue;
    }
    ASSERT_EQ(counts.views.size(), 2u);
    EXPECT_DOUBLE_EQ(counts.views[0].read.requested, traced.read[0].requested) << rows;
    EXPECT_DOUBLE_EQ(counts.views[1].written.requested, traced.written[1].requested) << rows;
    // Tiles with gaps between them: exact when they say so.
    for (auto [traffic, seen] : {std::pair(counts.views[0].read, &traced.read[0]),
                                 std::pair(counts.views[1].written, &traced.written[1])}) {
      double unique = 4.0 * static_cast<double>(seen->unique.size());
      EXPECT_GE(traffic.compulsory, unique) << rows;
      if (traffic.exact) {
        EXPECT_DOUBLE_EQ(traffic.compulsory, unique) << rows;
      }
    }
  }
}

TEST_F(CountTest, CountersCarriedByALoop) {
  auto kernel = parse("%a: !tile.view<1, f32>, %b: !tile.view<1, f32>", R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c6 = arith.constant 6 : index
    %c4 = arith.constant 4 : index
    %i = tile.grid %c1
    %zero = arith.constant dense<0.0> : tensor<4xf32>
    %r:2 = scf.for %k = %c0 to %c6 step %c1 iter_args(%at = %c1, %s = %zero) -> (index, tensor<4xf32>) {
      %x = tile.load %a[%at] : <1, f32> -> tensor<4xf32>
      %y = arith.addf %s, %x : tensor<4xf32>
      %n = arith.addi %at, %c4 : index
      scf.yield %n, %y : index, tensor<4xf32>
    }
    tile.store %r#1, %b[%c0] : tensor<4xf32>, <1, f32>)");
  view({19}), view({4});
  Counts counts = expectAgrees(kernel);
  EXPECT_DOUBLE_EQ(counts.useful.flops(), 4 * 4 + 2);
}

TEST_F(CountTest, WhatDataDecidesIsABound) {
  auto kernel = parse("%a: !tile.view<1, f32>, %b: !tile.view<1, f32>", R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i = tile.grid %c1
    %index = tile.iota 0 : tensor<8xi64>
    %x = tile.gather %a[%index : tensor<8xi64>] : <1, f32> -> tensor<8xf32>
    tile.store %x, %b[%c0] : tensor<8xf32>, <1, f32>)");
  view({5}), view({8});
  Counts counts = expectAgrees(kernel, /*isExact=*/false);
  ASSERT_EQ(counts.notes.size(), 1u);
  EXPECT_NE(counts.notes[0].find("the indices are known only when the kernel runs"), std::string::npos);
  EXPECT_FALSE(counts.views[0].read.exact);
  EXPECT_TRUE(counts.views[1].written.exact);
  EXPECT_DOUBLE_EQ(counts.views[0].read.compulsory, 4 * 5); // never more than there is
}

TEST_F(CountTest, SwizzledGridIsABoundAndNeverTooLittle) {
  auto kernel = parse("%a: !tile.view<2, f32>, %b: !tile.view<2, f32>", R"(
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c12 = arith.constant 12 : index
    %p = tile.grid %c12
    %i = tile.div %p, %c3 : index
    %j = tile.rem %p, %c3 : index
    %row = arith.muli %i, %c4 : index
    %col = arith.muli %j, %c4 : index
    %x = tile.load %a[%row, %col] : <2, f32> -> tensor<4x4xf32>
    tile.store %x, %b[%row, %col] : tensor<4x4xf32>, <2, f32>)");
  view({15, 11}), view({15, 11});
  Counts counts = CountPlan::fromTileIr(kernel).count(words);
  EXPECT_DOUBLE_EQ(counts.requestedBytes(), 2 * 15 * 11 * 4);
  EXPECT_DOUBLE_EQ(counts.bytes(), 2 * 15 * 11 * 4);
  EXPECT_FALSE(counts.exact);
}

TEST_F(CountTest, BudgetSamplesEvenly) {
  auto kernel = parse("%a: !tile.view<1, f32>, %b: !tile.view<1, f32>", R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c1000 = arith.constant 1000 : index
    %i = tile.grid %c1000
    %end = arith.addi %i, %c1 : index
    scf.for %j = %c0 to %end step %c1 {
      %x = tile.load %a[%j] : <1, f32> -> tensor<1xf32>
      %y = math.exp %x : tensor<1xf32>
      tile.store %y, %b[%j] : tensor<1xf32>, <1, f32>
    })");
  view({1000}), view({1000});
  CountPlan plan = CountPlan::fromTileIr(kernel);
  Counts exact = plan.count(words), sampled = plan.count(words, 50);
  EXPECT_TRUE(exact.exact);
  EXPECT_DOUBLE_EQ(exact.useful.flops(), 1000.0 * 1001 / 2);
  EXPECT_NEAR(exact.busiestShare, 2, 0.01);
  EXPECT_FALSE(sampled.exact);
  EXPECT_NEAR(sampled.useful.flops(), exact.useful.flops(), 0.02 * exact.useful.flops());
}

TEST_F(CountTest, RefusalsAndEmptyGrids) {
  auto kernel = parse("%a: !tile.view<1, f32>, %b: !tile.view<1, f32>", R"(
    %c0 = arith.constant 0 : index
    %n = tile.size %a, 0 : <1, f32>
    %m = tile.size %b, 0 : <1, f32>
    %same = arith.cmpi eq, %n, %m : index
    tile.require %same, "a and b must have the same length"
    %i = tile.grid %n
    %x = tile.load %a[%i] : <1, f32> -> tensor<1xf32>
    tile.store %x, %b[%i] : tensor<1xf32>, <1, f32>)");
  CountPlan plan = CountPlan::fromTileIr(kernel);
  view({3}), view({4});
  EXPECT_EQ(plan.count(words).refusal, "a and b must have the same length");
  EXPECT_NE(plan.count(std::span(words).first(2)).refusal.find("argument words"), std::string::npos);
  clear();
  view({0}), view({0});
  Counts empty = plan.count(words);
  EXPECT_EQ(empty.refusal, "");
  EXPECT_EQ(empty.instances, 0);
  EXPECT_EQ(empty.bytes(), 0);
}

TEST_F(CountTest, BroadcastViewsHoldOneElement) {
  auto kernel = parse("%a: !tile.view<2, f32>, %b: !tile.view<2, f32>", R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i = tile.grid %c1
    %x = tile.load %a[%c0, %c0] : <2, f32> -> tensor<4x8xf32>
    tile.store %x, %b[%c0, %c0] : tensor<4x8xf32>, <2, f32>)");
  words = {0, 4, 8, 0, 1, 0, 4, 8, 8, 1};
  Counts counts = CountPlan::fromTileIr(kernel).count(words);
  EXPECT_DOUBLE_EQ(counts.views[0].read.requested, 4 * 32);
  EXPECT_DOUBLE_EQ(counts.views[0].read.compulsory, 4 * 8);
  EXPECT_DOUBLE_EQ(counts.views[1].written.compulsory, 4 * 32);
}

TEST_F(CountTest, UniqueBytesOfSomeInstances) {
  auto kernel = parse(threeMatrices, matmulText(16, 8, 4));
  CountPlan plan = CountPlan::fromTileIr(kernel);
  words = {0, 64, 32, 32, 1, 0, 32, 64, 64, 1, 0, 64, 64, 64, 1};
  CountPlan::Box box;
  box.last[0] = 1; // two rows of blocks, one column
  CountPlan::Unique unique = plan.uniqueBytes(words, box);
  EXPECT_DOUBLE_EQ(unique.read, 4 * (32 * 32 + 32 * 8));
  EXPECT_DOUBLE_EQ(unique.written, 4 * 32 * 8);
}

TEST_F(CountTest, ParamsWithoutTracingAgain) {
  auto sample = [&](int64_t bm, int64_t bn, int64_t bk) {
    return ParametricPlan::Sample{{{"bm", bm}, {"bn", bn}, {"bk", bk}},
                                  CountPlan::fromTileIr(parse(threeMatrices, matmulText(bm, bn, bk)))};
  };
  std::vector<ParametricPlan::Sample> samples = {sample(16, 16, 16), sample(32, 16, 16), sample(16, 32, 16),
                                                 sample(16, 16, 32), sample(48, 24, 8)};
  auto fitted = ParametricPlan::fit(samples);
  ASSERT_TRUE(fitted);
  view({100, 77}), view({77, 130}), view({100, 130});
  Counts predicted = fitted->at({{"bm", 8}, {"bn", 40}, {"bk", 20}}).count(words);
  Counts real = sample(8, 40, 20).plan.count(words);
  EXPECT_DOUBLE_EQ(predicted.executed.flops(), real.executed.flops());
  EXPECT_DOUBLE_EQ(predicted.requestedBytes(), real.requestedBytes());
  EXPECT_DOUBLE_EQ(predicted.liveTileBytes, real.liveTileBytes);

  // Another program, or an integer that is no linear function: no plan rather than a wrong one.
  auto other = samples;
  other[1].plan = CountPlan::fromTileIr(parse("%a: !tile.view<1, f32>", R"(
    %c0 = arith.constant 0 : index
    %i = tile.grid %c0
    %x = tile.load %a[%i] : <1, f32> -> tensor<1xf32>
    tile.store %x, %a[%i] : tensor<1xf32>, <1, f32>)"));
  EXPECT_FALSE(ParametricPlan::fit(other));
  auto bent = samples;
  bent[4] = {{{"bm", 48}, {"bn", 24}, {"bk", 8}}, sample(48, 24, 9).plan};
  EXPECT_FALSE(ParametricPlan::fit(bent));
  EXPECT_FALSE(ParametricPlan::fit({}));
}

} // namespace
