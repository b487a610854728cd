// SPDX-License-Identifier: Apache-2.0
#include "Commands.h"
#include "Format.h"
#include "Options.h"
#include "OutputFile.h"
#include "Report.h"
#include "Table.h"

#include <fmt/format.h>

namespace tenon::tool {
namespace {

struct CompileRequest : Request {
  std::string phase, output;
  bool time = false, remarks = false;
};

int printPhases(Report &report) {
  Table table({{"phase"}, {"what is printed"}});
  for (const PhaseInfo &phase : compilePhases()) {
    table.add({{phase.name, Style::bold}, phase.summary});
    report.add({{"phase", phase.name}, {"summary", phase.summary}});
  }
  if (!report.quiet())
    table.print();
  report.write();
  return done;
}

void printTimes(const CompileReport &compiled, std::FILE *stream) {
  for (const CompileReport::Phase &phase : compiled.phases)
    fmt::print(stream, "{:<14} {:>9.3f} ms\n", phase.name, phase.milliseconds);
  fmt::print(stream, "{:<14} {:>9.3f} ms\n", "total", compiled.milliseconds());
}

bool isGpuPhase(const std::string &name) {
  for (const PhaseInfo &phase : compilePhases())
    if (phase.name == name)
      return phase.isGpu;
  return false;
}

constexpr const char *targets = "cpu, interpreter, sim, cuda, or an architecture: sm_80, sm_86, sm_89, sm_90, sm_90a";

/// A target may also be an architecture, for which there need be no device: "sm_90a". A phase of a GPU means one.
bool isForArchitecture(CompileRequest &request) {
  bool named = request.target.starts_with("sm_");
  if (!named && !parseTarget(request.target))
    throw Error(fmt::format("unknown target '{}': the targets are {}", request.target, targets));
  if (named)
    request.gpu = request.target;
  else if (request.target != "cpu" || !isGpuPhase(request.phase))
    return false;
  request.target = "sim"; // what is compiled for a GPU and asks for none
  return true;
}

int compileKernel(CompileRequest request) {
  Report report("compile", request.json);
  if (request.phase == "help")
    return printPhases(report);
  if (request.phase.empty() && !request.time && !request.remarks)
    throw Error("nothing to do: say --emit=<phase> (--emit=help lists them), --time or --remarks");
  if (!request.output.empty())
    checkWritable(request.output);
  std::string target = request.target;
  bool forArchitecture = isForArchitecture(request);
  Request problemOnly = request;
  problemOnly.target = "cpu"; // nothing runs: the demo shape for slow targets too
  Case one = caseOf(problemOnly, Defaults::demo);
  Problem problem = one.problem(request);
  LaunchOptions options = launchOptionsOf(request, one, problem);
  options.compile.useDiskCache = false; // what comes from the cache was not compiled

  Json result = {{"kernel", one.entry->name}, {"shape", one.shape}, {"dtype", nameOf(one.dtype)},
                 {"target", forArchitecture ? request.gpu : target}, {"isa", request.isa}, {"params", options.params}};
  std::string text;
  if (!request.phase.empty()) {
    text = emit(one.entry->kernel, problem.arguments, request.phase, options);
    if (!text.ends_with('\n'))
      text += '\n';
    if (!request.output.empty())
      writeFile(request.output, text);
    result["phase"] = request.phase;
    result["text"] = text;
  }
  // The text is what a pipe wants: times and remarks then go to the other stream.
  bool textOnOutput = !text.empty() && request.output.empty();
  if (textOnOutput && !report.quiet())
    std::fwrite(text.data(), 1, text.size(), stdout);
  if (request.time || request.remarks || !request.json.empty()) {
    CompileReport compiled;
    if (forArchitecture)
      emit(one.entry->kernel, problem.arguments, "ptx", options, &compiled);
    else
      compiled = prepare(one.entry->kernel, problem.arguments, options);
    result["compile"] = toJson(compiled);
    std::FILE *stream = textOnOutput ? stderr : stdout;
    if (request.time && !report.quiet())
      printTimes(compiled, stream);
    if (request.remarks && !report.quiet()) {
      for (const std::string &remark : compiled.remarks)
        fmt::print(stream, "{}\n", remark);
      if (compiled.remarks.empty())
        fmt::print(stream, "the compiler has no remarks\n");
    }
  }
  report.add(std::move(result));
  report.write();
  return done;
}

} // namespace

Command addCompile(CLI::App &app) {
  CLI::App *command = app.add_subcommand("compile", "Compile a kernel and look inside");
  auto request = std::make_shared<CompileRequest>();
  addKernelOption(*command, *request, Kernels::one);
  command->add_option("--emit", request->phase, "Print the program after this phase; help lists the phases")
      ->type_name("PHASE");
  command->add_option("-o,--output", request->output, "Write it to FILE")->type_name("FILE");
  command->add_flag("--time", request->time, "Print how long each phase takes");
  command->add_flag("--remarks", request->remarks, "Print what the compiler did or declined, and why");
  addProblemOptions(*command, *request);
  command->add_option("--target", request->target, targets)
      ->capture_default_str()
      ->type_name("TARGET");
  addIsaOption(*command, *request);
  addGpuOptions(*command, *request);
  addJsonOption(*command, request->json);
  addExamples(*command, {"tenon compile softmax --emit=tile",
                         "tenon compile softmax --emit=asm --isa avx2 -o softmax.s",
                         "tenon compile matmul --shape 512x512x512 --dtype bf16 --time",
                         "tenon compile matmul --dtype bf16 --target sm_90a --emit=ptx --remarks",
                         "tenon compile --emit=help"});
  return [request] { return compileKernel(*request); };
}

} // namespace tenon::tool
