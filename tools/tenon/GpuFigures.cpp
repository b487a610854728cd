// SPDX-License-Identifier: Apache-2.0
#include "GpuFigures.h"

#include "tenon/base/Error.h"
#include "tenon/measure/GpuBench.h"

#include <algorithm>

namespace tenon::tool {
namespace {

bool isYardstick(const std::string &peer) {
  return peer == "copy" || peer == "read" || peer == "tenon_copy" || peer == "tenon_read";
}

/// The host fills and judges about a million elements, whatever the case's size.
RepeatedProblem repeated(const GpuCase &one, Device device) {
  constexpr int64_t elements = int64_t(1) << 20;
  int64_t rows = one.shape[0], block = 1;
  while (rows % (2 * block) == 0 && 2 * block * one.elementsPerRow() <= elements)
    block *= 2;
  return RepeatedProblem([&](int64_t count) { return one.problem(count); }, rows, block, device);
}

void scale(Estimate &estimate, double factor) {
  estimate.median *= factor;
  estimate.low *= factor;
  estimate.high *= factor;
}

/// Bursts of ours and of a peer in pairs; ours count for our own figure too.
PeerFigures measurePeer(GpuFigures &figures, GpuBursts &ours, const std::function<double()> &theirs,
                        const PairOptions &options) {
  Pairs pairs = comparePairs([&] { return ours(); }, theirs, options);
  figures.bursts.insert(figures.bursts.end(), pairs.ours.begin(), pairs.ours.end());
  return {"measured", "", pairs.theirsEstimate(), pairs.ratio(), pairs.ours.size()};
}

void measureOwnYardstick(GpuFigures &figures, GpuBursts &ours, const PairOptions &options, Device device) {
  const GpuCase &one = *figures.one;
  GpuCase stick = yardstick(one.readsOnly, figures.bytes);
  double bytes = stick.bytes();
  RepeatedProblem problem = repeated(stick, device);
  GpuBursts bursts(stick.entry->kernel, problem.copies(setsToExceedCache(problem.bytes(), device)),
                   stick.launchOptions(stick.tiling));
  PeerFigures peer = measurePeer(figures, ours, [&] { return bursts(); }, options);
  peer.detail = stick.tiling.text();
  scale(peer.ratio, figures.bytes / bytes); // it moves whole rows: a little less
  figures.peers[one.readsOnly ? "tenon_read" : "tenon_copy"] = peer;
}

void measurePeers(GpuFigures &figures, GpuBursts &ours, const GpuFigureOptions &options, const Stage &stage) {
  const GpuCase &one = *figures.one;
  for (const std::string &name : one.peers) {
    PeerFigures &peer = figures.peers[name];
    if (!options.peers) {
      peer.status = "not asked";
      continue;
    }
    stage(one.name() + ": preparing " + name);
    Json description = {{"kernel", isYardstick(name) ? name : one.entry->name},
                        {"shape", one.shape},
                        {"bytes", static_cast<int64_t>(figures.bytes)},
                        {"sets", figures.sets},
                        {"graph", one.graphLaunches}};
    PeerReady ready = options.peers->prepare(name, description);
    if (ready.status != "ready") {
      peer.status = ready.status;
      peer.detail = ready.detail;
      continue;
    }
    stage(one.name() + ": measuring beside " + name);
    try {
      peer = measurePeer(figures, ours, [&] { return options.peers->burst(name); }, options.pairs);
      peer.detail = ready.detail;
    } catch (const Error &error) {
      peer.status = "failed";
      peer.detail = error.what();
    }
  }
}

/// Compiles and, if asked, verifies; whether it may be measured.
bool makeReady(GpuFigures &figures, const RepeatedProblem &problem, const LaunchOptions &options, bool verify) {
  const GpuCase &one = *figures.one;
  figures.compiled = prepare(one.entry->kernel, problem.arguments(), options);
  if (!verify)
    return true;
  figures.verdict = problem.verify(one.entry->kernel, options, one.sameRows);
  if (!figures.verdict->passed)
    figures.failure = "wrong: " + figures.verdict->reason;
  return figures.verdict->passed;
}

LaunchOptions launchOptionsOf(const GpuCase &one, const Tiling &tiling) {
  LaunchOptions options = one.launchOptions(tiling);
  options.compile.useDiskCache = false;
  return options;
}

} // namespace

GpuFigures findGpuFigures(const GpuCase &one, const GpuFigureOptions &options, const Stage &stage) {
  GpuFigures figures(one, one.tiling);
  Device device = Device::cuda(0);
  try {
    stage(one.name() + ": compiling and verifying");
    LaunchOptions launchOptions = launchOptionsOf(one, one.tiling);
    RepeatedProblem problem = repeated(one, device);
    figures.bytes = one.bytes();
    if (!makeReady(figures, problem, launchOptions, options.verify))
      return figures;
    // What is launched in graphs is small, and meets its inputs where the kernel before left them: in the cache.
    figures.sets = one.graphLaunches ? 1 : setsToExceedCache(problem.bytes(), device);
    GpuBursts ours(one.entry->kernel, problem.copies(figures.sets), launchOptions,
                   {.graphLaunches = one.graphLaunches});
    figures.launches = ours.launches();
    stage(one.name() + ": measuring");
    bool isOne = one.entry == &copyEntry() || one.entry == &readEntry();
    if (!one.graphLaunches && !isOne)
      measureOwnYardstick(figures, ours, options.pairs, device);
    measurePeers(figures, ours, options, stage);
    while (figures.bursts.size() < static_cast<size_t>(options.pairs.minPairs))
      figures.bursts.push_back(ours());
  } catch (const Error &error) {
    figures.failure = error.what();
  }
  return figures;
}

std::vector<GpuFigures> sweepTilings(const GpuCase &one, bool verify, const Stage &stage) {
  Device device = Device::cuda(0);
  std::vector<Tiling> tilings = {one.tiling};
  tilings.insert(tilings.end(), one.alternatives.begin(), one.alternatives.end());
  std::vector<GpuFigures> all;
  RepeatedProblem problem = repeated(one, device);
  std::vector<Arguments> sets =
      problem.copies(one.graphLaunches ? 1 : setsToExceedCache(problem.bytes(), device));
  for (const Tiling &tiling : tilings) {
    GpuFigures figures(one, tiling);
    figures.bytes = one.bytes();
    figures.sets = sets.size();
    stage(one.name() + ": " + tiling.text());
    try {
      LaunchOptions options = launchOptionsOf(one, tiling);
      if (makeReady(figures, problem, options, verify)) {
        GpuBursts bursts(one.entry->kernel, sets, options, {.graphLaunches = one.graphLaunches});
        figures.launches = bursts.launches();
        for (int i = 0; i < 9; ++i)
          figures.bursts.push_back(bursts());
      }
    } catch (const Error &error) {
      figures.failure = error.what();
    }
    all.push_back(std::move(figures));
  }
  std::sort(all.begin(), all.end(), [](const GpuFigures &a, const GpuFigures &b) {
    if (a.passed() != b.passed())
      return a.passed();
    return a.passed() && a.seconds().median < b.seconds().median;
  });
  return all;
}

const PeerFigures *GpuFigures::yardstick() const { return fastestOf(peers, isYardstick, /*yardsticks=*/true); }

const PeerFigures *GpuFigures::bestPeer(std::string *bestName) const {
  return fastestOf(peers, isYardstick, /*yardsticks=*/false, bestName);
}

// A goal counts as reached when the interval touches it: what cannot be told from equal is equal.
std::optional<bool> GpuFigures::bandwidthGoal() const {
  const PeerFigures *stick = yardstick();
  if (!one->bandwidthGoal || !stick)
    return std::nullopt;
  return stick->ratio.high >= one->bandwidthGoal;
}

std::optional<bool> GpuFigures::peerGoal() const {
  const PeerFigures *best = bestPeer();
  if (!one->peerGoal || !best)
    return std::nullopt;
  return best->ratio.high >= one->peerGoal;
}

Json toJson(const GpuFigures &figures) {
  const GpuCase &one = *figures.one;
  auto orNull = [](const std::optional<bool> &value) { return value ? Json(*value) : Json(nullptr); };
  Json result = {{"kind", "case"},
                 {"case", one.name()},
                 {"kernel", one.entry->name},
                 {"shape", one.shape},
                 {"dtype", nameOf(one.dtype())},
                 {"params", figures.tiling.params},
                 {"warps", figures.tiling.warps},
                 {"cluster", figures.tiling.cluster},
                 {"graph_launches", one.graphLaunches},
                 {"bytes", figures.bytes},
                 {"argument_sets", figures.sets},
                 {"launches_per_burst", figures.launches},
                 {"compile", toJson(figures.compiled)},
                 {"verdict", figures.verdict ? toJson(*figures.verdict) : Json(nullptr)},
                 {"failure", figures.failure.empty() ? Json(nullptr) : Json(figures.failure)},
                 {"time", figures.bursts.empty() ? Json(nullptr) : toJson(figures.seconds())},
                 {"bursts", figures.bursts.size()},
                 {"gb_per_s", figures.bytesPerSecond() / 1e9}};
  result["peers"] = toJson(figures.peers);
  const PeerFigures *stick = figures.yardstick();
  result["fraction_of_bandwidth"] = stick ? toJson(stick->ratio) : Json(nullptr);
  std::string bestName;
  const PeerFigures *best = figures.bestPeer(&bestName);
  result["best_peer"] = best ? Json(bestName) : Json(nullptr);
  result["best_peer_ratio"] = best ? toJson(best->ratio) : Json(nullptr);
  result["goals"] = {{"bandwidth", one.bandwidthGoal},
                     {"bandwidth_reached", orNull(figures.bandwidthGoal())},
                     {"peer", one.peerGoal},
                     {"peer_reached", orNull(figures.peerGoal())}};
  return result;
}

} // namespace tenon::tool
