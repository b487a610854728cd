// SPDX-License-Identifier: Apache-2.0
//
// The tuner on a CUDA device, over a driver of the tests' own. Its device memory is the host's, and it runs no kernels
// of ours: where the configuration says so, a hook in the worker does the work instead.
#include "tenon/base/Error.h"
#include "tenon/tune/Tune.h"
#include "tenon/tune/Turn.h"
#include "tenon/tune/Worker.h"
#include "tenon/verify/Values.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include <sys/wait.h>
#include <unistd.h>

using namespace tenon;

namespace {

const Kernel doubled("doubled(x, y, width=64, helped=0, fatal=0)",
                     [](View x, View y, Param width, Param helped, Param) {
                       Index i = grid(cdiv(x.size(0), width));
                       y.store({i * width}, x.load({i * width}, {width}) * (helped ? 2 : 3));
                     });

/// Who did what, a line each.
void note(const char *what) {
  if (const char *file = std::getenv("TENON_TEST_NOTES"))
    std::ofstream(file, std::ios::app) << what << " " << ::getpid() << "\n";
}

void beforeCompile(const Configuration &configuration) {
  note("compile");
  if (configuration.get("fatal", 0))
    std::abort();
}

void help(const Configuration &configuration, std::span<const int64_t> words, const std::function<void()> &run) {
  note("run");
  run(); // queued, or done: nothing happens
  if (!configuration["helped"])
    return;
  auto *x = reinterpret_cast<const float *>(words[0]);
  auto *y = reinterpret_cast<float *>(words[3]);
  for (int64_t i = 0; i < words[4]; ++i)
    y[i] = 2 * x[i];
}

Problem problemOf() {
  Problem problem;
  problem.label = "1000 f32";
  Tensor x = Tensor::empty(f32, {1000});
  x.fillRandom(3, -2, 2);
  problem.arguments = {x, Tensor::zeros(f32, {1000})};
  problem.outputs = {1};
  problem.reference = problem.plain = [](Arguments &a) {
    std::vector<double> values = valuesOf<double>(a[0].tensor());
    for (double &value : values)
      value *= 2;
    setValues(a[1].tensor(), values);
  };
  problem.flops = 1000;
  problem.bytes = 8000;
  return problem;
}

struct CudaTuning : testing::Test {
  CudaTuning() : database([] {
    Database::Options memory;
    memory.path = ":memory:";
    return memory;
  }()) {
    options.policy = TunePolicy::quick;
    options.launch.target = Target::cuda;
    options.database = &database;
    options.worker = {"/proc/self/exe", "tune-worker"};
    options.workers = 1;
    options.timingSeconds = 0.01;
  }
  Database database;
  TuneOptions options;
};

TEST_F(CudaTuning, CandidatesAreTimedByTheDevice) {
  Space space;
  space.param("helped", {1}).option("warps", {1, 2});
  TuneReport report = tune(doubled, space, problemOf(), options);
  EXPECT_EQ(report.measured, 2u);
  EXPECT_EQ(report.failed, 0u) << report.tried.front().outcome.reason;
  EXPECT_EQ(report.options.target, Target::cuda);
  std::vector<TuneRecord> records = database.related("doubled", "cuda");
  ASSERT_FALSE(records.empty());
  EXPECT_FALSE(records[0].key.driver.empty());
  EXPECT_EQ(records[0].key.device, cudaProperties(0).name);
}

TEST_F(CudaTuning, ADeviceThatDoesNothingIsFoundOut) {
  Space space;
  space.param("helped", {0}).option("warps", {1, 2});
  try {
    tune(doubled, space, problemOf(), options);
    FAIL() << "nothing was computed, and it won";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("never written"), std::string::npos) << error.what();
  }
}

// A set of arguments on the device for each process that runs candidates, and the time to bring it there: one is
// enough.
TEST_F(CudaTuning, OneRunsWhatTheOthersCompile) {
  std::string notes = testing::TempDir() + "/notes-" + std::to_string(::getpid());
  ::setenv("TENON_TEST_NOTES", notes.c_str(), 1);
  options.workers = 4;
  Space space;
  space.param("helped", {1}).param("width", {32, 64, 128}).option("warps", {1, 2, 4});
  TuneReport report = tune(doubled, space, problemOf(), options);
  ::unsetenv("TENON_TEST_NOTES");
  EXPECT_EQ(report.measured, 9u);
  EXPECT_EQ(report.failed, 0u) << report.tried.front().outcome.reason;
  std::map<std::string, std::set<int>> who;
  std::ifstream stream(notes);
  int process = 0;
  for (std::string what; stream >> what >> process;)
    who[what].insert(process);
  std::remove(notes.c_str());
  EXPECT_EQ(who["run"].size(), 1u);
  EXPECT_GT(who["compile"].size(), 1u);
}

// A candidate that takes the process along which compiles it leaves the others to be compiled.
TEST_F(CudaTuning, ACompilerThatIsGoneIsReplaced) {
  options.workers = 3;
  Space space;
  space.param("helped", {1}).param("fatal", {0, 1}).option("warps", {1, 2, 4});
  TuneReport report = tune(doubled, space, problemOf(), options);
  EXPECT_EQ(report.measured, 6u);
  EXPECT_EQ(report.failed, 3u);
  for (const TuneReport::Tried &tried : report.tried)
    EXPECT_EQ(tried.outcome.status, tried.configuration["fatal"] ? Outcome::Status::crashed : Outcome::Status::measured)
        << tried.outcome.reason;
}

TEST_F(CudaTuning, TheModelRanksWithoutADatasheetToo) {
  options.policy = TunePolicy::off;
  Space space;
  space.param("width", {64, 256, 1024}).option("warps", {1, 4});
  TuneReport report = choose(doubled, space, problemOf().arguments, options);
  EXPECT_GT(report.prediction.seconds, 0);
  EXPECT_EQ(report.valid, 6u);
}

// One process's cuda:0 may be another's cuda:1.
TEST(CudaTurn, IsTheDevicesWhateverItsNumber) {
  std::string first = tuning::turnOf(cudaProperties(0), 0), second = tuning::turnOf(cudaProperties(1), 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, "cuda-00102030405060708090a0b0c0d0e0f0");
  int results[2];
  ASSERT_EQ(::pipe(results), 0);
  pid_t child = ::fork();
  if (child == 0) { // a driver of its own
    ::setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
    std::string program = "/proc/self/exe", pipe = std::to_string(results[1]);
    ::execl(program.c_str(), program.c_str(), "turns", pipe.c_str(), nullptr);
    ::_exit(1);
  }
  ::close(results[1]);
  std::string said;
  char buffer[256];
  for (ssize_t count; (count = ::read(results[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<size_t>(count));
  ::close(results[0]);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(said, second + " " + first);
  EXPECT_EQ(tuning::turnOf(CudaProperties(), 3), "cuda-3"); // a driver that does not say
}

} // namespace

int main(int argc, char **argv) {
  ::setenv("TENON_CUDA_DRIVER", TENON_FAKE_CUDA, 1);
  if (argc > 1 && std::string(argv[1]) == "tune-worker")
    return tuning::workerMain({beforeCompile, help});
  if (argc > 2 && std::string(argv[1]) == "turns") {
    std::string turns = tuning::turnOf(cudaProperties(0), 0) + " " + tuning::turnOf(cudaProperties(1), 1);
    return ::write(std::stoi(argv[2]), turns.data(), turns.size()) == static_cast<ssize_t>(turns.size()) ? 0 : 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
