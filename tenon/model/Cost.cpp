// SPDX-License-Identifier: Apache-2.0
#include "tenon/model/Cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::model {
namespace {

/// From a load to its data, on a busy GPU.
constexpr double memoryLatency = 700e-9;

struct Walk {
  const CountPlan &plan;
  std::span<const int64_t> words;
  const Counts &counts;

  double instances(const CountPlan::Box &box) const {
    double product = 1;
    for (int d = 0; d < 3; ++d)
      product *= static_cast<double>(box.last[d] - box.first[d] + 1);
    return product;
  }
  double bytes(const CountPlan::Box &box) const {
    CountPlan::Unique unique = plan.uniqueBytes(words, box);
    return unique.read + unique.written;
  }
};

/// What memory sees: see the header.
double memoryTraffic(const Walk &walk, double cacheBytes, double together) {
  const Counts &counts = walk.counts;
  double least = counts.bytes(), most = counts.requestedBytes();
  if (most <= least * 1.001 || least <= cacheBytes)
    return least;
  const int64_t *grid = counts.grid;
  // The instances that run together in any case.
  CountPlan::Box box;
  auto part = static_cast<int64_t>(std::ceil(together));
  box.last[0] = std::min(part, grid[0]) - 1;
  box.last[1] = std::min((part + grid[0] - 1) / grid[0], grid[1]) - 1;
  box.last[2] = std::min((part + grid[0] * grid[1] - 1) / (grid[0] * grid[1]), grid[2]) - 1;
  double bytes = walk.bytes(box);
  for (int axis = 0; axis < 3; ++axis)
    while (box.last[axis] < grid[axis] - 1) {
      CountPlan::Box larger = box;
      larger.last[axis] = std::min(2 * (box.last[axis] + 1), grid[axis]) - 1;
      // The next axis grows only when this one is whole: a run of the order of the grid.
      double more = walk.bytes(larger);
      if (more > cacheBytes)
        return std::clamp(bytes * counts.instances / walk.instances(box), least, most);
      box = larger;
      bytes = more;
    }
  return std::clamp(bytes * counts.instances / walk.instances(box), least, most);
}

/// Bytes that a block has asked for and not got yet.
double bytesInFlight(const Counts &counts, const Configuration &configuration) {
  if (counts.loopLoadBytes > 0)
    return counts.loopLoadBytes * std::max(configuration.stages, 1);
  double read = 0;
  for (const ViewCounts &view : counts.views)
    read += view.read.requested;
  return counts.instances > 0 ? read / counts.instances : 0;
}

/// The part of a bandwidth that the waves reach on the average, the last one with fewer blocks included: full waves
/// have `hiding` times what is needed in flight, the last one its share of it.
double bandwidthShare(const Waves &waves, double hiding) {
  if (waves.waves <= 0)
    return 1;
  double tail = waves.tailBlocks / waves.perWave, full = waves.waves - tail;
  double time = full / std::min(hiding, 1.0) + (tail > 0 ? tail / std::min(hiding * tail, 1.0) : 0);
  return waves.waves / time;
}

/// `of`: what the unit works on, where there are several kinds. Its seconds; 0 where there is nothing to do.
double addTerm(Cost &cost, std::string_view unit, std::string_view of, double amount, double rate, double share) {
  if (!(amount > 0 && rate > 0))
    return 0;
  std::string resource(unit);
  if (!of.empty())
    resource.append(" ").append(of);
  double seconds = amount / rate / std::max(share, 1e-6);
  cost.terms.push_back({std::move(resource), amount, rate, seconds});
  return seconds;
}

} // namespace

BlockShape guessBlock(const Counts &counts, int warps) {
  // A thread holds about 64 words of the tiles that are alive.
  double words = counts.liveTileBytes / 4;
  BlockShape block;
  if (warps == 0)
    for (warps = 4; warps < 16 && words > warps * 32 * 64; warps *= 2) {
    }
  block.threads = warps * 32;
  block.registersPerThread = static_cast<int>(std::clamp(words / block.threads + 24, 32.0, 255.0));
  return block;
}

Cost cost(const CountPlan &plan, std::span<const int64_t> words, const Counts &counts, const Ceilings &ceilings,
          const Configuration &configuration) {
  Cost cost;
  cost.terms.reserve(8);
  cost.refusal = counts.refusal;
  double together = ceilings.processors, memoryShare = 1;
  if (ceilings.isGpu && ceilings.limits) {
    cost.occupancy = occupancy(*ceilings.limits, configuration.block);
    if (cost.occupancy.blocks == 0 && cost.refusal.empty())
      cost.refusal = "a block does not fit a multiprocessor: too many " + cost.occupancy.limiter;
  }
  if (!cost.refusal.empty()) {
    cost.seconds = std::numeric_limits<double>::infinity();
    return cost;
  }
  // No instance can be divided: the busiest one is the least that the launch takes.
  double mean = counts.instances / ceilings.processors;
  if (ceilings.isGpu) {
    int cluster = std::max(configuration.cluster, 1), perProcessor = std::max(cost.occupancy.blocks, 1);
    cost.waves = waves(counts.instances * cluster, ceilings.processors, perProcessor);
    cost.balance = cost.waves.efficiency;
    together = cost.waves.perWave / cluster;
    mean = counts.instances / together;
    double needed = ceilings.memory().readBytesPerSecond * memoryLatency / ceilings.processors;
    double inFlight = bytesInFlight(counts, configuration) / cluster * perProcessor;
    memoryShare = bandwidthShare(cost.waves, needed > 0 ? inFlight / needed : 1);
  } else if (counts.instances > 0) {
    cost.balance = mean / std::ceil(mean);
    memoryShare = std::min(1.0, 0.5 + 0.5 * mean); // one core alone does not saturate memory
  }
  if (counts.busiestShare > mean && mean > 0)
    cost.balance = std::min(cost.balance, mean / counts.busiestShare);

  bool hasCache = ceilings.levels.size() > 1;
  const Ceilings::Level *cache = hasCache ? &ceilings.levels[ceilings.levels.size() - 2] : nullptr;
  // Half of it: other data and the next tiles want room, too.
  cost.memoryBytes = memoryTraffic({plan, words, counts}, cache ? cache->bytes / 2 : 0, together);
  double written = counts.writtenBytes(), bandwidth = ceilings.memoryRate(cost.memoryBytes - written, written);
  addTerm(cost, "memory", "", cost.memoryBytes, bandwidth, memoryShare);
  if (cache)
    addTerm(cost, cache->name, "", counts.requestedBytes(), cache->readBytesPerSecond, memoryShare);

  const Work &work = counts.executed;
  double core = 0, issue = 0, matrix = 0, special = 0;
  for (size_t i = 0; i < precisions; ++i) {
    auto precision = static_cast<Precision>(i);
    matrix += addTerm(cost, "matrix", nameOf(precision), work.matrix[i],
                      ceilings.matrixRate(precision) * configuration.matrixEfficiency, cost.balance);
    // A multiply-add is two; a plain operation uses the same slot for one.
    issue += addTerm(cost, "vector", nameOf(precision), work.vector[i], ceilings.vectorRate(precision) / 2,
                     cost.balance);
  }
  special = addTerm(cost, "special", "", work.specialFlops(), ceilings.special, cost.balance);
  issue += addTerm(cost, "integer", "", work.integer, ceilings.integer, cost.balance);
  core = ceilings.isGpu ? std::max({matrix, issue, special}) : matrix + issue + special;

  sortLargestFirst(cost.terms);
  double slowest = core;
  for (const Cost::Term &term : cost.terms)
    slowest = std::max(slowest, term.seconds);
  cost.boundBy = cost.terms.empty() ? "launch" : cost.terms.front().resource;
  cost.seconds = ceilings.launchSeconds + slowest;
  if (ceilings.launchSeconds > slowest)
    cost.boundBy = "launch";
  cost.terms.push_back({"launch", 1, 0, ceilings.launchSeconds});
  return cost;
}

} // namespace tenon::model
