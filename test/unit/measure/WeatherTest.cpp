// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Bench.h"
#include "tenon/measure/Weather.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include <dlfcn.h>

using namespace tenon;

namespace {

TEST(Weather, ReadsTheProcessorsTime) {
  auto ticks = parseProcStat("cpu  100 20 30 1000 50 5 5 40 0 0\n");
  ASSERT_TRUE(ticks);
  EXPECT_DOUBLE_EQ(ticks->total, 1250);
  EXPECT_DOUBLE_EQ(ticks->steal, 40);
  EXPECT_DOUBLE_EQ(ticks->busy, 160);
  EXPECT_FALSE(parseProcStat(""));
  EXPECT_FALSE(parseProcStat("intr 1 2 3"));
  EXPECT_FALSE(parseProcStat("cpu 1 2 3"));
}

TEST(Weather, ComplainsOfWhatSpoilsFigures) {
  Weather weather;
  EXPECT_EQ(weather.complaint(), "");
  weather.stealShare = 0.09;
  EXPECT_EQ(weather.complaint(), "other machines on the host took 9% of the processors' time");
  weather.othersShare = 0.5;
  EXPECT_NE(weather.complaint().find("; other programs took 50%"), std::string::npos);
  weather = {};
  weather.gpu = {1000, 1980, 300, 700, 60, false, false, false};
  EXPECT_EQ(weather.complaint(), ""); // it is idle, not held back
  weather.gpu->tooHot = true;
  EXPECT_EQ(weather.complaint(), "the GPU ran at 1000 of 1980 MHz because of its temperature");
}

/// Of what two processors did in ten seconds.
TEST(Weather, WhatOthersTookIsTold) {
  ProcessorMoment start{100, 5000, 400, 30, 20, 7}, end = start;
  end.seconds += 10;
  end.total += 20;
  end.busy += 10; // one of the processors, by this process
  end.own += 10;
  Weather calm = weatherBetween(start, end);
  EXPECT_DOUBLE_EQ(calm.seconds, 10);
  EXPECT_EQ(calm.complaint(), "");
  end.busy += 5; // and half of the other by somebody else
  end.interruptions += 50;
  Weather busy = weatherBetween(start, end);
  EXPECT_NEAR(busy.othersShare, 0.25, 0.002);
  EXPECT_DOUBLE_EQ(busy.interruptions, 5);
  EXPECT_EQ(busy.complaint(), "other programs took 25% of the processors' time");
  end.steal += 1;
  EXPECT_EQ(weatherBetween(start, end).complaint(), "other machines on the host took 5% of the processors' time; " +
                                                        busy.complaint());
  EXPECT_EQ(weatherBetween(start, start).complaint(), "");
}

TEST(Weather, WatchesWithoutFail) {
  WeatherWatch watch;
  Weather weather = watch.read();
  EXPECT_GE(weather.seconds, 0);
  EXPECT_GE(weather.stealShare, 0);
  EXPECT_LE(weather.othersShare, 1);
  EXPECT_FALSE(weather.gpu);
  EXPECT_TRUE(toJson(weather).contains("complaint"));
}

/// Without what the machine's processors did meanwhile.
Weather ofTheGpu(Weather weather) {
  weather.stealShare = weather.othersShare = 0;
  return weather;
}

TEST(Weather, AsksTheGpu) {
  ::setenv("TENON_NVML", TENON_FAKE_NVML, 1); // before the first question
  auto gpu = gpuWeather(0);
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->smMegahertz, 1500);
  EXPECT_EQ(gpu->maxSmMegahertz, 1980);
  EXPECT_DOUBLE_EQ(gpu->watts, 699);
  EXPECT_TRUE(gpu->powerCapped);
  EXPECT_FALSE(gpu->tooHot);
  EXPECT_FALSE(gpuWeather(1));
  Weather weather = ofTheGpu(WeatherWatch(0).read());
  EXPECT_EQ(weather.complaint(), "the GPU ran at 1500 of 1980 MHz because of its power limit");
  EXPECT_EQ(toJson(weather)["gpu"]["power_capped"], true);
}

/// Clocks are lowered while kernels run and raised soon after.
TEST(Weather, WhatHeldTheGpuBackMeanwhileIsKept) {
  ::setenv("TENON_NVML", TENON_FAKE_NVML, 1);
  ASSERT_TRUE(gpuWeather(0));
  void *library = ::dlopen(TENON_FAKE_NVML, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_TRUE(library);
  auto *setClock = reinterpret_cast<void (*)(unsigned)>(::dlsym(library, "fakenvmlSetClock"));
  auto *looks = reinterpret_cast<unsigned (*)()>(::dlsym(library, "fakenvmlLooks"));
  setClock(1980);
  WeatherWatch watch(0);
  EXPECT_EQ(ofTheGpu(watch.read()).complaint(), "");
  setClock(1200);
  // Nobody reads: it looks by itself. The first look that ends now may have begun before the clock was set.
  unsigned before = looks();
  auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (looks() < before + 2 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_GE(looks(), before + 2);
  setClock(1980);
  Weather weather = ofTheGpu(watch.read());
  EXPECT_EQ(weather.gpu->smMegahertz, 1200);
  EXPECT_GT(weather.heldBackShare, 0);
  EXPECT_LT(weather.heldBackShare, 1);
  EXPECT_TRUE(weather.complaint().starts_with(
      "the GPU ran at 1200 of 1980 MHz because of its power limit, held back "))
      << weather.complaint();
  EXPECT_EQ(toJson(weather)["gpu"]["held_back_share"], weather.heldBackShare);
  setClock(1500);
}

TEST(BenchRules, Outliers) {
  std::vector<double> samples = {10, 10.1, 10.2, 10.1, 9.9, 10, 10.05, 9.95};
  EXPECT_EQ(countOutliers(samples), 0u);
  samples.push_back(40);
  samples.push_back(1);
  EXPECT_EQ(countOutliers(samples), 2u);
  EXPECT_EQ(countOutliers({1, 100}), 0u);
}

TEST(BenchRules, Drift) {
  std::vector<double> samples;
  for (int i = 0; i < 30; ++i)
    samples.push_back(i < 15 ? 1 : 1.5);
  EXPECT_DOUBLE_EQ(driftOf(samples), 1.5);
  EXPECT_DOUBLE_EQ(driftOf({1, 2, 3}), 1);
  EXPECT_DOUBLE_EQ(driftOf(std::vector<double>(30, 0.0)), 1);
}

TEST(BenchRules, TheClocksOwnTimeIsTakenOff) {
  // Looking at this clock takes 5 us, and a call 100 us.
  int64_t nanoseconds = 0;
  BenchOptions options;
  options.now = [&] {
    nanoseconds += 5000;
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(nanoseconds));
  };
  Comparison found = compare({{"a", [&] { nanoseconds += 100000; }}}, options);
  EXPECT_DOUBLE_EQ(found.timings[0].seconds.median, 100e-6);
  EXPECT_EQ(found.timings[0].outliers, 0u);
  EXPECT_DOUBLE_EQ(found.timings[0].drift, 1);
}

} // namespace
