// SPDX-License-Identifier: Apache-2.0
#include "Commands.h"
#include "Figures.h"
#include "Format.h"
#include "Progress.h"
#include "Table.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace tenon::tool {
namespace {

struct DemoRequest : Request {
  double seconds = 60;
  bool quick = false;
};

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void addRow(Table &table, const Figures &figures) {
  std::vector<Table::Cell> row = {{figures.one.entry->name, Style::bold}, shapeText(figures.one.shape),
                                  std::string(nameOf(figures.one.dtype)),
                                  fmt::format("{:.1f}", figures.compiled.milliseconds())};
  bool passed = figures.passed();
  row.emplace_back(passed ? "yes" : "NO", passed ? Style::good : Style::bad);
  if (passed) {
    std::string_view answer = figures.plain ? answerOf(figures.speedUp) : "";
    row.emplace_back(secondsText(figures.ours->seconds));
    row.emplace_back(figures.plain ? secondsText(figures.plain->seconds.median) : "-");
    row.emplace_back(figures.plain ? fmt::format("{:.2f}x", figures.speedUp.median) : "-",
                     answer == "faster" ? Style::good : answer == "slower" ? Style::bad : Style::plain);
    row.emplace_back(rateText(figures.flops, figures.bytes, figures.ours->seconds.median));
  }
  table.add(std::move(row));
}

int demo(DemoRequest request) {
  Report report("demo", request.json);
  request.all = true;
  Clock::time_point start = Clock::now();
  std::vector<Case> cases = casesOf(request, Defaults::demo);
  if (request.quick) { // the shapes that the interpreter gets
    Request small = request;
    small.target = "interpreter";
    cases = casesOf(small, Defaults::demo);
  }
  double total = request.quick ? std::min(request.seconds, 3.0) : request.seconds;

  using enum Table::Align;
  using enum Table::Narrow;
  auto widest = [&](auto text) {
    std::string found;
    for (const Case &one : cases)
      if (std::string candidate = text(one); candidate.size() > found.size())
        found = candidate;
    return found;
  };
  Table table({{"kernel", left, shrinks, widest([](const Case &one) { return one.entry->name; })},
               {"shape", left, stays, widest([](const Case &one) { return shapeText(one.shape); })},
               {"type", left, goes, widest([](const Case &one) { return std::string(nameOf(one.dtype)); })},
               {"compile ms", right, goes},
               {"verified"},
               {"time", right, stays, "99.9 ms +-100%"},
               {"plain loop", right, goes},
               {"speed-up", right},
               {"rate", right, stays, "99.9 GFLOP/s"}});
  if (!report.quiet()) {
    const Machine &machine = thisMachine();
    int threads = request.threads ? request.threads : machine.processors;
    fmt::print("Tenon {} on {}, {}, {} thread{} (the plain C++ loops run on 1)\n\n", tenonVersion(), machine.cpu,
               machine.isaLevels.front(), threads, threads == 1 ? "" : "s");
    table.printNew();
  }
  std::vector<std::string> notes;
  Progress progress(cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    // Each kernel gets its share of what is left; verification comes out of it first, but measuring keeps a minimum.
    double share = std::max(0.0, total - secondsSince(start)) / static_cast<double>(cases.size() - i);
    Clock::time_point begin = Clock::now();
    FigureOptions options;
    options.budget = [&] { return std::clamp(share - secondsSince(begin), request.quick ? 0.05 : 0.5, 3.0); };
    Figures figures = findFigures(cases[i], request, options, [&](const std::string &what) { progress.show(what); });
    if (!figures.passed())
      notes.push_back(fmt::format("{}: {}", cases[i].label(),
                                  figures.failure.empty() ? figures.verdict->reason : figures.failure));
    addRow(table, figures);
    if (!report.quiet()) {
      progress.clear();
      table.printNew();
    }
    progress.advance();
    report.add(toJson(figures, request));
  }
  progress.clear();
  if (!report.quiet()) {
    for (const std::string &note : notes)
      fmt::print("{}\n", note);
    fmt::print("\n{} of {} kernels compiled, verified and measured in {}\n", cases.size() - notes.size(), cases.size(),
               secondsText(secondsSince(start)));
  }
  report.tellWeather();
  report.write();
  return notes.empty() ? done : checkFailed;
}

} // namespace

Command addDemo(CLI::App &app) {
  CLI::App *command = app.add_subcommand("demo", "Compile, verify and measure every kernel of the zoo");
  auto request = std::make_shared<DemoRequest>();
  command->add_option("--seconds", request->seconds, "About how long it may take")
      ->check(between(1.0, 36000.0))
      ->capture_default_str()
      ->type_name("S");
  command->add_flag("--quick", request->quick, "Small shapes: a few seconds, and times that say little");
  command->add_option("--threads", request->threads, "Threads to run on; 0: all visible processors")
      ->check(between(0, 1024))
      ->capture_default_str()
      ->type_name("N");
  addJsonOption(*command, request->json);
  addExamples(*command, {"tenon demo", "tenon demo --quick", "tenon demo --seconds 120 --json demo.json"});
  return [request] { return demo(*request); };
}

} // namespace tenon::tool
