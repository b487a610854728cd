// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Space.h"
#include "tenon/base/Error.h"
#include "tenon/kernels/Problems.h"
#include "tenon/kernels/Samples.h"
#include "tenon/kernels/Spaces.h"
#include "tenon/tune/Tune.h"
#include "tenon/verify/Values.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace tenon;

namespace {

Space smallSpace() {
  Space space;
  space.param("bm", {16, 32, 64}).param("bn", {16, 32}).option("stages", {1, 4});
  return space;
}

TEST(Configuration, IsReadBackFromItsText) {
  Configuration configuration({{"bm", 64}, {"bk", 32}});
  EXPECT_EQ(configuration.str(), "bk=32 bm=64");
  EXPECT_EQ(Configuration::parse("bm=64 bk=32"), configuration);
  EXPECT_EQ(Configuration::parse(""), Configuration());
  EXPECT_EQ(configuration["bm"], 64);
  EXPECT_EQ(configuration.get("bn", 7), 7);
  for (const char *bad : {"bm", "bm=", "=3", "bm=four", "bm=3x", "bm=1 bn"})
    EXPECT_THROW(Configuration::parse(bad), Error) << bad;
  EXPECT_THROW(configuration["bn"], Error);
}

TEST(Space, HasEveryCombinationInOrder) {
  std::vector<Configuration> all = smallSpace().configurations({});
  ASSERT_EQ(all.size(), 12u);
  EXPECT_EQ(all[0].str(), "bm=16 bn=16 stages=1");
  EXPECT_EQ(all[1].str(), "bm=16 bn=16 stages=4");
  EXPECT_EQ(all[11].str(), "bm=64 bn=32 stages=4");
}

TEST(Space, ConstraintsAndLimitsPrune) {
  Space space = smallSpace();
  space.require("wider than tall", [](const Configuration &c) { return c["bn"] <= c["bm"]; });
  space.footprint([](const Configuration &c) {
    Footprint footprint;
    footprint.sharedBytes = static_cast<double>(c["stages"] * (c["bm"] + c["bn"]) * 100);
    footprint.registerBytes = static_cast<double>(c["bm"] * c["bn"] * 4);
    footprint.cacheBytes = static_cast<double>(c["bm"]);
    return footprint;
  });
  Space::Refusals refusals;
  EXPECT_EQ(space.configurations({}, &refusals).size(), 10u); // what is not known limits nothing
  EXPECT_EQ(refusals, (Space::Refusals{{"wider than tall", 2}}));

  Limits limits;
  limits.sharedBytes = 20000;
  refusals.clear();
  for (const Configuration &configuration : space.configurations(limits, &refusals))
    EXPECT_LE(configuration["stages"] * (configuration["bm"] + configuration["bn"]) * 100, 20000);
  EXPECT_EQ(refusals["more shared memory than a block can have"], 3u); // 4 x (32 + 32), 4 x (64 + 16), ...

  limits = {};
  limits.registersPerBlockBytes = 4096;
  refusals.clear();
  space.configurations(limits, &refusals);
  EXPECT_EQ(refusals["more registers than a block can have"], 2u); // 64 x 32
  limits = {};
  limits.cacheBytes = 32;
  refusals.clear();
  space.configurations(limits, &refusals);
  EXPECT_EQ(refusals["tiles that exceed the last-level cache"], 4u);
}

TEST(Space, RegistersOfFewWarpsAreFew) {
  Space space;
  space.param("b", {64}).option("warps", {1, 8});
  space.footprint([](const Configuration &) {
    Footprint footprint;
    footprint.registerBytes = 64 * 1024;
    return footprint;
  });
  Limits limits;
  limits.registersPerThreadBytes = 255 * 4;
  std::vector<Configuration> valid = space.configurations(limits);
  ASSERT_EQ(valid.size(), 1u);
  EXPECT_EQ(valid[0]["warps"], 8);
}

TEST(Space, AppliesParametersAndOptions) {
  Space space;
  space.param("bm", {64}).option("stages", {3}).option("warps", {8}).option("cluster", {2}).option("threads", {5});
  space.option("vector_bits", {256});
  LaunchOptions base;
  base.params = {{"use_bias", 1}, {"bm", 16}};
  LaunchOptions launch = space.apply(space.configurations({}).front(), base);
  EXPECT_EQ(launch.params, (Params{{"bm", 64}, {"use_bias", 1}}));
  EXPECT_EQ(launch.compile.stages, 3);
  EXPECT_EQ(launch.compile.warps, 8);
  EXPECT_EQ(launch.compile.cluster, 2);
  EXPECT_EQ(launch.threads, 5);
  EXPECT_EQ(launch.compile.isa, "avx2");
  Space wrong;
  wrong.option("vector_bits", {1024});
  EXPECT_THROW(wrong.apply(wrong.configurations({}).front(), {}), Error);
}

TEST(Space, WrongDeclarationsAreRefused) {
  Space space = smallSpace();
  EXPECT_THROW(space.param("bm", {1}), Error);       // twice
  EXPECT_THROW(space.param("bk", {}), Error);        // no values
  EXPECT_THROW(space.param("warps", {1}), Error);    // an option's name
  EXPECT_THROW(space.option("speed", {1}), Error);   // no option
  Space huge;
  for (char name = 'a'; name < 'k'; ++name)
    huge.param(std::string(1, name), {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THROW(huge.combinations(), Error);
  Space twice;
  twice.param("cols", {64, 64, 128}); // two roundings of one size are one choice
  EXPECT_EQ(twice.combinations(), 2u);
}

TEST(ZooSpaces, AreLargeAndFit) {
  struct {
    const char *kernel;
    std::vector<int64_t> shape;
  } cases[] = {{"softmax", {512, 1000}},           {"layer_norm", {512, 1024}},     {"matmul", {256, 256, 256}},
               {"attention", {1, 2, 2, 256, 64}},  {"linear", {256, 512, 512}},     {"gated_mlp", {256, 256, 256}},
               {"grouped_matmul", {4, 512, 256, 256}}};
  for (const auto &[kernel, shape] : cases)
    for (Target target : {Target::cpu, Target::sim}) {
      bool hasOwn = kernel != std::string("gated_mlp") && kernel != std::string("grouped_matmul");
      if (target == Target::cpu && !hasOwn)
        continue;
      const zoo::Entry &entry = zoo::find(kernel);
      Problem problem = entry.makeProblem(shape, f32, 1);
      LaunchOptions options;
      options.target = target;
      Space space = zoo::spaceOf(entry, problem, target);
      std::vector<Configuration> valid = space.configurations(limitsOf(options));
      EXPECT_GE(valid.size(), target == Target::cpu ? 250u : 100u) << kernel << " on " << nameOf(target);
      for (const Configuration &configuration : valid)
        for (const auto &[name, value] : space.apply(configuration, {}).params)
          EXPECT_TRUE(problem.params.contains(name)) << kernel << " has no parameter " << name;
    }
}

TEST(ZooSpaces, WidthsMakeWholeRounds) {
  // 24 rows of tiles of 128: 132 multiprocessors have five of each, and 5 x 208 are 1040.
  const zoo::Entry &entry = zoo::find("linear");
  Problem problem = entry.makeProblem(std::vector<int64_t>{3072, 1040, 64}, bf16, 1);
  Space space = zoo::spaceOf(entry, problem, Target::sim);
  bool found = false;
  for (const Space::Dimension &dimension : space.dimensions())
    if (dimension.name == "bn")
      found = std::find(dimension.values.begin(), dimension.values.end(), 208) != dimension.values.end();
  EXPECT_TRUE(found);
}

/// Steps of f8 as long as two slots allow, in which sums are added up half as often.
TEST(ZooSpaces, LongStepsOfF8) {
  const zoo::Entry &entry = zoo::find("linear");
  auto has = [&](DType dtype) {
    Problem problem; // whose memory nobody touches
    problem.arguments = {Tensor::empty(dtype, {8192, 8192}), Tensor::empty(dtype, {8192, 8192}).transpose({1, 0}),
                         Tensor::empty(bf16, {0}), Tensor::empty(bf16, {8192, 8192})};
    LaunchOptions options;
    options.target = Target::sim;
    int64_t line = dtype == bf16 ? 64 : 128;
    for (const Configuration &c : zoo::spaceOf(entry, problem, Target::sim).configurations(limitsOf(options)))
      if (c["bm"] == 128 && c["bn"] == 256 && c["bk"] == 2 * line)
        return true;
    return false;
  };
  EXPECT_TRUE(has(f8e4m3));
  EXPECT_FALSE(has(bf16));
}

/// Two warpgroups that take tiles in turns: where there are many tiles of one product of 16 bits, and the tensor memory
/// accelerator loads them. The model chooses them where the loop is short.
TEST(ZooSpaces, ProductsInTurns) {
  const zoo::Entry &entry = zoo::find("linear");
  auto problemOf = [](DType dtype, int64_t m, int64_t n, int64_t k) { // whose memory nobody touches
    Problem problem;
    problem.arguments = {Tensor::empty(dtype, {m, k}), Tensor::empty(dtype, {n, k}).transpose({1, 0}),
                         Tensor::empty(zoo::productType(dtype), {0}), Tensor::empty(zoo::productType(dtype), {m, n})};
    return problem;
  };
  auto hasTurns = [&](const Problem &problem) {
    Space space = zoo::spaceOf(entry, problem, Target::sim);
    for (const Space::Dimension &dimension : space.dimensions())
      if (dimension.name == "pingpong")
        return true;
    return false;
  };
  EXPECT_TRUE(hasTurns(problemOf(bf16, 8192, 8192, 512)));
  EXPECT_FALSE(hasTurns(problemOf(bf16, 8192, 8192, 129)));
  EXPECT_FALSE(hasTurns(problemOf(f8e4m3, 8192, 8192, 512)));
  EXPECT_FALSE(hasTurns(problemOf(bf16, 64, 8192, 512)));
  EXPECT_FALSE(hasTurns(problemOf(bf16, 1024, 1024, 512)));

  TuneOptions options;
  options.policy = TunePolicy::off;
  options.launch.target = Target::sim;
  auto chosen = [&](int64_t m, int64_t n, int64_t k) {
    Problem problem = problemOf(bf16, m, n, k);
    return choose(entry.kernel, zoo::spaceOf(entry, problem, Target::sim), problem.arguments, options).configuration;
  };
  Configuration few = chosen(8192, 8192, 512), many = chosen(4096, 4096, 4096);
  EXPECT_EQ(few["pingpong"], 1) << few.str();
  EXPECT_EQ(few["bn"], 192) << few.str();
  EXPECT_EQ(many["pingpong"], 0) << many.str();
}

/// Clusters of neighbours where instances are numbered so that these share something, and of no others.
TEST(ZooSpaces, ProductsInPairs) {
  const zoo::Entry &entry = zoo::find("grouped_matmul");
  Problem problem = entry.makeProblem(std::vector<int64_t>{4, 1024, 512, 256}, bf16, 1);
  bool inPairs = false;
  for (const Configuration &c : zoo::spaceOf(entry, problem, Target::sim).configurations({})) {
    EXPECT_EQ(c["pair"], c["cluster"]) << c.str();
    inPairs |= c["pair"] == 2;
  }
  EXPECT_TRUE(inPairs);
}

/// The model's choices of what the record of products was taken with.
TEST(ZooSpaces, TwoProductsInTurnsAndManySums) {
  const zoo::Entry &entry = zoo::find("gated_mlp");
  Problem problem;
  Tensor weights = Tensor::empty(bf16, {14336, 4096}).transpose({1, 0});
  problem.arguments = {Tensor::empty(bf16, {4096, 4096}), weights, weights, Tensor::empty(bf16, {4096, 14336})};
  TuneOptions options;
  options.policy = TunePolicy::off;
  options.launch.target = Target::sim;
  Configuration chosen =
      choose(entry.kernel, zoo::spaceOf(entry, problem, Target::sim), problem.arguments, options).configuration;
  EXPECT_EQ(chosen.str(), "bk=64 bm=128 bn=96 cluster=1 pingpong=1 split=1 stages=4 warps=8");

  problem.arguments = {problem.arguments[0], weights, Tensor::empty(bf16, {0}), problem.arguments[3]};
  int64_t most = 0; // sums a thread, together
  for (const Configuration &c : zoo::spaceOf(zoo::find("linear"), problem, Target::sim).configurations({}))
    if (!c["pingpong"])
      most = std::max(most, c["bm"] * c["bn"] / (32 * c["warps"]));
  EXPECT_EQ(most, 160);
}

/// The result of the reference on samples is what the samples of its result are.
TEST(ZooSamples, AreProblemsOfTheirOwn) {
  struct {
    const char *kernel;
    std::vector<int64_t> shape;
  } cases[] = {{"linear", {130, 150, 40}}, {"gated_mlp", {130, 70, 33}}, {"grouped_matmul", {5, 300, 130, 20}},
               {"matmul_bias_gelu", {65, 127, 33}}};
  for (const auto &[kernel, shape] : cases) {
    const zoo::Entry &entry = zoo::find(kernel);
    Problem problem = entry.makeProblem(shape, f32, 7);
    auto samples = zoo::samplesOf(entry);
    ASSERT_TRUE(samples) << kernel;
    Arguments all = problem.arguments;
    problem.reference(all);
    for (Arguments part : samples(all)) {
      std::vector<double> wanted = valuesOf<double>(part[3].tensor());
      ASSERT_LT(wanted.size(), valuesOf<double>(all[3].tensor()).size()) << kernel;
      part[3] = Tensor::zeros(f32, part[3].tensor().sizes());
      problem.reference(part);
      std::vector<double> found = valuesOf<double>(part[3].tensor());
      ASSERT_EQ(found.size(), wanted.size());
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], wanted[i], 1e-4 * (1 + std::abs(wanted[i]))) << kernel << " " << i;
    }
  }
}

/// A step along K has one row of scales: where a group is none of the usual lengths, a step that divides it.
TEST(ZooSpaces, StepsLieInOneGroupOfScales) {
  const zoo::Entry &entry = zoo::find("dequant_matmul");
  for (int64_t group : {32, 64, 128, 48}) {
    Problem problem = zoo::dequantMatmulProblem({128, 128, 384, group}, bf16, 1);
    std::vector<Configuration> found = zoo::spaceOf(entry, problem, Target::sim).configurations({});
    EXPECT_FALSE(found.empty()) << group;
    for (const Configuration &c : found)
      EXPECT_EQ(group % c["bk"], 0) << group;
  }
}

TEST(ZooSpaces, EveryEntryHasOne) {
  for (const zoo::Entry &entry : zoo::entries()) {
    Problem problem = entry.makeProblem(entry.testShapes.front(), entry.dtypes.front(), 1);
    for (Target target : {Target::cpu, Target::sim})
      EXPECT_FALSE(zoo::spaceOf(entry, problem, target).configurations({}).empty()) << entry.name;
  }
}

} // namespace
