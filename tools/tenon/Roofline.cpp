// SPDX-License-Identifier: Apache-2.0
//
// `tenon roofline`: what a kernel must do, what the machine can do, and which of the two decides.
#include "Commands.h"
#include "OutputFile.h"
#include "Progress.h"
#include "RooflineAll.h"
#include "RooflineFigures.h"
#include "RooflinePlot.h"
#include "RooflineText.h"

#include "tenon/measure/MeasuredCeilings.h"

#include <fmt/format.h>

namespace tenon::tool {
namespace {

struct CommandLine : RooflineRequest {
  std::string svg;
};

int roofline(const CommandLine &request) {
  Report report("roofline", request.json, request.target == "cuda" ? 0 : -1);
  if (request.all) {
    if (!request.svg.empty())
      throw Error("--svg draws one kernel: leave out --all");
    return compareWithModel(request, report);
  }
  if (!request.svg.empty())
    checkWritable(request.svg);
  RooflineFigures figures;
  {
    Progress progress(1);
    figures = findRoofline(request, [&](const std::string &what) { progress.show(what); });
  }
  if (!request.svg.empty())
    writeFile(request.svg, svgOf(plotOf(figures)));
  if (!report.quiet())
    fmt::print("{}", textOf(figures));
  report.set("ceilings", tenon::toJson(figures.ceilings));
  report.add(toJson(figures));
  report.tellWeather();
  report.write();
  return figures.failure.empty() ? done : checkFailed;
}

} // namespace

Command addRoofline(CLI::App &app) {
  CLI::App *command = app.add_subcommand("roofline", "What limits a kernel, and how far from the limit it is");
  auto request = std::make_shared<CommandLine>();
  addKernelOption(*command, *request, Kernels::oneOrAll);
  addProblemOptions(*command, *request);
  command->add_option("--target", request->target,
                      "cpu; cuda; or, by its datasheet and without one, an architecture (sm_90a) or a GPU (H200)")
      ->capture_default_str()
      ->type_name("TARGET");
  addIsaOption(*command, *request);
  command->add_option("--threads", request->threads, "Threads to run on; 0: all visible processors")
      ->check(between(0, 1024))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--warps", request->warps, "GPU: warps of a block, a power of two or 12; 0: chosen")
      ->type_name("N");
  command->add_option("--cluster", request->cluster, "GPU: blocks that share a program instance; 0: chosen")
      ->type_name("N");
  command->add_option("--stages", request->stages, "GPU: slots of asynchronous loads in loops around a dot; 0: chosen")
      ->type_name("N");
  command->add_option("--split", request->split, "GPU: program instances that share a loop which only adds up")
      ->type_name("N");
  command->add_flag("--share-tail", request->shareTail, "GPU: the last program instances are made by all blocks");
  command->add_flag("--ping-pong", request->pingPong, "GPU: two warpgroups of a block take program instances in turns");
  command->add_option("--seconds", request->seconds, "Time for measuring the kernel")
      ->check(between(0.0, 3600.0))
      ->capture_default_str()
      ->type_name("S");
  command->add_flag("--no-measure", request->noMeasure, "Do not run the kernel: only what it could reach");
  command->add_flag("--remeasure", request->remeasure, "Measure the machine's ceilings anew");
  command->add_option("--svg", request->svg, "Draw it to FILE")->type_name("FILE");
  addJsonOption(*command, request->json);
  addExamples(*command, {"tenon roofline vector_add --dtype f16", "tenon roofline softmax --svg softmax.svg",
                         "tenon roofline --all --json model.json",
                         "tenon roofline matmul --shape 4096x4096x4096 --dtype bf16 --target H200"});
  return [request] { return roofline(*request); };
}

} // namespace tenon::tool
