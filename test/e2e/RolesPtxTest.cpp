// SPDX-License-Identifier: Apache-2.0
//
// What kernels with a warp that loads are made of, as PTX; and that the assembler, where it is at hand, neither spills nor
// makes products wait for each other.
#include "PtxSupport.h"

#include "tenon/kernels/Zoo.h"

#include <gtest/gtest.h>

using namespace tenon;
using namespace tenon::test;

namespace {

struct Large {
  const char *kernel;
  std::vector<int64_t> shape;
  Params params;
};

/// Tiles as large as registers allow: two warpgroups.
const Large larges[] = {{"matmul", {512, 512, 256}, {{"bm", 128}, {"bn", 256}, {"bk", 64}}},
                        {"matmul_bias_gelu", {512, 512, 256}, {{"bm", 128}, {"bn", 256}, {"bk", 64}}},
                        {"gated_mlp", {512, 512, 256}, {{"bm", 128}, {"bn", 128}, {"bk", 64}}},
                        {"grouped_matmul", {3, 300, 512, 256}, {{"bm", 128}, {"bn", 256}, {"bk", 64}}}};

std::string textOf(const Large &large, std::string_view phase, CompileOptions compile = {}, int warps = 8) {
  const zoo::Entry &entry = zoo::find(large.kernel);
  Problem problem = entry.makeProblem(large.shape, bf16, 1);
  LaunchOptions options;
  options.params = problem.params;
  for (const auto &[name, value] : large.params)
    options.params[name] = value;
  options.compile = std::move(compile);
  options.compile.gpu = "sm_90a";
  options.compile.warps = warps;
  return emit(entry.kernel, problem.arguments, phase, options);
}

/// 160 accumulators, if they are all that the kernel has; else 128 of each dot.
TEST(RolesPtx, MoreAccumulatorsOfOneDot) {
  const Params tile = {{"bm", 256}, {"bn", 160}, {"bk", 64}};
  CompileOptions options;
  options.stages = 3;
  for (const Large &large : {Large{"matmul", {512, 512, 256}, tile}, Large{"matmul_bias_gelu", {512, 512, 256}, tile},
                             Large{"batched_matmul", {2, 512, 512, 256}, tile}}) {
    SCOPED_TRACE(large.kernel);
    std::string text = textOf(large, "ptx", options);
    EXPECT_GT(count(text, "wgmma.mma_async"), 0u);
    expectAssembles(text);
  }
  EXPECT_EQ(count(textOf({"gated_mlp", {512, 512, 256}, tile}, "ptx", options), "wgmma.mma_async"), 0u);
}

/// 160 registers a thread, of which a plain product may have 128 for its accumulators; instructions are no wider than
/// what fits the 128 that all threads begin with.
TEST(RolesPtx, ThreeWarpgroups) {
  for (const Large &large : {Large{"matmul", {512, 512, 256}, {{"bm", 192}, {"bn", 256}, {"bk", 64}}},
                             Large{"matmul_bias_gelu", {512, 512, 256}, {{"bm", 192}, {"bn", 192}, {"bk", 64}}},
                             Large{"gated_mlp", {512, 512, 256}, {{"bm", 192}, {"bn", 96}, {"bk", 64}}},
                             Large{"gated_mlp", {512, 512, 256}, {{"bm", 192}, {"bn", 128}, {"bk", 64}}},
                             Large{"grouped_matmul", {3, 300, 512, 256}, {{"bm", 192}, {"bn", 128}, {"bk", 64}}},
                             Large{"attention", {1, 2, 2, 512, 128}, {{"bm", 192}, {"bn", 64}}}}) {
    SCOPED_TRACE(large.kernel);
    std::string text = textOf(large, "ptx", {}, 12);
    EXPECT_EQ(count(text, ".reqntid 512"), 1u);
    EXPECT_EQ(count(text, "setmaxnreg.inc.sync.aligned.u32 160"), 1u);
    EXPECT_EQ(count(text, "m64n256"), 0u);
    expectAssembles(text);
  }
}

TEST(RolesPtx, LargeTilesAssemble) {
  for (const Large &large : larges)
    for (int stages : {0, 3}) {
      SCOPED_TRACE(std::string(large.kernel) + ", " + std::to_string(stages) + " stages");
      CompileOptions options;
      options.stages = stages;
      std::string text = textOf(large, "ptx", options);
      EXPECT_GT(count(text, "wgmma.mma_async"), 0u);
      expectAssembles(text);
    }
}

/// One slot of each ring. Not where memory decides what is loaded, and not for clusters.
TEST(RolesPtx, FirstLoadsAreAskedForBeforeTheWait) {
  const std::string prefetch = "cp.async.bulk.prefetch.tensor.2d.L2.global.tile", wait = "griddepcontrol.wait";
  for (const Large &large : larges) {
    SCOPED_TRACE(large.kernel);
    std::string text = textOf(large, "ptx");
    if (large.kernel == std::string("grouped_matmul")) {
      EXPECT_EQ(count(text, prefetch), 0u);
      continue;
    }
    EXPECT_GT(count(text, prefetch), 0u);
    EXPECT_LT(text.rfind(prefetch), text.find(wait));
    CompileOptions without, cluster;
    without.without = "first-loads";
    EXPECT_EQ(count(textOf(large, "ptx", without), prefetch), 0u);
    cluster.cluster = 2;
    EXPECT_EQ(count(textOf(large, "ptx", cluster), prefetch), 0u);
  }
}

/// No arrival at a cluster's barrier releases writes, which is a fence of the whole device: blocks tell each other of
/// their barriers at the beginning, and at the end the one that loads waits until all are done with its slots.
TEST(RolesPtx, NoFenceOfTheDeviceInClusters) {
  for (Large large : larges) {
    if (large.kernel == std::string("grouped_matmul"))
      large.params["pair"] = 2; // else it shares nothing
    SCOPED_TRACE(large.kernel);
    CompileOptions cluster;
    cluster.cluster = 2;
    std::string text = textOf(large, "ptx", cluster);
    EXPECT_GT(count(text, "multicast::cluster"), 0u);
    EXPECT_EQ(count(text, "barrier.cluster.arrive.release"), 0u);
    EXPECT_EQ(count(text, "barrier.cluster.arrive.relaxed"), 1u);
    EXPECT_EQ(count(text, "barrier.cluster.wait"), 1u);
    EXPECT_LT(text.find("griddepcontrol.wait"), text.find("barrier.cluster.wait"));
  }
}

/// Nor does such an arrival order what one thread has written for the others of its block: pieces of the last
/// instances.
TEST(RolesPtx, WhatOneThreadWritesForItsBlockInACluster) {
  CompileOptions cluster;
  cluster.cluster = 2;
  cluster.shareTail = true;
  std::string text = textOf({"matmul", {328, 136, 712}, {{"bm", 128}, {"bn", 64}, {"bk", 64}}}, "ptx", cluster);
  size_t written = text.find("st.shared"), barrier = text.find("barrier.sync", written), read = text.find("ld.shared");
  if (barrier == std::string::npos)
    barrier = text.find("bar.sync", written);
  EXPECT_LT(written, barrier);
  EXPECT_LT(barrier, read);
  EXPECT_LT(read, text.size());
}

/// Two blocks of one warpgroup that multiplies fit by their shared memory: registers move so that they fit, too. Not
/// where few are needed, nor where there is room for one block only.
TEST(RolesPtx, RegistersForTwoBlocks) {
  CompileOptions two, many;
  two.stages = 2;
  many.stages = 6;
  const Large attention = {"attention", {1, 2, 2, 256, 64}, {{"bm", 64}, {"bn", 96}}};
  const Large wide = {"matmul", {128, 512, 256}, {{"bm", 64}, {"bn", 128}, {"bk", 64}}};
  const Large small = {"matmul", {128, 512, 256}, {{"bm", 64}, {"bn", 64}, {"bk", 64}}};
  for (const Large &large : {attention, wide}) {
    SCOPED_TRACE(large.kernel);
    std::string text = textOf(large, "ptx", two, 4);
    EXPECT_EQ(count(text, ".minnctapersm 2"), 1u);
    EXPECT_EQ(count(text, "setmaxnreg.inc.sync.aligned.u32 216"), 1u);
    expectAssembles(text);
  }
  EXPECT_EQ(count(textOf(small, "ptx", two, 4), ".minnctapersm"), 0u);
  EXPECT_EQ(count(textOf(wide, "ptx", many, 4), ".minnctapersm"), 0u);
}

/// The first product writes its accumulators, whatever they held. Sums that begin at something else are added to.
TEST(RolesPtx, AccumulatorsThatBeginAtZeroAreNotWritten) {
  for (const Large &large : larges) // one for all of them
    EXPECT_EQ(count(textOf(large, "threads"), "nvidia.anything"), 1u) << large.kernel;
  // Nor where warpgroups take turns and registers are left: the assembler would write zeros behind the wait for the
  // turn.
  CompileOptions turns;
  turns.pingPong = true;
  const Params whole = {{"bm", 128}, {"bn", 176}, {"bk", 64}};
  for (const Large &large : {Large{"matmul", {512, 512, 256}, whole}, Large{"matmul_bias_gelu", {512, 512, 256}, whole},
                             Large{"gated_mlp", {512, 512, 256}, {{"bm", 64}, {"bn", 128}, {"bk", 64}}}}) {
    SCOPED_TRACE(large.kernel);
    EXPECT_EQ(count(textOf(large, "threads", turns), "nvidia.anything"), 1u);
    expectAssembles(textOf(large, "ptx", turns));
  }
  Kernel more("more(a, b, c)", [](View a, View b, View c) {
    promise_no_overlap();
    auto [i, j] = grid(cdiv(c.size(0), 64), cdiv(c.size(1), 64));
    Tile sum = full(f32, {64, 64}, 1.0);
    for (Index k : range(0, a.size(1), 64))
      sum = dot(a.load({i * 64, k}, {64, 64}), b.load({k, j * 64}, {64, 64}), sum);
    c.store({i * 64, j * 64}, sum);
  });
  LaunchOptions options;
  options.compile.gpu = "sm_90a";
  options.compile.warps = 4;
  Tensor a = Tensor::zeros(f16, {128, 128}), c = Tensor::zeros(f32, {128, 128});
  std::string text = emit(more, {a, a, c}, "threads", options);
  EXPECT_GT(count(text, "nvidia.wgmma"), 0u) << text;
  EXPECT_EQ(count(text, "nvidia.anything"), 0u);
}

} // namespace
