// SPDX-License-Identifier: Apache-2.0
#include "Report.h"

#include "GpuMachine.h"
#include "OutputFile.h"

#include "tenon/measure/Results.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <fstream>

namespace tenon::tool {
namespace {

/// What the command was given, so that it can be given again; without the program's own name.
Json argumentsGiven() {
  Json arguments = Json::array();
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string one;
  for (bool isLeftOut = true; std::getline(file, one, '\0');) { // the program's name; where results go
    bool isResults = one == "--json";
    if (!isLeftOut && !isResults && !one.starts_with("--json="))
      arguments.push_back(one);
    isLeftOut = isResults;
  }
  return arguments;
}

} // namespace

Report::Report(std::string command, std::string file, int gpu)
    : command_(std::move(command)), file_(std::move(file)), weather_(gpu) {
  if (!file_.empty() && !quiet())
    checkWritable(file_);
}

void Report::write() const {
  if (file_.empty())
    return;
  Json report = {{"schema", resultsSchema},
                 {"tenon", tenonVersion()},
                 {"command", command_},
                 {"commit", commitText()},
                 {"arguments", argumentsGiven()},
                 {"machine", toJson(thisMachine())},
                 {"conditions", tenon::toJson(weather_.read())}};
  for (const auto &[field, value] : fields_.items())
    report[field] = value;
  report["results"] = results_;
  // Texts that are not UTF-8 (a path, say) become readable ones rather than an exception.
  std::string text = report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (quiet())
    std::fwrite(text.data(), 1, text.size(), stdout);
  else
    writeFile(file_, text);
}

void Report::tellWeather() const {
  if (quiet())
    return;
  if (std::string complaint = weather_.read().complaint(); !complaint.empty())
    fmt::print("note: measured in bad conditions: {}\n", complaint);
}

Json toJson(const Machine &machine) {
  Json caches = Json::array();
  for (const Machine::Cache &cache : machine.caches)
    caches.push_back(
        {{"level", cache.level}, {"type", cache.type}, {"bytes", cache.bytes}, {"shared_by", cache.sharedBy}});
  return {{"cpu", machine.cpu},
          {"processors", machine.processors},
          {"caches", caches},
          {"isa_levels", machine.isaLevels},
          {"isa_extras", machine.isaExtras},
          {"memory_bytes", machine.memoryBytes},
          {"llvm", machine.llvmVersion},
          {"gpu_driver", machine.gpu.driver},
          {"gpus", machine.gpu.devices},
          {"ptxas", machine.gpu.ptxas},
          {"kernel_cache", machine.kernelCache.enabled ? machine.kernelCache.directory : ""}};
}

Json toJson(const Estimate &estimate) {
  return {{"median", estimate.median}, {"low", estimate.low}, {"high", estimate.high}};
}

Json toJson(const Timing &timing) {
  return {{"seconds", toJson(timing.seconds)},
          {"fastest", timing.fastest},
          {"trials", timing.trials},
          {"calls_per_trial", timing.callsPerTrial},
          {"steady", timing.steady},
          {"outliers", timing.outliers},
          {"drift", timing.drift}};
}

Json toJson(const Verdict &verdict) {
  // JSON has no infinity and no NaN: an error that is one is null.
  auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  return {{"passed", verdict.passed},
          {"reason", verdict.reason},
          {"error", number(verdict.error)},
          {"plain_error", number(verdict.plainError)},
          {"allowed", number(verdict.allowed)}};
}

Json toJson(const CompileReport &report) {
  Json phases = Json::array();
  for (const CompileReport::Phase &phase : report.phases)
    phases.push_back({{"name", phase.name}, {"milliseconds", phase.milliseconds}});
  Json gpu = nullptr;
  if (report.gpu)
    gpu = {{"threads", report.gpu->threads},
           {"cluster", report.gpu->cluster},
           {"stages", report.gpu->stages},
           {"shared_bytes", report.gpu->sharedBytes},
           {"registers", report.gpu->registers ? Json(report.gpu->registers) : Json(nullptr)},
           {"spill_bytes", report.gpu->registers ? Json(report.gpu->spillBytes) : Json(nullptr)}};
  return {{"milliseconds", report.milliseconds()},
          {"gpu", gpu},
          {"phases", phases},
          {"from_disk", report.fromDisk},
          {"key", report.key},
          {"remarks", report.remarks}};
}

} // namespace tenon::tool
