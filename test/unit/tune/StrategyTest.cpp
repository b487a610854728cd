// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/Error.h"
#include "tenon/tune/BoostedTrees.h"
#include "tenon/tune/Features.h"
#include "tenon/tune/Replay.h"
#include "tenon/tune/Strategy.h"
#include "tenon/tune/Transfer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

using namespace tenon;
using namespace tenon::tuning;

namespace {

//===--- BoostedTrees ---------------------------------------------------------------------------------------------===//

/// Points of a grid, "yes" where the function says so.
std::vector<BoostedTrees::Sample> grid(bool (*yes)(float, float)) {
  std::vector<BoostedTrees::Sample> samples;
  for (int i = 0; i < 20; ++i)
    for (int j = 0; j < 20; ++j) {
      auto x = static_cast<float>(i), y = static_cast<float>(j);
      samples.push_back({{x, y, static_cast<float>((i * 7 + j * 3) % 11)}, yes(x, y), 1});
    }
  return samples;
}

size_t mistakes(const BoostedTrees &trees, const std::vector<BoostedTrees::Sample> &samples) {
  size_t wrong = 0;
  for (const BoostedTrees::Sample &sample : samples)
    wrong += (trees.probability(sample.features) > 0.5) != sample.yes;
  return wrong;
}

TEST(BoostedTrees, LearnsWhatNoLineDivides) {
  BoostedTrees trees;
  auto samples = grid([](float x, float y) { return (x < 10) != (y < 10); });
  trees.fit(samples);
  EXPECT_EQ(mistakes(trees, samples), 0u);
  auto box = grid([](float x, float y) { return x > 3 && x < 8 && y > 12; });
  trees.fit(box);
  EXPECT_EQ(mistakes(trees, box), 0u);
  // The third feature has nothing to do with it.
  EXPECT_LT(trees.importance()[2], 0.1);
  EXPECT_NEAR(trees.importance()[0] + trees.importance()[1] + trees.importance()[2], 1, 1e-9);
}

TEST(BoostedTrees, ProbabilitiesAreOnes) {
  BoostedTrees trees;
  EXPECT_DOUBLE_EQ(trees.probability(std::vector<float>{1, 2, 3}), 0.5);
  auto samples = grid([](float x, float) { return x > 15; });
  trees.fit(samples);
  for (const BoostedTrees::Sample &sample : samples) {
    double p = trees.probability(sample.features);
    EXPECT_GT(p, 0);
    EXPECT_LT(p, 1);
  }
  // One answer only: nothing to learn, and that answer.
  trees.fit(grid([](float, float) { return false; }));
  EXPECT_LT(trees.probability(std::vector<float>{1, 2, 3}), 0.1);
  trees.fit(std::vector<BoostedTrees::Sample>());
  EXPECT_DOUBLE_EQ(trees.probability(std::vector<float>{}), 0.5);
}

TEST(BoostedTrees, WeightsCount) {
  // The same point, three times no and once a heavy yes.
  std::vector<BoostedTrees::Sample> samples(3, {{1.0f}, false, 1});
  samples.push_back({{1.0f}, true, 30});
  BoostedTrees trees;
  trees.fit(samples);
  EXPECT_GT(trees.probability(std::vector<float>{1}), 0.8);
}

TEST(BoostedTrees, IsTheSameEveryTime) {
  auto samples = grid([](float x, float y) { return x * y > 90; });
  BoostedTrees a, b;
  a.fit(samples);
  b.fit(samples);
  for (const BoostedTrees::Sample &sample : samples)
    EXPECT_EQ(a.probability(sample.features), b.probability(sample.features));
}

TEST(BoostedTrees, SamplesOfDifferentWidthAreADefect) {
  std::vector<BoostedTrees::Sample> samples = {{{1, 2}, true, 1}, {{1}, false, 1}};
  EXPECT_THROW(BoostedTrees().fit(samples), InternalError);
}

//===--- Strategy -------------------------------------------------------------------------------------------------===//

/// A space of 20 x 20 whose best point is at (a, b); the model is half right: it knows a.
struct Landscape {
  double a = 12, b = 5;
  double seconds(size_t i) const {
    double x = static_cast<double>(i / 20) - a, y = static_cast<double>(i % 20) - b;
    return 1 + 0.02 * (x * x + 2 * y * y);
  }
  /// As Features.h lays them out: configuration, prediction, shape.
  static std::vector<float> features(size_t i, double predicted, float shape) {
    std::vector<float> result = {static_cast<float>(i / 20), static_cast<float>(i % 20),
                                 static_cast<float>(std::log2(predicted)), shape};
    result.resize(3 + shapeFeatureCount);
    return result;
  }
  std::vector<Candidate> candidates(bool modelKnows = true, float shape = 0) const {
    std::vector<Candidate> result;
    for (size_t i = 0; i < 400; ++i) {
      double x = static_cast<double>(i / 20) - a, predicted = modelKnows ? 1 + 0.02 * x * x : 1;
      result.push_back({predicted, features(i, predicted, shape),
                        {static_cast<int>(i / 20), static_cast<int>(i % 20)}});
    }
    return result;
  }
};

double search(Strategy &strategy, const Landscape &landscape, const std::set<size_t> &failing = {}) {
  double best = 1e9;
  for (std::vector<size_t> batch; !(batch = strategy.next()).empty();)
    for (size_t i : batch) {
      bool fails = failing.contains(i);
      strategy.tell(i, fails ? std::nullopt : std::optional(landscape.seconds(i)));
      best = fails ? best : std::min(best, landscape.seconds(i));
    }
  return best;
}

TEST(Strategy, OffAndCachedMeasureNothing) {
  Landscape landscape;
  for (TunePolicy policy : {TunePolicy::off, TunePolicy::cached}) {
    StrategyOptions options;
    options.policy = policy;
    Strategy strategy(landscape.candidates(), options);
    EXPECT_TRUE(strategy.next().empty());
    EXPECT_EQ(strategy.order().front() / 20, 12u); // still it knows what it would try first
  }
}

TEST(Strategy, QuickTriesTheModelsBest) {
  Landscape landscape;
  StrategyOptions options;
  options.quickCount = 10;
  Strategy strategy(landscape.candidates(), options);
  std::vector<size_t> batch = strategy.next();
  ASSERT_EQ(batch.size(), 10u);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_EQ(batch[i] / 20, 12u);
  // What the model cannot tell apart from these comes in no order.
  for (size_t i : batch)
    EXPECT_LE(landscape.candidates()[i].predicted, 1.05);
  EXPECT_TRUE(strategy.next().empty());
}

TEST(Strategy, FullFindsWhatTheModelDoesNotKnow) {
  Landscape landscape;
  StrategyOptions options;
  options.policy = TunePolicy::full;
  options.most = 40;
  Strategy strategy(landscape.candidates(), options);
  EXPECT_LT(search(strategy, landscape), 1.05);
  EXPECT_EQ(strategy.tried(), 40u);
}

TEST(Strategy, FullBeatsRandomWithAModelThatKnowsNothing) {
  Landscape landscape;
  double full = 0, random = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    StrategyOptions options;
    options.policy = TunePolicy::full;
    options.most = 60;
    options.seed = seed;
    Strategy learner(landscape.candidates(false), options);
    full += search(learner, landscape);
    options.random = true;
    Strategy drawer(landscape.candidates(false), options);
    random += search(drawer, landscape);
  }
  EXPECT_LT(full, random);
}

TEST(Strategy, NothingIsAskedTwiceAndFailuresAreLearned) {
  Landscape landscape;
  std::set<size_t> failing; // the row that the model likes best
  for (size_t i = 0; i < 20; ++i)
    failing.insert(12 * 20 + i);
  StrategyOptions options;
  options.policy = TunePolicy::full;
  Strategy strategy(landscape.candidates(), options);
  std::set<size_t> asked;
  for (std::vector<size_t> batch; !(batch = strategy.next()).empty();)
    for (size_t i : batch) {
      EXPECT_TRUE(asked.insert(i).second) << i;
      strategy.tell(i, failing.contains(i) ? std::nullopt : std::optional(landscape.seconds(i)));
    }
  EXPECT_EQ(asked.size(), 400u); // without a limit it ends with everything
}

TEST(Strategy, TheSameSeedAsksTheSame) {
  Landscape landscape;
  auto run = [&](uint64_t seed) {
    StrategyOptions options;
    options.policy = TunePolicy::full;
    options.most = 50;
    options.seed = seed;
    Strategy strategy(landscape.candidates(), options);
    std::vector<size_t> all;
    for (std::vector<size_t> batch; !(batch = strategy.next()).empty();)
      for (size_t i : batch) {
        all.push_back(i);
        strategy.tell(i, landscape.seconds(i));
      }
    return all;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(Strategy, ExperienceComesFirst) {
  Landscape landscape;
  std::vector<Experience> experience;
  for (size_t i = 0; i < 400; ++i)
    experience.push_back({Landscape::features(i, 1, 0), landscape.seconds(i) < 1.3, 1,
                          std::log2(landscape.seconds(i)), 0});
  StrategyOptions options;
  options.quickCount = 4;
  Strategy strategy(landscape.candidates(false), options, experience);
  EXPECT_LT(search(strategy, landscape), 1.1);
  // What has other features is another kernel's, and is left out.
  Strategy other(landscape.candidates(), options, {{{1, 2, 3}, true, 1}});
  EXPECT_EQ(other.order().front() / 20, 12u);
}

TEST(Transfer, NearerShapesCountMore) {
  Landscape here{12, 5}, near{12, 6}, far{3, 15};
  std::vector<Experience> experience;
  for (size_t i = 0; i < 400; ++i) {
    experience.push_back({Landscape::features(i, 1, 1), false, 1, std::log2(near.seconds(i)), 0});
    experience.push_back({Landscape::features(i, 1, 9), false, 1, std::log2(far.seconds(i)), 1});
  }
  std::vector<double> slowness = slownessFrom(experience, here.candidates(false));
  ASSERT_EQ(slowness.size(), 400u);
  size_t best = static_cast<size_t>(std::min_element(slowness.begin(), slowness.end()) - slowness.begin());
  EXPECT_EQ(best, size_t(12 * 20 + 6));
  // What failed there is slow here; its neighbours make it a little better, and those further away do not.
  for (Experience &one : experience)
    one.slowness = one.features[0] == 12 ? std::numeric_limits<double>::infinity() : 0;
  slowness = slownessFrom(experience, here.candidates(false));
  EXPECT_GT(slowness[12 * 20 + 6], 2);
  EXPECT_LT(slowness[15 * 20 + 6], 0.1);
  EXPECT_TRUE(slownessFrom({}, here.candidates()).empty());
}

TEST(Transfer, TheModelSaysWhatIsOtherHere) {
  // Measured alike everywhere; but the model says that this shape wants the other half.
  std::vector<Experience> experience;
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < 400; ++i) {
    experience.push_back({Landscape::features(i, i < 200 ? 1 : 4, 1), false, 1, 0, 0});
    double predicted = i < 200 ? 4 : 1;
    candidates.push_back({predicted, Landscape::features(i, predicted, 0),
                          {static_cast<int>(i / 20), static_cast<int>(i % 20)}});
  }
  std::vector<double> slowness = slownessFrom(experience, candidates);
  EXPECT_LT(slowness[300], slowness[100]);
}

TEST(Policy, NamesAreReadBack) {
  for (TunePolicy policy : {TunePolicy::off, TunePolicy::cached, TunePolicy::quick, TunePolicy::full})
    EXPECT_EQ(parsePolicy(nameOf(policy)), policy);
  EXPECT_FALSE(parsePolicy("fast"));
}

//===--- Tables and their replay ----------------------------------------------------------------------------------===//

ReplayCase landscapeCase(Landscape landscape, std::vector<int64_t> shape) {
  ReplayCase result;
  TuneTable &table = result.table;
  table.kernel = "hills";
  table.dtype = "f32";
  table.target = "cpu";
  table.device = "test";
  table.shape = std::move(shape);
  table.names = {"a", "b"};
  table.ceilings.levels = {{"memory", 0, 1e10, 1e10}};
  for (size_t i = 0; i < 400; ++i) {
    Outcome outcome;
    outcome.status = Outcome::Status::measured;
    outcome.seconds = landscape.seconds(i) * 1e-3;
    outcome.cost = 0.5;
    table.rows.push_back({Configuration({{"a", static_cast<int64_t>(i / 20)}, {"b", static_cast<int64_t>(i % 20)}}),
                          outcome});
  }
  table.rows[7].outcome = Outcome::failed(Outcome::Status::timedOut, "");
  result.candidates = landscape.candidates(true, static_cast<float>(table.shape[0]));
  return result;
}

TEST(TuneTable, IsReadBackFromItsText) {
  TuneTable table = landscapeCase({}, {1, 2}).table;
  TuneTable again = parseTable(tableText(table), "test");
  EXPECT_EQ(again.kernel, "hills");
  EXPECT_EQ(again.shape, table.shape);
  EXPECT_EQ(again.names, table.names);
  EXPECT_EQ(again.ceilings.memory().readBytesPerSecond, 1e10);
  ASSERT_EQ(again.rows.size(), 400u);
  EXPECT_EQ(again.rows[7].outcome.status, Outcome::Status::timedOut);
  EXPECT_EQ(again.best()->configuration, table.best()->configuration);
  EXPECT_NEAR(again.rows[3].outcome.seconds, table.rows[3].outcome.seconds, 1e-3 * table.rows[3].outcome.seconds);
  EXPECT_NEAR(again.cost(), 399 * 0.5, 1e-6);
  EXPECT_EQ(tableText(again), tableText(parseTable(tableText(again), "test")));
}

TEST(TuneTable, DamageIsToldWithItsLine) {
  std::string text = tableText(landscapeCase({}, {1, 2}).table);
  auto errorOf = [](const std::string &broken) -> std::string {
    try {
      parseTable(broken, "t.table");
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(errorOf("hello\n").find("no table"), std::string::npos);
  EXPECT_NE(errorOf("{\"tenon_table\": 9}\n").find("version 9"), std::string::npos);
  EXPECT_NE(errorOf("{\"tenon_table\": 1}\n").find("first line"), std::string::npos);
  EXPECT_NE(errorOf(text + "1 2 fast 3\n").find("line 402"), std::string::npos) << errorOf(text + "1 2 fast 3\n");
  EXPECT_NE(errorOf(text + "1 2 - 3 sleepy\n").find("line 402"), std::string::npos);
  EXPECT_NE(errorOf(text + "1\n").find("line 402"), std::string::npos);
}

TEST(Replay, JudgesAgainstTheOptimum) {
  ReplayCase one = landscapeCase({}, {1, 2});
  StrategyOptions options;
  options.policy = TunePolicy::off;
  ReplayResult analytic = replay(one, options);
  EXPECT_EQ(analytic.measured, 0u);
  EXPECT_LT(analytic.fraction, 1);
  options.policy = TunePolicy::full;
  options.most = 40;
  ReplayResult full = replay(one, options);
  EXPECT_EQ(full.measured, 40u);
  EXPECT_NEAR(full.cost, 20, 1e-9);
  EXPECT_GT(full.fraction, 0.95);
  EXPECT_GT(full.randomNeeds, 40);
  options.most = 400;
  EXPECT_DOUBLE_EQ(replay(one, options).fraction, 1);
  EXPECT_NEAR(replay(one, options).randomNeeds, 401 / 2.0, 1e-9);
}

TEST(Replay, OtherShapesTeach) {
  Landscape here{12, 5}, near{11, 5}, far{12, 6};
  std::vector<ReplayCase> all = {landscapeCase(here, {1}), landscapeCase(near, {2}), landscapeCase(far, {3})};
  for (ReplayCase &one : all)
    for (Candidate &candidate : one.candidates)
      candidate.predicted = 1; // the model knows nothing
  StrategyOptions options;
  options.quickCount = 4;
  EXPECT_LT(replay(all[0], options).fraction, 0.9);
  EXPECT_GT(replay(all[0], options, experienceOf(all, 0)).fraction, 0.95);
}

TEST(Replay, MeansAreGeometric) {
  ReplayResult mean = meanOf({{0.5, 10, 1, 4}, {0.98, 20, 3, 8}});
  EXPECT_NEAR(mean.fraction, 0.7, 1e-9);
  EXPECT_EQ(mean.measured, 15u);
  EXPECT_NEAR(mean.cost, 2, 1e-9);
}

} // namespace
