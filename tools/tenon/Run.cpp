// SPDX-License-Identifier: Apache-2.0
#include "Commands.h"
#include "Format.h"
#include "Options.h"
#include "Report.h"

#include "tenon/verify/Values.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

namespace tenon::tool {
namespace {

constexpr int64_t firstCount = 6;

/// What can be told of an output in a line: equal results have equal hashes, and a sum is easy to compare by eye.
struct Summary {
  std::string name, type;
  double sum = 0;
  uint64_t hash = 0xcbf29ce484222325; // FNV-1a over the elements' bytes in row-major order
  std::vector<double> first;
};

Summary summarize(const std::string &name, const Tensor &tensor) {
  Summary summary{name, tensor.str(), 0, 0xcbf29ce484222325, {}};
  size_t bytes = sizeOf(tensor.dtype());
  forEachElement(tensor, [&](int64_t, std::byte *element) {
    for (size_t i = 0; i < bytes; ++i)
      summary.hash = (summary.hash ^ static_cast<uint64_t>(element[i])) * 0x100000001b3;
  });
  for (double value : valuesOf<double>(tensor)) {
    summary.sum += value;
    if (summary.first.size() < firstCount)
      summary.first.push_back(value);
  }
  return summary;
}

std::vector<std::string> argumentNames(const Kernel &kernel) {
  std::vector<std::string> names;
  for (const KernelParameter &parameter : kernel.parameters())
    if (parameter.kind != ParameterKind::param)
      names.push_back(parameter.name);
  return names;
}

std::string phasesText(const CompileReport &report) {
  std::string text;
  for (const CompileReport::Phase &phase : report.phases)
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", phase.name, phase.milliseconds);
  return text;
}

Json numberOrText(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }

int run(const Request &request) {
  Report report("run", request.json);
  Case one = caseOf(request, Defaults::demo);
  Problem problem = one.problem(request);
  LaunchOptions options = launchOptionsOf(request, one, problem);
  CompileReport compiled = prepare(one.entry->kernel, problem.arguments, options);
  auto start = std::chrono::steady_clock::now();
  launch(one.entry->kernel, problem.arguments, options);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  std::vector<std::string> names = argumentNames(one.entry->kernel);
  Json outputs = Json::array();
  std::string lines;
  for (size_t index : problem.outputs) {
    Summary summary = summarize(names[index], problem.arguments[index].tensor());
    Json first = Json::array();
    for (double value : summary.first)
      first.push_back(numberOrText(value));
    outputs.push_back({{"name", summary.name}, {"type", summary.type}, {"hash", fmt::format("{:016x}", summary.hash)},
                       {"sum", numberOrText(summary.sum)}, {"first", first}});
    lines += fmt::format("{:<9} {}  checksum {:016x}  sum {:.9g}\n", summary.name, summary.type, summary.hash,
                         summary.sum);
    lines += fmt::format("{:<9} {:.6g}{}\n", "  first", fmt::join(summary.first, " "),
                         problem.arguments[index].tensor().elements() > firstCount ? " ..." : "");
  }
  if (!report.quiet()) {
    fmt::print("{} on {}, seed {}\n", one.label(), request.target, request.seed);
    fmt::print("{:<9} {}\n", "params", paramsText(options.params));
    fmt::print("{}", lines);
    fmt::print("{:<9} {:.2f} ms{}{}\n", "compile", compiled.milliseconds(),
               compiled.fromDisk ? " (from the disk cache)" : "",
               compiled.phases.empty() ? "" : ": " + phasesText(compiled));
    fmt::print("{:<9} {}\n", "run", secondsText(seconds));
  }
  report.add({{"kernel", one.entry->name}, {"shape", one.shape}, {"dtype", nameOf(one.dtype)},
              {"target", request.target}, {"isa", request.isa}, {"threads", request.threads}, {"seed", request.seed},
              {"params", options.params}, {"outputs", outputs}, {"compile", toJson(compiled)}, {"seconds", seconds}});
  report.write();
  return done;
}

} // namespace

Command addRun(CLI::App &app) {
  CLI::App *command = app.add_subcommand("run", "Run a kernel once on random data");
  auto request = std::make_shared<Request>();
  addKernelOption(*command, *request, Kernels::one);
  addProblemOptions(*command, *request);
  addTargetOptions(*command, *request);
  addJsonOption(*command, request->json);
  addExamples(*command, {"tenon run softmax --shape 128x512 --dtype f32",
                         "tenon run matmul --shape 256x256x256 --dtype bf16 --isa avx2 --threads 1",
                         "tenon run softmax --shape 17x100 --target interpreter",
                         "tenon run softmax --shape 17x100 --target sim --warps 2"});
  return [request] { return run(*request); };
}

} // namespace tenon::tool
