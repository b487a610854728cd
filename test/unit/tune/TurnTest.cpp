// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Turn.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tenon::tuning;
using namespace std::chrono_literals;

namespace {

std::string ownName(const char *what) { return std::string("test-") + what + "-" + std::to_string(::getpid()); }

/// The files of this process's turns go with it.
class TurnFiles : public testing::Environment {
public:
  void TearDown() override {
    std::string end = "-" + std::to_string(::getpid()) + ".turn";
    for (const auto &entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path()))
      if (entry.path().filename().string().ends_with(end))
        std::filesystem::remove(entry.path());
  }
};
const testing::Environment *turnFiles = testing::AddGlobalTestEnvironment(new TurnFiles);

TEST(Turn, OneAtATimeHasIt) {
  std::string name = ownName("one");
  std::atomic<bool> had = false;
  std::thread other;
  {
    Turn mine(name);
    other = std::thread([&] {
      Turn theirs(name);
      had = true;
    });
    std::this_thread::sleep_for(50ms);
    EXPECT_FALSE(had);
  }
  other.join();
  EXPECT_TRUE(had);
}

TEST(Turn, WhoIsToldToStopDoesNotWait) {
  std::string name = ownName("stop");
  Turn mine(name);
  int asked = 0;
  Turn theirs(name, [&] { return ++asked == 3; }); // or this would never end
  EXPECT_EQ(asked, 3);
}

TEST(Turn, OtherNamesDoNotWait) {
  Turn first(ownName("first")), second(ownName("second")); // or this would never end
}

TEST(Turn, WhoDiesGivesItBack) {
  std::string name = ownName("dead");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Turn theirs(name);
    (void)!::write(ready[1], "x", 1);
    for (;;)
      ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  bool waits = false;
  { Turn early(name, [&] { return waits = true; }); }
  EXPECT_TRUE(waits);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  Turn mine(name);
  ::close(ready[0]);
  ::close(ready[1]);
}

} // namespace
