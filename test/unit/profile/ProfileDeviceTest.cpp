// SPDX-License-Identifier: Apache-2.0
//
// Profiles of a real device, through the real CUPTI; skipped where there is none. A crash inside NVIDIA's libraries shows
// where it was.
#include "tenon/profile/Cupti.h"
#include "tenon/profile/Summary.h"
#include "tenon/runtime/LaunchGraph.h"
#include "tenon/tenon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>

#include <execinfo.h>
#include <unistd.h>

using namespace tenon;

namespace {

using Kind = ProfileEvent::Kind;

Kernel twice("twice(x, y, width=256)", [](View x, View y, Param width) {
  Index i = grid(cdiv(x.size(0), width));
  y.store({i * width}, x.load({i * width}, {width}) * 2);
});

[[noreturn]] void showStack(int signal) {
  void *frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), STDERR_FILENO);
  ::_exit(128 + signal);
}

LaunchOptions onCuda(Stream &stream) {
  LaunchOptions options;
  options.target = Target::cuda;
  options.stream = &stream;
  return options;
}

class ProfileDevice : public testing::Test {
protected:
  void SetUp() override {
    std::signal(SIGSEGV, showStack);
    if (std::string reason = whyNoCuda(); !reason.empty())
      GTEST_SKIP() << reason;
    {
      Profile first;
      std::string reason = profile::Cupti::instance().reason();
      if (reason.starts_with("no libcupti"))
        GTEST_SKIP() << reason;
      ASSERT_EQ(reason, "");
    }
    device = Device::cuda(0);
    stream.emplace(device);
    x = Tensor::zeros(DType::f32, {size}, device);
    y = Tensor::zeros(DType::f32, {size}, device);
    launch(twice, {x, y}, onCuda(*stream));
    stream->synchronize();
  }

  static constexpr int64_t size = 1 << 20;
  Device device = Device::cpu();
  std::optional<Stream> stream;
  Tensor x, y;
};

std::vector<const ProfileEvent *> runsOf(const ProfileData &data) {
  std::vector<const ProfileEvent *> found;
  for (const ProfileEvent &event : data.events)
    if (event.kind == Kind::run && event.onDevice)
      found.push_back(&event);
  return found;
}

TEST_F(ProfileDevice, EveryLaunchHasItsRun) {
  constexpr size_t launches = 100;
  Profile profile;
  for (size_t i = 0; i < launches; ++i)
    launch(twice, {x, y}, onCuda(*stream));
  stream->synchronize();
  const ProfileData &data = profile.stop();
  auto runs = runsOf(data);
  ASSERT_EQ(runs.size(), launches);
  std::vector<uint64_t> numbers;
  for (const ProfileEvent *run : runs) {
    EXPECT_EQ(run->name, "twice");
    EXPECT_GT(run->launch, 0u);
    EXPECT_GT(run->end, run->begin);
    EXPECT_LE(run->end, data.nanoseconds) << "the clocks are translated";
    numbers.push_back(run->launch);
  }
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::unique(numbers.begin(), numbers.end()), numbers.end());
  for (const ProfileEvent &event : data.events)
    if (event.kind == Kind::launch)
      for (const ProfileEvent *run : runs)
        if (run->launch == event.launch)
          EXPECT_GE(run->end, event.begin) << "no run ends before its launch begins";
}

TEST_F(ProfileDevice, KernelsOfAGraph) {
  LaunchGraph graph = LaunchGraph::capture(*stream, [&] {
    for (int i = 0; i < 5; ++i)
      launch(twice, {x, y}, onCuda(*stream));
  });
  Profile profile;
  for (int i = 0; i < 3; ++i)
    graph.launch(*stream);
  stream->synchronize();
  auto runs = runsOf(profile.stop());
  ASSERT_EQ(runs.size(), 15u);
  for (const ProfileEvent *run : runs) {
    EXPECT_EQ(run->detail, "of a graph");
    EXPECT_EQ(run->launch, 0u);
  }
}

TEST_F(ProfileDevice, Cost) {
  Tensor a = Tensor::zeros(DType::f32, {256}, device), b = Tensor::zeros(DType::f32, {256}, device);
  LaunchOptions options = onCuda(*stream);
  std::vector<Argument> arguments = {a, b};
  launch(twice, arguments, options);
  auto cost = [&] {
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
      stream->synchronize();
      auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < 500; ++i)
        launch(twice, arguments, options);
      std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
      best = std::min(best, time.count() / 500);
    }
    stream->synchronize();
    return best;
  };
  cost();
  double off = cost();
  {
    Profile profile;
    double on = cost();
    size_t runs = runsOf(profile.stop()).size();
    std::printf("a launch without a profile: %.0f ns; with one: %.0f ns (%zu runs recorded)\n", off, on, runs);
    EXPECT_EQ(runs, 20u * 500u);
  }
  std::printf("after the profile: %.0f ns\n", cost());
}

} // namespace
