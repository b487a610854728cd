// SPDX-License-Identifier: Apache-2.0
//
// Candidates that do everything wrong that can be done wrong. Each must cost itself, with its reason, and nothing else.
// This program is its own worker: started with "tune-worker" it misbehaves as the configuration's `fault` says.
#include "../measure/OrdinaryCeilings.h"

#include "tenon/base/Error.h"
#include "tenon/tune/Tune.h"
#include "tenon/tune/Worker.h"
#include "tenon/verify/Values.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace tenon;

namespace {

enum Fault : int64_t {
  none,
  wrongResult,
  wrongForSomeInputs,
  writesPastTheEnd,
  writesBeforeTheStart,
  changesAnInput,
  segmentationFault,
  infiniteLoop,
  allocates50GB,
  nonDeterministic,
  skipsWorkAfterTwoRuns,
  skipsWorkAfterFourRuns,
  failsToCompile,
  compilesForever,
  crashesTheCompiler,
  refusedByTheKernel,
  throwsWhileRunning,
};

const Kernel doubled("doubled(x, y, width=64, fault=0)", [](View x, View y, Param width, Param fault) {
  if (fault == refusedByTheKernel)
    throw Error("this value is refused while tracing");
  Index i = grid(cdiv(x.size(0), width));
  Tile t = x.load({i * width}, {width});
  Tile result = t * 2;
  if (fault == wrongResult)
    result = result + 1;
  if (fault == wrongForSomeInputs)
    result = where(t > 100, 0, result);
  y.store({i * width}, result);
});

/// What no Tile IR can do.
void misbehave(const Configuration &configuration, std::span<const int64_t> words, const std::function<void()> &run) {
  static std::map<int64_t, int> callsOf;
  int calls = ++callsOf[configuration.get("fault", none)];
  auto *x = reinterpret_cast<float *>(words[0]), *y = reinterpret_cast<float *>(words[3]);
  int64_t count = words[4];
  switch (configuration.get("fault", none)) {
  case skipsWorkAfterTwoRuns:
    if (calls <= 2)
      run();
    return;
  case skipsWorkAfterFourRuns:
    if (calls <= 4)
      run();
    return;
  case infiniteLoop:
    for (;;)
      ::usleep(1000);
  case allocates50GB: {
    size_t bytes = size_t(50) << 30;
    std::vector<char> memory(bytes, 1);
    asm volatile("" : : "r"(memory.data()) : "memory"); // or it would be left out
    run();
    return;
  }
  case segmentationFault:
    *reinterpret_cast<volatile int *>(8) = 1;
    return;
  case throwsWhileRunning:
    throw Error("it did not like it");
  }
  run();
  switch (configuration.get("fault", none)) {
  case writesPastTheEnd:
    y[count] = 1;
    break;
  case writesBeforeTheStart:
    y[-1] = 1;
    break;
  case changesAnInput:
    x[3] = 7;
    break;
  case nonDeterministic:
    if (calls % 2)
      y[5] = std::nextafter(y[5], 100.0f);
    break;
  }
}

void hinderCompiling(const Configuration &configuration) {
  switch (configuration.get("fault", none)) {
  case failsToCompile:
    throw Error("no instruction for that");
  case compilesForever:
    for (;;)
      ::usleep(1000);
  case crashesTheCompiler:
    std::abort();
  }
}

Problem problemOf(double lo = -2, double hi = 2) {
  Problem problem;
  problem.label = "1000 f32";
  Tensor x = Tensor::empty(f32, {1000});
  x.fillRandom(3, lo, hi);
  problem.arguments = {x, Tensor::zeros(f32, {1000})};
  problem.outputs = {1};
  auto reference = [](Arguments &a) {
    std::vector<double> values = valuesOf<double>(a[0].tensor());
    for (double &value : values)
      value *= 2;
    setValues(a[1].tensor(), values);
  };
  problem.reference = problem.plain = reference;
  problem.flops = 1000;
  problem.bytes = 8000;
  return problem;
}

/// In the order of the faults: a candidate's number is its rank.
struct InOrder final : Ranker {
  Prediction predict(const Configuration &configuration) const override {
    Prediction prediction;
    prediction.seconds = 1e-6 * static_cast<double>(configuration["fault"] + 1);
    prediction.terms = {{"order", prediction.seconds}};
    prediction.boundBy = "order";
    return prediction;
  }
};

/// What every test tunes with.
struct Bench {
  InOrder ranker;
  Database database;
  TuneOptions options;
  Bench() : database([] {
    Database::Options memory;
    memory.path = ":memory:";
    return memory;
  }()) {
    options.policy = TunePolicy::quick;
    options.quickCount = 100;
    options.ranker = &ranker;
    options.database = &database;
    options.worker = {"/proc/self/exe", "tune-worker"};
    options.workers = 2;
    options.memoryBytes = uint64_t(4) << 30;
    options.timingSeconds = 0.01;
    options.floorSeconds = -1;
  }
};

Space faults(std::vector<int64_t> which) {
  Space space;
  space.param("fault", std::move(which));
  return space;
}

const Outcome &outcomeOf(const TuneReport &report, int64_t fault) {
  static const Outcome missing;
  for (const TuneReport::Tried &one : report.tried)
    if (one.configuration["fault"] == fault)
      return one.outcome;
  ADD_FAILURE() << "fault " << fault << " was not tried";
  return missing;
}

std::string errorOf(const std::function<void()> &function) {
  try {
    function();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

struct Expected {
  Fault fault;
  Outcome::Status status;
  const char *reason;
};

/// `result` and `input`: what is said of a wrong result and of a changed input, which depends on who judges.
void expectEachToCostItselfAndNothingElse(TuneOptions::Judging judging, const char *result, const char *input) {
  using enum Outcome::Status;
  const std::vector<Expected> expected = {
      {wrongResult, wrong, result},
      {writesPastTheEnd, wrong, "past the end of 'y'"},
      {writesBeforeTheStart, wrong, "before the start of 'y'"},
      {changesAnInput, wrong, input},
      {segmentationFault, crashed, "Segmentation fault"},
      {nonDeterministic, wrong, "differs between two runs"},
      {failsToCompile, refused, "no instruction for that"},
      {crashesTheCompiler, crashed, "Aborted"},
      {refusedByTheKernel, refused, "refused while tracing"},
      {throwsWhileRunning, wrong, "it did not like it"},
  };
  Bench setup;
  setup.options.judging = judging;
  std::vector<int64_t> all = {none, wrongResult, writesPastTheEnd, writesBeforeTheStart, changesAnInput,
                              segmentationFault, nonDeterministic, failsToCompile, crashesTheCompiler,
                              refusedByTheKernel, throwsWhileRunning};
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
  all.push_back(allocates50GB); // under the sanitizer memory is not limited
#endif
  Problem problem = problemOf();
  Tensor xBefore = problem.arguments[0].tensor().clone(), yBefore = problem.arguments[1].tensor().clone();
  TuneReport report = tune(doubled, faults(all), problem, setup.options);

  EXPECT_EQ(report.configuration["fault"], none);
  EXPECT_EQ(report.source, TuneReport::Source::measured);
  EXPECT_EQ(report.tried.size(), all.size());
  EXPECT_EQ(report.failed, all.size() - 1);
  for (const auto &[fault, status, reason] : expected) {
    const Outcome &outcome = outcomeOf(report, fault);
    EXPECT_EQ(nameOf(outcome.status), nameOf(status)) << "fault " << fault << ": " << outcome.reason;
    EXPECT_HAS(outcome.reason, reason);
  }
  if (std::find(all.begin(), all.end(), allocates50GB) != all.end())
    EXPECT_EQ(nameOf(outcomeOf(report, allocates50GB).status), "out of memory")
        << outcomeOf(report, allocates50GB).reason;
  // The user's data is as it was.
  EXPECT_EQ(std::memcmp(xBefore.data(), problem.arguments[0].tensor().data(), 4000), 0);
  EXPECT_EQ(std::memcmp(yBefore.data(), problem.arguments[1].tensor().data(), 4000), 0);
  // Every reason is in the database.
  EXPECT_EQ(setup.database.related("doubled", "cpu").size(), all.size());
}

TEST(Planted, EachCostsItselfAndNothingElse) {
  expectEachToCostItselfAndNothingElse(TuneOptions::Judging::each, "where the reference has", "argument 0");
}

TEST(Planted, EachIsFoundOutByComparisonWithTheFirstToo) {
  expectEachToCostItselfAndNothingElse(TuneOptions::Judging::first, "further than rounding explains",
                                       "wrote outside its outputs");
}

/// By themselves, since the limits hold for all candidates, and a healthy one may take its time on a busy machine. Two
/// of each: after the first there is a worker again.
TEST(Planted, WhatDoesNotEndIsStopped) {
  for (auto judging : {TuneOptions::Judging::each, TuneOptions::Judging::first})
    for (Fault fault : {infiniteLoop, compilesForever}) {
      Bench setup;
      setup.options.judging = judging;
      (fault == infiniteLoop ? setup.options.runSeconds : setup.options.compileSeconds) = 1;
      Space space = faults({fault});
      space.param("width", {32, 64});
      std::string error = errorOf([&] { tune(doubled, space, problemOf(), setup.options); });
      EXPECT_HAS(error, "2 timed out (fault=" + std::to_string(fault));
      EXPECT_HAS(error, fault == infiniteLoop ? "running took more than 1 s" : "compiling took more than 1 s");
    }
}

/// By itself: beside another it would not be timed if its first runs were held up. One that others are to be compared
/// with runs twice more before it is timed.
TEST(Planted, SkippingWorkOnceJudgedIsFoundOut) {
  for (auto [judging, fault] : {std::pair(TuneOptions::Judging::each, skipsWorkAfterTwoRuns),
                                std::pair(TuneOptions::Judging::first, skipsWorkAfterFourRuns)}) {
    Bench setup;
    setup.options.judging = judging;
    EXPECT_HAS(errorOf([&, fault = fault] { tune(doubled, faults({fault}), problemOf(), setup.options); }),
               "while it was timed it left another result than before");
  }
}

TEST(Planted, TheFirstOneIsJudgedByTheReference) {
  Bench setup;
  setup.options.judging = TuneOptions::Judging::first;
  setup.options.samples = [](const Arguments &all) { // of 1000 elements, every third
    Arguments part = all;
    for (Argument &argument : part)
      argument = argument.tensor().slice(0, 1, 333, 3);
    return std::vector<Arguments>{part};
  };
  // The wrong one comes first, and must not become what the others are compared with.
  struct LastFirst final : Ranker {
    Prediction predict(const Configuration &configuration) const override {
      Prediction prediction;
      prediction.seconds = 1 - 0.01 * static_cast<double>(configuration["fault"]);
      return prediction;
    }
  } lastFirst;
  setup.options.ranker = &lastFirst;
  TuneReport report = tune(doubled, faults({wrongResult, none}), problemOf(), setup.options);
  EXPECT_EQ(report.configuration["fault"], none);
  EXPECT_HAS(outcomeOf(report, wrongResult).reason, "where the reference has");
}

TEST(Planted, IfAllFailTheReasonsAreTold) {
  Bench setup;
  Space space = faults({wrongResult, segmentationFault});
  std::string error = errorOf([&] { tune(doubled, space, problemOf(), setup.options); });
  EXPECT_HAS(error, "every candidate of kernel doubled failed");
  EXPECT_HAS(error, "1 crashed (fault=6: ");
  EXPECT_HAS(error, "1 wrong (fault=1: ");
}

TEST(Planted, WrongForSomeInputsIsFoundOnOtherValues) {
  Bench setup;
  // Right on these values: it would win.
  TuneReport fooled = tune(doubled, faults({wrongForSomeInputs}), problemOf(), setup.options);
  EXPECT_EQ(fooled.configuration["fault"], wrongForSomeInputs);
  Bench careful;
  careful.options.checks = {problemOf(-200, 200)};
  std::string error = errorOf([&] { tune(doubled, faults({wrongForSomeInputs}), problemOf(), careful.options); });
  EXPECT_HAS(error, "with other values");
  Bench both;
  both.options.checks = {problemOf(-200, 200)};
  TuneReport report = tune(doubled, faults({none, wrongForSomeInputs}), problemOf(), both.options);
  EXPECT_EQ(report.configuration["fault"], none);
}

TEST(Planted, FasterThanTheMachineIsRefused) {
  Bench setup;
  setup.options.floorSeconds = 10;
  std::string error = errorOf([&] { tune(doubled, faults({none}), problemOf(), setup.options); });
  EXPECT_HAS(error, "too fast");
  EXPECT_HAS(error, "cannot do the work in less than");
  // And by the machine's own peak: nobody computes 1e18 operations in microseconds.
  Bench peak;
  peak.options.floorSeconds = 0;
  Problem problem = problemOf();
  problem.flops = 1e18;
  EXPECT_HAS(errorOf([&] { tune(doubled, faults({none}), problem, peak.options); }), "too fast");
  Bench honest;
  honest.options.floorSeconds = 0;
  EXPECT_EQ(tune(doubled, faults({none}), problemOf(), honest.options).configuration["fault"], none);
}

TEST(Planted, AWorkerOfAnotherBuildIsRefused) {
  Bench setup;
  setup.options.worker = {"/bin/sh", "-c", "echo '{\"worker\": 1, \"compiler\": \"another\"}'; cat"};
  EXPECT_HAS(errorOf([&] { tune(doubled, faults({none}), problemOf(), setup.options); }), "another build");
  setup.options.worker = {"/nowhere/tenon"};
  EXPECT_HAS(errorOf([&] { tune(doubled, faults({none}), problemOf(), setup.options); }), "cannot start");
}

TEST(Planted, WorkersDoNotOutliveATunerThatIsKilled) {
  // A tuner whose candidate never returns, killed: the worker must be gone, too.
  int pipes[2];
  ASSERT_EQ(::pipe(pipes), 0);
  pid_t tuner = ::fork();
  if (tuner == 0) {
    ::close(pipes[0]); // workers inherit the other end
    Bench setup;
    setup.options.runSeconds = 600;
    setup.options.progress = [&](const TuneProgress &progress) {
      if (progress.doing.find("fault=") == 0 && ::write(pipes[1], "x", 1) != 1)
        ::_exit(1);
    };
    try {
      tune(doubled, faults({infiniteLoop}), problemOf(), setup.options);
    } catch (const std::exception &) {
    }
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(pipes[0], &byte, 1), 1);
  ::usleep(300000); // it is running by now, or will be: both end with their parent
  ::kill(tuner, SIGKILL);
  ::waitpid(tuner, nullptr, 0);
  ::close(pipes[1]);
  // The other end closes when the last process that holds it is gone.
  while (::read(pipes[0], &byte, 1) > 0) {
  }
  ::close(pipes[0]);
}

} // namespace

int main(int argc, char **argv) {
  if (argc > 1 && std::string(argv[1]) == "tune-worker")
    return tuning::workerMain({hinderCompiling, misbehave});
  keepOrdinaryCeilings();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
