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
#include <csignal>
#include <map>

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

/// One stream, so that the runs come in the order of capture, whatever the numbers of their nodes.
TEST_F(ProfileDevice, KernelsOfAGraph) {
  const std::vector<int64_t> sizes = {size, 256, size / 2, 1024, 512};
  LaunchGraph graph = LaunchGraph::capture(*stream, [&] {
    for (int64_t count : sizes)
      launch(twice, {x.slice(0, 0, count), y.slice(0, 0, count)}, onCuda(*stream));
  });
  Profile profile;
  for (int i = 0; i < 3; ++i)
    graph.launch(*stream);
  stream->synchronize();
  const ProfileData &data = profile.stop();
  auto runs = runsOf(data);
  ASSERT_EQ(runs.size(), 3 * sizes.size());
  std::vector<uint64_t> numbers;
  for (const ProfileEvent &event : data.events)
    if (event.kind == Kind::launch)
      numbers.push_back(event.launch);
  ASSERT_EQ(numbers.size(), 3u);
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i]->detail, "of a graph");
    EXPECT_EQ(runs[i]->launch, numbers[i / sizes.size()]) << i;
    EXPECT_EQ(runs[i]->bytes, 8 * static_cast<uint64_t>(sizes[i % sizes.size()])) << i;
  }
  ProfileSummary summary = summarize(data);
  ASSERT_EQ(summary.kernels.size(), 2u) << "the graph, and its kernels";
  for (const ProfileSummary::Kernel &kernel : summary.kernels)
    if (kernel.name == "twice (graph)")
      EXPECT_GT(kernel.bytesPerSecond(), 0);
}

/// Branches of a graph: which run is which is told by the nodes' numbers alone.
TEST_F(ProfileDevice, BranchesOfAGraph) {
  Stream other(device);
  Kernel half("half(x, y, width=256)", [](View x, View y, Param width) {
    Index i = grid(cdiv(x.size(0), width));
    y.store({i * width}, x.load({i * width}, {width}) * 0.5);
  });
  Tensor z = Tensor::zeros(DType::f32, {size}, device);
  launch(half, {x, z}, onCuda(*stream));
  LaunchGraph graph = LaunchGraph::capture(*stream, [&] {
    Event fork, join;
    launch(twice, {x.slice(0, 0, 512), y.slice(0, 0, 512)}, onCuda(*stream));
    stream->record(fork);
    other.wait(fork);
    launch(half, {x, z}, onCuda(other));
    launch(half, {x.slice(0, 0, 256), z.slice(0, 0, 256)}, onCuda(other));
    launch(twice, {x, y}, onCuda(*stream));
    other.record(join);
    stream->wait(join);
    launch(twice, {x.slice(0, 0, 1024), y.slice(0, 0, 1024)}, onCuda(*stream));
  });
  Profile profile;
  graph.launch(*stream);
  graph.launch(*stream);
  stream->synchronize();
  std::map<std::string, std::vector<uint64_t>> bytes;
  for (const ProfileEvent *run : runsOf(profile.stop()))
    bytes[run->name].push_back(run->bytes);
  // Of each name the launches follow each other.
  std::vector<uint64_t> twices = {8 * 512, 8 * size, 8 * 1024}, halves = {8 * size, 8 * 256};
  for (const auto &[name, wanted] : {std::pair("twice", twices), std::pair("half", halves)}) {
    std::vector<uint64_t> both = wanted;
    both.insert(both.end(), wanted.begin(), wanted.end());
    EXPECT_EQ(bytes[name], both) << name;
  }
}

} // namespace
