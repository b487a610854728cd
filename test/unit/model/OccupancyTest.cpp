// SPDX-License-Identifier: Apache-2.0
//
// Values as NVIDIA's occupancy calculator gives them.
#include "tenon/model/Ceilings.h"
#include "tenon/model/Occupancy.h"

#include <gtest/gtest.h>

using namespace tenon::model;

namespace {

struct Known {
  const char *architecture;
  BlockShape block;
  int blocks;
  double fraction;
  const char *limiter;
};

TEST(Occupancy, Calculator) {
  const Known table[] = {
      {"sm_80", {256, 64, 0}, 4, 0.5, "registers"},
      {"sm_80", {256, 32, 0}, 8, 1, "registers"}, // threads, too: the first is named
      {"sm_80", {128, 255, 0}, 2, 0.125, "registers"},
      {"sm_80", {1024, 32, 0}, 2, 1, "registers"},
      {"sm_80", {128, 32, 48 * 1024}, 3, 0.1875, "shared memory"},
      {"sm_80", {32, 16, 0}, 32, 0.5, "blocks"},
      {"sm_86", {1024, 32, 0}, 1, 32.0 / 48, "threads"},
      {"sm_86", {256, 40, 0}, 6, 1, "registers"},
      {"sm_89", {64, 16, 0}, 24, 1, "threads"},
      {"sm_90", {384, 168, 0}, 1, 12.0 / 64, "registers"},
      {"sm_90a", {128, 32, 113 * 1024}, 2, 8.0 / 64, "shared memory"},
      {"sm_90a", {128, 32, 227 * 1024}, 1, 4.0 / 64, "shared memory"},
      {"sm_75", {256, 32, 0}, 4, 1, "threads"},
      {"sm_75", {1024, 64, 0}, 1, 1, "registers"},
      {"sm_70", {256, 32, 48 * 1024}, 2, 0.25, "shared memory"},
  };
  for (const Known &known : table) {
    auto limits = gpuLimits(known.architecture);
    ASSERT_TRUE(limits) << known.architecture;
    Occupancy found = occupancy(*limits, known.block);
    std::string text = std::string(known.architecture) + " " + std::to_string(known.block.threads) + " threads, " +
                       std::to_string(known.block.registersPerThread) + " registers";
    EXPECT_EQ(found.blocks, known.blocks) << text;
    EXPECT_DOUBLE_EQ(found.fraction, known.fraction) << text;
    EXPECT_EQ(found.limiter, known.limiter) << text;
  }
}

TEST(Occupancy, DoesNotFit) {
  GpuLimits limits = *gpuLimits("sm_90");
  EXPECT_EQ(occupancy(limits, {128, 32, 228 * 1024}).blocks, 0);
  EXPECT_EQ(occupancy(limits, {128, 32, 228 * 1024}).limiter, "shared memory");
  EXPECT_EQ(occupancy(limits, {128, 256, 0}).limiter, "registers");
  EXPECT_EQ(occupancy(limits, {1024, 128, 0}).blocks, 0);
  EXPECT_EQ(occupancy(limits, {2048, 16, 0}).blocks, 0);
}

TEST(Occupancy, Architectures) {
  EXPECT_FALSE(gpuLimits("sm_20"));
  EXPECT_FALSE(gpuLimits("avx512"));
  EXPECT_FALSE(gpuLimits("sm_90b"));
  EXPECT_FALSE(gpuLimits("sm_"));
  for (const char *name : {"sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a",
                           "sm_100", "sm_120"})
    EXPECT_TRUE(gpuLimits(name)) << name;
}

TEST(Occupancy, Waves) {
  Waves full = waves(264, 132, 2);
  EXPECT_DOUBLE_EQ(full.waves, 1);
  EXPECT_DOUBLE_EQ(full.efficiency, 1);
  EXPECT_DOUBLE_EQ(full.tailBlocks, 0);
  Waves oneMore = waves(265, 132, 2);
  EXPECT_DOUBLE_EQ(oneMore.rounds, 2);
  EXPECT_DOUBLE_EQ(oneMore.tailBlocks, 1);
  EXPECT_NEAR(oneMore.efficiency, 0.502, 0.001);
  EXPECT_DOUBLE_EQ(waves(0, 132, 2).rounds, 0);
  EXPECT_DOUBLE_EQ(waves(10, 132, 0).rounds, 0);
}

TEST(Ceilings, Datasheets) {
  auto h200 = gpuDatasheet("NVIDIA H200");
  ASSERT_TRUE(h200);
  EXPECT_NEAR(h200->matrixRate(Precision::bf16), 989e12, 1e12);
  EXPECT_NEAR(h200->memory().readBytesPerSecond, 4.8e12, 1e9);
  EXPECT_EQ(h200->processors, 132);
  ASSERT_TRUE(h200->limits);
  // No tensor core multiplies f32 exactly: the vector units do.
  EXPECT_DOUBLE_EQ(h200->matrixRate(Precision::f32), h200->vectorRate(Precision::f32));
  EXPECT_LT(gpuDatasheet("NVIDIA H100 PCIe")->memory().readBytesPerSecond,
            gpuDatasheet("NVIDIA H100 80GB HBM3")->memory().readBytesPerSecond);
  EXPECT_EQ(gpuDatasheet("sm_90a")->device, "NVIDIA H100 (datasheet)");
  EXPECT_DOUBLE_EQ(gpuDatasheet("Tesla V100-SXM2-16GB")->matrix[static_cast<size_t>(Precision::bf16)], 0);
  EXPECT_FALSE(gpuDatasheet("Voodoo 3"));
  EXPECT_FALSE(gpuDatasheet("sm_1"));
  for (const char *another : {"H1000", "NVIDIA L40", "NVIDIA T400 4GB", "NVIDIA RTX A1000", "GA100X"})
    EXPECT_FALSE(gpuDatasheet(another)) << another;
  EXPECT_EQ(gpuDatasheet("h200")->processors, 132);
  EXPECT_DOUBLE_EQ(gpuDatasheet("NVIDIA GH200 480GB")->memory().readBytesPerSecond, 4.9e12);
  for (const std::string &name : datasheetNames())
    EXPECT_TRUE(gpuDatasheet(name)) << name;
  for (const std::string &name : datasheetArchitectures())
    EXPECT_TRUE(gpuDatasheet(name) && gpuDatasheet(name)->limits) << name;
}

} // namespace
