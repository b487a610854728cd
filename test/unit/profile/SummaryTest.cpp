// SPDX-License-Identifier: Apache-2.0
//
// What a profile says in words, from profiles made up for the purpose.
#include "tenon/profile/Summary.h"
#include "tenon/profile/CallSite.h"
#include "tenon/profile/Cupti.h"
#include "tenon/profile/PerfCounters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

using namespace tenon;

namespace {

using Kind = ProfileEvent::Kind;

/// Times in microseconds.
struct Made {
  ProfileData data;
  uint64_t number = 0;

  ProfileEvent &add(Kind kind, const std::string &name, double begin, double end, int device = -1) {
    ProfileEvent event;
    event.kind = kind;
    event.name = name;
    event.begin = static_cast<int64_t>(begin * 1000);
    event.end = static_cast<int64_t>(end * 1000);
    event.device = device;
    event.thread = 1;
    data.nanoseconds = std::max(data.nanoseconds, event.end);
    data.events.push_back(event);
    return data.events.back();
  }
  /// A launch on a device and its run there.
  void launch(double begin, double end, double runBegin, double runEnd) {
    add(Kind::launch, "k", begin, end, 0).launch = ++number;
    ProfileEvent &run = add(Kind::run, "k", runBegin, runEnd, 0);
    run.launch = number;
    run.onDevice = true;
  }
  ProfileSummary summary() {
    std::sort(data.events.begin(), data.events.end(),
              [](const auto &a, const auto &b) { return std::pair(a.begin, -a.end) < std::pair(b.begin, -b.end); });
    return summarize(data);
  }
};

std::string textOf(const ProfileSummary &summary, const std::string &kind) {
  for (const auto &finding : summary.findings)
    if (finding.kind == kind)
      return finding.text;
  return "";
}

/// Kernels that begin before the one ahead of them has ended wait for it: together they take no longer than the stream.
TEST(Summary, KernelsOfAStreamThatOverlap) {
  Made made;
  made.launch(0, 1, 10, 20);
  made.launch(1, 2, 12, 26);
  made.launch(2, 3, 24, 29);
  ProfileEvent &other = made.add(Kind::run, "other", 12, 22, 0);
  other.onDevice = true;
  other.thread = 2;
  ProfileSummary summary = made.summary();
  ASSERT_EQ(summary.kernels.size(), 2u);
  EXPECT_EQ(summary.kernels[0].name, "k");
  EXPECT_NEAR(summary.kernels[0].self, 19e-6, 1e-12);
  EXPECT_NEAR(summary.kernels[0].fastest, 3e-6, 1e-12);
  EXPECT_NEAR(summary.kernels[1].self, 10e-6, 1e-12) << "another stream";
}

/// A graph's kernels are not mixed with those of launches: their work may not be known.
TEST(Summary, KernelsOfAGraphHaveTheirOwnRow) {
  Made made;
  made.launch(0, 1, 10, 20);
  made.data.events[0].bytes = 1000;
  for (int i = 0; i < 3; ++i) {
    ProfileEvent &run = made.add(Kind::run, "k", 30 + 10 * i, 40 + 10 * i, 0);
    run.onDevice = true;
    run.detail = "of a graph";
  }
  ProfileSummary summary = made.summary();
  ASSERT_EQ(summary.kernels.size(), 2u);
  EXPECT_EQ(summary.kernels[0].name, "k (graph)");
  EXPECT_EQ(summary.kernels[0].calls, 3u);
  EXPECT_EQ(summary.kernels[1].name, "k");
  EXPECT_NEAR(summary.kernels[1].bytesPerSecond(), 1e8, 1);
}

TEST(Summary, LaunchBoundOnADevice) {
  Made made; // every 10 us a launch that takes 9.8 us of the host, for 0.2 us of work
  for (int i = 0; i < 100; ++i)
    made.launch(10 * i, 10 * i + 9.8, 10 * i + 9.8, 10 * i + 10);
  std::string text = textOf(made.summary(), "launch-bound");
  EXPECT_NE(
      text.find("98% of the time is host overhead (9.80 us a launch for 200 ns of work, 100 launches): use a graph"),
      std::string::npos)
      << text;
}

TEST(Summary, ABusyDeviceIsNotLaunchBound) {
  Made made; // the host is ahead
  for (int i = 0; i < 100; ++i)
    made.launch(4 * i, 4 * i + 3.5, 10 * i + 4, 10 * i + 14);
  ProfileSummary summary = made.summary();
  EXPECT_EQ(textOf(summary, "launch-bound"), "");
  EXPECT_EQ(textOf(summary, "idle"), "");
  EXPECT_TRUE(summary.gaps.empty());
}

TEST(Summary, LaunchBoundOnTheCpu) {
  Made made;
  for (int i = 0; i < 20; ++i) {
    made.add(Kind::launch, "tiny", 10 * i, 10 * i + 10).launch = i + 1;
    made.add(Kind::run, "tiny", 10 * i + 8, 10 * i + 10).launch = i + 1;
  }
  std::string text = textOf(made.summary(), "launch-bound");
  EXPECT_NE(text.find("launch-bound on cpu: 80%"), std::string::npos) << text;
  EXPECT_NE(text.find("fuse"), std::string::npos) << text;
}

TEST(Summary, FewLaunchesAreNotSpokenOf) {
  Made made;
  for (int i = 0; i < 5; ++i)
    made.launch(10 * i, 10 * i + 9.8, 10 * i + 9.8, 10 * i + 10);
  EXPECT_EQ(textOf(made.summary(), "launch-bound"), "");
}

TEST(Summary, AnIdleDeviceAndWhatTheHostDid) {
  Made made;
  for (int i = 0; i < 12; ++i)
    made.launch(i, i + 0.1, i + 0.1, i + 1);
  made.add(Kind::compile, "slow", 20, 119);
  made.launch(119, 120, 120, 121);
  ProfileSummary summary = made.summary();
  ASSERT_FALSE(summary.gaps.empty());
  EXPECT_EQ(summary.gaps[0].meanwhile, "compiling slow");
  EXPECT_NE(textOf(summary, "idle").find("compiling slow"), std::string::npos);
}

TEST(Summary, CompiledOften) {
  Made made;
  for (int i = 0; i < 5; ++i)
    made.add(Kind::compile, "shape_shifter", 10 * i, 10 * i + 5).detail =
        i ? "argument 'x' has another type, rank, stride or alignment; compiled"
          : "the first launch of this kernel; compiled";
  std::string text = textOf(made.summary(), "compiling");
  EXPECT_NE(text.find("5"), std::string::npos);
  bool found = false;
  for (const auto &finding : made.summary().findings)
    found |= finding.text.find("shape_shifter was compiled 5 times") != std::string::npos &&
             finding.text.find("argument 'x'") != std::string::npos;
  EXPECT_TRUE(found);
}

TEST(Summary, CompilingIsNotTheLaunchesOverhead) {
  Made made;
  made.add(Kind::launch, "new", 0, 100).launch = 1;
  made.add(Kind::compile, "new", 5, 85);
  made.add(Kind::run, "new", 88, 98).launch = 1;
  ProfileSummary summary = made.summary();
  ASSERT_EQ(summary.kernels.size(), 1u);
  EXPECT_NEAR(summary.kernels[0].host, 10e-6, 1e-12);
  EXPECT_NEAR(summary.compiling, 80e-6, 1e-12);
  std::string text = textOf(summary, "compiling");
  EXPECT_NE(text.find("compiling takes 80% of the time (80.0 us, 1 specialisation)"), std::string::npos) << text;
}

TEST(Summary, SelfTimeOfStacks) {
  Made made;
  made.add(Kind::range, "outer", 0, 100);
  made.add(Kind::range, "in;ner", 10, 40);
  made.launch(50, 60, 200, 205);
  EXPECT_EQ(collapsedStacks(made.data),
            "cuda:0;outer;k 5\nthread 1;outer 60\nthread 1;outer;in,ner 30\nthread 1;outer;launch k 10\n");
  std::string svg = flameGraph(made.data);
  EXPECT_NE(svg.find("<title>outer: 100 us"), std::string::npos) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(Summary, PhasesOnAnotherThreadBelongToTheirCompilation) {
  Made made;
  made.add(Kind::compile, "k", 0, 100);
  made.add(Kind::phase, "optimize", 10, 90).thread = 2;
  made.add(Kind::phase, "alone", 200, 210).thread = 2;
  EXPECT_EQ(collapsedStacks(made.data), "thread 1;compile k 20\nthread 1;compile k;optimize 80\nthread 2;alone 10\n");
}

TEST(Summary, UnwatchedDevice) {
  Made made;
  for (int i = 0; i < 20; ++i)
    made.add(Kind::launch, "k", 10 * i, 10 * i + 5, 0).launch = i + 1;
  made.data.notes.push_back("times are the host's only: libcupti is not found");
  ProfileSummary summary = made.summary();
  ASSERT_EQ(summary.kernels.size(), 1u);
  EXPECT_FALSE(summary.kernels[0].isTimed);
  EXPECT_TRUE(summary.findings.empty());
  std::string text = summaryText(made.data);
  EXPECT_NE(text.find("note: times are the host's only"), std::string::npos) << text;
  EXPECT_NE(text.find("?"), std::string::npos);
}

TEST(Summary, AnEmptyProfile) {
  EXPECT_NE(summaryText({}).find("no kernel was launched"), std::string::npos);
  EXPECT_EQ(collapsedStacks({}), "");
  EXPECT_NE(flameGraph({}).find("</svg>"), std::string::npos);
}

TEST(Summary, Ceilings) {
  Made made;
  made.launch(0, 1, 1, 2);
  made.data.events[0].bytes = 1000;
  ProfileSummary summary = summarize(made.data, {{"cuda:0", {2e9, 0}}});
  EXPECT_NEAR(summary.kernels[0].ofCeiling, 0.5, 1e-9);
}

TEST(CallSite, AFrameInWords) {
  EXPECT_EQ(profile::describeSite(""), "");
  EXPECT_EQ(profile::describeSite("/nowhere/program+0x10 compute(int)"), "compute(int)");
  EXPECT_EQ(profile::describeSite("/nowhere/program+0x10"), "/nowhere/program+0x10");
  EXPECT_EQ(profile::describeSite("/nowhere/program+0x10 tenon::launch(int);/nowhere/program+0x20 main"), "main");
}

// Of a stripped program addr2line knows exported functions only, and names the one before.
TEST(CallSite, AStrippedProgramIsNotGuessedAt) {
  if (std::system("strip --version > /dev/null 2>&1 && addr2line --version > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "no strip or no addr2line here";
  std::string copy = testing::TempDir() + "stripped-" + std::to_string(::getpid());
  std::filesystem::copy_file("/proc/self/exe", copy, std::filesystem::copy_options::overwrite_existing);
  Dl_info info{};
  ASSERT_NE(::dladdr(reinterpret_cast<void *>(&profile::describeSite), &info), 0);
  auto offset = reinterpret_cast<char *>(&profile::describeSite) - static_cast<char *>(info.dli_fbase) + 1;
  char place[32];
  std::snprintf(place, sizeof place, "+0x%zx", static_cast<size_t>(offset));
  std::string before = profile::describeSite(std::string(info.dli_fname) + place);
  ASSERT_EQ(std::system(("strip '" + copy + "'").c_str()), 0);
  EXPECT_EQ(profile::describeSite(copy + place), copy + place) << "before: " << before;
  std::filesystem::remove(copy);
}

TEST(PerfCounters, CountOrSayWhyNot) {
  profile::PerfCounters counters;
  counters.start();
  volatile double sum = 0;
  for (int i = 0; i < 1000000; ++i)
    sum = sum + i;
  auto values = counters.read();
  if (counters.reason().empty())
    EXPECT_FALSE(values.empty());
  else
    EXPECT_TRUE(values.empty());
}

} // namespace
