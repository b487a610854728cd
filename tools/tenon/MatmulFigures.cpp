// SPDX-License-Identifier: Apache-2.0
#include "MatmulFigures.h"

#include "GpuMachine.h"

#include "tenon/base/Error.h"
#include "tenon/measure/GpuBench.h"

#include <algorithm>
#include <cmath>
#include <future>

namespace tenon::tool {
namespace {

/// Compiles and, if asked, verifies; whether it may be measured.
bool makeReady(MatmulFigures &figures, const MatmulProblem &problem, const LaunchOptions &options, bool verify) {
  figures.compiled = prepare(figures.one->kernel(), problem.arguments(), options);
  if (!verify)
    return true;
  figures.verdict = problem.verify(options);
  if (!figures.verdict->passed)
    figures.failure = "wrong: " + figures.verdict->reason;
  return figures.verdict->passed;
}

/// The peers that can be measured; the others are noted.
std::vector<GpuSubject> preparePeers(MatmulFigures &figures, GpuPeers *peers,
                                     std::map<std::string, std::string> &variants, const Stage &stage) {
  const MatmulCase &one = *figures.one;
  std::vector<GpuSubject> subjects;
  for (const MatmulPeer &peer : one.peers) {
    if (!peers) {
      figures.unready[peer.name].status = "not asked";
      continue;
    }
    stage(one.name() + ": preparing " + peer.name);
    PeerReady ready = peers->prepare(peer.name, one.description(figures.sets));
    if (ready.status != "ready") {
      figures.unready[peer.name] = {ready.status, ready.detail, {}, {}, 0};
      continue;
    }
    variants[peer.name] = ready.detail;
    subjects.push_back({peer.name, [peers, name = peer.name](const BurstLength &length) {
                          return peers->burst(name, length);
                        }});
  }
  return subjects;
}

RegimeFigures measure(const std::vector<GpuSubject> &subjects, const Regime &regime,
                      const std::map<std::string, std::string> &variants) {
  // nvidia-smi takes a while: it is asked when the rounds begin, and looks while they go on.
  std::future<Json> state;
  Rounds rounds = measureRounds(subjects, regime, [&] {
    if (regime.maxHeatSeconds > 0)
      state = std::async(std::launch::async, [] { return gpuState(0); });
  });
  RegimeFigures figures;
  figures.name = regime.name;
  figures.seconds = rounds.time(0);
  figures.rounds = rounds.subjects[0].seconds.size();
  figures.heatedSeconds = rounds.heatedSeconds;
  figures.steady = rounds.steady;
  if (state.valid())
    figures.state = state.get();
  for (size_t i = 1; i < subjects.size(); ++i) {
    const Rounds::One &one = rounds.subjects[i];
    PeerFigures &peer = figures.peers[one.name];
    if (!one.failure.empty())
      peer = {"failed", one.failure, {}, {}, 0};
    else
      peer = {"measured", variants.at(one.name), rounds.time(i), rounds.ratio(i), one.seconds.size()};
  }
  return figures;
}

GpuSubject subjectOf(std::string name, const std::shared_ptr<GpuBursts> &bursts) {
  return {std::move(name), [bursts](const BurstLength &length) { return (*bursts)(length); }};
}

size_t setsOf(const MatmulProblem &problem, Device device) { return setsToExceedCache(problem.bytes(), device); }

} // namespace

const PeerFigures *MatmulFigures::bestPeer(const RegimeFigures &regime, const std::vector<std::string> &among,
                                           std::string *name) const {
  const PeerFigures *best = nullptr;
  for (const MatmulPeer &peer : one->peers) {
    bool wanted = among.empty() ? peer.counts : std::find(among.begin(), among.end(), peer.name) != among.end();
    auto found = regime.peers.find(peer.name);
    if (!wanted || found == regime.peers.end() || !found->second.measured())
      continue;
    if (!best || found->second.ratio.median < best->ratio.median) {
      best = &found->second;
      if (name)
        *name = peer.name;
    }
  }
  return best;
}

MatmulFigures findMatmulFigures(const MatmulCase &one, const MatmulOptions &options, const Stage &stage) {
  MatmulFigures figures(one, one.tilings.front());
  Device device = Device::cuda(0);
  try {
    stage(one.name() + ": compiling and verifying");
    LaunchOptions launchOptions = one.launchOptions(figures.tiling);
    MatmulProblem problem(one, device);
    if (!makeReady(figures, problem, launchOptions, options.verify))
      return figures;
    figures.sets = setsOf(problem, device);
    auto ours = std::make_shared<GpuBursts>(one.kernel(), problem.sets(figures.sets), launchOptions,
                                            GpuBursts::Options{.graphLaunches = one.graphLaunches()});
    std::map<std::string, std::string> variants;
    std::vector<GpuSubject> subjects = preparePeers(figures, options.peers, variants, stage);
    subjects.insert(subjects.begin(), subjectOf("tenon", ours));
    for (const Regime &regime : options.regimes) {
      stage(one.name() + ": measuring, " + regime.name);
      figures.regimes.push_back(measure(subjects, regime, variants));
    }
  } catch (const Error &error) {
    figures.failure = error.what();
  }
  return figures;
}

std::vector<MatmulFigures> sweepMatmul(const MatmulCase &one, bool verify, const Regime &regime, const Stage &stage) {
  Device device = Device::cuda(0);
  MatmulProblem problem(one, device);
  size_t sets = setsOf(problem, device);
  std::vector<MatmulFigures> all;
  std::vector<GpuSubject> subjects;
  std::vector<size_t> measured; ///< which tiling each subject is
  for (const Tiling &tiling : one.tilings) {
    stage(one.name() + ": " + tiling.text());
    MatmulFigures &figures = all.emplace_back(one, tiling);
    figures.sets = sets;
    try {
      LaunchOptions options = one.launchOptions(tiling);
      if (!makeReady(figures, problem, options, verify))
        continue;
      subjects.push_back(subjectOf(
          tiling.text(), std::make_shared<GpuBursts>(one.kernel(), problem.sets(sets), options,
                                                     GpuBursts::Options{.graphLaunches = one.graphLaunches()})));
      measured.push_back(all.size() - 1);
    } catch (const Error &error) {
      figures.failure = error.what();
    }
  }
  if (!subjects.empty()) {
    stage(one.name() + ": measuring");
    Rounds rounds = measureRounds(subjects, regime);
    for (size_t i = 0; i < subjects.size(); ++i) {
      MatmulFigures &figures = all[measured[i]];
      figures.failure = rounds.subjects[i].failure;
      if (!figures.passed())
        continue;
      RegimeFigures &result = figures.regimes.emplace_back();
      result.name = regime.name;
      result.seconds = rounds.time(i);
      result.rounds = rounds.subjects[i].seconds.size();
      result.heatedSeconds = rounds.heatedSeconds;
      result.steady = rounds.steady;
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const MatmulFigures &a, const MatmulFigures &b) {
    if (a.regimes.empty() || b.regimes.empty())
      return !a.regimes.empty() && b.regimes.empty();
    return a.regimes[0].seconds.median < b.regimes[0].seconds.median;
  });
  return all;
}

std::vector<GoalFigures> goalFigures(const std::vector<MatmulFigures> &all) {
  std::vector<std::string> regimes;
  for (const MatmulFigures &figures : all)
    for (const RegimeFigures &regime : figures.regimes)
      if (std::find(regimes.begin(), regimes.end(), regime.name) == regimes.end())
        regimes.push_back(regime.name);
  std::vector<GoalFigures> results;
  for (const MatmulGoal &goal : matmulGoals())
    for (const std::string &regimeName : regimes) {
      GoalFigures result{.goal = &goal, .regime = regimeName, .leastCase = {}};
      double logs = 0, leastHigh = 0;
      for (const MatmulFigures &figures : all) {
        const std::vector<std::string> &groups = figures.one->groups;
        if (std::find(groups.begin(), groups.end(), goal.group) == groups.end())
          continue;
        auto regime = std::find_if(figures.regimes.begin(), figures.regimes.end(),
                                   [&](const RegimeFigures &r) { return r.name == regimeName; });
        const PeerFigures *peer = regime == figures.regimes.end() ? nullptr : figures.bestPeer(*regime, goal.peers);
        if (!peer) {
          ++result.missing;
          continue;
        }
        logs += std::log(peer->ratio.median);
        if (!result.cases++ || peer->ratio.median < result.least) {
          result.least = peer->ratio.median;
          leastHigh = peer->ratio.high;
          result.leastCase = figures.one->name();
        }
      }
      if (!result.cases)
        continue;
      result.mean = std::exp(logs / static_cast<double>(result.cases));
      result.reached = !result.missing && result.mean >= goal.mean && leastHigh >= goal.least;
      results.push_back(std::move(result));
    }
  return results;
}

namespace {

Json toJson(const PeerFigures &peer, const MatmulFigures &figures) {
  Json result = {{"status", peer.status}, {"detail", peer.detail}};
  if (peer.measured()) {
    result["time"] = tool::toJson(peer.seconds);
    result["tflop_per_s"] = figures.teraflops(peer.seconds.median);
    result["ratio"] = tool::toJson(peer.ratio);
    result["rounds"] = peer.pairs;
  }
  return result;
}

Json toJson(const RegimeFigures &regime, const MatmulFigures &figures) {
  Json peers = Json::object();
  for (const auto &[name, peer] : regime.peers)
    peers[name] = toJson(peer, figures);
  std::string bestName;
  const PeerFigures *best = figures.bestPeer(regime, {}, &bestName);
  return {{"time", tool::toJson(regime.seconds)},
          {"tflop_per_s", figures.teraflops(regime.seconds.median)},
          {"gb_per_s", regime.seconds.median > 0 ? figures.one->bytes() / regime.seconds.median / 1e9 : 0},
          {"rounds", regime.rounds},
          {"heated_seconds", regime.heatedSeconds},
          {"steady", regime.steady},
          {"state", regime.state},
          {"peers", peers},
          {"best_peer", best ? Json(bestName) : Json(nullptr)},
          {"best_peer_ratio", best ? tool::toJson(best->ratio) : Json(nullptr)}};
}

} // namespace

Json toJson(const MatmulFigures &figures) {
  const MatmulCase &one = *figures.one;
  Json regimes = Json::object(), unready = Json::object();
  for (const RegimeFigures &regime : figures.regimes)
    regimes[regime.name] = toJson(regime, figures);
  for (const auto &[name, peer] : figures.unready)
    unready[name] = toJson(peer, figures);
  return {{"kind", "matmul"},
          {"case", one.name()},
          {"groups", one.groups},
          {"kernel", one.kernelName()},
          {"shape", {one.m, one.n, one.k}},
          {"experts", one.experts},
          {"dtype", nameOf(one.dtype)},
          {"params", figures.tiling.params},
          {"warps", figures.tiling.warps},
          {"cluster", figures.tiling.cluster},
          {"stages", figures.tiling.stages},
          {"split", figures.tiling.split},
          {"tail", figures.tiling.tail},
          {"pingpong", figures.tiling.pingPong},
          {"without", figures.tiling.without},
          {"graph_launches", one.graphLaunches()},
          {"flops", one.flops()},
          {"bytes", one.bytes()},
          {"argument_sets", figures.sets},
          {"compile", toJson(figures.compiled)},
          {"verdict", figures.verdict ? toJson(*figures.verdict) : Json(nullptr)},
          {"failure", figures.failure.empty() ? Json(nullptr) : Json(figures.failure)},
          {"regimes", regimes},
          {"not_measured", unready}};
}

Json toJson(const GoalFigures &figures) {
  return {{"group", figures.goal->group},
          {"peers", figures.goal->peers},
          {"regime", figures.regime},
          {"cases", figures.cases},
          {"missing", figures.missing},
          {"geometric_mean", figures.mean},
          {"least", figures.least},
          {"least_case", figures.leastCase},
          {"goal_mean", figures.goal->mean},
          {"goal_least", figures.goal->least},
          {"reached", figures.reached}};
}

} // namespace tenon::tool
