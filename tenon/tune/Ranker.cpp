// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Ranker.h"

#include "tenon/base/Error.h"
#include "tenon/jit/Count.h"
#include "tenon/measure/Machine.h"
#include "tenon/measure/MeasuredCeilings.h"
#include "tenon/model/Cost.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>

namespace tenon {
namespace {

double logOf(double value) { return std::log2(std::max(value, 1e-30) + 1); }

std::string timeText(double seconds) {
  char text[32];
  const char *unit = seconds < 1e-3 ? "us" : "ms";
  std::snprintf(text, sizeof text, "%.3g %s", seconds * (seconds < 1e-3 ? 1e6 : 1e3), unit);
  return text;
}

class ModelRanker final : public Ranker {
public:
  ModelRanker(const Kernel &kernel, const Space &space, const Arguments &arguments, const LaunchOptions &options,
              const model::Ceilings &ceilings)
      : kernel_(kernel), space_(space), arguments_(arguments), options_(options), ceilings_(ceilings),
        words_(jit::argumentWords(kernel, arguments, space.apply(first(), options))) {
    fit();
  }

  Prediction predict(const Configuration &configuration) const override {
    const Counted &counted = countsOf(configuration);
    Prediction prediction;
    if (!counted.refusal.empty()) {
      prediction.seconds = std::numeric_limits<double>::infinity();
      prediction.refusal = counted.refusal;
      return prediction;
    }
    bool isMasked = counted.counts.executed.flops() > 1.0001 * counted.counts.useful.flops();
    model::Ceilings ceilings = ceilingsFor(configuration, isMasked);
    model::Configuration shape;
    shape.stages = static_cast<int>(configuration.get("stages", options_.compile.stages));
    shape.cluster = static_cast<int>(std::max<int64_t>(configuration.get("cluster", options_.compile.cluster), 1));
    if (ceilings.isGpu) {
      shape.block = model::guessBlock(counted.counts,
                                      static_cast<int>(configuration.get("warps", options_.compile.warps)));
      shape.block.sharedBytes = static_cast<int64_t>(counted.counts.loopLoadBytes * std::max(shape.stages, 1));
    }
    model::Cost cost = model::cost(counted.plan, words_, counted.counts, ceilings, shape);
    prediction.seconds = cost.seconds;
    prediction.refusal = cost.refusal;
    prediction.boundBy = cost.boundBy;
    for (const model::Cost::Term &term : cost.terms)
      prediction.terms.push_back({term.resource, term.seconds});
    if (!ceilings.isGpu)
      addTiles(prediction, counted.counts, ceilings, cost.balance);
    const model::Counts &counts = counted.counts;
    double useful = counts.useful.flops(), bytes = counts.bytes();
    prediction.features = {logOf(counts.instances),
                           logOf(counts.liveTileBytes),
                           logOf(counts.loopLoadBytes),
                           logOf(counts.loopIterations),
                           useful > 0 ? counts.executed.flops() / useful : 1,
                           bytes > 0 ? logOf(counts.requestedBytes() / bytes) : 0,
                           cost.balance};
    return prediction;
  }

private:
  struct Counted {
    model::CountPlan plan;
    model::Counts counts;
    std::string refusal;
  };

  /// The first value of everything.
  Configuration first() const {
    Configuration configuration;
    for (const Space::Dimension &dimension : space_.dimensions())
      configuration.set(dimension.name, dimension.values.front());
    return configuration;
  }

  model::CountPlan trace(const Configuration &configuration) const {
    return jit::countPlan(kernel_, arguments_, space_.apply(configuration, options_));
  }

  /// A few traces, from which all others follow where the integers of the kernel are linear in its Params.
  void fit() {
    std::vector<model::ParametricPlan::Sample> samples;
    auto add = [&](const Configuration &configuration) {
      samples.push_back({space_.apply(configuration, options_).params, trace(configuration)});
    };
    try {
      Configuration base = first(), far = base;
      add(base);
      for (const Space::Dimension &dimension : space_.dimensions())
        if (!dimension.isOption && dimension.values.size() > 1) {
          Configuration other = base;
          other.set(dimension.name, dimension.values[1]);
          add(other);
          far.set(dimension.name, dimension.values.back());
        }
      if (samples.size() > 1)
        add(far);
      parametric_ = model::ParametricPlan::fit(samples);
    } catch (const Error &) { // a kernel that refuses some values while it is traced: each is traced on its own
    }
  }

  const Counted &countsOf(const Configuration &configuration) const {
    Params params = space_.apply(configuration, options_).params;
    auto [found, isNew] = counted_.try_emplace(params);
    Counted &counted = found->second;
    if (!isNew)
      return counted;
    try {
      counted.plan = parametric_ ? parametric_->at(params) : trace(configuration);
      counted.counts = counted.plan.count(words_);
      counted.refusal = counted.counts.refusal;
    } catch (const Error &error) {
      counted.refusal = error.what();
    }
    return counted;
  }

  /// See the header.
  static void addTiles(Prediction &prediction, const model::Counts &counts, const model::Ceilings &ceilings,
                       double balance) {
    if (ceilings.levels.size() < 3 || !prediction.refusal.empty())
      return;
    const model::Ceilings::Level &first = ceilings.levels[0], &second = ceilings.levels[1];
    double perCore = first.bytes / ceilings.processors;
    double carriedBytes = std::max(0.0, counts.liveTileBytes - counts.loopLoadBytes);
    double carried = counts.loopIterations > 1 ? 2 * counts.instances * counts.loopIterations * carriedBytes : 0;
    double tiles = counts.requestedBytes() / second.readBytesPerSecond +
                   carried / (carriedBytes <= perCore ? first : second).copyBytesPerSecond;
    tiles /= std::max(balance, 1e-6);
    double memory = 0, launch = 0, work = tiles;
    const std::string &shared = ceilings.levels[ceilings.levels.size() - 2].name;
    for (const Prediction::Term &term : prediction.terms)
      if (term.name == "memory")
        memory = term.seconds;
      else if (term.name == "launch")
        launch = term.seconds;
      else if (term.name != shared)
        work += term.seconds;
    double overlap = counts.loopIterations > 1 ? 1 : 1 / (1 + counts.liveTileBytes / perCore);
    prediction.seconds = launch + std::max(memory, work) + 0.3 * (1 - overlap) * std::min(memory, work) +
                         1e-7 * counts.instances / ceilings.processors;
    prediction.terms.push_back({"tiles", tiles});
    std::stable_sort(prediction.terms.begin(), prediction.terms.end(),
                     [](const Prediction::Term &a, const Prediction::Term &b) { return a.seconds > b.seconds; });
    prediction.boundBy = prediction.terms.front().name;
  }

  /// Of the threads and the vectors that the configuration uses.
  model::Ceilings ceilingsFor(const Configuration &configuration, bool isMasked) const {
    model::Ceilings ceilings = ceilings_;
    if (ceilings.isGpu)
      return ceilings;
    auto threads = static_cast<int>(configuration.get("threads", options_.threads));
    double share = 1;
    if (threads > 0 && threads < ceilings.processors) {
      share = static_cast<double>(threads) / ceilings.processors;
      ceilings.processors = threads;
    }
    // Half the vector does half the work. Where a tile hangs over an edge, only AVX-512 has instructions for part of a
    // vector; and without fused multiply-adds a function like exp takes many times as long.
    int64_t bits = configuration.get("vector_bits", 512);
    double width = static_cast<double>(bits) / 512;
    double plain = bits >= 512 ? 1 : (bits >= 256 ? 0.6 : 0.3) * (isMasked ? 0.4 : 1);
    double special = bits >= 512 ? 1 : bits >= 256 ? (isMasked ? 0.25 : 0.75) : 0.035;
    for (model::Ceilings::Level &level : ceilings.levels) {
      bool isMemory = &level == &ceilings.levels.back();
      // Some of the cores nearly saturate memory.
      double factor = isMemory ? std::sqrt(share) : share * std::sqrt(width);
      level.bytes *= isMemory || level.name == ceilings.levels[ceilings.levels.size() - 2].name ? 1 : share;
      level.readBytesPerSecond *= factor;
      level.copyBytesPerSecond *= factor;
    }
    for (auto *rates : {&ceilings.matrix, &ceilings.vector})
      for (double &rate : *rates)
        rate *= share * plain;
    ceilings.special *= share * special;
    ceilings.integer *= share * plain;
    return ceilings;
  }

  const Kernel &kernel_;
  const Space &space_;
  const Arguments &arguments_;
  LaunchOptions options_;
  model::Ceilings ceilings_;
  std::vector<int64_t> words_;
  std::optional<model::ParametricPlan> parametric_;
  mutable std::map<Params, Counted> counted_;
};

} // namespace

std::unique_ptr<Ranker> modelRanker(const Kernel &kernel, const Space &space, const Arguments &arguments,
                                    const LaunchOptions &options, const model::Ceilings &ceilings) {
  return std::make_unique<ModelRanker>(kernel, space, arguments, options, ceilings);
}

std::unique_ptr<Ranker> defaultRanker(const Kernel &kernel, const Space &space, const Arguments &arguments,
                                      const LaunchOptions &options) {
  return modelRanker(kernel, space, arguments, options, knownCeilings(options));
}

model::Ceilings knownCeilings(const LaunchOptions &options) {
  if (options.target == Target::cuda || options.target == Target::sim) {
    std::string name = options.compile.gpu;
    if (options.target == Target::cuda)
      name = cudaProperties(options.compile.device).name;
    auto found = model::gpuDatasheet(name);
    if (!found && options.target == Target::cuda)
      found = model::gpuDatasheet(cudaProperties(options.compile.device).architecture());
    if (!found)
      found = model::gpuDatasheet("sm_90a");
    return *found;
  }
  CeilingOptions measured;
  measured.threads = options.threads;
  if (auto found = knownCpuCeilings(measured))
    return *found;
  // A core of today at 3 GHz: two vector operations a cycle, a load and half a store; memory shared by all.
  const Machine &machine = thisMachine();
  model::Ceilings ceilings;
  ceilings.device = machine.cpu;
  ceilings.processors = options.threads ? options.threads : machine.processors;
  double cycles = 3e9 * ceilings.processors;
  for (const Machine::Cache &cache : machine.caches)
    if (cache.type != "Instruction") {
      double copies = std::max(1.0, static_cast<double>(ceilings.processors) / cache.sharedBy);
      double perCycle = cache.level == 1 ? 64 : cache.level == 2 ? 32 : 12;
      ceilings.levels.push_back({"L" + std::to_string(cache.level), static_cast<double>(cache.bytes) * copies,
                                 perCycle * cycles, perCycle * cycles});
    }
  double some = std::sqrt(ceilings.processors);
  ceilings.levels.push_back({"memory", 0, 12e9 * some, 10e9 * some});
  for (size_t i = 0; i < model::precisions; ++i)
    ceilings.vector[i] = ceilings.matrix[i] = 32 * cycles;
  ceilings.vector[static_cast<size_t>(model::Precision::f64)] = 16 * cycles;
  ceilings.matrix[static_cast<size_t>(model::Precision::f64)] = 16 * cycles;
  ceilings.special = 1.0 * cycles;
  ceilings.integer = 16 * cycles;
  ceilings.launchSeconds = 3e-6;
  return ceilings;
}

std::string explainDifference(const Prediction &better, const Prediction &worse) {
  std::string text = "predicted " + timeText(better.seconds) + " against " + timeText(worse.seconds);
  // The term in which it gains most.
  std::string gains;
  double most = 0, here = 0, there = 0;
  for (const Prediction::Term &term : worse.terms) {
    double own = 0;
    for (const Prediction::Term &other : better.terms)
      if (other.name == term.name)
        own = other.seconds;
    if (term.seconds - own > most) {
      most = term.seconds - own;
      gains = term.name;
      here = own;
      there = term.seconds;
    }
  }
  if (!gains.empty())
    text += ": " + gains + " takes " + timeText(here) + " instead of " + timeText(there);
  return text + "; bound by " + better.boundBy +
         (better.boundBy == worse.boundBy ? " as the other" : ", the other by " + worse.boundBy);
}

} // namespace tenon
