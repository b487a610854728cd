// SPDX-License-Identifier: Apache-2.0
//
// What is recorded of real launches: on the CPU, and on a CUDA device of the tests' own.
#include "ProfileSupport.h"

#include <nlohmann/json.hpp>

#include <thread>

#include <unistd.h>

using namespace tenon;
using namespace tenon::test;

namespace {

bool nvtxWasFound = false;

//===--- The CPU --------------------------------------------------------------------------------------------------===//

TEST_F(ProfileTest, OffNothingIsRecorded) {
  ASSERT_FALSE(profile::enabled());
  Tensor x = Tensor::zeros(DType::f32, {64}), y = Tensor::zeros(DType::f32, {64});
  launch(twice, {x, y});
  Profile profile;
  EXPECT_TRUE(profile::enabled());
  EXPECT_TRUE(profile.stop().events.empty()) << "what was before does not count";
  EXPECT_FALSE(profile::enabled());
}

TEST_F(ProfileTest, ALaunchAndItsRun) {
  Tensor x = Tensor::zeros(DType::f32, {1000}), y = Tensor::zeros(DType::f32, {1000});
  launch(twice, {x, y});
  Profile profile;
  launch(twice, {x, y});
  launch(twice, {x, y});
  const ProfileData &data = profile.stop();
  auto launches = eventsOf(data, Kind::launch), runs = eventsOf(data, Kind::run);
  ASSERT_EQ(launches.size(), 2u);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_TRUE(eventsOf(data, Kind::compile).empty());
  for (int i : {0, 1}) {
    EXPECT_EQ(launches[i]->name, "twice");
    EXPECT_EQ(runs[i]->name, "twice");
    EXPECT_EQ(launches[i]->launch, runs[i]->launch);
    EXPECT_LE(launches[i]->begin, runs[i]->begin);
    EXPECT_LE(runs[i]->begin, runs[i]->end);
    EXPECT_LE(runs[i]->end, launches[i]->end);
    EXPECT_EQ(launches[i]->bytes, 8000u);
    ASSERT_EQ(launches[i]->memory.size(), 2u);
    EXPECT_FALSE(launches[i]->memory[0].written);
    EXPECT_TRUE(launches[i]->memory[1].written);
    EXPECT_EQ(launches[i]->memory[1].address, reinterpret_cast<uintptr_t>(y.data()));
  }
  EXPECT_NE(launches[0]->launch, launches[1]->launch);
  ProfileSummary summary = summarize(data);
  ASSERT_EQ(summary.kernels.size(), 1u);
  EXPECT_EQ(summary.kernels[0].calls, 2u);
  EXPECT_EQ(summary.kernels[0].place, "cpu");
  EXPECT_EQ(summary.kernels[0].bytes, 16000u);
  EXPECT_GT(summary.kernels[0].self, 0);
  EXPECT_GE(summary.kernels[0].total + 1e-9, summary.kernels[0].self + summary.kernels[0].host);
}

TEST_F(ProfileTest, CompilationsAndWhy) {
  Kernel kernel("scaled(x, y, width=64)", [](View x, View y, Param width) {
    Index i = grid(cdiv(x.size(0), width));
    y.store({i * width}, x.load({i * width}, {width}) * 3);
  });
  Tensor x = Tensor::zeros(DType::f32, {64}), y = Tensor::zeros(DType::f32, {64});
  LaunchOptions options;
  options.compile.useDiskCache = false;
  Profile profile;
  launch(kernel, {x, y}, options);
  options.params["width"] = 32;
  launch(kernel, {x, y}, options);
  launch(kernel, {Tensor::zeros(DType::f64, {64}), Tensor::zeros(DType::f64, {64})}, options);
  const ProfileData &data = profile.stop();
  auto compilations = eventsOf(data, Kind::compile);
  ASSERT_EQ(compilations.size(), 3u);
  EXPECT_EQ(compilations[0]->detail, "the first launch of this kernel; compiled");
  EXPECT_EQ(compilations[1]->detail, "parameter 'width' has another value; compiled");
  EXPECT_EQ(compilations[2]->detail, "argument 'x' has another type, rank, stride or alignment; compiled");
  bool traced = false, optimized = false;
  for (const ProfileEvent *phase : eventsOf(data, Kind::phase)) {
    traced |= phase->name == "trace";
    optimized |= phase->name == "optimize";
  }
  EXPECT_TRUE(traced && optimized);
  ProfileSummary summary = summarize(data);
  EXPECT_EQ(summary.compilations, 3u);
  ASSERT_EQ(summary.kernels.size(), 1u);
  const ProfileSummary::Kernel &row = summary.kernels[0];
  EXPECT_LE(row.host + summary.compiling, row.total + 1e-9) << "compiling is not the launches' overhead";
}

TEST_F(ProfileTest, ALaunchThatFailsIsNoRun) {
  Kernel picky("picky(x, width=64)", [](View x, Param width) {
    require(x.size(0) == 64, "x must have 64 elements");
    Index i = grid(1);
    x.store({i * width}, x.load({i * width}, {width}) + 1);
  });
  Profile profile;
  EXPECT_THROW(launch(picky, {Tensor::zeros(DType::f32, {65})}), Error);
  launch(picky, {Tensor::zeros(DType::f32, {64})});
  const ProfileData &data = profile.stop();
  auto launches = eventsOf(data, Kind::launch);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0]->detail, "failed");
  EXPECT_EQ(launches[1]->detail, "");
  EXPECT_EQ(eventsOf(data, Kind::run).size(), 1u);
  ProfileSummary summary = summarize(data);
  ASSERT_EQ(summary.kernels.size(), 1u);
  EXPECT_EQ(summary.kernels[0].calls, 1u) << "what was refused is no call";
  EXPECT_EQ(summary.kernels[0].bytes, 512);
}

TEST_F(ProfileTest, OnAStreamTheRunIsTheStreams) {
  Tensor x = Tensor::zeros(DType::f32, {64}), y = Tensor::zeros(DType::f32, {64});
  launch(twice, {x, y});
  Stream stream;
  LaunchOptions options;
  options.stream = &stream;
  Profile profile;
  launch(twice, {x, y}, options);
  stream.synchronize();
  const ProfileData &data = profile.stop();
  auto launches = eventsOf(data, Kind::launch), runs = eventsOf(data, Kind::run),
       waits = eventsOf(data, Kind::synchronize);
  ASSERT_EQ(launches.size(), 1u);
  ASSERT_EQ(runs.size(), 1u);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(runs[0]->launch, launches[0]->launch);
  EXPECT_NE(runs[0]->thread, launches[0]->thread);
  EXPECT_FALSE(waits[0]->implicit) << "it was asked for";
  EXPECT_FALSE(findingOf(summarize(data), "implicit-synchronisation"));
}

TEST_F(ProfileTest, RangesAreOps) {
  Tensor x = Tensor::zeros(DType::f32, {64}), y = Tensor::zeros(DType::f32, {64});
  launch(twice, {x, y});
  Profile profile;
  for (int i = 0; i < 3; ++i) {
    ProfileRange outer("layer");
    {
      ProfileRange inner("attention");
      launch(twice, {x, y});
    }
    launch(twice, {x, y});
  }
  ProfileSummary summary = summarize(profile.stop());
  ASSERT_EQ(summary.ops.size(), 2u);
  EXPECT_EQ(summary.ops[0].path, "layer");
  EXPECT_EQ(summary.ops[1].path, "layer / attention");
  EXPECT_EQ(summary.ops[1].depth, 1);
  EXPECT_EQ(summary.ops[0].calls, 3u);
  EXPECT_EQ(summary.ops[0].launches, 6u);
  EXPECT_EQ(summary.ops[1].launches, 3u);
  EXPECT_NEAR(summary.ops[0].self, summary.ops[0].total - summary.ops[1].total, 1e-9);
  EXPECT_LE(summary.ops[1].kernels, summary.ops[0].kernels);
  std::string stacks = collapsedStacks(profile.stop());
  EXPECT_NE(flameGraph(profile.stop()).find("<svg"), std::string::npos);
  for (size_t at = 0; at < stacks.size();) {
    size_t end = stacks.find('\n', at);
    EXPECT_TRUE(stacks.substr(at, end - at).starts_with("thread ")) << stacks;
    at = end + 1;
  }
}

TEST_F(ProfileTest, AChainThatCouldBeOneKernel) {
  Tensor x = Tensor::zeros(DType::f32, {65536}), y = Tensor::zeros(DType::f32, {65536}),
         z = Tensor::zeros(DType::f32, {65536});
  launch(twice, {x, y});
  launch(plusOne, {y, z});
  Profile profile;
  for (int i = 0; i < 5; ++i) {
    launch(twice, {x, y});
    launch(plusOne, {y, z});
  }
  ProfileSummary summary = summarize(profile.stop());
  const ProfileSummary::Finding *found = findingOf(summary, "unfused");
  ASSERT_TRUE(found);
  EXPECT_NE(found->text.find("unfused: twice, plus_one (5 times) pass their results through memory"), std::string::npos)
      << found->text;
  EXPECT_NE(found->text.find("2.5 MiB less"), std::string::npos) << found->text;
  EXPECT_EQ(found->text.find("also read later and must"), std::string::npos);
  double both = summary.kernels[0].self + summary.kernels[1].self;
  EXPECT_NEAR(found->seconds, both / 2, both * 0.01) << "half of the bytes, half of the time";
}

TEST_F(ProfileTest, MemoryReadAgainMustBeWritten) {
  Tensor x = Tensor::zeros(DType::f32, {4096}), y = Tensor::zeros(DType::f32, {4096}),
         z = Tensor::zeros(DType::f32, {4096});
  Profile profile;
  launch(twice, {x, y});
  launch(plusOne, {y, z});
  launch(plusOne, {y, z});
  ProfileSummary summary = summarize(profile.stop());
  const ProfileSummary::Finding *found = findingOf(summary, "unfused");
  ASSERT_TRUE(found);
  EXPECT_NE(found->text.find("16.0 KiB less"), std::string::npos) << found->text;
  EXPECT_NE(found->text.find("also read later and must"), std::string::npos) << found->text;
}

TEST_F(ProfileTest, AChainOfMoreAndALoop) {
  auto make = [] { return Tensor::zeros(DType::f32, {4096}); };
  Tensor a = make(), b = make(), c = make();
  Kernel minusOne("minus_one(x, y, width=64)", [](View x, View y, Param width) {
    Index i = grid(cdiv(x.size(0), width));
    y.store({i * width}, x.load({i * width}, {width}) - 1);
  });
  Profile profile;
  for (int i = 0; i < 3; ++i) { // each turn reads what the one before wrote
    launch(twice, {a, b});
    launch(plusOne, {b, c});
    launch(minusOne, {c, a});
  }
  ProfileSummary summary = summarize(profile.stop());
  size_t chains = 0;
  for (const auto &finding : summary.findings)
    chains += finding.kind == "unfused";
  EXPECT_EQ(chains, 1u);
  const ProfileSummary::Finding *found = findingOf(summary, "unfused");
  ASSERT_TRUE(found);
  EXPECT_NE(found->text.find("unfused: twice, plus_one, minus_one (3 times)"), std::string::npos) << found->text;
}

TEST_F(ProfileTest, AKernelAfterItself) {
  auto make = [] { return Tensor::zeros(DType::f32, {4096}); };
  Tensor a = make(), b = make(), c = make(), d = make();
  Profile profile;
  launch(twice, {a, b});
  launch(twice, {b, c});
  launch(twice, {c, d});
  launch(plusOne, {d, a});
  ProfileSummary summary = summarize(profile.stop());
  const ProfileSummary::Finding *found = findingOf(summary, "unfused");
  ASSERT_TRUE(found);
  EXPECT_NE(found->text.find("unfused: twice 3 times in a row, plus_one (1 time)"), std::string::npos) << found->text;
}

TEST_F(ProfileTest, SeveralThreadsAndProfilesAtOnce) {
  Tensor warm = Tensor::zeros(DType::f32, {64});
  launch(twice, {warm, Tensor::zeros(DType::f32, {64})});
  constexpr int threads = 4, each = 700; // more than a chunk
  Profile all;
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([] {
      for (int i = 0; i < each; ++i)
        ProfileRange range(i % 2 ? "odd" : "even");
    });
  for (int i = 0; i < 50; ++i) { // readers beside the writers
    Profile part;
    part.stop();
  }
  for (std::thread &worker : workers)
    worker.join();
  const ProfileData &data = all.stop();
  EXPECT_EQ(eventsOf(data, Kind::range).size(), size_t(threads * each));
  std::map<uint32_t, int> perThread;
  for (const ProfileEvent *event : eventsOf(data, Kind::range))
    ++perThread[event->thread];
  EXPECT_EQ(perThread.size(), size_t(threads));
  for (auto [thread, count] : perThread)
    EXPECT_EQ(count, each) << thread;
}

TEST_F(ProfileTest, TheTraceIsJson) {
  Tensor x = Tensor::zeros(DType::f32, {64}), y = Tensor::zeros(DType::f32, {64});
  Profile profile;
  {
    ProfileRange range("a \"quoted\"\n\\name");
    launch(twice, {x, y});
  }
  auto trace = nlohmann::json::parse(traceJson(profile.stop()));
  EXPECT_EQ(trace["tenon_profile"]["format"], 1);
  bool found = false;
  for (const auto &event : trace["traceEvents"]) {
    EXPECT_TRUE(event.contains("ph") && event.contains("pid"));
    if (event["ph"] == "X") {
      EXPECT_GE(event["dur"].get<double>(), 0);
      found |= event["name"] == "a \"quoted\"\n\\name";
    }
  }
  EXPECT_TRUE(found);
}

//===--- A CUDA device --------------------------------------------------------------------------------------------===//

/// Streams overlap: what was launched first need not begin first. A graph's kernels are nobody's launches.
TEST_F(ProfileTest, RunsAreMatchedByTheDriversCalls) {
  Device device = Device::cuda(0);
  Stream stream(device);
  Tensor x = Tensor::zeros(DType::f32, {64}, device), y = Tensor::zeros(DType::f32, {64}, device);
  launch(twice, {x, y}, onCuda(&stream));
  Profile profile;
  launch(twice, {x, y}, onCuda(&stream));
  launch(twice, {x, y}, onCuda(&stream));
  uint64_t now = fakecupti::now();
  fakecupti::addKernel("twice", now + 500, now + 900, 7, 10, /*graphNode=*/3);
  fakecupti::addKernel("twice", now + 1000, now + 2000, 7, 12);
  fakecupti::addKernel("twice", now + 5000, now + 6000, 8, 11);
  const ProfileData &data = profile.stop();
  auto runs = eventsOf(data, Kind::run), launches = eventsOf(data, Kind::launch);
  ASSERT_EQ(runs.size(), 3u);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(runs[0]->launch, 0u);
  EXPECT_EQ(runs[0]->detail, "of a graph");
  EXPECT_EQ(runs[1]->launch, launches[1]->launch);
  EXPECT_EQ(runs[2]->launch, launches[0]->launch);
}

TEST_F(ProfileTest, DeviceRecordsBelongToTheirLaunches) {
  Device device = Device::cuda(0);
  Stream stream(device);
  Tensor x = Tensor::zeros(DType::f32, {64}, device), y = Tensor::zeros(DType::f32, {64}, device);
  launch(twice, {x, y}, onCuda(&stream));
  Profile profile;
  EXPECT_EQ(fakecupti::enabledKinds(), 3);
  launch(twice, {x, y}, onCuda(&stream));
  launch(twice, {x, y}, onCuda(&stream));
  uint64_t now = fakecupti::now();
  fakecupti::addKernel("twice", now + 1000, now + 3000, 7);
  fakecupti::addKernel("twice", now + 10000, now + 11000, 7);
  fakecupti::addKernel("of another library", now + 20000, now + 21000, 9);
  fakecupti::addCopy(1, 4096, now + 30000, now + 31000);
  fakecupti::addKernel("twice", 0, 0, 7); // the device could not tell
  const ProfileData &data = profile.stop();
  EXPECT_EQ(fakecupti::enabledKinds(), 0);
  auto runs = eventsOf(data, Kind::run), launches = eventsOf(data, Kind::launch);
  ASSERT_EQ(runs.size(), 3u);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0]->device, 0);
  EXPECT_EQ(runs[0]->launch, launches[0]->launch);
  EXPECT_EQ(runs[1]->launch, launches[1]->launch);
  EXPECT_EQ(runs[2]->launch, 0u);
  EXPECT_TRUE(runs[0]->onDevice);
  EXPECT_EQ(runs[0]->thread, 7u);
  EXPECT_EQ(runs[0]->end - runs[0]->begin, 2000);
  constexpr int64_t second = 1'000'000'000;
  EXPECT_GT(runs[0]->begin, launches[0]->begin - second) << "the clocks are one";
  EXPECT_LT(runs[0]->begin, data.nanoseconds + second);
  ProfileSummary summary = summarize(data);
  ASSERT_EQ(summary.places.size(), 1u);
  EXPECT_EQ(summary.places[0].name, "cuda:0");
  EXPECT_NEAR(summary.places[0].busy, 5e-6, 1e-9);
  EXPECT_NEAR(summary.places[0].idle, 25e-6, 1e-9);
  ASSERT_GE(summary.gaps.size(), 3u);
  EXPECT_NEAR(summary.gaps[0].seconds(), 9e-6, 1e-9);
  EXPECT_EQ(summary.kernels[0].name, "twice");
  EXPECT_NEAR(summary.kernels[0].self, 3e-6, 1e-9);
  auto trace = nlohmann::json::parse(traceJson(data));
  int arrows = 0;
  for (const auto &event : trace["traceEvents"])
    arrows += event["ph"] == "s" || event["ph"] == "f";
  EXPECT_EQ(arrows, 4);
}

/// Not inlined, so that it has a name.
[[gnu::noinline]] void launchesWithoutAStream(const Tensor &x, const Tensor &y) {
  for (int i = 0; i < 3; ++i)
    launch(twice, {x, y}, onCuda(nullptr));
}

TEST_F(ProfileTest, ImplicitSynchronisationIsTold) {
  Device device = Device::cuda(0);
  Tensor x = Tensor::zeros(DType::f32, {64}, device), y = Tensor::zeros(DType::f32, {64}, device);
  launchesWithoutAStream(x, y);
  Profile profile;
  launchesWithoutAStream(x, y);
  ProfileSummary summary = summarize(profile.stop());
  const ProfileSummary::Finding *found = findingOf(summary, "implicit-synchronisation");
  ASSERT_TRUE(found);
  EXPECT_NE(found->text.find("a launch without a stream waits for its kernel, 3 times"), std::string::npos)
      << found->text;
  EXPECT_FALSE(found->site.empty());
  EXPECT_EQ(found->site.find("tenon::launch"), std::string::npos) << "the caller, not the library: " << found->site;
}

TEST_F(ProfileTest, ACopyWaitsForWhatIsQueued) {
  Device device = Device::cuda(0);
  Stream stream(device);
  Tensor x = Tensor::zeros(DType::f32, {64}, device), y = Tensor::zeros(DType::f32, {64}, device);
  launch(twice, {x, y}, onCuda(&stream));
  stream.synchronize();
  Profile waited;
  launch(twice, {x, y}, onCuda(&stream));
  stream.synchronize();
  y.to(Device::cpu());
  EXPECT_FALSE(findingOf(summarize(waited.stop()), "implicit-synchronisation")) << "it had been waited for";
  Profile profile;
  launch(twice, {x, y}, onCuda(&stream));
  y.to(Device::cpu());
  y.to(Device::cpu());
  ProfileSummary summary = summarize(profile.stop());
  const ProfileSummary::Finding *found = findingOf(summary, "implicit-synchronisation");
  ASSERT_TRUE(found);
  EXPECT_NE(found->text.find("a copy device to host waits for the kernels queued before it, 1 time,"),
            std::string::npos)
      << found->text;
}

TEST_F(ProfileTest, SmallCopiesAreTold) {
  Device device = Device::cuda(0);
  Tensor here = Tensor::zeros(DType::f32, {16}), there = Tensor::zeros(DType::f32, {16}, device);
  Tensor large = Tensor::zeros(DType::f32, {1 << 16});
  Profile profile;
#pragma clang loop unroll(disable) // one caller
  for (int i = 0; i < 20; ++i)
    there.copyFrom(here);
  large.to(device);
  const ProfileData &data = profile.stop();
  auto copies = eventsOf(data, Kind::copy);
  ASSERT_EQ(copies.size(), 21u);
  EXPECT_EQ(copies[0]->name, "host to device");
  EXPECT_EQ(copies[0]->bytes, 64u);
  ProfileSummary summary = summarize(data);
  const ProfileSummary::Finding *found = findingOf(summary, "small-copies");
  ASSERT_TRUE(found);
  EXPECT_NE(found->text.find("20 copies host to device of 64 B each"), std::string::npos) << found->text;
}

//===--- NVTX, and what it all costs ------------------------------------------------------------------------------===//

TEST_F(ProfileTest, NvtxIsTold) {
  ASSERT_TRUE(nvtxWasFound) << "when the library was loaded";
  profile::listeners |= profile::nvtx;
  int before = fakecupti::nvtxPushes();
  {
    ProfileRange range("shown by Nsight");
    EXPECT_EQ(fakecupti::nvtxPushes(), before + 1);
    EXPECT_EQ(fakecupti::nvtxName(), "shown by Nsight");
  }
  EXPECT_EQ(fakecupti::nvtxPops(), fakecupti::nvtxPushes());
  profile::listeners &= ~profile::nvtx;
  ProfileRange unheard("not shown");
  EXPECT_EQ(fakecupti::nvtxPushes(), before + 1);
}

/// `tenon bench launch` tells how long it takes; here, that nothing gets lost and nothing is kept.
TEST_F(ProfileTest, ManyLaunches) {
  Tensor x = Tensor::zeros(DType::f32, {64}), y = Tensor::zeros(DType::f32, {64});
  Arguments arguments = {x, y};
  LaunchOptions options;
  options.threads = 1;
  constexpr size_t launches = 10000;
  Profile profile;
  for (size_t i = 0; i < launches; ++i)
    launch(twice, arguments, options);
  const ProfileData &data = profile.stop();
  EXPECT_EQ(eventsOf(data, Kind::launch).size(), launches);
  EXPECT_EQ(eventsOf(data, Kind::run).size(), launches);
  for (const std::string &note : data.notes)
    EXPECT_EQ(note.find("did not fit"), std::string::npos) << note;
  EXPECT_TRUE(Profile().stop().events.empty());
}

} // namespace

int main(int argc, char **argv) {
  if (!std::getenv("NVTX_INJECTION64_PATH")) { // looked for when the library is loaded: once more, with it
    ::setenv("TENON_CUPTI", TENON_FAKE_CUPTI, 1);
    ::setenv("NVTX_INJECTION64_PATH", TENON_FAKE_CUPTI, 1);
    ::execv("/proc/self/exe", argv);
  }
  nvtxWasFound = profile::listeners.load() == profile::nvtx;
  profile::listeners = 0;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
