// SPDX-License-Identifier: Apache-2.0
//
// What the machine is cannot be known here; that the description hangs together can.
#include "tenon/measure/Machine.h"
#include "tenon/runtime/CpuPool.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <regex>

#include <unistd.h>

using namespace tenon;

namespace {

TEST(Machine, LooksOnce) { EXPECT_EQ(&thisMachine(), &thisMachine()); }

TEST(Machine, Versions) {
  std::regex version("[0-9]+\\.[0-9]+\\.[0-9]+.*");
  EXPECT_TRUE(std::regex_match(tenonVersion(), version)) << tenonVersion();
  EXPECT_EQ(thisMachine().tenonVersion, tenonVersion());
  EXPECT_TRUE(std::regex_match(thisMachine().llvmVersion, version)) << thisMachine().llvmVersion;
}

TEST(Machine, Processors) {
  EXPECT_FALSE(thisMachine().cpu.empty());
  EXPECT_EQ(thisMachine().processors, CpuPool::global().threads());
  EXPECT_GE(thisMachine().processors, 1);
}

TEST(Machine, Caches) {
  int level = 1;
  for (const Machine::Cache &cache : thisMachine().caches) {
    EXPECT_GE(cache.level, level) << "not nearest first";
    EXPECT_LE(cache.level, 5);
    level = std::max(level, cache.level);
    EXPECT_TRUE(cache.type == "Data" || cache.type == "Instruction" || cache.type == "Unified") << cache.type;
    EXPECT_GE(cache.bytes, 1024u); // a size in kilobytes taken for bytes would be less
    EXPECT_LE(cache.bytes, uint64_t(1) << 40);
    EXPECT_GE(cache.sharedBy, 1);
    EXPECT_LE(cache.sharedBy, 1 << 16);
  }
}

TEST(Machine, LastLevelCacheIsTheLargest) {
  Machine machine;
  EXPECT_EQ(machine.lastLevelCacheBytes(), uint64_t(32) << 20); // unknown
  machine.caches = {{1, "Data", 32 << 10, 2}, {1, "Instruction", 64 << 10, 2}};
  EXPECT_EQ(machine.lastLevelCacheBytes(), 64u << 10);
  // The last one is not always the largest: a core's share of the third level may be less than its second.
  machine.caches = {{1, "Data", 32 << 10, 2}, {2, "Unified", 2 << 20, 2}, {3, "Unified", 1 << 20, 64}};
  EXPECT_EQ(machine.lastLevelCacheBytes(), 2u << 20);
  EXPECT_GT(thisMachine().lastLevelCacheBytes(), 0u);
}

TEST(Machine, IsaLevelsAreBestFirstAndEndWithTheBaseline) {
  const std::vector<std::string> all = {"avx512", "avx2", "baseline"};
  const std::vector<std::string> &levels = thisMachine().isaLevels;
  ASSERT_LE(levels.size(), all.size());
  EXPECT_TRUE(std::equal(levels.rbegin(), levels.rend(), all.rbegin())) << "a level without the ones below it";
  EXPECT_FALSE(levels.empty());
}

TEST(Machine, IsaExtrasAreSpelledAsTheCompilerDoes) {
  for (const std::string &extra : thisMachine().isaExtras)
    EXPECT_TRUE(std::regex_match(extra, std::regex("(avx|avx512|amx)-[a-z0-9]+"))) << extra;
}

TEST(Machine, Memory) {
  EXPECT_GE(thisMachine().memoryBytes, uint64_t(64) << 20); // kilobytes taken for bytes would be less
  EXPECT_LE(thisMachine().availableBytes, thisMachine().memoryBytes);
}

TEST(Machine, GpuOrAReason) {
  const Machine::Gpu &gpu = thisMachine().gpu;
  EXPECT_NE(gpu.reason.empty(), gpu.devices.empty());
  if (!gpu.driver) {
    EXPECT_TRUE(gpu.devices.empty());
  }
  for (const std::string &device : gpu.devices)
    EXPECT_FALSE(device.empty());
  if (!gpu.ptxas.empty()) {
    EXPECT_EQ(access(gpu.ptxas.c_str(), X_OK), 0) << gpu.ptxas;
  }
}

TEST(Machine, KernelCacheOrAReason) {
  const Machine::KernelCache &cache = thisMachine().kernelCache;
  EXPECT_EQ(cache.enabled, cache.reason.empty());
  if (cache.enabled) {
    EXPECT_TRUE(cache.directory.starts_with('/')) << cache.directory;
  } else {
    EXPECT_EQ(cache.entries, 0u);
  }
  if (cache.entries == 0) {
    EXPECT_EQ(cache.bytes, 0u);
  }
}

TEST(Machine, TextsCanBeWrittenAsJson) {
  const Machine &machine = thisMachine();
  std::vector<std::string> texts = {machine.tenonVersion, machine.llvmVersion, machine.cpu, machine.gpu.reason,
                                    machine.gpu.ptxas, machine.kernelCache.directory, machine.kernelCache.reason};
  for (const auto *list : {&machine.isaLevels, &machine.isaExtras, &machine.gpu.devices})
    texts.insert(texts.end(), list->begin(), list->end());
  for (const Machine::Cache &cache : machine.caches)
    texts.push_back(cache.type);
  for (const std::string &text : texts) {
    EXPECT_EQ(nlohmann::json::parse(nlohmann::json(text).dump()), text); // dump() throws unless it is UTF-8
    EXPECT_TRUE(std::ranges::none_of(text, [](unsigned char c) { return c < ' '; })) << "control character: " << text;
  }
}

} // namespace
