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

std::string textOf(const Large &large, std::string_view phase, CompileOptions compile = {}) {
  const zoo::Entry &entry = zoo::find(large.kernel);
  Problem problem = entry.makeProblem(large.shape, bf16, 1);
  LaunchOptions options;
  options.params = problem.params;
  for (const auto &[name, value] : large.params)
    options.params[name] = value;
  options.compile = std::move(compile);
  options.compile.gpu = "sm_90a";
  options.compile.warps = 8;
  return emit(entry.kernel, problem.arguments, phase, options);
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

/// The first product writes its accumulators, whatever they held. Sums that begin at something else are added to.
TEST(RolesPtx, AccumulatorsThatBeginAtZeroAreNotWritten) {
  for (const Large &large : larges) // one for all of them
    EXPECT_EQ(count(textOf(large, "threads"), "nvidia.anything"), 1u) << large.kernel;
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
