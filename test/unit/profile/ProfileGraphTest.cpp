// SPDX-License-Identifier: Apache-2.0
//
// What is recorded of captured graphs: one launch for many runs, which have the work that was counted at capture.
#include "ProfileSupport.h"

#include <nlohmann/json.hpp>

using namespace tenon;
using namespace tenon::test;

namespace {

TEST_F(ProfileTest, AGraphIsALaunch) {
  Device device = Device::cuda(0);
  Stream stream(device);
  Tensor x = Tensor::zeros(DType::f32, {64}, device), y = Tensor::zeros(DType::f32, {64}, device);
  launch(twice, {x, y}, onCuda(&stream));
  LaunchGraph graph = LaunchGraph::capture(stream, [&] { launch(twice, {x, y}, onCuda(&stream)); });
  Profile profile;
  graph.launch(stream);
  auto launches = eventsOf(profile.stop(), Kind::launch);
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0]->name, "a captured graph");
}

TEST_F(ProfileTest, GraphsThatAreGoneAreForgottenWithTheProfile) {
  Device device = Device::cuda(0);
  Stream stream(device);
  Tensor x = Tensor::zeros(DType::f32, {64}, device), y = Tensor::zeros(DType::f32, {64}, device);
  launch(twice, {x, y}, onCuda(&stream));
  auto capture = [&] { return LaunchGraph::capture(stream, [&] { launch(twice, {x, y}, onCuda(&stream)); }); };
  size_t before = profile::keptGraphs();
  LaunchGraph stays = capture();
  {
    Profile outer;
    {
      Profile inner;
      stays.launch(stream);
      for (int i = 0; i < 3; ++i)
        capture().launch(stream);
    }
    EXPECT_EQ(profile::keptGraphs(), before + 4) << "the other one may ask for them";
  }
  EXPECT_EQ(profile::keptGraphs(), before + 1);
  stays = LaunchGraph();
  EXPECT_EQ(profile::keptGraphs(), before);
}

/// Captured before anybody listened: the work of each launch comes back with the runs of its node.
TEST_F(ProfileTest, WorkOfAGraphsKernels) {
  Device device = Device::cuda(0);
  Stream stream(device);
  Tensor x = Tensor::zeros(DType::f32, {640}, device), y = Tensor::zeros(DType::f32, {640}, device);
  auto first = [](const Tensor &tensor, int64_t count) { return tensor.slice(0, 0, count); };
  auto launchBoth = [&](int64_t few, int64_t many) {
    launch(twice, {first(x, few), first(y, few)}, onCuda(&stream));
    launch(plusOne, {first(x, few), first(y, few)}, onCuda(&stream));
    launch(twice, {first(x, many), first(y, many)}, onCuda(&stream));
  };
  launchBoth(64, 256);
  LaunchGraph small = LaunchGraph::capture(stream, [&] { launchBoth(64, 256); });
  LaunchGraph large = LaunchGraph::capture(stream, [&] { launchBoth(128, 640); }); // the same names

  Profile profile;
  uint64_t start = fakecupti::now();
  {
    ProfileRange range("step");
    small.launch(stream);
    large.launch(stream);
    small.launch(stream);
  }
  uint64_t now = fakecupti::now();
  auto turn = [&](uint64_t begin, uint32_t call, uint64_t node, bool isWhole = true) {
    if (isWhole)
      fakecupti::addKernel("twice", begin, begin + 1000, 7, call, node);
    fakecupti::addKernel("twice", begin + 2000, begin + 3000, 8, call, node + 2); // beside the other stream's
    fakecupti::addKernel("plus_one", begin + 2500, begin + 3500, 7, call, node + 1);
  };
  turn(start, 20, 101, /*isWhole=*/false); // launched before the profile began: the rest of it
  turn(now + 10000, 21, 101);
  turn(now + 30000, 22, 201);
  turn(now + 50000, 23, 101);
  turn(now + 70000, 24, 301, /*isWhole=*/false); // of another library's graph, or one that nobody saw launched
  const ProfileData &data = profile.stop();

  auto launches = eventsOf(data, Kind::launch);
  ASSERT_EQ(launches.size(), 3u);
  auto runs = eventsOf(data, Kind::run); // by their beginning
  ASSERT_EQ(runs.size(), 13u);
  auto expect = [&](size_t i, uint64_t elements, uint64_t launch) {
    EXPECT_EQ(runs[i]->detail, "of a graph");
    EXPECT_EQ(runs[i]->bytes, 8 * elements) << i;
    EXPECT_EQ(runs[i]->flops, static_cast<double>(elements)) << i;
    EXPECT_EQ(runs[i]->launch, launch) << i;
  };
  expect(0, 256, runs[0]->launch); // whose launch it was is not known
  expect(1, 64, runs[1]->launch);
  uint64_t numbers[] = {launches[0]->launch, launches[1]->launch, launches[2]->launch};
  for (size_t i = 0; i < 3; ++i) {
    bool isLarge = i == 1;
    expect(2 + 3 * i, isLarge ? 128 : 64, numbers[i]);
    expect(3 + 3 * i, isLarge ? 640 : 256, numbers[i]);
    expect(4 + 3 * i, isLarge ? 128 : 64, numbers[i]);
  }
  expect(11, 0, 0);
  expect(12, 0, 0);

  ProfileSummary summary = summarize(data, {{"cuda:0", {1e9, 0}}});
  auto row = std::find_if(summary.kernels.begin(), summary.kernels.end(),
                          [](const auto &kernel) { return kernel.name == "plus_one (graph)"; });
  ASSERT_NE(row, summary.kernels.end());
  EXPECT_EQ(row->calls, 5u);
  EXPECT_NEAR(row->self, 5e-6, 1e-12);
  EXPECT_EQ(row->bytes, 8u * (3 * 64 + 128)) << "of the four that are known";
  EXPECT_NEAR(row->bytesPerSecond(), 8 * (3 * 64 + 128) / 4e-6, 1e3);
  EXPECT_NEAR(row->flopsPerSecond(), (3 * 64 + 128) / 4e-6, 1e3);
  EXPECT_NEAR(row->ofCeiling, 8 * (3 * 64 + 128) / 4e-6 / 1e9, 1e-6);
  ASSERT_EQ(summary.ops.size(), 1u);
  EXPECT_EQ(summary.ops[0].launches, 3u);
  EXPECT_NEAR(summary.ops[0].kernels, 9e-6, 1e-12) << "of three turns";
  for (const auto &kernel : summary.kernels)
    EXPECT_TRUE(kernel.isTimed) << kernel.name;

  auto trace = nlohmann::json::parse(traceJson(data));
  int work = 0, leaving = 0, arriving = 0;
  for (const auto &event : trace["traceEvents"]) {
    work += event["ph"] == "X" && event["cat"] == "run" && event["args"].contains("bytes");
    leaving += event["ph"] == "s";
    arriving += event["ph"] == "f";
  }
  EXPECT_EQ(work, 11);
  EXPECT_EQ(leaving, 3);
  EXPECT_EQ(arriving, 3) << "an arrow a launch";
}

/// What is captured runs nothing: it is no launch of the tables, and no run is taken for its.
TEST_F(ProfileTest, CapturingIsNotLaunching) {
  Device device = Device::cuda(0);
  Stream stream(device);
  Tensor x = Tensor::zeros(DType::f32, {64}, device), y = Tensor::zeros(DType::f32, {64}, device);
  launch(twice, {x, y}, onCuda(&stream));
  Profile profile;
  LaunchGraph graph = LaunchGraph::capture(stream, [&] { launch(twice, {x, y}, onCuda(&stream)); });
  launch(twice, {x, y}, onCuda(&stream));
  uint64_t now = fakecupti::now();
  fakecupti::addKernel("twice", now + 1000, now + 2000, 7, 9);
  const ProfileData &data = profile.stop();
  auto launches = eventsOf(data, Kind::launch);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0]->detail, "captured into a graph");
  auto runs = eventsOf(data, Kind::run);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0]->launch, launches[1]->launch);
  ProfileSummary summary = summarize(data);
  ASSERT_EQ(summary.kernels.size(), 1u);
  EXPECT_EQ(summary.kernels[0].calls, 1u);
  EXPECT_NEAR(summary.kernels[0].bytesPerSecond(), 512 / 1e-6, 1e3);
}

} // namespace
