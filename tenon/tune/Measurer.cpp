// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Measurer.h"

#include "tenon/base/Error.h"
#include "tenon/measure/Machine.h"
#include "tenon/tune/TileProgram.h"
#include "tenon/verify/Judge.h"
#include "tenon/verify/Sandbox.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace tenon::tuning {
namespace {

using Status = Outcome::Status;
using Clock = std::chrono::steady_clock;

/// Of launches that take longer, the first few are known well enough.
constexpr double longLaunch = 100e-6;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A unit in the last place of numbers from 1 to 2.
double unitOf(DType type) {
  switch (type) {
  case DType::f64: return 0x1p-52;
  case DType::f32: return 0x1p-23;
  case DType::f16: return 0x1p-10;
  case DType::bf16: return 0x1p-7;
  case DType::f8e4m3: return 0x1p-3;
  default: return 0x1p-2;
  }
}

/// Hundreds of candidates are judged by the same reference: it is computed once.
std::function<void(Arguments &)> onlyOnce(const std::function<void(Arguments &)> &function,
                                          const std::vector<size_t> &outputs) {
  if (!function)
    return function;
  auto kept = std::make_shared<std::vector<Tensor>>();
  return [function, outputs, kept](Arguments &arguments) {
    if (kept->empty()) {
      function(arguments);
      for (size_t output : outputs)
        kept->push_back(arguments[output].tensor().clone());
      return;
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      arguments[outputs[i]].tensor().copyFrom((*kept)[i]);
  };
}

} // namespace

double floorSeconds(const Problem &problem, const LaunchOptions &options) {
  if (options.target == Target::cuda) {
    const CudaProperties &device = cudaProperties(options.compile.device);
    // Data that the second-level cache holds can come faster than memory delivers it.
    bool fits = problem.bytes < static_cast<double>(device.l2Bytes);
    double bandwidth = device.bytesPerSecond();
    return bandwidth > 0 && !fits ? problem.bytes / bandwidth : 0;
  }
  if (options.target != Target::cpu)
    return 0;
  // No core does more in a cycle than two fused multiply-adds on vectors of 512 bits, two loads and a store; no clock
  // runs at more than 6.5 GHz. (Types narrower than f32 are computed in f32, or by instructions twice as wide.)
  double cycles = 6.5e9 * (options.threads ? options.threads : thisMachine().processors);
  return std::max(problem.flops / (128 * cycles), problem.bytes / (192 * cycles));
}

Measurer::Measurer(const Kernel &kernel, const Space &space, const Problem &problem, const TuneOptions &options)
    : kernel_(kernel), space_(space), problem_(problem), original_(problem), options_(options),
      floor_(options.floorSeconds == 0 ? floorSeconds(problem, options.launch) : options.floorSeconds) {
  problem_.reference = onlyOnce(problem.reference, problem.outputs);
  problem_.plain = onlyOnce(problem.plain, problem.outputs);
}

Measurer::~Measurer() = default;

Workers &Measurer::workers() {
  if (workers_)
    return *workers_;
  arena_ = std::make_unique<Arena>(kernel_, problem_.arguments);
  Workers::Options options;
  options.command = options_.worker;
  // On the CPU candidates and compilers want the same cores, and memory.
  int most = options_.launch.target == Target::cuda ? 16 : 8;
  options.count = options_.workers ? options_.workers : std::clamp(thisMachine().processors, 1, most);
  options.memoryBytes = options_.memoryBytes ? options_.memoryBytes
                                             : std::max<uint64_t>(thisMachine().availableBytes / 2 / options.count,
                                                                  uint64_t(1) << 30);
  options.compileSeconds = options_.compileSeconds;
  options.runSeconds = options_.runSeconds;
  options.useDiskCache = options_.launch.compile.useDiskCache;
  options.runsApart = options_.launch.target == Target::cuda; // where compiling takes nothing from what is timed
  workers_ = std::make_unique<Workers>(options, *arena_, options_.launch.target, options_.launch.compile.device);
  if (comparesWithFirst())
    prepareComparison();
  return *workers_;
}

std::unique_ptr<Turn> Measurer::turn() const {
  if (options_.launch.target != Target::cuda)
    return nullptr;
  int ordinal = options_.launch.compile.device;
  return std::make_unique<Turn>(turnOf(cudaProperties(ordinal), ordinal), options_.stop);
}

bool Measurer::comparesWithFirst() const {
  using enum TuneOptions::Judging;
  bool isPossible = problem_.inPlace.empty(); // launched again and again on its own result, it would be another problem
  for (size_t output : problem_.outputs)
    isPossible &= problem_.arguments[output].tensor().isContiguous();
  if (options_.judging == first && !isPossible)
    throw Error("candidates cannot be compared with the first one: an output is not contiguous, or an input too");
  return isPossible && (options_.judging == first ||
                        (options_.judging == automatic && options_.launch.target == Target::cuda));
}

void Measurer::prepareComparison() {
  Comparison &comparison = comparison_.emplace();
  for (auto *arena : {&comparison.first, &comparison.second, &comparison.wanted, &comparison.found})
    *arena = std::make_unique<Arena>(kernel_, problem_.arguments);
  comparison.first->load(Sandbox(problem_, /*alternate=*/false).arguments());
  comparison.second->load(Sandbox(problem_, /*alternate=*/true).arguments());
  std::vector<std::string> names;
  for (const KernelParameter &parameter : kernel_.parameters())
    if (parameter.kind != ParameterKind::param)
      names.push_back(parameter.name);
  for (size_t output : problem_.outputs) {
    const Tensor &tensor = problem_.arguments[output].tensor();
    comparison.outputs.push_back({arena_->offsetOf(output), tensor.elements(), tensor.dtype(), names[output]});
  }
  workers_->setImages({comparison.first.get(), comparison.second.get(), comparison.wanted.get(),
                       comparison.found.get(), comparison.outputs});
}

Measurer::Traced &Measurer::trace(const Configuration &configuration) {
  auto [found, isNew] = traced_.try_emplace(configuration);
  Traced &traced = found->second;
  if (!isNew)
    return traced;
  traced.job.number = traced_.size();
  traced.job.configuration = configuration;
  traced.job.options = space_.apply(configuration, options_.launch);
  try {
    TileText text = traceToText(kernel_, problem_.arguments, traced.job.options);
    traced.job.ir = std::move(text.ir);
    traced.program = text.hash;
  } catch (const Error &error) {
    traced.failure = Outcome::failed(Status::refused, error.what());
  }
  return traced;
}

std::string Measurer::programOf(const Configuration &configuration) { return trace(configuration).program; }

void Measurer::compile(const std::vector<Configuration> &configurations) {
  std::vector<Traced *> batch;
  std::vector<const Job *> jobs;
  for (const Configuration &configuration : configurations)
    if (Traced &traced = trace(configuration); !traced.failure) {
      batch.push_back(&traced);
      jobs.push_back(&traced.job);
    }
  std::vector<Workers::Compiled> compiled = workers().compile(jobs);
  for (size_t i = 0; i < batch.size(); ++i) {
    batch[i]->failure = compiled[i].failure;
    batch[i]->compileSeconds = compiled[i].seconds;
  }
}

void Measurer::compileAhead(const std::vector<Configuration> &configurations) {
  std::vector<const Job *> jobs;
  for (const Configuration &configuration : configurations)
    if (Traced &traced = trace(configuration); !traced.failure && !traced.isAwaited) {
      traced.isAwaited = true;
      jobs.push_back(&traced.job);
    }
  workers().compileAhead(jobs);
}

void Measurer::forget() { workers().forget(); }

size_t Measurer::atOnce() { return 2 * workers().count(); }

Verdict Measurer::verifyIn(const Job &job, const Problem &problem, std::vector<Tensor> *outputs, double *seconds) {
  return verify(problem, [&](const Arguments &arguments) {
    arena_->load(arguments);
    auto mine = turn();
    double took = workers().run(job);
    mine.reset();
    if (seconds)
      *seconds = *seconds > 0 ? std::min(*seconds, took) : took;
    arena_->store(arguments);
    if (outputs) {
      outputs->clear();
      for (size_t output : problem.outputs)
        outputs->push_back(arguments[output].tensor().clone());
    }
  });
}

Outcome Measurer::measure(const Configuration &configuration) {
  Traced &traced = trace(configuration);
  if (traced.isAwaited) {
    Workers::Compiled compiled = workers().await(traced.job);
    traced.isAwaited = false;
    traced.failure = compiled.failure;
    traced.compileSeconds = compiled.seconds;
  }
  auto start = Clock::now();
  workers();
  Outcome outcome = traced.failure ? *traced.failure : comparison_ ? examine(traced) : judge(traced);
  outcome.cost = secondsSince(start) + traced.compileSeconds;
  if (outcome.measured() && (best_ == 0 || outcome.seconds < best_))
    best_ = outcome.seconds;
  return outcome;
}

Outcome Measurer::judge(const Traced &traced) {
  try {
    std::vector<Tensor> outputs;
    double once = 0;
    Verdict verdict = verifyIn(traced.job, problem_, &outputs, &once);
    if (!verdict.passed)
      return Outcome::failed(Status::wrong, verdict.reason);
    Outcome outcome;
    // By the host's clock, launching a kernel on a device and waiting for it takes longer than many kernels do.
    if (best_ > 0 && once > std::max(10 * best_, coldLaunch) && options_.launch.target != Target::cuda) {
      // Not worth more of the budget: it is slow, however exactly one knows how slow.
      outcome.status = Status::measured;
      outcome.seconds = outcome.median = once;
      outcome.trials = 2;
    } else {
      timeAndCheck(traced.job, outputs, outcome);
    }
    return notTooFast(outcome);
  } catch (const Workers::Failure &failure) {
    return failure.outcome;
  } catch (const Error &error) { // a guard was written to
    return Outcome::failed(Status::wrong, error.what());
  }
}

Outcome Measurer::notTooFast(const Outcome &outcome) const {
  if (!outcome.measured() || floor_ <= 0 || outcome.seconds >= floor_)
    return outcome;
  return Outcome::failed(Status::tooFast, "a launch took " + std::to_string(outcome.seconds * 1e6) +
                                              " us, and this machine cannot do the work in less than " +
                                              std::to_string(floor_ * 1e6) + " us");
}

//===--- By comparison with the first -----------------------------------------------------------------------------===//

Outcome Measurer::examine(const Traced &traced) {
  Comparison &comparison = *comparison_;
  Workers::ExamineRequest request;
  request.seconds = options_.timingSeconds;
  request.deterministic = problem_.deterministic;
  // Not worth more of the budget: it is slow, however exactly one knows how slow.
  request.slow = (best_ > longLaunch ? 1.5 : 3) * best_;
  try {
    workers().load(traced.job); // others may measure meanwhile
    if (comparison.tolerances.empty()) {
      {
        auto mine = turn();
        workers().examine(traced.job, request); // runs it and shows what it left
      }
      if (auto complaint = accept())
        return Outcome::failed(Status::wrong, *complaint);
    }
    request.hasWanted = true;
    request.tolerances = comparison.tolerances;
    request.relatives = comparison.relatives;
    auto mine = turn();
    return notTooFast(workers().examine(traced.job, request));
  } catch (const Workers::Failure &failure) {
    return failure.outcome;
  }
}

std::vector<Verdict> Measurer::verdictsOf(const Problem &problem, const Arena &arena) const {
  Arguments got = problem.arguments;
  for (size_t output : problem.outputs) {
    const Tensor &tensor = problem.arguments[output].tensor();
    size_t bytes = static_cast<size_t>(tensor.elements()) * sizeOf(tensor.dtype());
    got[output] = Tensor::borrow(arena.begin() + arena.offsetOf(output), bytes, tensor.dtype(), tensor.sizes());
  }
  std::vector<Arguments> samples = options_.samples ? options_.samples(got) : std::vector<Arguments>{got};
  std::vector<Verdict> verdicts;
  for (size_t output : problem.outputs) {
    std::optional<Verdict> closest; // to failing
    for (const Arguments &sample : samples) {
      Problem part = problem;
      part.outputs = {output};
      for (size_t i = 0; i < sample.size(); ++i)
        part.arguments[i] = sample[i].isTensor() ? Argument(sample[i].tensor().clone()) : sample[i];
      Verdict verdict = verify(part, [&](const Arguments &arguments) {
        arguments[output].tensor().copyFrom(part.arguments[output].tensor());
      });
      bool isCloser = !closest || verdict.allowed - verdict.error < closest->allowed - closest->error;
      if (closest && !closest->passed)
        continue;
      if (!verdict.passed || isCloser)
        closest = verdict;
    }
    verdicts.push_back(*closest);
  }
  return verdicts;
}

/// Judges what the candidate in question left; if it is right, the others are compared with it from now on. With `e`
/// its error and `a` what the rule allows, what differs from it by no more than a - e is right by the rule. Two right
/// results may still differ by a unit in the last place of each element, whatever the largest that was sampled.
std::optional<std::string> Measurer::accept() {
  Comparison &comparison = *comparison_;
  std::vector<Verdict> verdicts = verdictsOf(original_, *comparison.found);
  for (const Verdict &verdict : verdicts)
    if (!verdict.passed)
      return verdict.reason;
  std::memcpy(comparison.wanted->begin(), comparison.found->begin(), comparison.found->bytes());
  for (size_t i = 0; i < verdicts.size(); ++i) {
    comparison.tolerances.push_back(verdicts[i].allowed - verdicts[i].error);
    comparison.relatives.push_back(unitOf(comparison.outputs[i].dtype));
  }
  return std::nullopt;
}

std::optional<std::string> Measurer::checkBySamples(const Job &job, const Problem &problem) {
  Sandbox sandbox(problem, /*alternate=*/false);
  arena_->load(sandbox.arguments());
  {
    auto mine = turn();
    workers().run(job);
  }
  for (const Verdict &verdict : verdictsOf(problem, *arena_))
    if (!verdict.passed)
      return verdict.reason;
  return std::nullopt;
}

void Measurer::timeAndCheck(const Job &job, const std::vector<Tensor> &outputs, Outcome &outcome) {
  Sandbox sandbox(problem_, /*alternate=*/false);
  arena_->load(sandbox.arguments());
  Workers::TimeRequest request;
  request.seconds = options_.timingSeconds;
  request.check = problem_.inPlace.empty(); // launched again and again on its own result, it would be another problem
  request.deterministic = problem_.deterministic;
  {
    auto mine = turn();
    outcome = workers().time({&job}, request).front();
  }
  if (!request.check)
    return;
  arena_->store(sandbox.arguments());
  if (auto damage = sandbox.damage({}))
    outcome = Outcome::failed(Status::wrong, "while it was timed: " + *damage);
  for (size_t i = 0; problem_.deterministic && i < outputs.size() && outcome.measured(); ++i)
    if (auto difference = firstDifference(outputs[i], sandbox.arguments()[problem_.outputs[i]].tensor()))
      outcome = Outcome::failed(Status::wrong, "while it was timed it left another result than before, " + *difference);
}

std::vector<Outcome> Measurer::compare(const std::vector<Configuration> &configurations) {
  std::vector<const Job *> jobs;
  for (const Configuration &configuration : configurations)
    jobs.push_back(&trace(configuration).job);
  Sandbox sandbox(problem_, /*alternate=*/false);
  arena_->load(sandbox.arguments());
  Workers::TimeRequest request;
  request.seconds = options_.timingSeconds * static_cast<double>(jobs.size()) * 2;
  request.check = false; // each was checked on its own; here they share copies
  try {
    auto mine = turn();
    return workers().time(jobs, request);
  } catch (const Workers::Failure &) {
    return {}; // what is known of them still stands
  }
}

std::optional<Outcome> Measurer::check(const Configuration &configuration, const Problem &problem) {
  Traced &traced = trace(configuration);
  if (traced.failure)
    return traced.failure;
  workers();
  auto wrong = [&](const std::string &why) {
    return Outcome::failed(Status::wrong, "on " + problem.label + " with other values: " + why);
  };
  try {
    if (comparison_) {
      auto complaint = checkBySamples(traced.job, problem);
      return complaint ? std::optional(wrong(*complaint)) : std::nullopt;
    }
    Verdict verdict = verifyIn(traced.job, problem, nullptr, nullptr);
    if (verdict.passed)
      return std::nullopt;
    return wrong(verdict.reason);
  } catch (const Workers::Failure &failure) {
    return failure.outcome;
  } catch (const Error &error) {
    return Outcome::failed(Status::wrong, error.what());
  }
}

} // namespace tenon::tuning
