// SPDX-License-Identifier: Apache-2.0
//
// Launches: arguments, grid, preconditions, workspaces, control flow, assertions, printing, errors.
#include "test/unit/interpret/Harness.h"

namespace tenon::interpret {
namespace {

using Ints = std::vector<int32_t>;
using Texts = std::vector<std::string>;

class Launch : public InterpreterTest {
protected:
  /// Runs a kernel of no arguments but %n and %m (index) and gives what it printed.
  Texts prints(const std::string &body, int64_t n = 0, int64_t m = 0) {
    Texts texts;
    Options options;
    options.print = [&](const std::string &text) { texts.push_back(text); };
    EXPECT_EQ(launch("%n: index, %m: index", body, Arguments().scalar(n).scalar(m), options), "");
    return texts;
  }
};

TEST_F(Launch, GridRunsAxisZeroFastest) {
  EXPECT_EQ(prints(R"(
      %one = arith.constant 1 : index
      %i, %j, %k = tile.grid %n, %m, %one
      %x = arith.addi %i, %j : index
      tile.print "sum", %x : index)", 2, 2),
            (Texts{"sum (0, 0, 0): 0", "sum (1, 0, 0): 1", "sum (0, 1, 0): 1", "sum (1, 1, 0): 2"}));
}

TEST_F(Launch, WithoutGridRunsOnce) { EXPECT_EQ(prints(R"(tile.print "n", %n : index)", -3).size(), 1u); }

TEST_F(Launch, EmptyGridIsANoOp) {
  std::string body = R"(
      %i, %j = tile.grid %n, %m
      %f = arith.constant false
      tile.assert %f, "ran" : i1)";
  for (auto [n, m] : {std::pair(0, 5), std::pair(5, 0), std::pair(-1, 5), std::pair(-1, -1)})
    EXPECT_EQ(launch("%n: index, %m: index", body, Arguments().scalar(n).scalar(m)), "");
}

TEST_F(Launch, Plan) {
  mlir::func::FuncOp kernel = parse("%x: !tile.view<2, f32>, %s: i32, %flag: i1", R"(
      %c0 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %unrelated = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<1x1xf32>
      %rows = tile.size %x, 0 : !tile.view<2, f32>
      %small = arith.cmpi ult, %rows, %c4 : index
      %doubled = scf.if %flag -> index {
        %d = arith.addi %rows, %rows : index
        scf.yield %d : index
      } else {
        scf.yield %rows : index
      }
      tile.require %small, "at most 3 rows"
      %columns = tile.size %x, 1 : !tile.view<2, f32>
      %w = tile.workspace %doubled, %columns : !tile.view<2, f32>
      %half = arith.ceildivsi %columns, %c4 : index
      %i, %j = tile.grid %doubled, %half
      %v = tile.workspace %rows : !tile.view<1, i8>)");
  auto plan = [&](int64_t rows, int64_t columns, int64_t flag) {
    // No memory behind the view: planning must not read it.
    return planLaunch(kernel, Arguments().view<float>(nullptr, {rows, columns}, {0, 0}).scalar(7).scalar(flag).words);
  };
  LaunchPlan good = plan(3, 10, 1);
  EXPECT_EQ(good.refusal, "");
  EXPECT_EQ(std::vector<int64_t>(good.grid, good.grid + 3), (std::vector<int64_t>{6, 3, 1}));
  EXPECT_EQ(good.workspaces, (std::vector<std::vector<int64_t>>{{6, 10}, {3}}));
  EXPECT_EQ(plan(3, 10, 0).grid[0], 3);
  EXPECT_EQ(plan(4, 10, 1).refusal, "at most 3 rows");
  EXPECT_EQ(plan(4, 10, 1).requirement, 0);
  EXPECT_EQ(good.requirement, -1);
  EXPECT_EQ(interpretLaunch(kernel, Arguments().view<float>(nullptr, {4, 1}, {0, 0}).scalar(7).scalar(1).words),
            "at most 3 rows");
}

TEST_F(Launch, FirstFailingPreconditionIsTold) {
  std::string body = R"(
      %i = tile.grid %n
      %t = arith.constant true
      %f = arith.constant false
      tile.require %t, "holds"
      tile.require %f, "first"
      tile.require %f, "second")";
  EXPECT_EQ(launch("%n: index", body, Arguments().scalar(0)), "first"); // refused even where the grid is empty
  EXPECT_EQ(planLaunch(parse("%n: index", body), Arguments().scalar(1).words).requirement, 1);
}

TEST_F(Launch, PlanMayNotDependOnMemoryOrProgram) {
  std::string byProgram = launch("%n: index", R"(
      %i = tile.grid %n
      %c = arith.cmpi eq, %i, %n : index
      tile.require %c, "never")", Arguments().scalar(1));
  EXPECT_EQ(byProgram, "tile.require (kernel.mlir:5) may depend on sizes and scalar arguments only, not on tile.grid");
  std::vector<int64_t> x = {1};
  std::string byMemory = launch("%x: !tile.view<1, i64>", R"(
      %c0 = arith.constant 0 : index
      %t = tile.load %x[%c0] : !tile.view<1, i64> -> tensor<1xi64>
      %s = tile.scalar %t : tensor<1xi64>
      %n = tile.cast %s : i64 -> index
      %i = tile.grid %n)", Arguments().view(x));
  EXPECT_EQ(byMemory, "tile.grid (kernel.mlir:7) may depend on sizes and scalar arguments only, not on tile.load");
}

TEST_F(Launch, WorkspaceIsZeroAndShared) {
  // Each instance adds its number to the workspace; the last one copies the sum out.
  Ints y(1, 99);
  std::string parameters = "%y: !tile.view<1, i32>", body = R"(
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %i = tile.grid %c4
      %w = tile.workspace %c1, %c4 : !tile.view<2, i32>
      %n = tile.cast %i : index -> i32
      %v = tile.splat %n : i32 -> tensor<1x1xi32>
      %t = tile.load %w[%c0, %c1] : !tile.view<2, i32> -> tensor<1x1xi32>
      %s = arith.addi %t, %v : tensor<1x1xi32>
      tile.store %s, %w[%c0, %c1] : tensor<1x1xi32>, !tile.view<2, i32>
      %r = tile.reshape %s : tensor<1x1xi32> -> tensor<1xi32>
      tile.store %r, %y[%c0] : tensor<1xi32>, !tile.view<1, i32>)";
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(launch(parameters, body, Arguments().view(y)), "");
    EXPECT_EQ(y[0], 6);
  }
}

TEST_F(Launch, WorkspaceOfImpossibleSize) {
  std::string body = R"(%w = tile.workspace %n, %m : !tile.view<2, f64>)";
  int64_t huge = int64_t(1) << 40;
  EXPECT_EQ(launch("%n: index, %m: index", body, Arguments().scalar(huge).scalar(huge)),
            "not enough memory for a workspace (kernel.mlir:2)");
  EXPECT_EQ(launch("%n: index, %m: index", body, Arguments().scalar(huge).scalar(0)), "");
  EXPECT_EQ(launch("%n: index, %m: index", body, Arguments().scalar(huge).scalar(-1)), "");
}

TEST_F(Launch, ScalarArguments) {
  Texts texts;
  Options options;
  options.print = [&](const std::string &text) { texts.push_back(text.substr(text.find(':') + 2)); };
  EXPECT_EQ(launch("%a: f32, %b: i1, %c: i8, %d: f64, %e: bf16, %f: i64", R"(
      tile.print "", %a : f32
      tile.print "", %b : i1
      tile.print "", %c : i8
      tile.print "", unsigned %c : i8
      tile.print "", %d : f64
      tile.print "", %e : bf16
      tile.print "", %f : i64)",
                   Arguments()
                       .scalar(std::bit_cast<uint32_t>(0.1f))
                       .scalar(1)
                       .scalar(-2) // the bits above the low eight are ignored
                       .scalar(std::bit_cast<int64_t>(-1e300))
                       .scalar(0xff80)
                       .scalar(-5),
                   options),
            "");
  EXPECT_EQ(texts, (Texts{"0.1", "true", "-2", "254", "-1e+300", "-inf", "-5"}));
}

TEST_F(Launch, WrongNumberOfArgumentWords) {
  EXPECT_EQ(launch("%x: !tile.view<2, f32>, %n: i32", "", Arguments().scalar(1)),
            "the kernel takes 6 argument words, not 1");
  EXPECT_EQ(launch("%n: i32", "", Arguments().scalar(1).scalar(2)), "the kernel takes 1 argument words, not 2");
}

TEST_F(Launch, LoopsCarryValues) {
  // Fibonacci: the arguments are yielded crosswise.
  std::string fibonacci = R"(
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c0, %y = %c1) -> (index, index) {
        %z = arith.addi %x, %y : index
        scf.yield %y, %z : index, index
      }
      tile.print "f", %a : index)";
  EXPECT_EQ(prints(fibonacci, 10), (Texts{"f (0, 0, 0): 55"}));
  EXPECT_EQ(prints(fibonacci, 0), (Texts{"f (0, 0, 0): 0"}));
  EXPECT_EQ(prints(fibonacci, -5), (Texts{"f (0, 0, 0): 0"}));
  std::string swap = R"(
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %t = tile.iota 0 : tensor<2xi32>
      %u = arith.constant dense<7> : tensor<2xi32>
      %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%x = %t, %y = %u) -> (tensor<2xi32>, tensor<2xi32>) {
        scf.yield %y, %x : tensor<2xi32>, tensor<2xi32>
      }
      tile.print "swapped", %a : tensor<2xi32>)";
  EXPECT_EQ(prints(swap, 3), (Texts{"swapped (0, 0, 0): [7, 7]"}));
  EXPECT_EQ(prints(swap, 4), (Texts{"swapped (0, 0, 0): [0, 1]"}));
}

TEST_F(Launch, NestedLoops) {
  std::string body = R"(
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %s = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c0) -> index {
        %t = scf.for %j = %i to %m step %c3 iter_args(%y = %x) -> index {
          %z = arith.addi %y, %j : index
          scf.yield %z : index
        }
        scf.yield %t : index
      }
      tile.print "s", %s : index)";
  EXPECT_EQ(prints(body, 2, 8), (Texts{"s (0, 0, 0): 21"})); // 0 + 3 + 6, 1 + 4 + 7
  EXPECT_EQ(prints(body, 3, 0), (Texts{"s (0, 0, 0): 0"}));  // the inner loop never runs
}

TEST_F(Launch, LoopUpToTheLargestInteger) {
  EXPECT_EQ(prints(R"(
      %c3 = arith.constant 3 : index
      scf.for %i = %n to %m step %c3 {
        tile.print "i", %i : index
      })", std::numeric_limits<int64_t>::max() - 4, std::numeric_limits<int64_t>::max()).size(), 2u);
}

TEST_F(Launch, LoopNeedsAPositiveStep) {
  std::string body = R"(
      %c0 = arith.constant 0 : index
      scf.for %i = %c0 to %c0 step %n {
      })";
  EXPECT_EQ(launch("%n: index", body, Arguments().scalar(0)), "a loop needs a positive step, not 0 (kernel.mlir:4)");
  EXPECT_EQ(launch("%n: index", body, Arguments().scalar(-2)), "a loop needs a positive step, not -2 (kernel.mlir:4)");
}

TEST_F(Launch, Branches) {
  std::string body = R"(
      %c0 = arith.constant 0 : index
      %positive = arith.cmpi sgt, %n, %c0 : index
      %a, %b = scf.if %positive -> (index, tensor<1xi32>) {
        %t = arith.constant dense<1> : tensor<1xi32>
        scf.yield %n, %t : index, tensor<1xi32>
      } else {
        %t = arith.constant dense<2> : tensor<1xi32>
        scf.yield %m, %t : index, tensor<1xi32>
      }
      scf.if %positive {
        tile.print "positive", %a : index
      }
      tile.print "b", %b : tensor<1xi32>)";
  EXPECT_EQ(prints(body, 5, 6), (Texts{"positive (0, 0, 0): 5", "b (0, 0, 0): [1]"}));
  EXPECT_EQ(prints(body, -5, 6), (Texts{"b (0, 0, 0): [2]"}));
}

TEST_F(Launch, Assertions) {
  std::string tile = R"(
      %c2 = arith.constant 2 : index
      %i, %j = tile.grid %c2, %n
      %t = tile.iota 1 : tensor<2x3xi32>
      %l = arith.constant dense<2> : tensor<2x3xi32>
      %c = arith.cmpi ne, %t, %l : tensor<2x3xi32>
      tile.assert %c, "not two" : tensor<2x3xi1>)";
  EXPECT_EQ(launch("%n: index", tile, Arguments().scalar(1)),
            "assertion failed: not two (kernel.mlir:8, program (0, 0, 0), element (0, 2))");
  std::string scalar = R"(
      %c3 = arith.constant 3 : index
      %i, %j = tile.grid %n, %n
      %c = arith.cmpi ne, %j, %n : index
      %d = arith.cmpi slt, %i, %c3 : index
      tile.assert %c, "never" : i1
      tile.assert %d, "small" : i1)";
  EXPECT_EQ(launch("%n: index", scalar, Arguments().scalar(3)), "");
  EXPECT_EQ(launch("%n: index", scalar, Arguments().scalar(5)),
            "assertion failed: small (kernel.mlir:8, program (3, 0, 0))");
}

TEST_F(Launch, PrintsTiles) {
  EXPECT_EQ(prints(R"(
      %a = arith.constant dense<[[1.5, -0.0, 0x7FC00000], [0x7F800000, 1.0e-10, 3.0]]> : tensor<2x3xf32>
      tile.print "a", %a : tensor<2x3xf32>
      %b = arith.constant dense<[true, false]> : tensor<2xi1>
      tile.print "b", %b : tensor<2xi1>
      %c = arith.constant dense<[[[-1]], [[2]]]> : tensor<2x1x1xi16>
      tile.print "c", unsigned %c : tensor<2x1x1xi16>)"),
            (Texts{"a (0, 0, 0): [[1.5, -0, nan], [inf, 1e-10, 3]]", "b (0, 0, 0): [true, false]",
                   "c (0, 0, 0): [[[65535]], [[2]]]"}));
}

TEST_F(Launch, PrintsTheFirst64Elements) {
  Texts texts = prints(R"(
      %a = tile.iota 0 : tensor<64xi32>
      tile.print "a", %a : tensor<64xi32>
      %b = tile.iota 0 : tensor<65xi32>
      tile.print "b", %b : tensor<65xi32>
      %c = tile.iota 0 : tensor<4x32xi32>
      tile.print "c", %c : tensor<4x32xi32>
      %d = tile.iota 0 : tensor<2x40xi32>
      tile.print "d", %d : tensor<2x40xi32>)");
  auto endsWith = [](const std::string &text, const std::string &end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
  };
  EXPECT_TRUE(endsWith(texts[0], "62, 63]")) << texts[0];
  EXPECT_TRUE(endsWith(texts[1], "62, 63, ...]")) << texts[1];
  EXPECT_TRUE(endsWith(texts[2], "1, 1], ...]")) << texts[2];
  EXPECT_TRUE(endsWith(texts[3], "1, 1, ...]]")) << texts[3];
}

TEST_F(Launch, StepLimit) {
  Options options;
  options.maxSteps = 1000;
  std::string loop = R"(
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %n step %c1 {
      })";
  EXPECT_EQ(launch("%n: index", loop, Arguments().scalar(900), options), "");
  EXPECT_EQ(launch("%n: index", loop, Arguments().scalar(int64_t(1) << 60), options), "step limit of 1000 reached");
  EXPECT_EQ(launch("%n: index", "%i = tile.grid %n", Arguments().scalar(int64_t(1) << 60), options),
            "step limit of 1000 reached");
  // Also while the launch is planned.
  EXPECT_EQ(launch("%n: index", R"(
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %s = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c0) -> index {
        scf.yield %x : index
      }
      %i = tile.grid %s)", Arguments().scalar(int64_t(1) << 60), options),
            "step limit of 1000 reached");
}

TEST_F(Launch, UnknownOperations) {
  EXPECT_EQ(launch("%n: i32", R"(
      %c = math.ctpop %n : i32)", Arguments().scalar(0)),
            "cannot interpret math.ctpop (kernel.mlir:3): not an operation of Tile IR, or not on these types");
  EXPECT_EQ(launch("%n: f32", R"(
      %c = arith.constant 1.0 : f80)", Arguments().scalar(0)),
            "cannot interpret arith.constant (kernel.mlir:3): results of this type are not part of Tile IR");
  // Also inside a branch that is not taken.
  EXPECT_NE(launch("%n: i1", R"(
      scf.if %n {
        %c = arith.constant dense<1> : tensor<2x3x4x5x6x7xi32>
      })", Arguments().scalar(0)).find("a tile has 1 to 5 dimensions, not 6"), std::string::npos);
}

} // namespace
} // namespace tenon::interpret
