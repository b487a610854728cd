// SPDX-License-Identifier: Apache-2.0
//
// `tenon profile -- PROGRAM ARGS`: runs a program that uses the library, which records what it does (TENON_PROFILE) and
// writes it when the program ends. `tenon profile --read TRACE` looks at one again.
#include "ChildProgram.h"
#include "Commands.h"
#include "Format.h"
#include "Options.h"
#include "OutputFile.h"
#include "ProfileCounters.h"
#include "ProfileTrace.h"
#include "Report.h"
#include "Table.h"

#include "tenon/base/Error.h"
#include "tenon/measure/MeasuredCeilings.h"
#include "tenon/profile/Summary.h"
#include "tenon/runtime/Device.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace tenon::tool {
namespace {

namespace fs = std::filesystem;

struct ProfileRequest {
  std::vector<std::string> program;
  std::string read, trace, flame, stacks, json;
  double bandwidth = 0, rate = 0;
  bool noCeilings = false, counters = false;
};

/// What a program and the ones it started wrote: the largest file is the one that worked.
std::string largestTrace(const std::string &folder, size_t &count) {
  std::vector<fs::path> files;
  for (const auto &entry : fs::directory_iterator(folder))
    files.push_back(entry.path());
  count = files.size();
  if (files.empty())
    return "";
  return textOf(*std::max_element(files.begin(), files.end(), [](const fs::path &a, const fs::path &b) {
    return fs::file_size(a) < fs::file_size(b);
  }));
}

std::string rate(double perSecond) { return perSecond > 0 ? fmt::format("{:.3g}", perSecond / 1e9) : "-"; }

void printKernels(const ProfileSummary &summary) {
  using enum Table::Align;
  using enum Table::Narrow;
  bool hasCeiling = false, hasFlops = false;
  for (const auto &kernel : summary.kernels) {
    hasCeiling |= kernel.ofCeiling > 0;
    hasFlops |= kernel.flops > 0;
  }
  std::vector<Table::Column> columns = {{"kernel", left, shrinks},
                                        {"place"},
                                        {"calls", right},
                                        {"self", right},
                                        {"% of time", right},
                                        {"a call", right},
                                        {"host", right, goes},
                                        {"total", right, goes},
                                        {"GB/s", right}};
  if (hasFlops)
    columns.push_back({"GFLOP/s", right});
  if (hasCeiling)
    columns.push_back({"% of roofline", right});
  Table table(columns);
  for (const auto &kernel : summary.kernels) {
    auto timed = [&](const std::string &text) { return kernel.isTimed ? text : "?"; };
    std::vector<Table::Cell> row = {
        kernel.name,
        kernel.place,
        std::to_string(kernel.calls),
        timed(secondsText(kernel.self)),
        timed(fmt::format("{:.1f}", kernel.share * 100)),
        timed(secondsText(kernel.self / static_cast<double>(std::max<size_t>(kernel.calls, 1)))),
        secondsText(kernel.host),
        secondsText(kernel.total),
        rate(kernel.bytesPerSecond())};
    if (hasFlops)
      row.emplace_back(rate(kernel.flopsPerSecond()));
    if (hasCeiling)
      row.emplace_back(kernel.ofCeiling > 0 ? fmt::format("{:.0f}", kernel.ofCeiling * 100) : "-");
    table.add(std::move(row));
  }
  if (table.empty())
    fmt::print("no kernel was launched\n");
  else
    table.print();
}

void printOps(const ProfileSummary &summary) {
  using enum Table::Align;
  if (summary.ops.empty())
    return;
  Table table({{"op", left, Table::Narrow::shrinks},
               {"calls", right},
               {"launches", right},
               {"self", right},
               {"total", right},
               {"kernels", right}});
  for (const auto &op : summary.ops) {
    size_t slash = op.path.rfind(" / ");
    table.add({std::string(2 * static_cast<size_t>(op.depth), ' ') +
                   op.path.substr(slash == std::string::npos ? 0 : slash + 3),
               std::to_string(op.calls), std::to_string(op.launches), secondsText(std::max(op.self, 0.0)),
               secondsText(op.total), secondsText(op.kernels)});
  }
  fmt::print("\n");
  table.print();
}

void print(const ProfileData &data, const ProfileSummary &summary, const std::vector<CounterRow> &counters) {
  fmt::print("{} of {}\n", secondsText(summary.seconds), data.program);
  printKernels(summary);
  if (!counters.empty())
    printCounters(counters, summary);
  printOps(summary);
  fmt::print("\ncompiling {} ({}), copying {} ({}), waiting {} ({})\n", secondsText(summary.compiling),
             summary.compilations, secondsText(summary.copying), summary.copies, secondsText(summary.waiting),
             summary.waits);
  for (const auto &place : summary.places)
    fmt::print("{}: busy {}, idle {} between its first and its last run\n", place.name, secondsText(place.busy),
               secondsText(place.idle));
  for (size_t i = 0; i < std::min<size_t>(summary.gaps.size(), 3); ++i)
    fmt::print("  a gap of {} at {}, while the host was busy with: {}\n", secondsText(summary.gaps[i].seconds()),
               secondsText(static_cast<double>(summary.gaps[i].begin) * 1e-9), summary.gaps[i].meanwhile);
  if (auto cycles = data.counters.find("cycles"); cycles != data.counters.end() && cycles->second) {
    auto value = [&](const char *name) {
      auto found = data.counters.find(name);
      return found == data.counters.end() ? 0.0 : static_cast<double>(found->second);
    };
    fmt::print("processor: {:.3g} cycles, {:.3g} instructions ({:.2f} a cycle), {:.3g} cache misses\n", value("cycles"),
               value("instructions"), value("instructions") / value("cycles"), value("cache-misses"));
  }
  if (!summary.findings.empty())
    fmt::print("\n{}\n", styled(standardOutput(), Style::bold, "Findings"));
  for (const auto &finding : summary.findings)
    fmt::print("- {}\n", finding.text);
  for (const std::string &note : data.notes)
    fmt::print("note: {}\n", note);
}

void fill(Report &report, const ProfileData &data, const ProfileSummary &summary) {
  report.set("program", data.program);
  report.set("seconds", summary.seconds);
  auto part = [](double seconds, size_t count) { return Json{{"seconds", seconds}, {"count", count}}; };
  report.set("compiling", part(summary.compiling, summary.compilations));
  report.set("copying", part(summary.copying, summary.copies));
  report.set("waiting", part(summary.waiting, summary.waits));
  Json places = Json::array(), ops = Json::array(), gaps = Json::array(), findings = Json::array();
  for (const auto &place : summary.places)
    places.push_back({{"place", place.name}, {"runs", place.runs}, {"busy", place.busy}, {"idle", place.idle}});
  for (const auto &op : summary.ops)
    ops.push_back({{"op", op.path},
                   {"calls", op.calls},
                   {"launches", op.launches},
                   {"self", op.self},
                   {"total", op.total},
                   {"kernels", op.kernels}});
  for (const auto &gap : summary.gaps)
    gaps.push_back({{"place", gap.place},
                    {"at", static_cast<double>(gap.begin) * 1e-9},
                    {"seconds", gap.seconds()},
                    {"meanwhile", gap.meanwhile}});
  for (const auto &finding : summary.findings)
    findings.push_back({{"kind", finding.kind},
                        {"text", finding.text},
                        {"site", finding.site.empty() ? Json(nullptr) : Json(finding.site)},
                        {"seconds", finding.seconds}});
  report.set("places", places);
  report.set("ops", ops);
  report.set("gaps", gaps);
  report.set("findings", findings);
  report.set("counters", data.counters);
  report.set("notes", data.notes);
  for (const auto &kernel : summary.kernels) {
    auto known = [](bool is, double value) { return is ? Json(value) : Json(nullptr); };
    report.add({{"kernel", kernel.name},
                {"place", kernel.place},
                {"calls", kernel.calls},
                {"self", known(kernel.isTimed, kernel.self)},
                {"total", kernel.total},
                {"host", kernel.host},
                {"share", known(kernel.isTimed, kernel.share)},
                {"fastest", known(kernel.isTimed, kernel.fastest)},
                {"bytes", kernel.bytes},
                {"flops", known(kernel.flops > 0, kernel.flops)},
                {"gb_per_s", known(kernel.self > 0 && kernel.bytes, kernel.bytesPerSecond() / 1e9)},
                {"gflop_per_s", known(kernel.self > 0 && kernel.flops > 0, kernel.flopsPerSecond() / 1e9)},
                {"of_roofline", known(kernel.ofCeiling > 0, kernel.ofCeiling)}});
  }
}

/// Of the places that kernels ran in: as said, or for a program that ran here just now, of this machine.
std::map<std::string, ProfileCeilings> ceilingsOf(const ProfileData &data, const ProfileRequest &request) {
  std::map<std::string, ProfileCeilings> ceilings;
  for (const ProfileEvent &event : data.events)
    if (event.kind == ProfileEvent::Kind::launch)
      ceilings.try_emplace(event.device < 0 ? "cpu" : fmt::format("cuda:{}", event.device));
  for (auto &[place, ceiling] : ceilings) {
    ceiling = {request.bandwidth * 1e9, request.rate * 1e9};
    if (request.bandwidth > 0 || request.rate > 0 || !request.read.empty() || request.noCeilings)
      continue;
    std::optional<model::Ceilings> known;
    if (place == "cpu")
      known = cpuCeilings();
    else if (whyNoCuda().empty())
      known = model::gpuDatasheet(cudaProperties(0).name);
    if (known && !known->levels.empty())
      ceiling = {std::max(known->memory().readBytesPerSecond, known->memory().copyBytesPerSecond),
                 known->matrixRate(known->isGpu ? model::Precision::bf16 : model::Precision::f32)};
  }
  return ceilings;
}

int profileProgram(const ProfileRequest &request) {
  Report report("profile", request.json);
  if (request.program.empty() == request.read.empty())
    throw Error(request.read.empty() ? "which program? Say `tenon profile -- PROGRAM ARGS`"
                                     : "give a program or --read TRACE, not both");
  if (request.counters && !request.read.empty())
    throw Error("a trace has no counters of the GPU: give the program to run");
  for (const std::string &file : {request.trace, request.flame, request.stacks})
    if (!file.empty())
      checkWritable(file);
  std::string text;
  int status = 0;
  if (request.read.empty()) {
    ScratchFolder folder;
    status = runProgram(request.program, {{"TENON_PROFILE", folder.path() + "/trace-%p.json"}}, report.quiet());
    size_t processes = 0;
    text = largestTrace(folder.path(), processes);
    if (text.empty() && status == 0)
      throw Error(fmt::format("'{}' wrote no profile: it does not use libtenon, or did not return from main",
                              request.program[0]));
    if (text.empty()) {
      fmt::print(stderr, "tenon: '{}' wrote no profile: it ended with status {}\n", request.program[0], status);
      return status;
    }
    if (processes > 1 && !report.quiet())
      fmt::print("{} processes used the library; this is the one that did most\n", processes);
  }
  ProfileData data = request.read.empty() ? parseTrace(text, request.program[0]) : readTrace(request.read);
  ProfileSummary summary = summarize(data, ceilingsOf(data, request));
  std::vector<CounterRow> counters;
  std::string noCounters;
  if (request.counters && status == 0)
    try {
      counters = readCounters(request.program);
    } catch (const Error &error) { // the rest is worth having all the same
      noCounters = error.what();
      data.notes.push_back("no counters of the GPU: " + noCounters);
    }
  if (!request.trace.empty())
    writeFile(request.trace, traceJson(data));
  if (!request.flame.empty())
    writeFile(request.flame, flameGraph(data));
  if (!request.stacks.empty())
    writeFile(request.stacks, collapsedStacks(data));
  if (!report.quiet()) {
    print(data, summary, counters);
    if (status)
      fmt::print("{}\n", styled(standardOutput(), Style::bad, fmt::format("the program ended with status {}", status)));
    if (!request.trace.empty())
      fmt::print("the timeline is in {}: open it at ui.perfetto.dev\n", request.trace);
  }
  fill(report, data, summary);
  if (request.counters)
    report.set("gpu_counters", toJson(counters));
  report.write();
  return status ? status : noCounters.empty() ? done : checkFailed;
}

} // namespace

Command addProfile(CLI::App &app) {
  CLI::App *command =
      app.add_subcommand("profile", "Record what a program does with the library, and say what to change");
  auto request = std::make_shared<ProfileRequest>();
  command->add_option("program", request->program, "The program and its arguments, behind --")->type_name("PROGRAM");
  auto file = [&](const char *name, std::string &value, const char *text) {
    command->add_option(name, value, text)->type_name("FILE");
  };
  file("--trace", request->trace, "Write the timeline, for ui.perfetto.dev");
  file("--flame", request->flame, "Write a flame graph (SVG)");
  file("--stacks", request->stacks, "Write the flame graph's stacks as text: a;b;c microseconds");
  file("--read", request->read, "Look at a trace written before instead of running a program");
  command->add_option("--bandwidth", request->bandwidth, "GB/s that the memory can do, for % of roofline")
      ->check(CLI::NonNegativeNumber.description(""))
      ->type_name("GB/S");
  command->add_option("--rate", request->rate, "GFLOP/s that the machine can do, for % of roofline")
      ->check(CLI::NonNegativeNumber.description(""))
      ->type_name("GFLOP/S");
  command->add_flag("--counters", request->counters,
                    "Run the program once more under Nsight Compute and show what the GPU's counters say");
  command->add_flag("--no-ceilings", request->noCeilings, "No % of roofline: this machine's is measured once");
  addJsonOption(*command, request->json);
  addExamples(*command, {"tenon profile -- ./train --steps 3",
                         "tenon profile --trace trace.json --flame flame.svg -- tenon run softmax",
                         "tenon profile --counters -- ./train --steps 1",
                         "tenon profile --read trace.json --json -"});
  return [request] { return profileProgram(*request); };
}

} // namespace tenon::tool
