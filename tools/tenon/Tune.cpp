// SPDX-License-Identifier: Apache-2.0
#include "Commands.h"
#include "Format.h"
#include "OutputFile.h"
#include "Progress.h"
#include "Report.h"
#include "Table.h"
#include "TuneCommon.h"

#include "tenon/kernels/Samples.h"
#include "tenon/kernels/Spaces.h"
#include "tenon/tune/Worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <fstream>
#include <optional>
#include <sstream>

namespace tenon::tool {
namespace {

std::atomic<bool> wasInterrupted = false;

std::string readFile(const std::string &file) {
  std::ifstream stream(file);
  std::stringstream text;
  if (!(text << stream.rdbuf()))
    throw Error(fmt::format("cannot read '{}'", file));
  return text.str();
}

Database::Options databaseOptions(const TuneRequest &request) {
  Database::Options options;
  options.path = request.database;
  return options;
}

int exportRecords(const TuneRequest &request) {
  if (request.exportFile != "-")
    checkWritable(request.exportFile);
  Database database(databaseOptions(request));
  std::string text = database.exportJson(request.kernel);
  if (request.exportFile == "-")
    std::fwrite(text.data(), 1, text.size(), stdout);
  else
    writeFile(request.exportFile, text);
  return done;
}

int importRecords(const TuneRequest &request) {
  Database database(databaseOptions(request));
  size_t added = database.importJson(readFile(request.importFile));
  fmt::print("{} new record{} in {}\n", added, added == 1 ? "" : "s", database.description());
  return done;
}

//===--- What is said ---------------------------------------------------------------------------------------------===//

std::string progressText(const TuneProgress &progress) {
  std::string best = progress.bestSeconds > 0
                         ? fmt::format("best {} ({})", secondsText(progress.bestSeconds), progress.best.str())
                         : "none yet";
  // On a narrow terminal the end is cut off: how it goes comes before what it is about.
  return fmt::format("{} failed, {:.0f} s left, {}; {}", progress.failed, progress.leftSeconds, best, progress.doing);
}

std::string refusalsText(const Space::Refusals &refusals) {
  std::vector<std::string> items;
  for (const auto &[reason, count] : refusals)
    items.push_back(fmt::format("{} would be {}", count, reason));
  return items.empty() ? "" : " (" + joined(items) + ")";
}

void printTried(const TuneReport &report) {
  std::vector<const TuneReport::Tried *> sorted;
  for (const TuneReport::Tried &one : report.tried)
    if (one.outcome.measured())
      sorted.push_back(&one);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](auto *a, auto *b) { return a->outcome.seconds < b->outcome.seconds; });
  using enum Table::Align;
  Table table({{"configuration"}, {"first try", right}, {"predicted", right}, {"", left}});
  for (size_t i = 0; i < std::min<size_t>(sorted.size(), 5); ++i)
    table.add({sorted[i]->configuration.str(), secondsText(sorted[i]->outcome.seconds),
               secondsText(sorted[i]->predicted), sorted[i]->known ? "known before" : ""});
  table.print();
  size_t failures = 0;
  for (const TuneReport::Tried &one : report.tried)
    if (!one.outcome.measured() && ++failures <= 5)
      fmt::print("{}: {}: {}\n", one.configuration.str(), nameOf(one.outcome.status), one.outcome.reason);
  if (failures > 5)
    fmt::print("and {} more failures (see --json)\n", failures - 5);
}

void explain(const TuneReport &report, const Case &one, const Problem &problem, const Space &space,
             const LaunchOptions &launch) {
  std::unique_ptr<Ranker> ranker = defaultRanker(one.entry->kernel, space, problem.arguments, launch);
  fmt::print("\nwhy {}: the model predicts {}, bound by {}\n", report.configuration.str(),
             secondsText(report.prediction.seconds), report.prediction.boundBy);
  using enum Table::Align;
  Table table({{"part"}, {"time", right}});
  for (const Prediction::Term &term : report.prediction.terms)
    table.add({term.name, secondsText(term.seconds)});
  table.print();
  const TuneReport::Tried *first = nullptr, *slowest = nullptr;
  for (const TuneReport::Tried &tried : report.tried) {
    if (!first || tried.predicted < first->predicted)
      first = &tried;
    if (tried.outcome.measured() && (!slowest || tried.outcome.seconds > slowest->outcome.seconds))
      slowest = &tried;
  }
  auto compareWith = [&](const char *what, const TuneReport::Tried &other) {
    Prediction prediction = ranker->predict(other.configuration);
    std::string measured(nameOf(other.outcome.status));
    if (other.outcome.measured())
      measured = secondsText(other.outcome.seconds);
    fmt::print("{} {}, measured {}: ", what, other.configuration.str(), measured);
    if (prediction.seconds >= report.prediction.seconds)
      fmt::print("{}\n", explainDifference(report.prediction, prediction));
    else
      fmt::print("the model likes it better ({} against {}); the measurement decided\n",
                 secondsText(prediction.seconds), secondsText(report.prediction.seconds));
  };
  if (first && first->configuration != report.configuration)
    compareWith("over the model's first choice", *first);
  if (slowest && slowest->configuration != report.configuration)
    compareWith("over the slowest tried", *slowest);
}

Json toJson(const TuneReport &report) {
  Json tried = Json::array();
  for (const TuneReport::Tried &one : report.tried)
    tried.push_back({{"configuration", one.configuration.values()},
                     {"status", nameOf(one.outcome.status)},
                     {"reason", one.outcome.reason},
                     {"seconds", one.outcome.measured() ? Json(one.outcome.seconds) : Json(nullptr)},
                     {"predicted", one.predicted},
                     {"cost", one.outcome.cost},
                     {"known", one.known}});
  Json terms = Json::object();
  for (const Prediction::Term &term : report.prediction.terms)
    terms[term.name] = term.seconds;
  const char *source = report.source == TuneReport::Source::model      ? "model"
                       : report.source == TuneReport::Source::database ? "database"
                                                                       : "measured";
  return {{"configuration", report.configuration.values()},
          {"source", source},
          {"reason", report.reason},
          {"seconds", report.seconds > 0 ? Json(report.seconds) : Json(nullptr)},
          {"predicted", report.prediction.seconds},
          {"bound_by", report.prediction.boundBy},
          {"terms", terms},
          {"combinations", report.combinations},
          {"valid", report.valid},
          {"measured", report.measured},
          {"failed", report.failed},
          {"elapsed", report.elapsedSeconds},
          {"stopped", report.stopped},
          {"tried", tried}};
}

int tuneKernel(const TuneRequest &request) {
  Report report("tune", request.json);
  auto policy = parsePolicy(request.policy);
  if (!policy)
    throw Error(fmt::format("unknown policy '{}': the policies are off, cached, quick and full", request.policy));
  Case one = caseOf(request, Defaults::demo);
  Problem problem = one.problem(request);
  TuneOptions options;
  options.policy = *policy;
  options.launch = launchOptionsOf(request, one, problem);
  options.budgetSeconds = parseBudget(request.budget);
  options.maxConfigurations = request.configurations;
  options.seed = request.searchSeed;
  options.worker = workerCommand();
  options.samples = zoo::samplesOf(*one.entry);
  if (options.launch.target == Target::cuda)
    options.timingSeconds = 0.02; // a trial is a millisecond of launches
  options.stop = interrupted;
  if (problem.deterministic) { // the winner must be right on other values, too
    Request other = request;
    other.seed = request.seed + 1000;
    options.checks = {one.problem(other)};
  }
  Database database(databaseOptions(request));
  options.database = &database;
  Space space = spaceFor(request, one, problem, options.launch);
  catchInterrupts();
  TuneReport found;
  {
    std::optional<Progress> progress;
    size_t shown = 0;
    options.progress = [&](const TuneProgress &now) {
      if (!progress)
        progress.emplace(now.candidates);
      for (; shown < now.tried; ++shown)
        progress->advance();
      progress->show(progressText(now));
    };
    found = tune(one.entry->kernel, space, problem, options);
  }
  if (!report.quiet()) {
    fmt::print("{} on {}: {} of {} combinations can be used{}\n", one.label(), request.target, found.valid,
               found.combinations, refusalsText(found.refusals));
    if (!found.tried.empty()) {
      fmt::print("{} tried, {} of them now, {} failed, in {}{}\n", found.tried.size(), found.measured, found.failed,
                 secondsText(found.elapsedSeconds), found.stopped ? "; stopped before it was done" : "");
      printTried(found);
    }
    fmt::print("{}  {}\n{}\n", styled(standardOutput(), Style::bold, found.configuration.str()),
               found.seconds > 0 ? secondsText(found.seconds) : "not measured", found.reason);
    if (request.explain)
      explain(found, one, problem, space, options.launch);
    if (!found.tried.empty())
      fmt::print("results are kept in {}\n", database.description());
  }
  Json row = {{"kernel", one.entry->name},   {"shape", one.shape},       {"dtype", nameOf(one.dtype)},
              {"target", request.target},    {"policy", request.policy}, {"seed", request.searchSeed},
              {"database", database.description()}};
  row.update(toJson(found));
  report.add(std::move(row));
  report.write();
  return done;
}

int dispatch(const TuneRequest &request) {
  int modes = !request.exportFile.empty() + !request.importFile.empty() + !request.replay.empty() + request.exhaustive;
  if (modes > 1)
    throw Error("--export, --import, --replay and --exhaustive are things of their own: give one of them");
  if (!request.exportFile.empty())
    return exportRecords(request);
  if (!request.importFile.empty())
    return importRecords(request);
  if (request.heldOut && request.replay.empty())
    throw Error("--held-out judges tables: name them with --replay");
  if (!request.replay.empty())
    return request.heldOut ? judgeHeldOut(request) : replayTables(request);
  if (request.exhaustive)
    return measureTable(request);
  return tuneKernel(request);
}

} // namespace

double parseBudget(const std::string &text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  double scale = unit.empty() || unit == "s" ? 1 : unit == "m" || unit == "min" ? 60 : unit == "h" ? 3600 : 0;
  if (error != std::errc() || scale == 0 || !(value > 0))
    throw Error(fmt::format("bad budget '{}': write a time, for example 60s or 5m", text));
  return value * scale;
}

/// Only what two warpgroups can take in turns: with other blocks the compiler goes without (pingPongBlock()).
static void takeTurns(Space &space, const zoo::Entry &entry) {
  constexpr int64_t warps = 8, threads = 128, registers = 192; // of a warpgroup, and that its part of a tile may have
  const auto &dimensions = space.dimensions();
  auto has = [&](std::string_view name) {
    return std::any_of(dimensions.begin(), dimensions.end(), [&](const auto &one) { return one.name == name; });
  };
  if (!has("bm") || !has("bn"))
    throw Error(fmt::format("--ping-pong is for products, and {} is none", entry.name));
  space.fix("warps", warps);
  space.option("pingpong", {1});
  space.require("tiles that one warpgroup cannot hold",
                [](const Configuration &c) { return c["bm"] * c["bn"] <= threads * registers; });
}

Space spaceFor(const TuneRequest &request, const Case &one, const Problem &problem, const LaunchOptions &launch) {
  Space space = zoo::spaceOf(*one.entry, problem, launch.target);
  for (const std::string &text : request.params) {
    std::string name = text.substr(0, text.find('='));
    space.fix(name, launch.params.at(name));
  }
  if (request.threads)
    space.fix("threads", request.threads);
  if (request.isa != "native")
    space.fix("vector_bits", request.isa == "baseline" ? 128 : request.isa == "avx2" ? 256 : 512);
  for (auto [name, value] : {std::pair("warps", request.warps),
                             {"cluster", request.cluster},
                             {"stages", request.stages},
                             {"split", request.split},
                             {"tail", int(request.shareTail)}})
    if (value)
      space.fix(name, value);
  if (request.pingPong)
    takeTurns(space, *one.entry);
  return space;
}

std::vector<std::string> workerCommand() { return {"/proc/self/exe", "tune-worker"}; }

void catchInterrupts() {
  std::signal(SIGINT, [](int) {
    wasInterrupted = true;
    std::signal(SIGINT, SIG_DFL);
  });
}

bool interrupted() { return wasInterrupted; }

Command addTune(CLI::App &app) {
  CLI::App *command = app.add_subcommand("tune", "Find the fastest configuration of a kernel");
  auto request = std::make_shared<TuneRequest>();
  addKernelOption(*command, *request, Kernels::one);
  addProblemOptions(*command, *request);
  addTargetOptions(*command, *request);
  command
      ->add_option("--policy", request->policy,
                   "off: the model's choice; cached: what was measured before, else that; quick: measure the model's "
                   "best few; full: go on searching")
      ->capture_default_str()
      ->type_name("POLICY");
  command->add_option("--budget,--seconds", request->budget, "Time for measuring: 60s, 5m")
      ->capture_default_str()
      ->type_name("TIME");
  command->add_option("--configurations", request->configurations, "Measure at most so many; 0: as the time allows")
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--search-seed", request->searchSeed, "Of the search")->capture_default_str()->type_name("N");
  command->add_flag("--explain", request->explain, "Say why the winner wins, in terms of the model");
  command->add_option("--database", request->database, "Where results are kept, instead of the user's own")
      ->type_name("FILE");
  command->add_option("--export", request->exportFile, "Write the results (of KERNEL, if given) as JSON; - for stdout")
      ->type_name("FILE");
  command->add_option("--import", request->importFile, "Add the results in FILE")->type_name("FILE");
  command->add_flag("--exhaustive", request->exhaustive, "Measure every configuration into --table; with --configurations, the model's best and others at random");
  command->add_option("--table", request->table, "Of --exhaustive: continued if it is there")->type_name("FILE");
  command
      ->add_option("--rounds", request->rounds,
                   "Of --exhaustive: measure what is not far behind so many times, the median counts")
      ->check(between(1, 100))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--replay", request->replay, "Judge the strategies by these tables")->type_name("TABLE");
  command->add_flag("--held-out", request->heldOut,
                    "With --replay: judge the model alone, its factors fitted on the tables of other kernels");
  addJsonOption(*command, request->json);
  addExamples(*command,
              {"tenon tune softmax --shape 4096x1000 --budget 60s",
               "tenon tune matmul --shape 512x512x512 --policy full --explain",
               "tenon tune matmul --policy off", "tenon tune --export tuned.json",
               "tenon tune matmul --shape 256x256x256 --exhaustive --table matmul.table --budget 10m",
               "tenon tune --replay bench/tables/*.table"});
  return [request] { return dispatch(*request); };
}

Command addTuneWorker(CLI::App &app) {
  CLI::App *command = app.add_subcommand("tune-worker", "Compiles, runs and times what `tenon tune` asks for");
  command->group(""); // not a command for people
  return [] { return tuning::workerMain(); };
}

} // namespace tenon::tool
