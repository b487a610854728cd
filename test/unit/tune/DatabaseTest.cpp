// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/Error.h"
#include "tenon/tune/DatabaseStore.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tenon;
namespace fs = std::filesystem;

namespace {

TuneRecord recordOf(const std::string &configuration, double seconds, int64_t time = 1) {
  TuneRecord record;
  record.key = {"matmul", "f32[64,64]", "cpu", "a machine", "", "tenon 1"};
  record.configuration = Configuration::parse(configuration);
  record.program = "abc";
  record.outcome.status = Outcome::Status::measured;
  record.outcome.seconds = record.outcome.median = seconds;
  record.outcome.trials = 7;
  record.predicted = 1e-3;
  record.features = {1, 2.5};
  record.time = time;
  return record;
}

TuneRecord failureOf(const std::string &configuration, Outcome::Status status) {
  TuneRecord record = recordOf(configuration, 1);
  record.outcome = Outcome::failed(status, "because");
  return record;
}

constexpr uint32_t nfs = 0x6969, ext4 = 0xef53; // f_type of statfs

/// On a file system of this machine (SQLite), and on a network's (a file for each record).
class Databases : public testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    char name[] = "/tmp/tenon-database-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  void TearDown() override {
    std::error_code ignored;
    fs::permissions(folder_, fs::perms::owner_all, ignored);
    fs::remove_all(folder_, ignored);
  }
  Database::Options options(std::vector<std::string> *warnings = nullptr) const {
    Database::Options options;
    options.path = (folder_ / "sub" / "tuning.sqlite").string();
    options.fileSystemType = [](const std::string &) { return GetParam() ? nfs : ext4; };
    options.warn = [warnings](const std::string &text) {
      if (warnings)
        warnings->push_back(text);
      else
        ADD_FAILURE() << text;
    };
    return options;
  }
  /// Runs in a process of its own; its exit status.
  static int inChild(const std::function<void()> &work) {
    pid_t child = ::fork();
    if (child == 0) {
      try {
        work();
      } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
  fs::path folder_;
};
INSTANTIATE_TEST_SUITE_P(Stores, Databases, testing::Bool(),
                         [](const auto &info) { return info.param ? "files" : "sqlite"; });

TEST_P(Databases, KeepWhatTheyAreGiven) {
  {
    Database database(options());
    EXPECT_TRUE(database.writable());
    EXPECT_TRUE(database.add(recordOf("bm=64", 2e-3)));
    EXPECT_TRUE(database.add(failureOf("bm=32", Outcome::Status::crashed)));
    EXPECT_FALSE(database.add(recordOf("bm=64", 2e-3))); // the same measurement
    EXPECT_TRUE(database.add(recordOf("bm=64", 2e-3, 2))); // another one
  }
  Database database(options());
  std::vector<TuneRecord> found = database.find(recordOf("", 1).key);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].configuration.str(), "bm=64");
  EXPECT_EQ(found[0].outcome.seconds, 2e-3);
  EXPECT_EQ(found[0].outcome.trials, 7);
  EXPECT_EQ(found[0].features, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(found[1].outcome.status, Outcome::Status::crashed);
  EXPECT_EQ(found[1].outcome.reason, "because");
}

TEST_P(Databases, AKeyIsAllOfItsParts) {
  Database database(options());
  TuneRecord record = recordOf("bm=64", 1e-3);
  database.add(record);
  for (std::string TuneKey::*part : {&TuneKey::kernel, &TuneKey::problem, &TuneKey::target, &TuneKey::device,
                                     &TuneKey::driver, &TuneKey::compiler}) {
    TuneKey other = record.key;
    other.*part += "!";
    EXPECT_TRUE(database.find(other).empty());
  }
  EXPECT_EQ(database.find(record.key).size(), 1u);
  // Other problems, devices and versions are still there to learn from.
  record.key.problem = "f32[1,1]";
  record.key.compiler = "tenon 2";
  database.add(record);
  EXPECT_EQ(database.related("matmul", "cpu").size(), 2u);
  EXPECT_EQ(database.related("matmul", "cuda").size(), 0u);
  EXPECT_EQ(database.related("softmax", "cpu").size(), 0u);
  EXPECT_EQ(database.related("", "").size(), 2u);
}

TEST_P(Databases, ManyProcessesAtOnce) {
  constexpr int processes = 6, each = 25;
  std::vector<pid_t> children;
  for (int child = 0; child < processes; ++child) {
    pid_t pid = ::fork();
    if (pid == 0) {
      int failed = 0;
      try {
        Database database(options());
        for (int i = 0; i < each; ++i)
          failed += !database.add(recordOf("bm=" + std::to_string(child) + " bn=" + std::to_string(i), 1e-3 + i));
      } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        failed = 1;
      }
      ::_exit(failed ? 1 : 0);
    }
    children.push_back(pid);
  }
  for (pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(Database(options()).find(recordOf("", 1).key).size(), size_t(processes * each));
}

TEST_P(Databases, AKilledProcessLosesNothingThatWasAdded) {
  int pipes[2];
  ASSERT_EQ(::pipe(pipes), 0);
  pid_t child = ::fork();
  if (child == 0) {
    Database database(options());
    for (int i = 0;; ++i) {
      database.add(recordOf("bm=" + std::to_string(i), 1e-3));
      if (::write(pipes[1], "x", 1) != 1)
        ::_exit(1);
    }
  }
  char byte = 0;
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(::read(pipes[0], &byte, 1), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipes[0]);
  ::close(pipes[1]);
  Database database(options());
  size_t count = database.find(recordOf("", 1).key).size();
  EXPECT_GE(count, 20u);
  EXPECT_TRUE(database.add(recordOf("bm=-1", 1e-3)));
  EXPECT_EQ(database.find(recordOf("", 1).key).size(), count + 1);
}

// Half of those that write are killed at any moment, the others go on: everybody finds all that was said to be kept,
// nothing twice, and nothing that is half there.
TEST_P(Databases, SomeOfManyAreKilled) {
  constexpr int processes = 6, killed = 3, enough = 12;
  struct Shared {
    std::array<std::atomic<int>, processes> added;
    std::atomic<bool> stop;
  };
  void *memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto *shared = new (memory) Shared{};
  std::vector<pid_t> children;
  for (int child = 0; child < processes; ++child) {
    pid_t pid = ::fork();
    if (pid == 0) {
      try {
        Database database(options());
        while (!shared->stop) {
          int i = shared->added[child];
          if (!database.add(recordOf("bm=" + std::to_string(child) + " bn=" + std::to_string(i), 1e-3)))
            ::_exit(1);
          ++shared->added[child];
          ::usleep(1000); // a candidate takes longer
        }
      } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(pid);
  }
  for (int child = 0; child < processes; ++child)
    while (shared->added[child] < enough && ::waitpid(children[child], nullptr, WNOHANG) == 0)
      ::usleep(1000);
  for (int child = 0; child < killed; ++child) {
    ::kill(children[child], SIGKILL);
    ::waitpid(children[child], nullptr, 0);
    ::usleep(20'000); // the others write meanwhile
  }
  shared->stop = true;
  for (int child = killed; child < processes; ++child) {
    int status = 0;
    ::waitpid(children[child], &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  std::array<int, processes> found{};
  Database database(options()); // a warning would be a failure: nothing is damaged
  std::set<Configuration> distinct;
  for (const TuneRecord &record : database.find(recordOf("", 1).key)) {
    EXPECT_TRUE(distinct.insert(record.configuration).second) << record.configuration.str();
    EXPECT_EQ(record.outcome.trials, 7);
    ++found[record.configuration["bm"]];
  }
  for (int child = 0; child < processes; ++child) {
    int added = shared->added[child];
    EXPECT_GE(added, enough);
    EXPECT_GE(found[child], added);
    EXPECT_LE(found[child], added + (child < killed)); // kept, but not said any more
  }
  ::munmap(memory, sizeof(Shared));
}

TEST_P(Databases, ExportsAndImports) {
  Database database(options());
  database.add(recordOf("bm=64", 2e-3));
  database.add(failureOf("bm=32", Outcome::Status::wrong));
  TuneRecord other = recordOf("rows=1", 1e-3);
  other.key.kernel = "softmax";
  other.predicted = std::numeric_limits<double>::infinity(); // JSON has none
  database.add(other);
  std::string text = database.exportJson();

  Database::Options memory;
  memory.path = ":memory:";
  Database copy(memory);
  EXPECT_EQ(copy.importJson(text), 3u);
  EXPECT_EQ(copy.importJson(text), 0u); // nothing new
  EXPECT_EQ(copy.find(recordOf("", 1).key).size(), 2u);
  Database part(memory);
  EXPECT_EQ(part.importJson(database.exportJson("softmax")), 1u);

  for (const char *bad : {"", "[]", "{}", "{\"tenon_tuning\": 1}", "{\"tenon_tuning\": 2, \"records\": []}",
                          "{\"tenon_tuning\": 1, \"records\": [{}]}"})
    EXPECT_THROW(copy.importJson(bad), Error) << bad;
  // All or nothing: the good record before the bad one is not added either.
  std::string half = text;
  half.replace(half.rfind("\"status\""), 8, "\"statvs\"");
  Database empty(memory);
  EXPECT_THROW(empty.importJson(half), Error);
  EXPECT_TRUE(empty.related("", "").empty());
}

TEST_P(Databases, AReadOnlyFolderIsRead) {
  {
    Database database(options());
    database.add(recordOf("bm=64", 2e-3));
  }
  for (const auto &file : fs::recursive_directory_iterator(folder_))
    fs::permissions(file.path(), file.is_directory() ? fs::perms(0555) : fs::perms(0444));
  fs::permissions(folder_, fs::perms(0755));
  int status = inChild([&] {
    // Root may write anywhere; nobody may not.
    if (::geteuid() == 0 && ::setuid(65534) != 0)
      throw Error("cannot become nobody");
    std::vector<std::string> warnings;
    Database database(options(&warnings));
    if (database.writable() || warnings.size() != 1 || warnings[0].find("not kept") == std::string::npos)
      throw Error("writable, or not said: " + (warnings.empty() ? "" : warnings[0]));
    if (database.find(recordOf("", 1).key).size() != 1 || database.add(recordOf("bm=32", 1)))
      throw Error("not read, or written");
    if (database.description().find("(read-only)") == std::string::npos)
      throw Error(database.description());
    try {
      database.importJson(database.exportJson());
    } catch (const Error &) {
      return;
    }
    throw Error("imported");
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  for (const auto &file : fs::recursive_directory_iterator(folder_))
    fs::permissions(file.path(), fs::perms::owner_all);
}

TEST_P(Databases, DamageIsSetAsideOrSkipped) {
  {
    Database database(options());
    for (int i = 0; i < 100; ++i)
      database.add(recordOf("bm=" + std::to_string(i), 1e-3));
  }
  std::string path = options().path;
  fs::path victim = path;
  if (GetParam())
    victim = fs::directory_iterator(path + ".records")->path();
  std::ofstream(victim, std::ios::in | std::ios::out | std::ios::binary) << "This is not what it was before.";
  std::vector<std::string> warnings;
  Database database(options(&warnings));
  size_t left = database.find(recordOf("", 1).key).size();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("damaged"), std::string::npos) << warnings[0];
  EXPECT_EQ(left, GetParam() ? 99u : 0u);
  EXPECT_TRUE(database.add(recordOf("bm=1000", 1e-3)));
  if (!GetParam())
    EXPECT_TRUE(fs::exists(path + ".damaged"));
  std::vector<std::string> later;
  Database again(options(&later));
  EXPECT_EQ(again.find(recordOf("", 1).key).size(), left + 1);
}

TEST_P(Databases, HalfAFileIsDamage) {
  {
    Database database(options());
    for (int i = 0; i < 200; ++i)
      database.add(recordOf("bm=" + std::to_string(i), 1e-3));
  }
  std::string path = options().path;
  fs::path victim = path;
  if (GetParam())
    victim = fs::directory_iterator(path + ".records")->path();
  fs::resize_file(victim, fs::file_size(victim) / 2);
  std::vector<std::string> warnings;
  Database database(options(&warnings));
  database.find(recordOf("", 1).key);
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(database.add(recordOf("bm=1000", 1e-3)));
}

TEST_P(Databases, TheFileSystemDecides) {
  std::string asked;
  Database::Options where = options();
  where.fileSystemType = [&](const std::string &folder) {
    asked = folder;
    return GetParam() ? nfs : ext4;
  };
  Database database(where);
  database.add(recordOf("bm=64", 1e-3));
  EXPECT_EQ(asked, (folder_ / "sub").string());
  EXPECT_EQ(fs::exists(where.path), !GetParam()); // no lock is ever taken on a network's
  EXPECT_EQ(fs::exists(where.path + ".records"), GetParam());
  EXPECT_EQ(database.description(), GetParam() ? where.path + ".records" : where.path);
}

TEST(Database, NetworkFileSystemsAreKnown) {
  for (uint32_t type : {0x6969u, 0x517bu, 0xff534d42u, 0xfe534d42u, 0x65735546u, 0x01021997u, 0x00c36400u, 0x0bd00bd0u,
                        0x47504653u, 0x19830326u, 0x5346414fu, 0x7461636fu, 0x01161970u})
    EXPECT_TRUE(tuning::isNetworkFileSystem(type)) << std::hex << type;
  for (uint32_t local : {0u, ext4, 0x58465342u /*XFS*/, 0x9123683eu /*btrfs*/, 0x01021994u /*tmpfs*/,
                         0x794c7630u /*overlay*/, 0x2fc12fc1u /*ZFS*/, 0xf2f52010u /*F2FS*/})
    EXPECT_FALSE(tuning::isNetworkFileSystem(local)) << std::hex << local;
}

// A process that was killed while it wrote leaves a file that is no record: it is not read, and goes when it is old.
TEST(Database, LeftoversGo) {
  char name[] = "/tmp/tenon-database-XXXXXX";
  fs::path folder = ::mkdtemp(name);
  Database::Options options;
  options.path = (folder / "tuning.sqlite").string();
  options.fileSystemType = [](const std::string &) { return nfs; };
  {
    Database(options).add(recordOf("bm=64", 1e-3));
  }
  fs::path fresh = options.path + ".records/.1-host-1-0.json.new", old = options.path + ".records/.1-host-2-0.json.new";
  for (const fs::path &file : {fresh, old})
    std::ofstream(file) << "{\"kernel\": \"mat";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(30));
  EXPECT_EQ(Database(options).find(recordOf("", 1).key).size(), 1u);
  EXPECT_TRUE(fs::exists(fresh)); // its writer may be at it
  EXPECT_FALSE(fs::exists(old));
  fs::remove_all(folder);
}

TEST(Database, APathThatCannotBeUsedIsDoneWithout) {
  std::vector<std::string> warnings;
  Database::Options options;
  options.path = "/dev/null/tuning.sqlite";
  options.warn = [&](const std::string &text) { warnings.push_back(text); };
  Database database(options);
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(database.add(recordOf("bm=64", 1e-3)));
  EXPECT_NE(database.description().find("in memory"), std::string::npos);
}

TEST(Database, LuckDoesNotWin) {
  std::vector<TuneRecord> records = {recordOf("bm=64", 1.0e-3), recordOf("bm=32", 1.2e-3), recordOf("bm=64", 1.4e-3, 2),
                                     recordOf("bm=32", 1.2e-3, 2)}; // the best two, measured again
  EXPECT_EQ(bestOf(records)->configuration.str(), "bm=32");
  records.push_back(recordOf("bm=64", 1.1e-3, 3));
  EXPECT_EQ(bestOf(records)->configuration.str(), "bm=64"); // luck it was not: the middle one
}

TEST(Database, TheBestIsTheSameEveryTime) {
  std::vector<TuneRecord> records = {recordOf("bm=64", 3e-3), recordOf("bm=32", 2e-3), recordOf("bm=16", 2e-3),
                                     recordOf("bm=8", 1e-3), failureOf("bm=8", Outcome::Status::wrong),
                                     recordOf("bm=64", 2.5e-3, 2)};
  EXPECT_EQ(bestOf(records)->configuration.str(), "bm=16"); // on a tie the first by value; bm=8 was wrong once
  std::reverse(records.begin(), records.end());
  EXPECT_EQ(bestOf(records)->configuration.str(), "bm=16");
  // What is not current counts for nothing, and only as many as needed are asked about.
  size_t asked = 0;
  auto best = bestOf(records, [&](const TuneRecord &record) {
    ++asked;
    return record.configuration.str() == "bm=64";
  });
  EXPECT_EQ(best->outcome.seconds, 3e-3);
  EXPECT_EQ(asked, 3u);
  EXPECT_FALSE(bestOf({}));
  EXPECT_FALSE(bestOf({failureOf("bm=8", Outcome::Status::crashed)}));
  // A failure of another program of the same name is no failure of this one.
  TuneRecord mended = recordOf("bm=8", 1e-3);
  mended.program = "def";
  records.push_back(mended);
  EXPECT_EQ(bestOf(records)->program, "def");
}

} // namespace
