// SPDX-License-Identifier: Apache-2.0
//
// Dots on warpgroups, whose operands a warp of its own brings by bulk copies: every type and orientation, loops of any
// number of iterations, tiles of sizes that the instruction just takes, and what is refused.
#include "test/unit/nvidia/Product.h"

#include "tenon/verify/CoarseSum.h"

namespace tenon::test {
namespace {

Product product(int64_t m, int64_t n, int64_t k, int64_t depth, int64_t warps = 4) {
  Product p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.depth = depth;
  p.warps = warps;
  p.transposedB = true; // K is contiguous in both
  p.stages = 0;
  return p;
}

void checkWarpgroup(const Product &p) {
  TileRun run = check(p);
  EXPECT_TRUE(mentions(run, "wgmma.m64")) << run.allRemarks();
  EXPECT_TRUE(mentions(run, "load is made by the tensor memory accelerator")) << run.allRemarks();
}

TEST(Warpgroup, OneInstructionSize) {
  for (int64_t n : {8, 16, 24, 64, 112, 128, 256}) {
    SCOPED_TRACE(n);
    checkWarpgroup(product(64, n, 64, 128));
  }
}

TEST(Warpgroup, EveryTypeAlongK) {
  for (const char *type : {"f16", "bf16", "f8E4M3FN", "f8E5M2", "i8", "f32"}) {
    SCOPED_TRACE(type);
    Product p = product(64, 32, 64, 128);
    p.type = type;
    p.acc = p.type == "i8" ? "i32" : "f32";
    p.attributes = p.type == "f32" ? "{allow_tf32}" : "";
    checkWarpgroup(p);
  }
}

/// Sums of f8 are the matrix unit's where the dot allows it, bit for bit; else they are added up in f32, and closer.
TEST(Warpgroup, FastSums) {
  for (const char *type : {"f8E4M3FN", "f8E5M2"})
    for (bool fast : {false, true}) {
      Product p = product(64, 32, 64, 448);
      p.type = type;
      p.attributes = fast ? "{fast_accum}" : "";
      checkWarpgroup(p);
      HostMatrix a(type, p.m, p.depth), b(type, p.depth, p.n, /*transposed=*/true), c("f32", p.m, p.n);
      a.fill(
          [](int64_t i, int64_t k) { return std::ldexp(1 + (i * 3 + k * 5) % 8 * 0.125, int((i + k * 7) % 9) - 4); });
      b.fill(
          [](int64_t k, int64_t j) { return std::ldexp(1 + (j * 7 + k * 3) % 8 * 0.125, int((j + k * 5) % 7) - 4); });
      TileRun run = runTile(p.text(), {&a, &b, &c}, {.warps = p.warps, .stages = p.stages});
      EXPECT_EQ(run.findings, "");
      EXPECT_NE(mentions(run, "sums of each 64 of K added up in f32"), fast) << run.allRemarks();
      double coarsest = 0, farthest = 0;
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < p.n; ++j) {
          double exact = 0;
          CoarseSum coarse;
          for (int64_t k = 0; k < p.depth; ++k) {
            exact += a.at(i, k) * b.at(k, j);
            coarse.add(static_cast<float>(a.at(i, k)), static_cast<float>(b.at(k, j)));
          }
          float wanted = coarse.value();
          if (fast)
            ASSERT_EQ(c.at(i, j), wanted) << type << ": " << i << ", " << j;
          coarsest = std::max(coarsest, std::abs(wanted - exact));
          farthest = std::max(farthest, std::abs(c.at(i, j) - exact));
        }
      EXPECT_GT(coarsest, 0);
      if (!fast)
        EXPECT_LT(farthest, coarsest / 2) << type;
    }
}

TEST(Warpgroup, EveryOrientationOf16Bits) {
  for (const char *type : {"f16", "bf16"})
    for (int orientation = 0; orientation < 4; ++orientation)
      for (int64_t n : {32, 64, 128}) {
        SCOPED_TRACE(std::string(type) + " " + std::to_string(orientation) + " " + std::to_string(n));
        Product p = product(128, n, 32, 96);
        p.type = type;
        p.transposedA = orientation & 1;
        p.transposedB = orientation & 2;
        checkWarpgroup(p);
      }
}

TEST(Warpgroup, SeveralGroups) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{128, 64}, {256, 64}, {64, 128}, {64, 256}, {128, 256}}) {
    SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n));
    checkWarpgroup(product(m, n, 64, 128, 8));
  }
}

TEST(Warpgroup, FewRowsAreColumns) {
  for (int64_t m : {8, 16, 32}) {
    SCOPED_TRACE(m);
    for (int orientation = 0; orientation < 4; ++orientation) {
      Product p = product(m, 128, 64, 128);
      p.transposedA = orientation & 1;
      p.transposedB = orientation & 2;
      checkWarpgroup(p);
    }
  }
}

TEST(Warpgroup, AnyNumberOfIterationsAndStages) {
  for (int64_t stages : {1, 2, 3, 8})
    for (int64_t depth : {0, 32, 64, 96, 320})
      for (uint64_t seed : {0, 1}) {
        SCOPED_TRACE(std::to_string(stages) + " stages, depth " + std::to_string(depth));
        Product p = product(64, 16, 32, depth);
        p.stages = stages;
        p.seed = seed;
        checkWarpgroup(p);
      }
}

TEST(Warpgroup, DepthIsNoMultipleOfTheTile) {
  Product p = product(64, 16, 64, 152);
  checkWarpgroup(p);
}

TEST(Warpgroup, EachPanelWidth) {
  for (int64_t k : {16, 32, 48, 64, 128, 192}) {
    SCOPED_TRACE(k);
    checkWarpgroup(product(64, 32, k, 2 * k));
  }
}

/// Rows of 200 and of 202 bytes, and rows of which nothing is known: the threads load them, an iteration ahead.
TEST(Warpgroup, RowsThatBeginAnywhere) {
  for (int64_t depth : {0, 1, 64, 100, 101, 200})
    for (int orientation = 0; orientation < 4; ++orientation)
      for (bool aligned : {true, false}) {
        SCOPED_TRACE(std::to_string(depth) + ", " + std::to_string(orientation));
        Product p = product(128, 32, 64, depth);
        p.transposedA = orientation & 1;
        p.transposedB = orientation & 2;
        p.aligned = aligned;
        TileRun run = check(p);
        EXPECT_TRUE(mentions(run, "wgmma.m64")) << run.allRemarks();
        bool isOdd = !aligned || (depth % 8 && (!p.transposedA || p.transposedB));
        EXPECT_EQ(mentions(run, "made by the threads one iteration ahead"), isOdd) << run.allRemarks();
      }
}

TEST(Warpgroup, Refused) {
  auto refused = [](Product p, const std::string &reason) {
    TileRun run = check(p);
    EXPECT_TRUE(mentions(run, "mma.sync")) << run.allRemarks();
    EXPECT_TRUE(mentions(run, reason)) << run.allRemarks();
  };
  Product bytes = product(64, 32, 64, 128);
  bytes.type = "i8";
  bytes.acc = "i32";
  bytes.transposedB = false;
  refused(bytes, "transposes 16-bit operands only");
  Product rows = product(80, 32, 64, 128);
  refused(rows, "no multiples of the instruction's");
  Product between = product(64, 32, 64, 128);
  between.first = -4; // 8 bytes
  EXPECT_TRUE(mentions(check(between), "made by the threads one iteration ahead"));
  between.first = -8;
  checkWarpgroup(between);
  Product older = product(64, 32, 64, 128);
  older.architecture = "sm_90";
  EXPECT_FALSE(mentions(check(older), "wgmma.m64"));
}

} // namespace
} // namespace tenon::test
