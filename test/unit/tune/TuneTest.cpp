// SPDX-License-Identifier: Apache-2.0
//
// Policies, the database between runs, and what invalidates it. PlantedTest.cpp has the main(): workers are this
// program.
#include "tenon/tune/Tune.h"
#include "tenon/base/Error.h"
#include "tenon/kernels/Spaces.h"
#include "tenon/model/Ceilings.h"
#include "tenon/tune/TileProgram.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>

#include <sys/wait.h>
#include <unistd.h>

using namespace tenon;

namespace {

/// y = x * factor, tiled two ways; the factor is captured, so that two kernels of one name can be had.
Kernel scaling(double factor) {
  return Kernel("scaling(x, y, width=64, unused=0)", [factor](View x, View y, Param width, Param unused) {
    Index i = grid(cdiv(x.size(0), width));
    Tile t = x.load({i * width}, {width});
    y.store({i * width}, unused == 3 ? t * factor * 1 : t * factor);
  });
}

Problem scalingProblem(double factor, int64_t size = 3000) {
  Problem problem;
  problem.label = "scaling";
  Tensor x = Tensor::empty(f32, {size});
  x.fillRandom(5, -2, 2);
  problem.arguments = {x, Tensor::zeros(f32, {size})};
  problem.outputs = {1};
  problem.reference = problem.plain = [factor](Arguments &a) {
    for (int64_t i = 0; i < a[0].tensor().size(0); ++i)
      a[1].tensor().set({i}, a[0].tensor().get({i}) * factor);
  };
  problem.flops = static_cast<double>(size);
  problem.bytes = 8.0 * static_cast<double>(size);
  return problem;
}

Space widths() {
  Space space;
  space.param("width", {16, 64, 256, 1024});
  return space;
}

struct ByWidth final : Ranker {
  Prediction predict(const Configuration &configuration) const override {
    Prediction prediction;
    prediction.seconds = 1.0 / static_cast<double>(configuration["width"]);
    prediction.terms = {{"steps", prediction.seconds}};
    prediction.boundBy = "steps";
    return prediction;
  }
};

class Tuning : public testing::Test {
protected:
  Tuning() {
    char name[] = "/tmp/tenon-tune-XXXXXX";
    folder_ = ::mkdtemp(name);
    Database::Options where;
    where.path = folder_ + "/tuning.sqlite";
    database_ = std::make_unique<Database>(where);
    options_.database = database_.get();
    options_.ranker = &ranker_;
    options_.worker = {"/proc/self/exe", "tune-worker"};
    options_.workers = 1;
    options_.timingSeconds = 0.01;
    options_.policy = TunePolicy::quick;
  }
  ~Tuning() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  ByWidth ranker_;
  std::unique_ptr<Database> database_;
  TuneOptions options_;
  Kernel kernel_ = scaling(3);
  Problem problem_ = scalingProblem(3);
};

#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

TEST_F(Tuning, TheDefaultMeasuresNothing) {
  TuneOptions defaults;
  EXPECT_EQ(defaults.policy, TunePolicy::cached);
  options_.policy = defaults.policy;
  options_.worker = {"/nowhere"}; // would be found out
  TuneReport report = choose(kernel_, widths(), problem_.arguments, options_);
  EXPECT_EQ(report.source, TuneReport::Source::model);
  EXPECT_EQ(report.configuration["width"], 1024);
  EXPECT_EQ(report.options.params.at("width"), 1024);
  EXPECT_HAS(report.reason, "nothing was measured here");
  EXPECT_EQ(report.measured, 0u);
  options_.policy = TunePolicy::off;
  EXPECT_HAS(choose(kernel_, widths(), problem_.arguments, options_).reason, "tuning is off");
  options_.policy = TunePolicy::quick;
  EXPECT_THROW(choose(kernel_, widths(), problem_.arguments, options_), Error);
}

TEST_F(Tuning, WhatWasMeasuredIsKnownAndChosen) {
  TuneReport first = tune(kernel_, widths(), problem_, options_);
  EXPECT_EQ(first.measured, 4u);
  EXPECT_EQ(first.source, TuneReport::Source::measured);
  EXPECT_GT(first.seconds, 0);
  // Again: all is known.
  options_.worker = {"/nowhere"};
  TuneReport second = tune(kernel_, widths(), problem_, options_);
  EXPECT_EQ(second.measured, 0u);
  EXPECT_EQ(second.tried.size(), 4u);
  EXPECT_EQ(second.configuration, first.configuration);
  EXPECT_EQ(second.seconds, first.seconds);
  // And without a problem to judge by.
  options_.policy = TunePolicy::cached;
  TuneReport cached = choose(kernel_, widths(), problem_.arguments, options_);
  EXPECT_EQ(cached.source, TuneReport::Source::database);
  EXPECT_EQ(cached.configuration, first.configuration);
  EXPECT_HAS(cached.reason, "measured here before");
}

TEST_F(Tuning, ALimitAndAStopKeepWhatWasFound) {
  options_.maxConfigurations = 2;
  EXPECT_EQ(tune(kernel_, widths(), problem_, options_).measured, 2u);
  options_.maxConfigurations = 0;
  size_t measured = 0;
  options_.progress = [&](const TuneProgress &progress) { measured = progress.tried; };
  options_.stop = [&] { return measured >= 3; }; // two are known, one is new
  TuneReport stopped = tune(kernel_, widths(), problem_, options_);
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.measured, 1u);
  EXPECT_HAS(stopped.reason, "stopped");
  options_.stop = nullptr;
  EXPECT_EQ(tune(kernel_, widths(), problem_, options_).measured, 1u); // the one that was left
  Kernel other = scaling(4);
  options_.budgetSeconds = 0;
  try {
    tune(other, widths(), scalingProblem(4), options_);
    FAIL() << "no time, and yet";
  } catch (const Error &error) {
    EXPECT_HAS(error.what(), "the budget was spent before anything was measured");
  }
}

// Deciding is part of the budget: the winner's check on another problem takes as long as judging the first candidate
// did. On a clock of its own: references take 700 ms, and a step of the search 5 ms.
TEST_F(Tuning, ABudgetIncludesTheDecision) {
  std::chrono::steady_clock::time_point begin, time = begin;
  options_.now = [&] { return time; };
  options_.progress = [&](const TuneProgress &) { time += std::chrono::milliseconds(5); };
  int references = 0;
  auto slowly = [&](Problem problem) {
    problem.reference = [&, compute = problem.reference](Arguments &arguments) {
      ++references;
      time += std::chrono::milliseconds(700);
      compute(arguments);
    };
    return problem;
  };
  Space many;
  many.param("width", {16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256})
      .param("unused", {1, 2, 3, 4, 5, 6});
  options_.policy = TunePolicy::full;
  options_.budgetSeconds = 1.6;
  options_.checks = {slowly(scalingProblem(3))};
  TuneReport report = tune(kernel_, many, slowly(problem_), options_);
  EXPECT_TRUE(report.stopped);
  EXPECT_GE(report.measured, 2u); // there was time for more than the first
  EXPECT_LT(report.measured, report.valid);
  EXPECT_EQ(references, 2) << "the winner's among them";
  EXPECT_LE(time - begin, std::chrono::milliseconds(1600));
}

TEST_F(Tuning, AKilledRunIsResumed) {
  pid_t child = ::fork();
  if (child == 0) {
    size_t tried = 0;
    options_.progress = [&](const TuneProgress &progress) {
      tried = progress.tried;
      if (tried == 2)
        ::kill(::getpid(), SIGKILL);
    };
    Database::Options where;
    where.path = folder_ + "/tuning.sqlite";
    Database own(where); // a connection does not survive a fork
    options_.database = &own;
    tune(kernel_, widths(), problem_, options_);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  TuneReport resumed = tune(kernel_, widths(), problem_, options_);
  EXPECT_EQ(resumed.measured, 2u);
  EXPECT_EQ(resumed.tried.size(), 4u);
}

TEST_F(Tuning, AnotherKernelOfTheNameIsAnotherKernel) {
  tune(kernel_, widths(), problem_, options_);
  Kernel moved = scaling(3); // the same program
  EXPECT_EQ(tune(moved, widths(), problem_, options_).measured, 0u);
  Kernel changed = scaling(4);
  EXPECT_EQ(tune(changed, widths(), scalingProblem(4), options_).measured, 4u);
  options_.policy = TunePolicy::cached;
  Kernel third = scaling(5);
  EXPECT_EQ(choose(third, widths(), problem_.arguments, options_).source, TuneReport::Source::model);
  EXPECT_EQ(choose(kernel_, widths(), problem_.arguments, options_).source, TuneReport::Source::database);
}

TEST_F(Tuning, AnotherShapeTypeOrParameterIsAnotherProblem) {
  LaunchOptions launch;
  TuneKey key = tuneKeyOf(kernel_, widths(), problem_.arguments, launch);
  EXPECT_EQ(key.kernel, "scaling");
  EXPECT_EQ(key.problem, "f32[3000] f32[3000]");
  EXPECT_EQ(key.target, "cpu");
  EXPECT_FALSE(key.device.empty());
  EXPECT_FALSE(key.compiler.empty());
  auto differs = [&](const Arguments &arguments, const LaunchOptions &options) {
    return !(tuneKeyOf(kernel_, widths(), arguments, options) == key);
  };
  EXPECT_FALSE(differs(scalingProblem(7).arguments, launch)); // other values
  EXPECT_TRUE(differs(scalingProblem(3, 3001).arguments, launch));
  Tensor wide = Tensor::zeros(f32, {6000});
  EXPECT_TRUE(differs({wide.slice(0, 0, 3000, 2), problem_.arguments[1]}, launch)); // strides
  launch.params["width"] = 128; // is tuned
  EXPECT_FALSE(differs(problem_.arguments, launch));
  launch.params["unused"] = 1;
  EXPECT_TRUE(differs(problem_.arguments, launch));
  launch.params.clear();
  launch.threads = 1;
  EXPECT_TRUE(differs(problem_.arguments, launch));
  launch.threads = 0;
  launch.compile.isa = "avx2";
  EXPECT_TRUE(differs(problem_.arguments, launch));
  launch.compile.isa = "native";
  for (int CompileOptions::*option : {&CompileOptions::warps, &CompileOptions::cluster, &CompileOptions::stages,
                                      &CompileOptions::split}) {
    launch.compile.*option = 2;
    EXPECT_TRUE(differs(problem_.arguments, launch));
    launch.compile.*option = 0;
  }
  launch.target = Target::sim;
  EXPECT_TRUE(differs(problem_.arguments, launch));
}

TEST_F(Tuning, VersionsInvalidateWhatTheyMust) {
  TuneReport first = tune(kernel_, widths(), problem_, options_);
  // The records of a database as another compiler, device or driver would have left them.
  for (std::string TuneKey::*part : {&TuneKey::compiler, &TuneKey::device, &TuneKey::driver}) {
    Database::Options memory;
    memory.path = ":memory:";
    Database other(memory);
    for (TuneRecord record : database_->related("", "")) {
      record.key.*part += " of yesterday";
      other.add(record);
    }
    options_.database = &other;
    options_.policy = TunePolicy::cached;
    EXPECT_EQ(choose(kernel_, widths(), problem_.arguments, options_).source, TuneReport::Source::model);
  }
  // A program that changed is out alone; the others of the same kernel stay.
  Database::Options memory;
  memory.path = ":memory:";
  Database other(memory);
  for (TuneRecord record : database_->related("", "")) {
    if (record.configuration == first.configuration)
      record.program = "changed";
    other.add(record);
  }
  options_.database = &other;
  TuneReport next = choose(kernel_, widths(), problem_.arguments, options_);
  EXPECT_EQ(next.source, TuneReport::Source::database);
  EXPECT_NE(next.configuration, first.configuration);
}

TEST_F(Tuning, AnEmptySpaceSaysWhy) {
  Space space = widths();
  space.require("too wide for this test", [](const Configuration &) { return false; });
  try {
    choose(kernel_, space, problem_.arguments, [&] {
      TuneOptions off = options_;
      off.policy = TunePolicy::off;
      return off;
    }());
    FAIL();
  } catch (const Error &error) {
    EXPECT_HAS(error.what(), "4: too wide for this test");
  }
}

TEST_F(Tuning, KernelsOfTheZooOnEveryTarget) {
  const zoo::Entry &softmax = zoo::find("softmax");
  options_.ranker = nullptr; // the model's
  options_.quickCount = 3;
  for (Target target : {Target::cpu, Target::sim, Target::interpreter}) {
    std::vector<int64_t> shape = {8, 100};
    Problem problem = softmax.makeProblem(shape, f32, 1);
    options_.launch = {};
    options_.launch.target = target;
    TuneReport report = tune(softmax.kernel, zoo::spaceOf(softmax, problem, target), problem, options_);
    EXPECT_EQ(report.measured, 3u) << nameOf(target);
    EXPECT_EQ(report.failed, 0u) << nameOf(target) << ": " << report.tried.front().outcome.reason;
    EXPECT_FALSE(report.prediction.terms.empty());
    // What it says can be launched.
    EXPECT_TRUE(verify(problem, softmax.kernel, report.options).passed);
  }
}

TEST_F(Tuning, AWarmDatabaseTeachesANewShape) {
  options_.ranker = nullptr;
  const zoo::Entry &softmax = zoo::find("softmax");
  auto run = [&](std::vector<int64_t> shape, size_t count) {
    Problem problem = softmax.makeProblem(shape, f32, 1);
    options_.quickCount = count;
    return tune(softmax.kernel, zoo::spaceOf(softmax, problem, Target::cpu), problem, options_);
  };
  run({32, 100}, 8);
  TuneReport warm = run({48, 100}, 2);
  EXPECT_EQ(warm.measured, 2u);
  EXPECT_EQ(warm.failed, 0u);
}

TEST_F(Tuning, InPlaceArgumentsAreTunedToo) {
  Kernel kernel("bump(x, width=64)", [](View x, Param width) {
    Index i = grid(cdiv(x.size(0), width));
    x.store({i * width}, x.load({i * width}, {width}) * 0.5);
  });
  Problem problem = scalingProblem(0.5);
  problem.arguments = {problem.arguments[0]};
  problem.outputs = problem.inPlace = {0};
  problem.reference = problem.plain = [](Arguments &a) {
    for (int64_t i = 0; i < a[0].tensor().size(0); ++i)
      a[0].tensor().set({i}, a[0].tensor().get({i}) * 0.5);
  };
  double before = problem.arguments[0].tensor().get({7});
  TuneReport report = tune(kernel, widths(), problem, options_);
  EXPECT_EQ(report.failed, 0u);
  EXPECT_EQ(problem.arguments[0].tensor().get({7}), before);
}

TEST(ModelRanker, OrdersASpaceInNoTime) {
  const zoo::Entry &matmul = zoo::find("matmul");
  std::vector<int64_t> shape = {256, 256, 256};
  Problem problem = matmul.makeProblem(shape, f32, 1);
  for (Target target : {Target::cpu, Target::sim}) {
    LaunchOptions options;
    options.params = problem.params;
    options.target = target;
    Space space = zoo::spaceOf(matmul, problem, target);
    std::unique_ptr<Ranker> ranker = defaultRanker(matmul.kernel, space, problem.arguments, options);
    std::set<double> distinct;
    size_t width = 0;
    for (const Configuration &configuration : space.configurations(limitsOf(options))) {
      Prediction prediction = ranker->predict(configuration);
      if (!prediction.refusal.empty())
        continue;
      EXPECT_GT(prediction.seconds, 0) << configuration.str();
      EXPECT_FALSE(prediction.terms.empty());
      EXPECT_TRUE(width == 0 || width == prediction.features.size());
      width = prediction.features.size();
      distinct.insert(prediction.seconds);
    }
    EXPECT_GT(distinct.size(), 10u) << nameOf(target); // it does tell them apart
  }
}

TEST(ModelRanker, SaysWhatMakesTheDifference) {
  Prediction fast{1e-3, {{"memory", 1e-3}, {"vector f32", 2e-4}}, "memory", "", {}};
  Prediction slow{3e-3, {{"memory", 3e-3}, {"vector f32", 3e-4}}, "memory", "", {}};
  std::string text = explainDifference(fast, slow);
  EXPECT_HAS(text, "1 ms against 3 ms");
  EXPECT_HAS(text, "memory takes 1 ms instead of 3 ms");
}

/// What candidates are compiled from says which tensors overlap, as a launch does: one bit for all of them would forbid
/// each candidate what the launch itself may do.
TEST(TileText, SaysWhichTensorsOverlap) {
  Kernel add("add(x, y, z)", [](View x, View y, View z) {
    Index i = grid(cdiv(x.size(0), 64));
    z.store({i * 64}, x.load({i * 64}, {64}) + y.load({i * 64}, {64}));
  });
  LaunchOptions options;
  options.target = Target::sim;
  Tensor a = Tensor::zeros(f32, {256}), b = Tensor::zeros(f32, {256}), c = Tensor::zeros(f32, {256});
  tuning::TileText apart = tuning::traceToText(add, {a, b, c}, options);
  tuning::TileText inPlace = tuning::traceToText(add, {a, b, a}, options);
  tuning::TileText other = tuning::traceToText(add, {a, b, b}, options);
  EXPECT_EQ(apart.ir.find("tile.overlaps"), std::string::npos);
  EXPECT_HAS(inPlace.ir, "tile.overlaps");
  EXPECT_HAS(inPlace.ir, "tile.same_as = 0");
  EXPECT_HAS(other.ir, "tile.same_as = 1");
  EXPECT_NE(inPlace.hash, other.hash);
}

} // namespace
