// SPDX-License-Identifier: Apache-2.0
#include "Commands.h"
#include "Figures.h"
#include "Format.h"
#include "Progress.h"
#include "Table.h"

#include <fmt/format.h>

#include <map>

namespace tenon::tool {
namespace {

struct BenchRequest : Request {
  double seconds = 2;
  bool noVerify = false, warm = false;
};

std::string rate(double amount, const Timing &timing) {
  return amount > 0 ? fmt::format("{:.3g}", amount / timing.seconds.median / 1e9) : "-";
}

void addRow(Table &table, const Figures &figures) {
  std::vector<Table::Cell> row = {figures.one.entry->name, shapeText(figures.one.shape),
                                  std::string(nameOf(figures.one.dtype))};
  if (!figures.passed()) {
    row.emplace_back(figures.failure.empty() ? "wrong" : "error", Style::bad);
  } else {
    row.emplace_back(secondsText(figures.ours->seconds));
    if (figures.warm)
      row.emplace_back(secondsText(figures.warm->seconds));
    row.emplace_back(figures.plain ? secondsText(figures.plain->seconds) : "-");
    const Estimate &speedUp = figures.speedUp;
    row.emplace_back(
        figures.plain ? fmt::format("{:.2f}x [{:.2f}, {:.2f}]", speedUp.median, speedUp.low, speedUp.high) : "-");
    row.emplace_back(figures.plain ? std::string(answerOf(speedUp)) : "-");
    row.emplace_back(rate(figures.bytes, *figures.ours));
    row.emplace_back(rate(figures.flops, *figures.ours));
    row.emplace_back(std::to_string(figures.ours->trials) + (figures.ours->steady ? "" : "*"));
  }
  table.add(std::move(row));
}

int bench(const BenchRequest &request) {
  Report report("bench", request.json, request.target == "cuda" ? 0 : -1);
  std::vector<Case> cases = casesOf(request, Defaults::demo);
  FigureOptions options;
  options.verify = !request.noVerify;
  options.warm = request.warm;
  options.bench.budgetSeconds = request.seconds;
  using enum Table::Align;
  using enum Table::Narrow;
  std::vector<Table::Column> columns = {
      {"kernel", left, shrinks}, {"shape"},  {"type", left, goes}, {"time", right},          {"plain loop", right},
      {"speed-up", right},       {"answer"}, {"GB/s", right},      {"GFLOP/s", right, goes}, {"trials", right, goes}};
  if (request.warm)
    columns.insert(columns.begin() + 4, {"warm", right});
  Table table(columns);
  std::vector<std::string> notes;
  bool passed = true, steady = true, cold = true;
  {
    Progress progress(cases.size());
    for (const Case &one : cases) {
      Figures figures = findFigures(one, request, options, [&](const std::string &what) { progress.show(what); });
      progress.advance();
      if (!figures.passed()) {
        passed = false;
        notes.push_back(fmt::format("{}: {}", one.label(),
                                    figures.failure.empty() ? figures.verdict->reason : figures.failure));
      } else {
        steady &= figures.ours->steady;
        cold &= figures.cold;
      }
      addRow(table, figures);
      report.add(toJson(figures, request));
    }
  }
  if (!report.quiet()) {
    int threads = request.threads ? request.threads : thisMachine().processors;
    fmt::print("{}; {} thread{}, plain loops 1; median and 95% interval, {} caches{}\n", thisMachine().cpu, threads,
               threads == 1 ? "" : "s", cold ? "cold" : "possibly warm",
               request.noVerify ? "; results not verified" : "; results verified first");
    table.print();
    if (!steady)
      fmt::print("* the time ended before the interval was within 1%: give more with --seconds\n");
    for (const std::string &note : notes)
      fmt::print("{}\n", note);
  }
  report.tellWeather();
  report.write();
  return passed ? done : checkFailed;
}

} // namespace

Command addBench(CLI::App &app) {
  CLI::App *command = app.add_subcommand("bench", "Measure kernels beside the plain C++ loop");
  auto request = std::make_shared<BenchRequest>();
  addKernelOption(*command, *request, Kernels::oneOrAll);
  addProblemOptions(*command, *request);
  addTargetOptions(*command, *request);
  command->add_option("--seconds", request->seconds, "Time for the trials of each case")
      ->check(between(0.0, 3600.0))
      ->capture_default_str()
      ->type_name("S");
  command->add_flag("--no-verify", request->noVerify, "Do not check the results first");
  command->add_flag("--warm", request->warm, "Measure also with the same data over and over, which the caches may hold");
  addJsonOption(*command, request->json);
  addExamples(*command, {"tenon bench softmax", "tenon bench softmax --shape 512x1024 --shape 64x8192 --threads 1",
                         "tenon bench --all --seconds 1 --json bench.json", "tenon bench cpu --help",
                         "tenon bench gpu --help", "tenon bench classic --help", "tenon bench launch --help"});
  struct Below {
    Command run;
    const char *choice; ///< the option that chooses among its kernels
  };
  std::map<std::string, Below> below = {{"cpu", {addBenchCpu(*command), "only"}},
                                        {"gpu", {addBenchGpu(*command), "cases"}},
                                        {"classic", {addClassic(*command), "shape"}},
                                        {"launch", {addBenchLaunch(*command), "target"}}};
  return [request, command, below] {
    std::vector<CLI::App *> given = command->get_subcommands();
    if (given.empty())
      return bench(*request);
    std::string name = given.front()->get_name();
    const Below &one = below.at(name);
    if (!request->kernel.empty() || request->all)
      throw Error(name == "launch" ? "`bench launch` measures what a launch costs, of no kernel in particular"
                                   : fmt::format("`bench {}` has its own list of kernels: choose among them with --{}", name,
                                                 one.choice));
    return one.run();
  };
}

} // namespace tenon::tool
