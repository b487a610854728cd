// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Ranker.h"

#include "tenon/base/Error.h"
#include "tenon/jit/Count.h"
#include "tenon/measure/Machine.h"
#include "tenon/measure/MeasuredCeilings.h"
#include "tenon/model/Cost.h"
#include "tenon/tune/ModelFactors.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

namespace tenon {
namespace {

/// Kinds of instances that are told apart: enough for an order, in microseconds.
constexpr int64_t countedClasses = 60;

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
        words_(jit::argumentWords(kernel, arguments, space.apply(first(), options))) {}

  void setFactors(const ModelFactors &factors) {
    factors_ = factors;
    narrowed_.clear();
  }

  Prediction predict(const Configuration &configuration) const override {
    const Counted &counted = countsOf(configuration);
    Prediction prediction;
    if (!counted.refusal.empty()) {
      prediction.seconds = std::numeric_limits<double>::infinity();
      prediction.refusal = counted.refusal;
      return prediction;
    }
    double balance = ceilings_.isGpu ? predictOnGpu(prediction, counted.counts, configuration)
                                     : predictOnCpu(prediction, counted, configuration);
    const model::Counts &counts = counted.counts;
    double useful = counts.useful.flops(), bytes = counts.bytes();
    prediction.features = {logOf(counts.instances),
                           logOf(counts.liveTileBytes),
                           logOf(counts.loopLoadBytes),
                           logOf(counts.loopIterations),
                           useful > 0 ? counts.executed.flops() / useful : 1,
                           bytes > 0 ? logOf(counts.requestedBytes() / bytes) : 0,
                           balance};
    return prediction;
  }

private:
  struct Counted {
    model::CountPlan plan;
    model::Counts counts;
    std::string refusal;
  };

  /// Returns how much of the device the rounds of blocks fill.
  double predictOnGpu(Prediction &prediction, const model::Counts &counts, const Configuration &configuration) const {
    model::GpuShape shape;
    const CompileOptions &given = options_.compile;
    shape.warps = static_cast<int>(configuration.get("warps", given.warps));
    shape.cluster = static_cast<int>(std::max<int64_t>(configuration.get("cluster", given.cluster), 1));
    shape.stages = static_cast<int>(configuration.get("stages", given.stages));
    shape.split = static_cast<int>(std::max<int64_t>(configuration.get("split", given.split), 1));
    shape.pingPong = configuration.get("pingpong", given.pingPong) != 0;
    model::GpuCost cost = model::gpuCost(counts, ceilings_, shape, factors_);
    prediction.seconds = cost.seconds;
    prediction.terms.reserve(cost.parts.size());
    for (model::GpuCost::Part &part : cost.parts)
      prediction.terms.push_back({std::move(part.name), part.seconds});
    prediction.boundBy = prediction.terms.front().name;
    return counts.instances * shape.split / (cost.rounds * cost.blocks * ceilings_.processors);
  }

  double predictOnCpu(Prediction &prediction, const Counted &counted, const Configuration &configuration) const {
    bool isMasked = counted.counts.executed.flops() > 1.0001 * counted.counts.useful.flops();
    const model::Ceilings &ceilings = ceilingsFor(configuration, isMasked);
    model::Cost cost = model::cost(counted.plan, words_, counted.counts, ceilings);
    prediction.seconds = cost.seconds;
    prediction.refusal = cost.refusal;
    prediction.boundBy = cost.boundBy;
    prediction.terms.reserve(cost.terms.size() + 1);
    for (model::Cost::Term &term : cost.terms)
      prediction.terms.push_back({std::move(term.resource), term.seconds});
    addTiles(prediction, counted.counts, ceilings, cost.balance);
    return cost.balance;
  }

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

  /// The values of the kernel's Params, in the order of the space.
  std::vector<int64_t> paramsOf(const Configuration &configuration) const {
    std::vector<int64_t> values;
    for (const Space::Dimension &dimension : space_.dimensions())
      if (!dimension.isOption)
        values.push_back(configuration[dimension.name]);
    return values;
  }

  /// Tiles of size 1 are special: what broadcasts them along that dimension is not there. So which Params are 1 decides
  /// about the program, and the others only about numbers in it.
  static std::vector<bool> onesOf(const std::vector<int64_t> &params) {
    std::vector<bool> ones;
    for (int64_t value : params)
      ones.push_back(value == 1);
    return ones;
  }

  /// A few traces of the configuration's kind, from which all others follow where the integers of the kernel are linear
  /// in its Params.
  std::optional<model::ParametricPlan> fit(Configuration base) const {
    std::vector<model::ParametricPlan::Sample> samples;
    auto add = [&](const Configuration &configuration) {
      samples.push_back({space_.apply(configuration, options_).params, trace(configuration)});
    };
    try {
      Configuration far = base;
      add(base);
      for (const Space::Dimension &dimension : space_.dimensions()) {
        if (dimension.isOption || base[dimension.name] == 1)
          continue;
        int64_t last = base[dimension.name];
        for (int64_t value : dimension.values) {
          if (value == 1 || value == base[dimension.name])
            continue;
          if (last == base[dimension.name]) {
            Configuration other = base;
            other.set(dimension.name, value);
            add(other);
          }
          last = value;
        }
        far.set(dimension.name, last);
      }
      if (samples.size() > 2)
        add(far);
      return model::ParametricPlan::fit(samples);
    } catch (const Error &) { // a kernel that refuses some values while it is traced: each is traced on its own
      return std::nullopt;
    }
  }

  const Counted &countsOf(const Configuration &configuration) const {
    std::vector<int64_t> params = paramsOf(configuration);
    auto [found, isNew] = counted_.try_emplace(params);
    Counted &counted = found->second;
    if (!isNew)
      return counted;
    auto [plan, isFirst] = plans_.try_emplace(onesOf(params));
    if (isFirst)
      plan->second = fit(configuration);
    try {
      counted.plan = plan->second ? plan->second->at(space_.apply(configuration, options_).params)
                                  : trace(configuration);
      counted.counts = counted.plan.count(words_, countedClasses);
      counted.refusal = counted.counts.refusal;
    } catch (const Error &error) {
      counted.refusal = error.what();
    }
    return counted;
  }

  /// See the header.
  void addTiles(Prediction &prediction, const model::Counts &counts, const model::Ceilings &ceilings,
                double balance) const {
    if (ceilings.levels.size() < 3 || !prediction.refusal.empty())
      return;
    const model::Ceilings::Level &first = ceilings.levels[0], &second = ceilings.levels[1];
    double perCore = first.bytes / ceilings.processors;
    bool loops = counts.loopIterations > 1;
    double carriedBytes = std::max(0.0, counts.liveTileBytes - counts.loopLoadBytes);
    double carried = loops ? factors_.carried * counts.instances * counts.loopIterations * carriedBytes : 0;
    double bytes = counts.requestedBytes(), touched = bytes / std::max(counts.instances, 1.0) + counts.liveTileBytes;
    double spilled = loops ? 1 : std::clamp(2 * (touched / perCore - 1), 0.0, 1.0);
    double tiles = (1 - spilled) * bytes / first.readBytesPerSecond +
                   factors_.again * spilled * bytes / second.readBytesPerSecond +
                   carried / (carriedBytes <= perCore ? first : second).copyBytesPerSecond;
    tiles /= std::max(balance, 1e-6);
    double turns = loops ? 0 : std::min(1.0, second.bytes / ceilings.processors / std::max(touched, 1.0));
    double memory = 0, launch = 0, work = tiles;
    const std::string &shared = ceilings.levels[ceilings.levels.size() - 2].name;
    for (Prediction::Term &term : prediction.terms)
      if (term.name == "memory")
        memory = term.seconds *= 1 + factors_.mixed * turns * turns;
      else if (term.name == "launch")
        launch = term.seconds;
      else if (term.name != shared)
        work += term.seconds;
    double overlap = loops ? 1 : 1 / (1 + counts.liveTileBytes / perCore);
    prediction.seconds = launch + std::max(memory, work) + factors_.serial * (1 - overlap) * std::min(memory, work) +
                         factors_.instance * counts.instances / ceilings.processors;
    prediction.terms.push_back({"tiles", tiles});
    model::sortLargestFirst(prediction.terms);
    prediction.boundBy = prediction.terms.front().name;
  }

  /// Of the threads and the vectors that the configuration uses.
  const model::Ceilings &ceilingsFor(const Configuration &configuration, bool isMasked) const {
    auto threads = static_cast<int>(configuration.get("threads", options_.threads));
    int64_t bits = configuration.get("vector_bits", 512);
    auto [found, isNew] = narrowed_.try_emplace({threads, bits, isMasked}, ceilings_);
    model::Ceilings &ceilings = found->second;
    if (!isNew)
      return ceilings;
    double share = 1;
    if (threads > 0 && threads < ceilings.processors) {
      share = static_cast<double>(threads) / ceilings.processors;
      ceilings.processors = threads;
    }
    // Half the vector does half the work. Where a tile hangs over an edge, only AVX-512 has instructions for part of a
    // vector; and without fused multiply-adds a function like exp takes many times as long.
    double width = static_cast<double>(bits) / 512;
    const ModelFactors &f = factors_;
    double plain = bits >= 512 ? 1 : (bits >= 256 ? f.half : f.quarter) * (isMasked ? f.masked : 1);
    double special = bits >= 512   ? 1
                     : bits >= 256 ? f.specialHalf * (isMasked ? f.specialMasked : 1)
                                   : f.specialQuarter;
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
  ModelFactors factors_;
  mutable std::map<std::vector<bool>, std::optional<model::ParametricPlan>> plans_; ///< by which Params are 1
  mutable std::map<std::vector<int64_t>, Counted> counted_;                          ///< by the Params
  mutable std::map<std::tuple<int64_t, int64_t, bool>, model::Ceilings> narrowed_;   ///< by threads, vectors, masks
};

} // namespace

std::unique_ptr<Ranker> modelRanker(const Kernel &kernel, const Space &space, const Arguments &arguments,
                                    const LaunchOptions &options, const model::Ceilings &ceilings) {
  return std::make_unique<ModelRanker>(kernel, space, arguments, options, ceilings);
}

void setFactors(Ranker &ranker, const ModelFactors &factors) {
  dynamic_cast<ModelRanker &>(ranker).setFactors(factors);
}

std::vector<ModelFactors::Named> ModelFactors::cpu() {
  using F = ModelFactors;
  return {{"instance", &F::instance},
          {"serial", &F::serial},
          {"again", &F::again},
          {"mixed", &F::mixed},
          {"carried", &F::carried},
          {"half", &F::half},
          {"quarter", &F::quarter},
          {"masked", &F::masked},
          {"special_half", &F::specialHalf},
          {"special_quarter", &F::specialQuarter},
          {"special_masked", &F::specialMasked}};
}

std::vector<ModelFactors::Named> ModelFactors::gpu() {
  using F = ModelFactors;
  return {{"crossed", &F::crossed},
          {"pieces", &F::pieces},
          {"plain", &F::plain},
          {"lone", &F::lone},
          {"load", &F::load},
          {"latency", &F::latency},
          {"straddling", &F::straddling},
          {"by_threads", &F::byThreads},
          {"cut", &F::cut},
          {"uneven", &F::uneven},
          {"narrow", &F::narrow},
          {"slices", &F::slices},
          {"lag", &F::lag},
          {"gather", &F::gather},
          {"coupled", &F::coupled},
          {"step", &F::step},
          {"dependent", &F::dependent},
          {"begin", &F::begin},
          {"end", &F::end},
          {"sharing", &F::sharing},
          {"barrier", &F::barrier},
          {"turn", &F::turn},
          {"alone", &F::alone},
          {"adrift", &F::adrift},
          {"meet", &F::meet},
          {"deep", &F::deep},
          {"first", &F::first},
          {"word", &F::word},
          {"cluster", &F::cluster}};
}

std::unique_ptr<Ranker> defaultRanker(const Kernel &kernel, const Space &space, const Arguments &arguments,
                                      const LaunchOptions &options) {
  model::Ceilings ceilings = knownCeilings(options);
  auto hasClusters = [](const Space::Dimension &dimension) {
    return dimension.isOption && dimension.name == "cluster" && dimension.values.back() > 2;
  };
  if (options.target == Target::cuda && std::ranges::any_of(space.dimensions(), hasClusters))
    ceilings = withClusters(std::move(ceilings), options.compile.device);
  return modelRanker(kernel, space, arguments, options, ceilings);
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
