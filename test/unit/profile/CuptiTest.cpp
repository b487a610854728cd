// SPDX-License-Identifier: Apache-2.0
//
// How libcupti is found, believed and left. The library is not linked: as in real programs, it is opened when it is
// wanted, and its destructors run before those of everything that was there earlier.
#include "tenon/profile/Cupti.h"
#include "tenon/profile/CuptiRecords.h"
#include "tenon/profile/Profile.h"
#include "tenon/profile/Recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace tenon;
using namespace tenon::profile;

namespace {

// As measured from NVIDIA's headers of CUDA 13.0 (CUpti_ActivityKernel4 to 10, CUpti_ActivityMemcpy to 6,
// CUpti_ActivityMemset to 4): in all of them these are the same.
using cupti::CopyRecord;
using cupti::FillRecord;
using cupti::KernelRecord;
static_assert(offsetof(KernelRecord, registers) == 6);
static_assert(offsetof(KernelRecord, start) == 16 && offsetof(KernelRecord, end) == 24);
static_assert(offsetof(KernelRecord, completed) == 32);
static_assert(offsetof(KernelRecord, device) == 40 && offsetof(KernelRecord, context) == 44);
static_assert(offsetof(KernelRecord, stream) == 48);
static_assert(offsetof(KernelRecord, grid) == 52 && offsetof(KernelRecord, block) == 64);
static_assert(offsetof(KernelRecord, staticShared) == 76 && offsetof(KernelRecord, dynamicShared) == 80);
static_assert(offsetof(KernelRecord, localPerThread) == 84 && offsetof(KernelRecord, correlation) == 92);
static_assert(offsetof(KernelRecord, gridId) == 96 && offsetof(KernelRecord, name) == 104);
static_assert(offsetof(KernelRecord, launchType) == 136 && offsetof(KernelRecord, graphNode) == 144);
static_assert(sizeof(KernelRecord) <= 160); // CUpti_ActivityKernel5, the smallest with a graph's node
static_assert(offsetof(CopyRecord, copyKind) == 4 && offsetof(CopyRecord, bytes) == 8);
static_assert(offsetof(CopyRecord, start) == 16 && offsetof(CopyRecord, end) == 24);
static_assert(offsetof(CopyRecord, device) == 32 && offsetof(CopyRecord, stream) == 40);
static_assert(offsetof(CopyRecord, correlation) == 44 && sizeof(CopyRecord) <= 64);
static_assert(offsetof(FillRecord, value) == 4 && offsetof(FillRecord, bytes) == 8);
static_assert(offsetof(FillRecord, start) == 16 && offsetof(FillRecord, end) == 24);
static_assert(offsetof(FillRecord, device) == 32 && offsetof(FillRecord, stream) == 40);
static_assert(offsetof(FillRecord, correlation) == 44 && sizeof(FillRecord) <= 64);
static_assert(cupti::memcpyActivity == 1 && cupti::memsetActivity == 2 && cupti::kernelActivity == 10);

static_assert(!cupti::isKnown(0) && !cupti::isKnown(12));
static_assert(cupti::isKnown(13) && cupti::isKnown(28) && cupti::isKnown(130000) && cupti::isKnown(130001));
static_assert(!cupti::isKnown(29) && !cupti::isKnown(130100) && !cupti::isKnown(140000));

size_t runsOf(const ProfileData &data) {
  return static_cast<size_t>(std::count_if(data.events.begin(), data.events.end(), [](const ProfileEvent &event) {
    return event.onDevice && event.kind == ProfileEvent::Kind::run;
  }));
}

/// A profile as TENON_PROFILE makes it: begun and registered before there is a CUPTI.
[[noreturn]] void profileToTheEnd() {
  static Profile &everything = *new Profile();
  std::atexit([] { std::fprintf(stderr, "%zu runs\n", runsOf(everything.stop())); });
  deviceOpened();
  void *library = ::dlopen(TENON_FAKE_CUPTI, RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    std::_Exit(3);
  auto *addKernel = reinterpret_cast<void (*)(const char *)>(::dlsym(library, "fakecuptiAddKernel"));
  addKernel("one");
  addKernel("two");
  std::exit(0);
}

/// Of a library with this version.
std::string reasonOf(const char *version) {
  ::setenv("TENON_CUPTI", TENON_FAKE_CUPTI, 1);
  ::setenv("FAKE_CUPTI_VERSION", version, 1);
  return Cupti::instance().reason();
}

class CuptiTest : public testing::Test {
protected:
  CuptiTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); } // each in a process of its own
};

TEST_F(CuptiTest, RecordsAreTakenBeforeTheLibraryEnds) {
  ::setenv("TENON_CUPTI", TENON_FAKE_CUPTI, 1);
  EXPECT_EXIT(profileToTheEnd(), testing::ExitedWithCode(0), "2 runs");
}

TEST_F(CuptiTest, AnotherVersionIsDeclined) {
  auto say = [](const char *version) {
    std::fprintf(stderr, "(%s)", reasonOf(version).c_str());
    std::_Exit(0);
  };
  EXPECT_EXIT(say("130200"), testing::ExitedWithCode(0),
              "is of version 130200, whose records are not known .those of CUDA 11.0 to 13.0 are.");
  EXPECT_EXIT(say("12"), testing::ExitedWithCode(0), "is of version 12, whose");
  EXPECT_EXIT(say("28"), testing::ExitedWithCode(0), "^\\(\\)$");
}

TEST_F(CuptiTest, SwitchedOffOrNotThere) {
  auto say = [](const char *name) {
    ::setenv("TENON_CUPTI", name, 1);
    std::fprintf(stderr, "(%s)", Cupti::instance().reason().c_str());
    std::_Exit(Cupti::instance().start() ? 1 : 0);
  };
  EXPECT_EXIT(say("none"), testing::ExitedWithCode(0), "no libcupti is found");
  EXPECT_EXIT(say("/nowhere/libcupti.so"), testing::ExitedWithCode(0), "no libcupti is found");
}

TEST_F(CuptiTest, WhereItIsLookedFor) {
  namespace fs = std::filesystem;
  fs::path root = fs::temp_directory_path() / ("tenon-cupti-" + std::to_string(::getpid()));
  fs::path toolkit = root / "cuda/targets/x86_64-linux/lib/libcupti.so.13";
  fs::path package = root / "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13";
  for (const fs::path &file : {toolkit, package}) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "";
  }
  ::unsetenv("TENON_CUPTI");
  ::setenv("CUDA_HOME", (root / "cuda").c_str(), 1);
  ::setenv("VIRTUAL_ENV", (root / "venv").c_str(), 1);
  std::vector<std::string> places = cuptiCandidates();
  EXPECT_EQ(places.front(), "libcupti.so.13");
  auto first = std::find(places.begin(), places.end(), toolkit.string());
  auto second = std::find(places.begin(), places.end(), package.string());
  EXPECT_NE(first, places.end());
  EXPECT_NE(second, places.end());
  EXPECT_LT(first, second);
  ::setenv("TENON_CUPTI", "mine.so", 1);
  EXPECT_EQ(cuptiCandidates(), std::vector<std::string>{"mine.so"});
  fs::remove_all(root);
}

} // namespace
