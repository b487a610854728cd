// SPDX-License-Identifier: Apache-2.0
#include "Figures.h"

#include "tenon/measure/Results.h"
#include "tenon/measure/Rotation.h"

namespace tenon::tool {

Figures findFigures(const Case &one, const Request &request, const FigureOptions &options,
                    const std::function<void(const std::string &)> &stage) {
  Figures figures;
  figures.one = one;
  stage(one.label() + ": making inputs");
  Problem problem = one.problem(request);
  LaunchOptions launchOptions = launchOptionsOf(request, one, problem);
  launchOptions.compile.useDiskCache = false;
  figures.params = launchOptions.params;
  figures.flops = problem.flops;
  figures.bytes = problem.bytes;
  try {
    stage(one.label() + ": compiling");
    figures.compiled = prepare(one.entry->kernel, problem.arguments, launchOptions);
    if (options.verify) {
      stage(one.label() + ": verifying");
      problem.params = launchOptions.params;
      figures.verdict = verify(problem, one.entry->kernel, launchOptions);
      if (!figures.verdict->passed)
        return figures; // the time of a wrong kernel means nothing
    }
    stage(one.label() + ": measuring");
    Rotation::Options where;
    if (launchOptions.target == Target::cuda) // a launch of tensors on the host would be one of their copies, too
      where.device = Device::cuda(launchOptions.compile.device);
    Rotation rotation(problem.arguments, where);
    figures.sets = rotation.sets();
    figures.cold = rotation.cold();
    std::vector<Subject> subjects;
    subjects.push_back({"tenon", [&] { launch(one.entry->kernel, rotation.next(), launchOptions); }});
    std::optional<Rotation> onHost;
    if (where.device.isCuda())
      onHost.emplace(problem.arguments);
    Rotation &forPlain = onHost ? *onHost : rotation;
    if (one.entry->plainLoop && one.dtype == f32) // which is what the plain loops are written for
      subjects.push_back({"plain", [&] { one.entry->plainLoop(forPlain.next()); }});
    BenchOptions bench = options.bench;
    if (options.budget)
      bench.budgetSeconds = options.budget();
    Comparison comparison = compare(subjects, bench);
    figures.ours = comparison.timings[0];
    if (subjects.size() > 1) {
      figures.plain = comparison.timings[1];
      figures.speedUp = comparison.ratios[1];
    }
    DatasheetPeaks peaks = where.device.isCuda() ? gpuPeaks(cudaProperties(launchOptions.compile.device).name)
                                                 : cpuPeaks(thisMachine().processors, thisMachine().isaExtras);
    std::string why = whyImpossible(figures.ours->seconds.median, figures.flops, figures.bytes,
                                    std::string(nameOf(one.dtype)), peaks);
    if (!why.empty()) { // no time, and nothing to compare with
      figures.failure = "impossible: " + why;
      figures.ours.reset();
      figures.plain.reset();
      return figures;
    }
    if (options.warm) { // by itself: beside the others it would find the caches full of their data
      stage(one.label() + ": measuring with warm caches");
      const Arguments &same = rotation.next();
      figures.warm = compare({{"warm", [&] { launch(one.entry->kernel, same, launchOptions); }}}, bench).timings[0];
    }
  } catch (const Error &error) {
    figures.failure = error.what();
  }
  return figures;
}

Json toJson(const Figures &figures, const Request &request) {
  Json result = {{"kernel", figures.one.entry->name},
                 {"shape", figures.one.shape},
                 {"dtype", nameOf(figures.one.dtype)},
                 {"target", request.target},
                 {"isa", request.isa},
                 {"threads", request.threads ? request.threads : thisMachine().processors},
                 {"params", figures.params},
                 {"flops", figures.flops},
                 {"bytes", figures.bytes},
                 {"compile", toJson(figures.compiled)},
                 {"verdict", figures.verdict ? toJson(*figures.verdict) : Json(nullptr)},
                 {"failure", figures.failure.empty() ? Json(nullptr) : Json(figures.failure)}};
  result["time"] = figures.ours ? toJson(*figures.ours) : Json(nullptr);
  if (figures.warm)
    result["warm"] = toJson(*figures.warm);
  result["plain_loop"] = figures.plain ? toJson(*figures.plain) : Json(nullptr);
  result["speed_up"] = figures.plain ? toJson(figures.speedUp) : Json(nullptr);
  result["answer"] = figures.plain ? Json(answerOf(figures.speedUp)) : Json(nullptr);
  if (figures.ours) {
    double seconds = std::max(figures.ours->seconds.median, 1e-12);
    result["gb_per_s"] = figures.bytes / seconds / 1e9;
    result["gflop_per_s"] = figures.flops / seconds / 1e9;
    result["argument_sets"] = figures.sets;
    result["cold"] = figures.cold;
  }
  return result;
}

} // namespace tenon::tool
