// SPDX-License-Identifier: Apache-2.0
#include "RooflineFigures.h"

#include "Format.h"

#include "tenon/jit/Count.h"
#include "tenon/measure/GpuBench.h"
#include "tenon/measure/MeasuredCeilings.h"
#include "tenon/measure/Results.h"
#include "tenon/measure/Rotation.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::tool {
namespace {

using Stage = std::function<void(const std::string &)>;

/// Where the kernel shall run, or be thought to.
struct Place {
  bool isGpu = false, exists = true;
  std::string architecture;
};

Place placeOf(const std::string &target, model::Ceilings &ceilings, const RooflineRequest &request,
              const Stage &stage) {
  CeilingOptions options;
  options.remeasure = request.remeasure;
  options.threads = request.threads;
  if (target == "cpu") {
    stage("measuring the machine's ceilings");
    ceilings = cpuCeilings(options);
    return {};
  }
  if (target == "cuda") {
    stage("measuring the device's ceilings");
    ceilings = gpuCeilings(0, options);
    return {true, true, cudaProperties(0).architecture()};
  }
  ceilings = model::gpuDatasheet(target).value();
  std::string architecture = ceilings.limits->architecture;
  return {true, false, architecture == "sm_90" ? "sm_90a" : architecture};
}

/// What the code generator and the assembler say of the block.
void readBlock(const CompileReport::Gpu &gpu, RooflineFigures &figures) {
  model::BlockShape &block = figures.configuration.block;
  block.threads = gpu.threads;
  block.sharedBytes = gpu.sharedBytes;
  figures.configuration.cluster = gpu.cluster;
  figures.configuration.stages = gpu.stages;
  figures.registersKnown = gpu.registers > 0;
  if (figures.registersKnown)
    block.registersPerThread = gpu.registers;
}

/// The unit that does most of the arithmetic, and its rate.
void findArithmetic(RooflineFigures &figures) {
  const model::Work &work = figures.counts.useful;
  double most = -1;
  for (size_t i = 0; i < model::precisions; ++i) {
    auto precision = static_cast<model::Precision>(i);
    if (work.matrix[i] > most && work.matrix[i] > 0) {
      most = work.matrix[i];
      figures.arithmetic = fmt::format("matrix {}", nameOf(precision));
      figures.arithmeticRate = figures.ceilings.matrixRate(precision);
    }
    if (work.vector[i] > most && work.vector[i] > 0) {
      most = work.vector[i];
      figures.arithmetic = fmt::format("vector {}", nameOf(precision));
      figures.arithmeticRate = figures.ceilings.vectorRate(precision);
    }
  }
  if (most < 0) {
    figures.arithmetic = "vector f32";
    figures.arithmeticRate = figures.ceilings.vectorRate(model::Precision::f32);
  }
}

/// Bytes and operations that cannot be avoided, over the rate of what does them.
void findRoofs(RooflineFigures &figures) {
  const model::Counts &counts = figures.counts;
  const model::Ceilings &ceilings = figures.ceilings;
  auto add = [&](const std::string &resource, double amount, double rate) {
    if (amount > 0 && rate > 0)
      figures.roofs.push_back({resource, amount, rate, amount / rate});
  };
  double rate = ceilings.memoryRate(counts.readBytes(), counts.writtenBytes());
  add("memory", counts.bytes(), rate);
  for (size_t i = 0; i < model::precisions; ++i) {
    auto precision = static_cast<model::Precision>(i);
    add(fmt::format("matrix {}", nameOf(precision)), counts.useful.matrix[i], ceilings.matrixRate(precision));
    add(fmt::format("vector {}", nameOf(precision)), counts.useful.vector[i], ceilings.vectorRate(precision));
  }
  add("special", counts.useful.specialFlops(), ceilings.special);
  std::stable_sort(figures.roofs.begin(), figures.roofs.end(),
                   [](const auto &a, const auto &b) { return a.seconds > b.seconds; });
  if (figures.roofs.empty())
    throw Error(figures.one.label() + " does nothing: there is no roof to hold it against");
  findArithmetic(figures);
  figures.ridge = figures.arithmeticRate / rate;
}

void measureCpu(RooflineFigures &figures, Problem &problem, const LaunchOptions &options, double seconds) {
  Rotation rotation(problem.arguments);
  figures.cold = rotation.cold();
  BenchOptions bench;
  bench.budgetSeconds = seconds;
  const Kernel &kernel = figures.one.entry->kernel;
  Comparison found = compare({{"tenon", [&] { launch(kernel, rotation.next(), options); }}}, bench);
  figures.seconds = found.timings[0].seconds;
  figures.trials = found.timings[0].trials;
}

void measureGpu(RooflineFigures &figures, Problem &problem, const LaunchOptions &options) {
  Device device = Device::cuda(0);
  size_t bytes = 0;
  for (const Argument &argument : problem.arguments)
    bytes += argument.isTensor() ? argument.tensor().bufferBytes() : 0;
  std::vector<Arguments> sets(setsToExceedCache(bytes, device));
  for (Arguments &set : sets)
    for (const Argument &argument : problem.arguments)
      set.push_back(argument.isTensor() ? Argument(argument.tensor().to(device)) : argument);
  figures.cold = true;
  GpuBursts bursts(figures.one.entry->kernel, std::move(sets), options);
  std::vector<double> samples;
  for (int i = 0; i < 15; ++i)
    samples.push_back(bursts());
  figures.trials = samples.size();
  figures.seconds = estimate(std::move(samples));
}

/// Checked first: the time of a wrong kernel means nothing, and one that beats the datasheet is no time.
void measure(RooflineFigures &figures, Problem &problem, const LaunchOptions &options, const RooflineRequest &request,
             const Stage &stage) {
  try {
    stage(figures.one.label() + ": verifying");
    problem.params = options.params;
    figures.verdict = verify(problem, figures.one.entry->kernel, options);
    if (!figures.verdict->passed) {
      figures.failure = "the kernel is wrong, so it has no time: " + figures.verdict->reason;
      return;
    }
    stage(figures.one.label() + ": measuring");
    if (figures.target == "cuda")
      measureGpu(figures, problem, options);
    else
      measureCpu(figures, problem, options, request.seconds);
    bool isGpu = figures.ceilings.isGpu;
    const Machine &machine = thisMachine();
    DatasheetPeaks peaks =
        isGpu ? gpuPeaks(figures.ceilings.device) : cpuPeaks(machine.processors, machine.isaExtras);
    std::string why = whyImpossible(figures.seconds->median, figures.counts.useful.flops(), figures.counts.bytes(),
                                    std::string(nameOf(figures.one.dtype)), peaks);
    if (!why.empty()) {
      figures.seconds.reset();
      figures.failure = "impossible: " + why;
    }
  } catch (const Error &error) {
    figures.failure = error.what();
  }
}

} // namespace

void checkRooflineTarget(const std::string &target) {
  if (target == "sim" || target == "interpreter")
    throw Error("a roofline of the " + target + " says nothing: it is no machine to be fast on");
  if (target == "cuda" && !whyNoCuda().empty())
    throw Error("there is no CUDA device: " + whyNoCuda() + "; an architecture such as sm_90a needs none");
  auto sheet = model::gpuDatasheet(target);
  if (target != "cpu" && target != "cuda" && !(sheet && sheet->limits))
    throw Error(fmt::format("unknown target '{}': roofline knows cpu, cuda, the architectures {}, and by their "
                            "datasheets {}",
                            target, joined(model::datasheetArchitectures()), joined(model::datasheetNames())));
}

RooflineFigures findRoofline(const RooflineRequest &request, const Stage &stage) {
  RooflineFigures figures;
  Request problemOnly = request;
  problemOnly.target = "cpu"; // the demo shape, whatever the target
  checkRooflineTarget(request.target);
  figures.one = caseOf(problemOnly, Defaults::demo);
  figures.target = request.target;
  Place place = placeOf(request.target, figures.ceilings, request, stage);
  stage(figures.one.label() + ": making inputs");
  Problem problem = figures.one.problem(request);
  Request launchRequest = request;
  launchRequest.target = !place.isGpu ? "cpu" : place.exists ? "cuda" : "sim";
  launchRequest.gpu = place.architecture;
  LaunchOptions options = launchOptionsOf(launchRequest, figures.one, problem);
  figures.params = options.params;
  const Kernel &kernel = figures.one.entry->kernel;

  LaunchOptions counting = options;
  counting.target = Target::cpu;
  model::CountPlan plan = jit::countPlan(kernel, problem.arguments, counting);
  std::vector<int64_t> words = jit::argumentWords(kernel, problem.arguments, counting);
  figures.counts = plan.count(words);
  if (!figures.counts.refusal.empty())
    throw Error(figures.counts.refusal);
  if (place.isGpu) {
    stage(figures.one.label() + ": compiling");
    figures.configuration.block = model::guessBlock(figures.counts, request.warps);
    CompileReport report;
    emit(kernel, problem.arguments, "ptx", options, &report);
    readBlock(report.gpu.value(), figures);
  }
  figures.cost = model::cost(plan, words, figures.counts, figures.ceilings, figures.configuration);
  findRoofs(figures);
  if (!request.noMeasure && place.exists)
    measure(figures, problem, options, request, stage);
  return figures;
}

RooflinePlot plotOf(const RooflineFigures &figures) {
  RooflinePlot plot;
  const model::Ceilings &ceilings = figures.ceilings;
  plot.title = figures.one.label();
  plot.subtitle = ceilings.device + (ceilings.measured ? ", ceilings measured" : "");
  for (const auto &level : ceilings.levels)
    plot.slopes.push_back({level.name, level.readBytesPerSecond});
  // With as much reading and writing as the kernel does: the line that it lies under.
  plot.slopes.back().bytesPerSecond =
      ceilings.memoryRate(figures.counts.readBytes(), figures.counts.writtenBytes());
  plot.roofs.push_back({figures.arithmetic, figures.arithmeticRate});
  double f32 = ceilings.vectorRate(model::Precision::f32);
  if (figures.arithmetic != "vector f32" && f32 != figures.arithmeticRate)
    plot.roofs.push_back({"vector f32", f32});
  double flops = figures.counts.useful.flops(), intensity = figures.counts.intensity();
  if (flops > 0 && intensity > 0) {
    plot.points.push_back({"could be here", intensity, flops / figures.least(), false});
    if (figures.seconds)
      plot.points.push_back({fmt::format("measured: {:.0f}% of the roof", 100 * figures.fraction()), intensity,
                             flops / figures.seconds->median, true});
  }
  return plot;
}

namespace {

Json toJson(const model::Work &work) {
  Json json = {{"flops", work.flops()}, {"integer", work.integer}};
  for (auto [name, unit] :
       {std::pair("matrix", &work.matrix), std::pair("vector", &work.vector), std::pair("special", &work.special)}) {
    json[name] = Json::object();
    for (size_t i = 0; i < model::precisions; ++i)
      if ((*unit)[i] > 0)
        json[name][std::string(nameOf(static_cast<model::Precision>(i)))] = (*unit)[i];
  }
  return json;
}

Json toJson(const std::vector<model::Cost::Term> &terms) {
  Json json = Json::array();
  for (const model::Cost::Term &term : terms)
    json.push_back(
        {{"resource", term.resource}, {"amount", term.amount}, {"rate", term.rate}, {"seconds", term.seconds}});
  return json;
}

Json toJson(const model::Counts &counts) {
  Json views = Json::array();
  for (const model::ViewCounts &view : counts.views) {
    Json one = {{"name", view.name}};
    for (auto [name, traffic] : {std::pair("read", &view.read), std::pair("written", &view.written)})
      one[name] = {{"compulsory", traffic->compulsory}, {"requested", traffic->requested}, {"exact", traffic->exact}};
    views.push_back(std::move(one));
  }
  return {{"grid", counts.grid},
          {"instances", counts.instances},
          {"useful", toJson(counts.useful)},
          {"executed", toJson(counts.executed)},
          {"read_bytes", counts.readBytes()},
          {"written_bytes", counts.writtenBytes()},
          {"requested_bytes", counts.requestedBytes()},
          {"views", views},
          {"busiest_share", counts.busiestShare},
          {"live_tile_bytes", counts.liveTileBytes},
          {"exact", counts.exact},
          {"notes", counts.notes}};
}

} // namespace

Json toJson(const RooflineFigures &figures) {
  const model::Cost &cost = figures.cost;
  Json result = {{"kernel", figures.one.entry->name},
                 {"shape", figures.one.shape},
                 {"dtype", nameOf(figures.one.dtype)},
                 {"target", figures.target},
                 {"params", figures.params},
                 {"flops", figures.counts.useful.flops()},
                 {"bytes", figures.counts.bytes()},
                 {"intensity", figures.counts.intensity()},
                 {"ridge", figures.ridge},
                 {"bound_by", figures.boundBy()},
                 {"least_seconds", figures.least()},
                 {"roofs", toJson(figures.roofs)},
                 {"counts", toJson(figures.counts)},
                 {"model", {{"seconds", cost.seconds}, {"bound_by", cost.boundBy}, {"memory_bytes", cost.memoryBytes},
                            {"balance", cost.balance}, {"terms", toJson(cost.terms)}}}};
  result["gpu"] = nullptr;
  if (figures.ceilings.isGpu)
    result["gpu"] = {{"threads", figures.configuration.block.threads},
                     {"registers_per_thread", figures.configuration.block.registersPerThread},
                     {"registers_known", figures.registersKnown},
                     {"shared_bytes", figures.configuration.block.sharedBytes},
                     {"blocks_per_multiprocessor", cost.occupancy.blocks},
                     {"occupancy", cost.occupancy.fraction},
                     {"limiter", cost.occupancy.limiter},
                     {"waves", cost.waves.waves},
                     {"wave_efficiency", cost.waves.efficiency},
                     {"tail_blocks", cost.waves.tailBlocks}};
  result["verdict"] = figures.verdict ? toJson(*figures.verdict) : Json(nullptr);
  result["failure"] = figures.failure.empty() ? Json(nullptr) : Json(figures.failure);
  result["time"] = nullptr;
  result["fraction_of_roof"] = nullptr;
  if (figures.seconds) {
    result["time"] = {{"seconds", toJson(*figures.seconds)}, {"trials", figures.trials}};
    result["fraction_of_roof"] = figures.fraction();
    result["cold"] = figures.cold;
  }
  return result;
}

} // namespace tenon::tool
