// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/MeasuredCeilings.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace tenon;
namespace fs = std::filesystem;

namespace {

class MeasuredCeilings : public ::testing::Test {
protected:
  MeasuredCeilings() : folder(fs::temp_directory_path() / ("tenon-ceilings-" + std::to_string(::getpid()))) {
    fs::remove_all(folder);
    options.directory = folder;
    options.threads = 1;
  }
  ~MeasuredCeilings() override { fs::remove_all(folder); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto &entry : fs::directory_iterator(folder))
      all.push_back(entry.path());
    return all;
  }

  fs::path folder;
  CeilingOptions options;
};

TEST_F(MeasuredCeilings, MeasuredOnceAndKept) {
  EXPECT_FALSE(knownCpuCeilings(options));
  model::Ceilings first = cpuCeilings(options);
  EXPECT_TRUE(knownCpuCeilings(options));
  ASSERT_GE(first.levels.size(), 1u);
  EXPECT_EQ(first.memory().name, "memory");
  EXPECT_TRUE(first.measured);
  for (const auto &level : first.levels) {
    EXPECT_GT(level.readBytesPerSecond, 0) << level.name;
    EXPECT_GT(level.copyBytesPerSecond, 0) << level.name;
  }
  EXPECT_GE(first.memory().readBytesPerSecond, first.memory().copyBytesPerSecond);
  EXPECT_GT(first.vectorRate(model::Precision::f32), 0);
  EXPECT_GT(first.special, 0);
  EXPECT_GT(first.launchSeconds, 0);
  ASSERT_EQ(files().size(), 1u); // and nothing left aside

  // A number in the file that no machine has: the second answer comes from there.
  nlohmann::ordered_json json;
  std::ifstream(files()[0]) >> json;
  json["ceilings"]["special_per_s"] = 12345;
  std::ofstream(files()[0]) << json;
  EXPECT_DOUBLE_EQ(cpuCeilings(options).special, 12345);

  // Of another machine, or damaged: measured again, and the file is whole afterwards.
  json["identity"] = "another";
  std::ofstream(files()[0]) << json;
  EXPECT_NE(cpuCeilings(options).special, 12345);
  fs::path file = files()[0];
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_NE(cpuCeilings(options).special, 12345);
  std::ifstream(file) >> json;
  EXPECT_TRUE(ceilingsFromJson(json["ceilings"]));
}

TEST_F(MeasuredCeilings, WhatIsKeptIsKnown) {
  model::Ceilings ceilings;
  ceilings.levels = {{"memory", 0, 12e9, 10e9}};
  ceilings.special = 12345;
  keepCpuCeilings(ceilings, options);
  ASSERT_TRUE(knownCpuCeilings(options));
  EXPECT_DOUBLE_EQ(cpuCeilings(options).special, 12345);
  options.threads = 2;
  EXPECT_FALSE(knownCpuCeilings(options));
}

TEST_F(MeasuredCeilings, ABusyMachineIsNoticed) {
  model::Ceilings ceilings;
  ceilings.levels = {{"L1", 64e3, 400e9, 400e9}, {"L2", 1e6, 100e9, 100e9}, {"memory", 0, 110e9, 60e9}};
  EXPECT_TRUE(isPlausible(ceilings));
  ceilings.levels[1].readBytesPerSecond = 8e9;
  EXPECT_FALSE(isPlausible(ceilings));
}

TEST_F(MeasuredCeilings, ThereAndBack) {
  model::Ceilings ceilings = *model::gpuDatasheet("NVIDIA H200");
  auto back = ceilingsFromJson(toJson(ceilings));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->device, ceilings.device);
  EXPECT_EQ(back->matrix, ceilings.matrix);
  EXPECT_EQ(back->vector, ceilings.vector);
  EXPECT_EQ(back->levels.size(), ceilings.levels.size());
  ASSERT_TRUE(back->limits);
  EXPECT_EQ(back->limits->warps, 64);

  nlohmann::ordered_json json = toJson(ceilings), whole = json;
  for (const auto &[field, value] : whole.items()) {
    nlohmann::ordered_json damaged = json;
    damaged.erase(field);
    bool isYounger = field == "clusters"; // than some files that people have: those are read without it
    EXPECT_EQ(ceilingsFromJson(damaged).has_value(), isYounger) << field;
  }
  json["levels"] = nlohmann::ordered_json::array();
  EXPECT_FALSE(ceilingsFromJson(json));
  EXPECT_FALSE(ceilingsFromJson(nullptr));
}

} // namespace
