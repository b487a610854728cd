// SPDX-License-Identifier: Apache-2.0
//
// Every kernel of the zoo in every type on every odd shape, against its reference.
#include "tenon/kernels/Zoo.h"

#include <gtest/gtest.h>

using namespace tenon;

namespace {

struct Case {
  const zoo::Entry *entry;
  DType dtype;
  std::vector<int64_t> shape;

  Problem problem() const { return entry->makeProblem(shape, dtype, /*seed=*/11); }
};

std::string nameOfCase(const testing::TestParamInfo<Case> &info) {
  std::string name = info.param.entry->name + "_" + std::string(nameOf(info.param.dtype));
  for (int64_t size : info.param.shape)
    name += "_" + std::to_string(size);
  return name;
}

void PrintTo(const Case &c, std::ostream *out) { *out << c.entry->name << " " << c.problem().label; }

std::vector<Case> casesWhere(const std::function<bool(const Case &)> &wanted) {
  std::vector<Case> cases;
  for (const zoo::Entry &entry : zoo::entries())
    for (DType dtype : entry.dtypes)
      for (const auto &shape : entry.testShapes)
        if (Case c{&entry, dtype, shape}; wanted(c))
          cases.push_back(c);
  return cases;
}

/// The interpreter and the simulator are about a thousand times slower than compiled code.
bool isSmall(const Case &c) {
  Problem problem = c.problem();
  return problem.flops <= 3e5 && problem.bytes <= 5e5;
}

void expectRight(const Case &c, Target target) {
  LaunchOptions options;
  options.target = target;
  Verdict verdict = verify(c.problem(), c.entry->kernel, options);
  EXPECT_TRUE(verdict.passed) << verdict.reason;
}

class OnCpu : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Zoo, OnCpu, testing::ValuesIn(casesWhere([](const Case &) { return true; })), nameOfCase);

TEST_P(OnCpu, AgreesWithTheReference) { expectRight(GetParam(), Target::cpu); }

class OnInterpreter : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Zoo, OnInterpreter, testing::ValuesIn(casesWhere(isSmall)), nameOfCase);

TEST_P(OnInterpreter, AgreesWithTheReference) { expectRight(GetParam(), Target::interpreter); }

class OnSimulator : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Zoo, OnSimulator, testing::ValuesIn(casesWhere(isSmall)), nameOfCase);

TEST_P(OnSimulator, AgreesWithTheReference) { expectRight(GetParam(), Target::sim); }

class AsPlainLoop : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Zoo, AsPlainLoop,
                         testing::ValuesIn(casesWhere([](const Case &c) { return c.dtype == f32; })), nameOfCase);

TEST_P(AsPlainLoop, AgreesWithTheReference) {
  Verdict verdict = verify(GetParam().problem(), GetParam().entry->plainLoop);
  EXPECT_TRUE(verdict.passed) << verdict.reason;
}

TEST(Zoo, NamesAreFoundAndUnknownOnesExplained) {
  for (const zoo::Entry &entry : zoo::entries())
    EXPECT_EQ(&zoo::find(entry.name), &entry);
  try {
    zoo::find("softmaxx");
    FAIL() << "found";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("softmax, layer_norm"), std::string::npos) << error.what();
  }
}

TEST(Zoo, ShapesAndTypesAreChecked) {
  const zoo::Entry &softmax = zoo::find("softmax");
  for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {3}, {3, 4, 5}, {-1, 4}})
    EXPECT_THROW(softmax.makeProblem(shape, f32, 0), Error);
  EXPECT_THROW(softmax.makeProblem(std::vector<int64_t>{3, 4}, i32, 0), Error);
  EXPECT_THROW(zoo::find("rotary").makeProblem(std::vector<int64_t>{3, 4, 5}, f32, 0), Error);
  EXPECT_THROW(zoo::find("attention").makeProblem(std::vector<int64_t>{1, 3, 2, 5, 16}, f32, 0), Error);
}

TEST(Zoo, EntriesAreComplete) {
  for (const zoo::Entry &entry : zoo::entries()) {
    EXPECT_FALSE(entry.summary.empty()) << entry.name;
    EXPECT_EQ(entry.dimensions.size(), entry.demoShape.size()) << entry.name;
    EXPECT_EQ(entry.dtypes.front(), f32) << entry.name;
    EXPECT_TRUE(entry.plainLoop) << entry.name;
    Problem problem = entry.makeProblem(entry.testShapes.front(), f32, 1);
    EXPECT_GT(problem.flops, 0) << entry.name;
    EXPECT_GT(problem.bytes, 0) << entry.name;
  }
}

TEST(Zoo, TheSeedDecidesTheInputs) {
  for (const zoo::Entry &entry : zoo::entries()) {
    auto first = [&](uint64_t seed) { return entry.makeProblem(entry.testShapes[1], f32, seed).arguments[0].tensor(); };
    std::vector<int64_t> origin(static_cast<size_t>(first(1).rank()), 0);
    EXPECT_EQ(first(1).get(origin), first(1).get(origin)) << entry.name;
    EXPECT_NE(first(1).get(origin), first(2).get(origin)) << entry.name;
  }
}

} // namespace
