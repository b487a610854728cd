// SPDX-License-Identifier: Apache-2.0
//
// Dots from Tile IR through layouts and threads to the simulator, against sums on the host.
#include "test/unit/nvidia/Product.h"

#include "tenon/compiler/target/nvidia/layout/Conversion.h"
#include "tenon/compiler/target/nvidia/layout/Fragments.h"
#include "tenon/compiler/target/nvidia/ptx/Assembler.h"
#include "tenon/compiler/target/nvidia/ptx/PtxEmitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace tenon::test {
namespace {

//===--- Instructions ---------------------------------------------------------------------------------------------===//

TEST(Dot, EveryTypeInEveryOrientation) {
  for (const char *type : {"f16", "bf16", "f32", "f64", "i8", "f8E4M3FN", "f8E5M2"})
    for (int orientation = 0; orientation < 4; ++orientation)
      for (bool tf32 : {false, true}) {
        if (tf32 && std::string(type) != "f32")
          continue;
        SCOPED_TRACE(type);
        Product p;
        p.type = type;
        p.acc = p.type == "i8" ? "i32" : p.type == "f64" ? "f64" : "f32";
        p.transposedA = orientation & 1;
        p.transposedB = orientation & 2;
        p.attributes = tf32 ? "{allow_tf32}" : "";
        check(p);
      }
}

TEST(Dot, MixedOperands) {
  for (const char *attributes : {"{a_unsigned}", "{b_unsigned}", "{a_unsigned, b_unsigned}"})
    check({.type = "i8", .acc = "i32", .transposedB = true, .attributes = attributes});
  check({.type = "f8E4M3FN", .transposedB = true, .typeB = "f8E5M2"});
}

TEST(Dot, ByteFloatsBeforeTheyHadInstructions) {
  TileRun run = check({.type = "f8E4M3FN", .architecture = "sm_80", .typeB = "f8E5M2"});
  EXPECT_TRUE(mentions(run, "converted to f16")) << run.allRemarks();
}

TEST(Dot, Float32IsRoundedOnlyWhenAllowed) {
  for (bool allowed : {false, true})
    for (bool transposed : {false, true}) {
      Product p{.type = "f32", .m = 16, .n = 8, .k = 8, .depth = 8};
      p.transposedA = p.transposedB = transposed;
      p.attributes = allowed ? "{allow_tf32}" : "";
      HostMatrix a("f32", p.m, p.depth, transposed), b("f32", p.depth, p.n, transposed), c("f32", p.m, p.n);
      a.fill([](int64_t, int64_t k) { return k == 0 ? 1 + 0x1p-11 + 0x1p-12 : 0; });
      b.fill([](int64_t k, int64_t) { return k == 0 ? 1 : 0; });
      TileRun run = runTile(p.text(), {&a, &b, &c}, {});
      EXPECT_EQ(run.findings, "");
      EXPECT_EQ(c.at(3, 5), allowed ? 1 + 0x1p-10 : 1 + 0x1p-11 + 0x1p-12);
      EXPECT_TRUE(mentions(run, allowed ? "mma.sync.m16n8k8 tf32" : "fma.f32")) << run.allRemarks();
    }
}

TEST(Dot, NaNAndInfinitySurviveTf32) {
  Product p{.type = "f32", .m = 16, .n = 8, .k = 8, .depth = 8, .attributes = "{allow_tf32}"};
  HostMatrix a("f32", p.m, p.depth), b("f32", p.depth, p.n), c("f32", p.m, p.n);
  a.fill([](int64_t i, int64_t k) { return k ? 0 : i == 0 ? NAN : i == 1 ? INFINITY : 1; });
  b.fill([](int64_t, int64_t) { return 1; });
  runTile(p.text(), {&a, &b, &c}, {});
  EXPECT_TRUE(std::isnan(c.at(0, 0)));
  EXPECT_EQ(c.at(1, 0), INFINITY);
  EXPECT_EQ(c.at(2, 0), 1);
}

//===--- Shapes ---------------------------------------------------------------------------------------------------===//

TEST(Dot, OddShapes) {
  const int64_t shapes[][3] = {{1, 24, 17}, {1, 1, 1},   {5, 9, 33},   {48, 40, 16},
                               {64, 8, 48}, {8, 96, 24}, {100, 20, 7}};
  for (const char *type : {"bf16", "f32", "i8"})
    for (auto [m, n, k] : shapes)
      for (int64_t warps : {1, 4}) {
        SCOPED_TRACE(std::string(type) + " " + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k));
        Product p{.type = type, .m = m, .n = n, .k = k, .depth = 2 * k, .warps = warps};
        p.acc = p.type == "i8" ? "i32" : "f32";
        check(p);
        p.transposedA = p.transposedB = true;
        check(p);
      }
  check({.type = "f32", .m = 5, .n = 24, .k = 20, .depth = 20, .attributes = "{allow_tf32}"});
}

TEST(Dot, DeepTilesLoopOverK) {
  for (const char *type : {"bf16", "f32", "i8"})
    for (bool transposed : {false, true}) {
      Product p{.type = type, .m = 16, .n = 16, .k = 352, .depth = 352, .transposedA = transposed,
                .transposedB = !transposed};
      p.acc = p.type == "i8" ? "i32" : "f32";
      check(p);
    }
}

TEST(Dot, ManyWarps) {
  for (int64_t warps : {1, 2, 8, 16})
    check({.m = 64, .n = 64, .warps = warps});
  check({.type = "f32", .m = 64, .n = 64, .warps = 8});
}

//===--- Loads that run ahead -------------------------------------------------------------------------------------===//

TEST(Dot, EveryNumberOfIterationsAndStages) {
  for (int64_t stages : {1, 2, 3, 4})
    for (int64_t iterations = 0; iterations <= 5; ++iterations)
      for (uint64_t seed : {0, 17}) {
        SCOPED_TRACE(std::to_string(stages) + " stages, " + std::to_string(iterations) + " iterations");
        TileRun run = check({.depth = 32 * iterations, .transposedB = true, .stages = stages, .seed = seed});
        EXPECT_EQ(mentions(run, "load runs"), stages > 1) << run.allRemarks();
      }
}

TEST(Dot, TheLastIterationMayBePartial) {
  for (const char *type : {"bf16", "f32"})
    check({.type = type, .m = 40, .n = 24, .depth = 72});
}

TEST(Dot, NarrowCopies) {
  // Rows of 4 x odd and 8 x odd bytes.
  EXPECT_TRUE(mentions(check({.m = 16, .n = 16, .k = 32, .depth = 34, .transposedB = true}), "in copies of 4 bytes"));
  EXPECT_TRUE(mentions(check({.m = 16, .n = 16, .k = 32, .depth = 36, .transposedB = true}), "in copies of 8 bytes"));
  EXPECT_TRUE(mentions(check({.depth = 33}), "load does not run ahead of its loop: a copy moves 4, 8 or 16 bytes"));
  EXPECT_TRUE(mentions(check({.aligned = false}), "load does not run ahead of its loop"));
}

TEST(Dot, AStoreInTheLoopKeepsLoadsBack) {
  std::string text = Product{.type = "f32"}.text();
  std::string promise = " attributes {tile.no_overlap}";
  text.erase(text.find(promise), promise.size());
  size_t yield = text.find("    scf.yield");
  text.insert(yield, "    tile.store %x, %a[%zero, %k] : tensor<32x32xf32>, !tile.view<2, f32>\n");
  HostMatrix a("f32", 32, 64), b("f32", 64, 32), c("f32", 32, 32);
  TileRun run = runTile(text, {&a, &b, &c}, {});
  EXPECT_EQ(run.findings, "");
  EXPECT_TRUE(mentions(run, "load does not run ahead of its loop: its tile is also an operand of tile.store"))
      << run.allRemarks();
  EXPECT_TRUE(mentions(run, "load does not run ahead of its loop: the loop writes memory that may be the same"))
      << run.allRemarks();
}

/// o += (q x^T) x over blocks of rows of x: x is read by two dots, along both dimensions, q is the same in every
/// iteration, and what is between the dots stays in registers.
std::string projection(const std::string &type, int64_t rows, int64_t block, int64_t width) {
  auto tensor = [&](int64_t r, int64_t c, const std::string &e) {
    return "tensor<" + std::to_string(r) + "x" + std::to_string(c) + "x" + e + ">";
  };
  std::string view = "!tile.view<3, " + type + ">", q = tensor(rows, width, type), x = tensor(block, width, type);
  std::string xt = tensor(width, block, type), s = tensor(rows, block, "f32"), p = tensor(rows, block, type);
  auto withUnit = [](std::string tile) { return tile.insert(std::string("tensor<").size(), "1x"); };
  std::string o = tensor(rows, width, "f32"), x3 = withUnit(x), q3 = withUnit(q);
  return "func.func @projection(%q: " + view + " FACTS0, %x: " + view + " FACTS1, %o: !tile.view<2, f32> FACTS2) {\n"
         "  %zero = arith.constant 0 : index\n  %one = arith.constant 1 : index\n"
         "  %step = arith.constant " + std::to_string(block) + " : index\n"
         "  %program = tile.grid %one\n"
         "  %size = tile.size %x, 1 : " + view + "\n"
         "  %qt = tile.load %q[%zero, %zero, %zero] : " + view + " -> " + q3 + "\n"
         "  %q2 = tile.reshape %qt : " + q3 + " -> " + q + "\n"
         "  %none = arith.constant dense<0.0> : " + s + "\n  %init = arith.constant dense<0.0> : " + o + "\n"
         "  %sum = scf.for %k = %zero to %size step %step iter_args(%old = %init) -> (" + o + ") {\n"
         "    %x3 = tile.load %x[%zero, %k, %zero] : " + view + " -> " + x3 + "\n"
         "    %x2 = tile.reshape %x3 : " + x3 + " -> " + x + "\n"
         "    %xt = tile.transpose %x2 [1, 0] : " + x + " -> " + xt + "\n"
         "    %s = tile.dot %q2, %xt, %none : " + q + ", " + xt + ", " + s + "\n"
         "    %p = tile.cast %s : " + s + " -> " + p + "\n"
         "    %new = tile.dot %p, %x2, %old : " + p + ", " + x + ", " + o + "\n"
         "    scf.yield %new : " + o + "\n  }\n"
         "  tile.store %sum, %o[%zero, %zero] : " + o + ", !tile.view<2, f32>\n  return\n}\n";
}

TEST(Dot, ChainedDotsShareAnOperand) {
  struct Case {
    const char *type;
    int64_t rows, block, width, warps;
    bool registers;
  };
  for (const Case &c : {Case{"bf16", 64, 32, 32, 4, true}, Case{"f16", 16, 24, 40, 1, true},
                        Case{"bf16", 32, 32, 64, 4, false}, Case{"f32", 32, 32, 32, 4, false}}) {
    SCOPED_TRACE(std::string(c.type) + " " + std::to_string(c.rows));
    int64_t size = 3 * c.block + 8;
    HostMatrix q(c.type, c.rows, c.width), x(c.type, size, c.width), o("f32", c.rows, c.width);
    q.leadingOne = x.leadingOne = true;
    q.fill([](int64_t i, int64_t j) { return (i + j * j) % 3 - 1; });
    x.fill([](int64_t i, int64_t j) { return (i * j + i) % 3 - 1; });
    TileRun run = runTile(projection(c.type, c.rows, c.block, c.width), {&q, &x, &o}, {.warps = c.warps});
    EXPECT_EQ(run.findings, "");
    EXPECT_EQ(mentions(run, "takes operand A from registers"), c.registers) << run.allRemarks();
    EXPECT_TRUE(mentions(run, "load runs 2 iterations ahead")) << run.allRemarks();
    for (int64_t i = 0; i < c.rows; ++i)
      for (int64_t j = 0; j < c.width; ++j) {
        double sum = 0;
        for (int64_t r = 0; r < size; ++r) {
          double s = 0;
          for (int64_t k = 0; k < c.width; ++k)
            s += q.at(i, k) * x.at(r, k);
          sum += s * x.at(r, j);
        }
        ASSERT_EQ(o.at(i, j), sum) << i << ", " << j;
      }
  }
}

/// Blocks of 32 rows of c, one after the other: the ring of the inner loop is filled anew while slow warps may still
/// read the last tiles. Even steps only, by a branch around the dot.
TEST(Dot, LoopsInLoopsAndBranches) {
  std::string text = R"(
func.func @nested(%a: !tile.view<2, bf16> FACTS0, %b: !tile.view<2, bf16> FACTS1, %c: !tile.view<2, f32> FACTS2) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %step = arith.constant 32 : index
  %two = arith.constant 64 : index
  %program = tile.grid %one
  %rows = tile.size %a, 0 : !tile.view<2, bf16>
  %depth = tile.size %a, 1 : !tile.view<2, bf16>
  %init = arith.constant dense<0.0> : tensor<32x32xf32>
  scf.for %i = %zero to %rows step %step {
    %sum = scf.for %k = %zero to %depth step %step iter_args(%old = %init) -> (tensor<32x32xf32>) {
      %x = tile.load %a[%i, %k] : !tile.view<2, bf16> -> tensor<32x32xbf16>
      %y = tile.load %b[%k, %zero] : !tile.view<2, bf16> -> tensor<32x32xbf16>
      %rest = tile.rem %k, %two : index
      %even = arith.cmpi eq, %rest, %zero : index
      %new = scf.if %even -> (tensor<32x32xf32>) {
        %dot = tile.dot %x, %y, %old : tensor<32x32xbf16>, tensor<32x32xbf16>, tensor<32x32xf32>
        scf.yield %dot : tensor<32x32xf32>
      } else {
        scf.yield %old : tensor<32x32xf32>
      }
      scf.yield %new : tensor<32x32xf32>
    }
    tile.store %sum, %c[%i, %zero] : tensor<32x32xf32>, !tile.view<2, f32>
  }
  return
}
)";
  for (int64_t depth : {0, 32, 160})
    for (int64_t stages : {1, 3})
      for (uint64_t seed : {0, 5}) {
        SCOPED_TRACE(std::to_string(depth) + ", " + std::to_string(stages) + " stages");
        HostMatrix a("bf16", 96, depth), b("bf16", depth, 32), c("f32", 96, 32);
        a.fill([](int64_t i, int64_t k) { return (i * 3 + k * k) % 7 - 3; });
        b.fill([](int64_t k, int64_t j) { return (k + j * 5) % 7 - 3; });
        TileRun run = runTile(text, {&a, &b, &c}, {.stages = stages, .seed = seed});
        EXPECT_EQ(run.findings, "");
        EXPECT_EQ(mentions(run, "load runs 2 iterations ahead"), stages > 1) << run.allRemarks();
        for (int64_t i = 0; i < 96; ++i)
          for (int64_t j = 0; j < 32; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < depth; ++k)
              sum += k / 32 % 2 ? 0 : a.at(i, k) * b.at(k, j);
            ASSERT_EQ(c.at(i, j), sum) << i << ", " << j;
          }
      }
}

//===--- Shared memory --------------------------------------------------------------------------------------------===//

TEST(OperandTile, PlaceAndLayoutAgree) {
  for (int64_t columns : {16, 32, 64, 128}) {
    nvidia::OperandTile tile = nvidia::planOperandTile(32, columns, 2, 16, 16, nvidia::OperandUse::Matrices);
    nvidia::LinearLayout layout = tile.layout();
    for (int64_t row = 0; row < 32; ++row)
      for (int64_t column = 0; column < columns; ++column)
        EXPECT_EQ(layout.apply({.offset = tile.place(row, column) / 2}), (nvidia::Coords{row, column}));
  }
}

TEST(OperandTile, FragmentsAndRowsAreFreeOfBankConflicts) {
  using namespace nvidia;
  for (int64_t bytes : {1, 2, 4})
    for (int64_t columns : {32 / bytes, 64 / bytes, 128 / bytes, 256 / bytes}) {
      SCOPED_TRACE(std::to_string(bytes) + " bytes, " + std::to_string(columns) + " columns");
      int64_t depth = 32 / bytes, rows = 64;
      OperandTile tile = planOperandTile(rows, columns, bytes, 8, depth, OperandUse::Matrices);
      LinearLayout shared = tile.layout();
      auto expectFree = [&](const LinearLayout &registers, bool transposed) {
        std::optional<MatrixAccess> access = planMatrixAccess(registers, shared, bytes * 8, transposed);
        ASSERT_TRUE(access);
        Wavefronts cost = countWavefronts(*access, bytes * 8);
        EXPECT_EQ(cost.actual, cost.ideal);
      };
      auto fill = [&](LinearLayout layout) { // to the tile's extents
        layout = layout.repeat(Unit::Register, 1, columns / layout.extent(1));
        return layout.repeat(Unit::Register, 0, rows / layout.extent(0));
      };
      expectFree(fill(mmaOperandA(bytes * 8)), false);
      expectFree(fill(mmaOperandB(bytes * 8).transpose({1, 0})), false);
      if (bytes == 2) {
        expectFree(fill(mmaOperandA(16).transpose({1, 0})), true);
        expectFree(fill(mmaOperandB(16)), true);
      }
      Wavefronts stores = countWavefronts(
          planSharedAccess(blocked({rows, columns}, {1, 0}, 16 / bytes, 32, 4), shared, bytes), bytes);
      EXPECT_EQ(stores.actual, stores.ideal);
    }
}

TEST(Dot, LargeTilesDoNotSpill) {
  if (!nvidia::hasAssembler())
    GTEST_SKIP() << "there is no ptxas";
  for (bool transposedB : {false, true})
    for (auto [m, n, k] : {std::array<int64_t, 3>{128, 128, 32}, {128, 128, 64}}) {
      Product p{.m = m, .n = n, .k = k, .depth = 256, .transposedB = transposedB, .warps = 8};
      HostMatrix a("bf16", m, 256), b("bf16", 256, n, transposedB), c("f32", m, n);
      TileCompiler compiler(p.text(), {&a, &b, &c}, {.warps = 8});
      std::string ptx = nvidia::emitPtx(*compiler.program.module, {}).text;
      auto report = nvidia::assemble(ptx, "sm_90a");
      ASSERT_TRUE(report);
      EXPECT_EQ(report->spillStoreBytes, 0);
      EXPECT_LE(report->registers, 168);
      RecordProperty("registers", report->registers);
    }
}

} // namespace
} // namespace tenon::test
