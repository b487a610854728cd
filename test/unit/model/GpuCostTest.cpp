// SPDX-License-Identifier: Apache-2.0
//
// The formula of GpuCost.h: not its numbers, but what must make a launch faster or slower.
#include "tenon/model/GpuCost.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace tenon::model;

namespace {

const Ceilings &h200() {
  static const Ceilings ceilings = *gpuDatasheet("NVIDIA H200");
  return ceilings;
}

/// A product of bf16 with tiles of bm x bn x bk.
Counts product(double m, double n, double k, int64_t bm, int64_t bn, int64_t bk, bool straddles = false,
               Precision precision = Precision::bf16) {
  Counts counts;
  auto rows = static_cast<double>(bm), columns = static_cast<double>(bn), depth = static_cast<double>(bk);
  counts.grid[0] = static_cast<int64_t>(std::ceil(m / rows));
  counts.grid[1] = static_cast<int64_t>(std::ceil(n / columns));
  counts.instances = static_cast<double>(counts.grid[0] * counts.grid[1]);
  counts.loopIterations = std::ceil(k / depth);
  counts.executed.matrix[static_cast<size_t>(precision)] =
      2 * counts.instances * rows * columns * counts.loopIterations * depth;
  counts.liveTileBytes = counts.loopTileBytes = rows * columns * 4;
  counts.loopLoads = {{rows * depth * 2, straddles}, {columns * depth * 2, straddles}};
  counts.loopLoadBytes = (rows + columns) * depth * 2;
  counts.dots = {{bm, bn, bk, precision == Precision::f8}};
  counts.views = {{"a", 0, 2, {m * k * 2, m * k * 2}, {}}, {"b", 1, 2, {n * k * 2, n * k * 2}, {}},
                  {"c", 2, 2, {}, {counts.instances * rows * columns * 2, m * n * 2}}};
  return counts;
}

double seconds(const Counts &counts, GpuShape shape) { return gpuCost(counts, h200(), shape).seconds; }

TEST(GpuCost, LargeTilesForLargeProductsAndSmallOnesForFewTiles) {
  auto large = [](int64_t bm, int64_t bn, int warps) {
    return seconds(product(4096, 4096, 4096, bm, bn, 64), {warps});
  };
  EXPECT_LT(large(128, 256, 8), large(64, 64, 4));
  EXPECT_GT(large(128, 256, 8), 137.4e9 / h200().matrixRate(Precision::bf16)) << "no faster than the datasheet";
  auto few = [](int64_t bm, int64_t bn, int warps) {
    return seconds(product(128, 8192, 8192, bm, bn, 64), {warps});
  };
  EXPECT_LT(few(64, 128, 4), few(128, 256, 8)) << "32 tiles leave most of the device idle";
}

TEST(GpuCost, SharingALoopKeepsTheDeviceBusyWhereTilesAreFew) {
  Counts few = product(128, 1024, 16384, 128, 128, 64), many = product(4096, 4096, 4096, 128, 128, 64);
  EXPECT_LT(seconds(few, {8, 1, 0, 8}), seconds(few, {8, 1, 0, 1}));
  EXPECT_GT(seconds(many, {8, 1, 0, 8}), seconds(many, {8, 1, 0, 1}));
}

TEST(GpuCost, RowsThatStraddleLinesAreLoadedTwiceAndAClusterHelps) {
  Counts whole = product(1024, 3072, 4096, 128, 192, 64), ragged = product(1024, 3072, 4096, 128, 192, 64, true);
  EXPECT_GT(seconds(ragged, {8}), 1.2 * seconds(whole, {8}));
  EXPECT_LT(seconds(ragged, {8, 2}), seconds(ragged, {8, 1}));
}

TEST(GpuCost, TilesThatCutLinesAreLoadedInMoreOfThem) {
  Counts narrow = product(4096, 14336, 4096, 128, 176, 64), large = product(4096, 14336, 4096, 256, 160, 64);
  auto slowdown = [](Counts counts, GpuShape shape, float cut) {
    double before = seconds(counts, shape);
    counts.loopLoads[1].cut = cut;
    return seconds(counts, shape) / before;
  };
  GpuShape turns{8};
  turns.pingPong = true;
  EXPECT_GT(slowdown(narrow, turns, 2.F / 3), 1.05);
  EXPECT_LT(slowdown(large, {8}, 1.F / 3), 1.01) << "which multiplies longer for what it loads";
}

TEST(GpuCost, ClustersTakeWholeRowsAndNotEveryMultiprocessor) {
  // One row of tiles, of which a cluster of two has one to work on: good where half of the device is idle anyway.
  Counts many = product(16, 8192, 8192, 16, 64, 128), few = product(16, 4096, 14336, 16, 64, 128);
  EXPECT_GT(seconds(many, {4, 2}), seconds(many, {4, 1}));
  EXPECT_LT(seconds(few, {4, 2}), seconds(few, {4, 1}));
  // 120 blocks fit in clusters of four, 128 do not.
  Counts fit = product(1024, 3000, 5000, 128, 200, 64, true), beyond = product(1024, 3072, 5000, 128, 192, 64, true);
  EXPECT_EQ(gpuCost(fit, h200(), {8, 4}).rounds, 1);
  EXPECT_EQ(gpuCost(beyond, h200(), {8, 4}).rounds, 2);
  EXPECT_EQ(gpuCost(beyond, h200(), {8, 2}).rounds, 1);
}

TEST(GpuCost, ADeviceSaysHowManyClustersItHas) {
  Counts fit = product(1000, 3000, 5000, 128, 200, 64, true); // 8 rows of 15 tiles
  EXPECT_EQ(gpuCost(fit, h200(), {8, 8}).rounds, 2) << "fifteen clusters of eight are not to be counted on";
  Ceilings large = h200(), small = h200();
  large.clusters = {66, 32, 15};
  small.clusters = {64, 28, 14};
  EXPECT_EQ(gpuCost(fit, large, {8, 8}).rounds, 1);
  EXPECT_EQ(gpuCost(fit, small, {8, 8}).rounds, 2);
  EXPECT_LE(gpuCost(fit, large, {8, 8}).seconds, gpuCost(fit, large, {8, 4}).seconds);
  EXPECT_EQ(gpuCost(fit, small, {8, 4}).rounds, 2) << "30 clusters of four";
  EXPECT_EQ(gpuCost(product(1024, 4096, 4096, 128, 256, 64), large, {8, 4}).rounds, 1) << "32 of four";
}

TEST(GpuCost, TurnsPayWhereMuchLiesAroundTheProducts) {
  auto together = [](double m, double n, double k) { return seconds(product(m, n, k, 128, 256, 64), {8}); };
  auto inTurns = [](double m, double n, double k, int64_t bn) {
    return seconds(product(m, n, k, 128, bn, 64), {8, 1, 0, 1, true});
  };
  EXPECT_LT(inTurns(8192, 8192, 512, 192), together(8192, 8192, 512));
  EXPECT_LT(inTurns(16384, 4096, 256, 192), together(16384, 4096, 256));
  EXPECT_LT(inTurns(4096, 4096, 1024, 128), inTurns(4096, 4096, 1024, 192)) << "eight rounds, or six larger ones";
  EXPECT_GT(inTurns(4096, 4096, 14336, 192), together(4096, 4096, 14336)) << "six rounds of which the last is a third";
  EXPECT_GT(inTurns(1024, 1024, 1024, 128), seconds(product(1024, 1024, 1024, 128, 128, 64), {8})) << "one round";
}

TEST(GpuCost, AClusterIsWorthNothingWhereLoadsAreNotTheBound) {
  Counts large = product(8192, 8192, 8192, 128, 256, 64), small = product(1024, 1024, 1024, 64, 128, 64);
  EXPECT_GT(seconds(large, {8, 2}), seconds(large, {8, 1}));
  EXPECT_GT(seconds(small, {4, 2}), seconds(small, {4, 1})) << "blocks that begin together begin later";
}

TEST(GpuCost, AClusterKeepsBlocksInStepThatMemoryDecidesAbout) {
  Counts known = product(8192, 8192, 2048, 128, 256, 64), left = known;
  left.isLeftToMemory = true;
  EXPECT_LT(seconds(known, {8, 1}), seconds(known, {8, 2}));
  EXPECT_GT(seconds(left, {8, 1}), seconds(left, {8, 2}));
  EXPECT_EQ(seconds(left, {8, 2}), seconds(known, {8, 2}));
}

TEST(GpuCost, WarpgroupsThatAreNotNeededMeet) {
  Counts few = product(32, 8192, 8192, 32, 64, 128);
  EXPECT_LT(seconds(few, {4}), seconds(few, {8}));
}

TEST(GpuCost, AnEpilogueInTurnsHasTwoWarpgroups) {
  // What stands behind the loop goes on beside the other one's products, whoever is alone with its tile.
  Counts plain = product(4096, 14336, 4096, 128, 128, 64), busy = plain;
  busy.executed.vector[static_cast<size_t>(Precision::f32)] = 20 * 4096.0 * 14336;
  GpuShape inTurns{8};
  inTurns.pingPong = true;
  double together = seconds(busy, {8}) - seconds(plain, {8}), turns = seconds(busy, inTurns) - seconds(plain, inTurns);
  EXPECT_LT(turns, 1.05 * together);
}

TEST(GpuCost, AnEpilogueIsNotPartOfTheLoop) {
  // The same other work: in the loop it wants registers beside the sums, and steps wait for it; behind it, it does not.
  Counts inside = product(4096, 4096, 4096, 128, 256, 64), behind = inside;
  auto f32 = static_cast<size_t>(Precision::f32);
  behind.executed.vector[f32] = inside.executed.vector[f32] = 20 * 4096.0 * 4096;
  inside.inLoops.vector[f32] = inside.executed.vector[f32];
  inside.loopTileBytes = behind.liveTileBytes = 3 * behind.loopTileBytes;
  EXPECT_LT(seconds(behind, {8}), seconds(inside, {8}));
  EXPECT_GT(seconds(behind, {8}), seconds(product(4096, 4096, 4096, 128, 256, 64), {8}));
}

TEST(GpuCost, ResultsInSlicesAndOddWidthsTakeLonger) {
  // Four slots leave no room for the whole result, three do; but the first loads are there sooner with four.
  Counts many = product(8192, 8192, 8192, 128, 256, 64), few = product(2048, 2048, 2048, 128, 256, 64);
  EXPECT_GT(seconds(many, {8, 1, 4}), seconds(many, {8, 1, 3}));
  EXPECT_LT(seconds(few, {8, 1, 4}), seconds(few, {8, 1, 3}));
  Counts even = product(6144, 6144, 4096, 128, 256, 64), odd = even;
  odd.dots = {{128, 248}};
  EXPECT_GT(seconds(odd, {8}), seconds(even, {8}));
}

TEST(GpuCost, WhatNoTensorMapDescribesIsLoadedByThreads) {
  Counts straddling = product(4096, 4096, 4096, 128, 192, 64, true), byThreads = straddling;
  for (Counts::LoopLoad &load : byThreads.loopLoads)
    load.byThreads = true;
  EXPECT_GT(seconds(byThreads, {8}), 1.3 * seconds(straddling, {8}));
}

TEST(GpuCost, SumsOfF8WantRegisters) {
  auto matrixSeconds = [](int64_t bn, Precision precision) {
    GpuCost cost = gpuCost(product(128, static_cast<double>(bn), 8192, 128, bn, 128, false, precision), h200(), {8});
    for (const GpuCost::Part &part : cost.parts)
      if (part.name == "matrix")
        return part.seconds / static_cast<double>(bn);
    return 0.0;
  };
  auto wide = [&](Precision precision) { return matrixSeconds(256, precision) / matrixSeconds(128, precision); };
  EXPECT_LT(wide(Precision::bf16), 1) << "an instruction of 256 columns reads less for each";
  EXPECT_GT(wide(Precision::f8), 1.01 * wide(Precision::bf16));
  // 96 sums fit beside as many accumulators, 112 do not; and adding them hides what odd widths cost.
  EXPECT_LT(matrixSeconds(224, Precision::bf16), matrixSeconds(192, Precision::bf16));
  EXPECT_GT(matrixSeconds(224, Precision::f8), matrixSeconds(192, Precision::f8));
  EXPECT_LT(matrixSeconds(192, Precision::f8) / matrixSeconds(128, Precision::f8),
            matrixSeconds(192, Precision::bf16) / matrixSeconds(128, Precision::bf16));
  // Sums that the matrix unit keeps need none; twice as long steps have them added up half as often.
  Counts steps = product(8192, 8192, 8192, 128, 256, 128, false, Precision::f8), fast = steps;
  fast.dots.front().addsSums = false;
  EXPECT_LT(seconds(fast, {8, 1, 3}), seconds(steps, {8, 1, 3}));
  EXPECT_LT(seconds(product(8192, 8192, 8192, 128, 256, 256, false, Precision::f8), {8, 1, 2}),
            seconds(steps, {8, 1, 3}));
}

TEST(GpuCost, TurnsPayWhereTheLoopIsShort) {
  GpuShape together{8, 1, 3}, inTurns{8};
  inTurns.pingPong = true;
  auto gain = [&](double m, double n, double k) {
    return seconds(product(m, n, k, 128, 256, 64), together) / seconds(product(m, n, k, 128, 192, 64), inTurns);
  };
  EXPECT_GT(gain(8192, 8192, 512), 1.02);
  EXPECT_GT(gain(8192, 8192, 512), gain(8192, 8192, 2048));
  EXPECT_LT(gain(4096, 4096, 4096), 1);
}

TEST(GpuCost, WarpgroupsThatCannotShareATileAreSlow) {
  // Four warpgroups over 64 rows: columns in four parts, which 192 are not and 256 are.
  Counts odd = product(4096, 4096, 4096, 64, 192, 64), even = product(4096, 4096, 4096, 64, 256, 64);
  EXPECT_GT(seconds(odd, {16}), 1.5 * seconds(even, {16}));
  EXPECT_LT(seconds(odd, {4}), 1.5 * seconds(even, {4}));
}

TEST(GpuCost, RowsOfAReductionWantSomeWarpsAndNoCluster) {
  // Another kind of kernel: rows of 3000 floats, read and written once.
  auto rows = [](double count, GpuShape shape) {
    Counts counts;
    counts.instances = 8192 / count;
    counts.liveTileBytes = count * 3008 * 4;
    double bytes = 8192.0 * 3000 * 4;
    counts.views = {{"x", 0, 4, {bytes, bytes}, {}}, {"y", 1, 4, {}, {bytes, bytes}}};
    counts.executed.vector[static_cast<size_t>(Precision::f32)] = 5 * 8192.0 * 3008;
    counts.executed.special[static_cast<size_t>(Precision::f32)] = 8192.0 * 3008;
    return seconds(counts, shape);
  };
  EXPECT_LT(rows(1, {4}), rows(1, {32}));
  EXPECT_LT(rows(1, {4}), rows(1, {4, 2}));
  EXPECT_LT(rows(1, {4}), rows(64, {32})) << "one block on a multiprocessor has nobody to fill its gaps";
  GpuCost cost = gpuCost(Counts(), h200(), {4});
  EXPECT_EQ(cost.seconds, h200().launchSeconds) << "nothing to do takes a launch";
}

} // namespace
