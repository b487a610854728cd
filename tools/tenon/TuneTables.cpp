// SPDX-License-Identifier: Apache-2.0
//
// Tables of every configuration of a space: measured once, kept, and replayed to judge strategies.
#include "Commands.h"
#include "Format.h"
#include "OutputFile.h"
#include "Progress.h"
#include "Report.h"
#include "Table.h"
#include "TuneCommon.h"

#include "tenon/kernels/Samples.h"
#include "tenon/kernels/Spaces.h"
#include "tenon/measure/MeasuredCeilings.h"
#include "tenon/tune/Measurer.h"
#include "tenon/tune/Replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <sstream>

#include <unistd.h>

namespace tenon::tool {
namespace {

/// Of this thread alone: what something costs on a machine that does nothing else.
double processorSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

TuneTable readTable(const std::string &file) {
  std::ifstream stream(file);
  std::stringstream text;
  if (!(text << stream.rdbuf()))
    throw Error(fmt::format("cannot read '{}'", file));
  return parseTable(text.str(), file);
}

/// An order of its own for each seed: what is measured side by side in one pass is far apart in the next.
std::vector<size_t> shuffled(size_t count, uint64_t seed) {
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i)
    order[i] = i;
  std::mt19937_64 random(seed);
  for (size_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[random() % i]);
  return order;
}

/// In the model's order, so that what matters most is there if the time does not suffice. If not all: three quarters of
/// them, and the others drawn from the rest: a model that overlooks something is found out by those.
std::vector<Configuration> someOf(const std::vector<Configuration> &all, size_t count, uint64_t seed,
                                  const Ranker &ranker) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < all.size(); ++i)
    order.emplace_back(ranker.predict(all[i]).seconds, i);
  std::sort(order.begin(), order.end());
  size_t best = count < all.size() ? count * 3 / 4 : count;
  std::vector<Configuration> some;
  for (size_t i = 0; i < best; ++i)
    some.push_back(all[order[i].second]);
  for (size_t i : shuffled(order.size() - best, seed))
    if (some.size() < count)
      some.push_back(all[order[best + i].second]);
  return some;
}

/// The same within each batch, one batch after the other.
std::vector<size_t> shuffledInBatches(size_t count, size_t batch, uint64_t seed) {
  std::vector<size_t> order;
  for (size_t at = 0; at < count; at += batch)
    for (size_t i : shuffled(std::min(batch, count - at), seed + at))
      order.push_back(at + i);
  return order;
}

/// Noise is less than that: what is slower by as much is not measured again.
bool isSlow(const TuneTable &table, const Configuration &configuration) {
  constexpr double hopeless = 1.3;
  auto row = std::find_if(table.rows.begin(), table.rows.end(),
                          [&](const TuneTable::Row &other) { return other.configuration == configuration; });
  return row != table.rows.end() &&
         (!row->outcome.measured() || row->outcome.seconds > hopeless * table.best()->outcome.seconds);
}

/// Not the least: of hundreds that are alike, the least of a few tries each is the luckiest one's.
double medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// What was there before, if it is of the same problem.
TuneTable beginTable(const TuneRequest &request, const TuneTable &wanted) {
  if (::access(request.table.c_str(), F_OK) != 0)
    return wanted;
  TuneTable found = readTable(request.table);
  if (found.kernel != wanted.kernel || found.shape != wanted.shape || found.dtype != wanted.dtype ||
      found.target != wanted.target || found.threads != wanted.threads || found.names != wanted.names ||
      found.of != wanted.of || found.device != wanted.device)
    throw Error(fmt::format("'{}' is a table of {} {} {} on {} ({}): name another file", request.table, found.kernel,
                            shapeText(found.shape), found.dtype, found.target, found.device));
  return found;
}

} // namespace

int measureTable(const TuneRequest &request) {
  if (request.table.empty())
    throw Error("--exhaustive writes a table: name it with --table FILE");
  checkWritable(request.table);
  Case one = caseOf(request, Defaults::demo);
  Problem problem = one.problem(request);
  TuneOptions options;
  options.launch = launchOptionsOf(request, one, problem);
  options.launch.params.insert(problem.params.begin(), problem.params.end());
  options.worker = workerCommand();
  options.samples = zoo::samplesOf(*one.entry);
  bool isDevice = options.launch.target == Target::cuda;
  // Hundreds of candidates: enough to tell 1% apart. On a device a trial is a millisecond of launches.
  options.timingSeconds = isDevice ? 0.006 : 0.03;
  if (isDevice)
    options.compileSeconds = 20, options.runSeconds = 8;
  Space space = spaceFor(request, one, problem, options.launch);
  std::vector<Configuration> configurations = space.configurations(limitsOf(options.launch));
  const size_t all = configurations.size();
  configurations =
      someOf(configurations, request.configurations ? std::min(request.configurations, all) : all, request.searchSeed,
             *defaultRanker(one.entry->kernel, space, problem.arguments, options.launch));
  TuneKey key = tuneKeyOf(one.entry->kernel, space, problem.arguments, options.launch);

  TuneTable wanted;
  wanted.kernel = one.entry->name;
  wanted.dtype = nameOf(one.dtype);
  wanted.target = request.target;
  wanted.device = key.device;
  wanted.compiler = key.compiler;
  wanted.shape = one.shape;
  if (options.launch.target == Target::cpu)
    cpuCeilings({false, options.launch.threads, ""}); // measured, unless they are known
  wanted.ceilings = knownCeilings(options.launch);
  if (isDevice)
    wanted.ceilings = withClusters(std::move(wanted.ceilings), options.launch.compile.device);
  wanted.threads = request.threads;
  wanted.rounds = 0;
  wanted.of = all;
  for (const Space::Dimension &dimension : space.dimensions())
    wanted.names.push_back(dimension.name);
  TuneTable table = beginTable(request, wanted);

  catchInterrupts();
  auto start = Clock::now();
  double budget = parseBudget(request.budget);
  auto isOver = [&] { return interrupted() || secondsSince(start) > budget; };
  auto save = [&] { writeFile(request.table, tableText(table)); };
  tuning::Measurer measurer(one.entry->kernel, space, problem, options);
  Progress progress(configurations.size() * static_cast<size_t>(request.rounds));
  const size_t batchSize = isDevice ? 64 : 8;
  std::map<Configuration, std::vector<double>> times; // of each round
  for (const TuneTable::Row &row : table.rows)
    if (row.outcome.measured())
      times[row.configuration] = {row.outcome.seconds};
  for (int round = 0; round < request.rounds && !isOver(); ++round) {
    std::vector<size_t> open;
    uint64_t seed = request.searchSeed + static_cast<uint64_t>(round);
    for (size_t index : shuffledInBatches(configurations.size(), batchSize, seed))
      if (round > 0 ? round >= table.rounds
                    : std::none_of(table.rows.begin(), table.rows.end(), [&](const TuneTable::Row &row) {
                        return row.configuration == configurations[index];
                      }))
        open.push_back(index);
      else
        progress.advance();
    if (round > 0) // the others are out of the question
      std::erase_if(open, [&](size_t index) { return isSlow(table, configurations[index]); });
    auto batchAt = [&](size_t at) {
      std::vector<Configuration> batch;
      for (size_t i = at; i < std::min(at + batchSize, open.size()); ++i)
        batch.push_back(configurations[open[i]]);
      return batch;
    };
    bool ahead = round == 0 && measurer.compilesAhead();
    if (ahead)
      measurer.compileAhead(batchAt(0));
    for (size_t at = 0; at < open.size() && !isOver(); at += batchSize) {
      std::vector<Configuration> batch = batchAt(at);
      progress.show(batch.front().str());
      measurer.forget(); // of the batch before
      if (ahead)
        measurer.compileAhead(batchAt(at + batchSize));
      else
        measurer.compile(batch);
      for (const Configuration &configuration : batch) {
        if (isOver())
          break;
        auto row = std::find_if(table.rows.begin(), table.rows.end(),
                                [&](const TuneTable::Row &other) { return other.configuration == configuration; });
        if (row == table.rows.end()) {
          table.rows.push_back({configuration, measurer.measure(configuration)});
          if (table.rows.back().outcome.measured())
            times[configuration] = {table.rows.back().outcome.seconds};
        } else if (row->outcome.measured()) {
          for (const Outcome &again : measurer.compare({configuration}))
            times[configuration].push_back(again.seconds);
          row->outcome.seconds = medianOf(times[configuration]);
        }
        progress.advance();
        save(); // whatever happens next
      }
    }
    if (!isOver() || table.rounds > round)
      table.rounds = std::max(table.rounds, round + 1);
  }
  std::sort(table.rows.begin(), table.rows.end(), [&](const TuneTable::Row &a, const TuneTable::Row &b) {
    return a.configuration < b.configuration;
  });
  save();
  progress.clear();
  const TuneTable::Row *best = table.best();
  size_t failed = std::count_if(table.rows.begin(), table.rows.end(),
                                [](const TuneTable::Row &row) { return !row.outcome.measured(); });
  size_t have = std::count_if(configurations.begin(), configurations.end(), [&](const Configuration &configuration) {
    return std::any_of(table.rows.begin(), table.rows.end(),
                       [&](const TuneTable::Row &row) { return row.configuration == configuration; });
  });
  bool isComplete = have == configurations.size();
  fmt::print("{}: {} of {} configurations, {} failed, {} rounds; best {} {}\n", one.label(), have,
             configurations.size(), failed, table.rounds, best ? best->configuration.str() : "none",
             best ? secondsText(best->outcome.seconds) : "");
  std::map<std::string, size_t> shown; // an example of each kind
  for (const TuneTable::Row &row : table.rows)
    if (!row.outcome.measured() && !row.outcome.reason.empty() && ++shown[std::string(nameOf(row.outcome.status))] <= 3)
      fmt::print("{}: {}: {}\n", row.configuration.str(), nameOf(row.outcome.status), row.outcome.reason);
  return isComplete ? done : checkFailed;
}

//===--- Replay ---------------------------------------------------------------------------------------------------===//

LoadedTable loadTable(const std::string &file) {
  LoadedTable loaded;
  TuneTable &table = loaded.one.table;
  table = readTable(file);
  const zoo::Entry &entry = zoo::find(table.kernel);
  auto dtype = parseDType(table.dtype);
  auto target = parseTarget(table.target);
  if (!dtype || !target || table.rows.empty())
    throw Error(fmt::format("'{}' is a table of nothing that can be replayed", file));
  {
    zoo::ShapesOnly nothingRuns;
    loaded.problem = entry.makeProblem(table.shape, *dtype, 1);
  }
  LaunchOptions options;
  options.params = loaded.problem.params;
  options.threads = table.threads;
  options.target = *target == Target::cuda ? Target::sim : *target; // nothing runs here
  loaded.space = std::make_unique<Space>(zoo::spaceOf(entry, loaded.problem, options.target));
  Space &space = *loaded.space;
  for (const Space::Dimension &dimension : std::vector(space.dimensions())) {
    if (std::find(table.names.begin(), table.names.end(), dimension.name) != table.names.end())
      continue;
    // An option that is younger than the table: what was measured went without it.
    if (!dimension.isOption || std::find(dimension.values.begin(), dimension.values.end(), 0) == dimension.values.end())
      throw Error(fmt::format("'{}' was measured for another space: it lacks '{}'", file, dimension.name));
    space.fix(dimension.name, 0);
    for (TuneTable::Row &row : table.rows)
      row.configuration.set(dimension.name, 0);
  }

  if (zoo::isGpu(options.target)) { // a processor's space depends on the processor: what it has of instructions
    std::vector<Configuration> today = space.configurations(limitsOf(options));
    std::map<Configuration, size_t> places;
    for (size_t i = 0; i < today.size(); ++i)
      places.emplace(today[i], i);
    loaded.outside =
        std::erase_if(table.rows, [&](const TuneTable::Row &row) { return !places.contains(row.configuration); });
    // Of what the model cannot tell apart a choice takes the first of the space.
    std::sort(table.rows.begin(), table.rows.end(), [&](const TuneTable::Row &a, const TuneTable::Row &b) {
      return places.at(a.configuration) < places.at(b.configuration);
    });
    if (!table.best())
      throw Error(fmt::format("of '{}' nothing that was measured is in the space of today", file));
  }

  double start = processorSeconds();
  loaded.ranker = modelRanker(entry.kernel, space, loaded.problem.arguments, options, table.ceilings);
  std::vector<Prediction> predictions;
  double least = std::numeric_limits<double>::infinity();
  for (const TuneTable::Row &row : table.rows) {
    predictions.push_back(loaded.ranker->predict(row.configuration));
    least = std::min(least, predictions.back().seconds);
  }
  loaded.rankSeconds = processorSeconds() - start;
  std::vector<double> shape = tuning::shapeFeatures(loaded.problem.arguments);
  for (size_t i = 0; i < table.rows.size(); ++i)
    loaded.one.candidates.push_back(
        {predictions[i].seconds,
         tuning::asFloats(tuning::featuresOf(space, table.rows[i].configuration, predictions[i], least, shape)),
         tuning::placeOf(space, table.rows[i].configuration)});
  return loaded;
}

namespace {

/// What the model expects of the optimum, as a multiple of the least that it expects of any.
double optimumExpected(const tuning::ReplayCase &one) {
  double least = std::numeric_limits<double>::infinity();
  for (const tuning::Candidate &candidate : one.candidates)
    least = std::min(least, candidate.predicted);
  return one.candidates[static_cast<size_t>(one.table.best() - one.table.rows.data())].predicted / least;
}

struct StrategyRow {
  std::string name;
  std::vector<tuning::ReplayResult> results; ///< per table
};

} // namespace

int replayTables(const TuneRequest &request) {
  Report report("tune", request.json);
  std::vector<tuning::ReplayCase> cases;
  double rankSeconds = 0;
  std::vector<size_t> outside;
  for (const std::string &file : request.replay) {
    LoadedTable loaded = loadTable(file);
    outside.push_back(loaded.outside);
    rankSeconds = std::max(rankSeconds, loaded.rankSeconds);
    cases.push_back(std::move(loaded.one));
  }
  std::vector<StrategyRow> rows = {{"analytic", {}}, {"quick", {}}, {"full", {}}, {"warm", {}}, {"random", {}}};
  std::vector<double> costShares;
  using enum Table::Align;
  Table each({{"kernel"}, {"shape"}, {"rows", right}, {"optimum", right}, {"analytic", right}, {"quick", right},
              {"full", right}, {"warm", right}, {"random", right}});
  for (size_t i = 0; i < cases.size(); ++i) {
    const TuneTable &table = cases[i].table;
    tuning::StrategyOptions options;
    options.seed = request.searchSeed;
    auto run = [&](size_t row, const std::vector<tuning::Experience> &experience = {}) {
      rows[row].results.push_back(tuning::replay(cases[i], options, experience));
      return rows[row].results.back();
    };
    options.policy = TunePolicy::off;
    run(0);
    options.policy = TunePolicy::quick;
    run(1);
    options.policy = TunePolicy::full;
    options.most = std::max<size_t>(table.rows.size() * 9 / 100, options.quickCount); // of time, it is 10% that count
    costShares.push_back(run(2).cost / std::max(table.cost(), 1e-9));
    options.policy = TunePolicy::quick;
    options.quickCount = 4;
    std::vector<tuning::Experience> experience = tuning::experienceOf(cases, i);
    if (!experience.empty())
      run(3, experience);
    options.quickCount = 16;
    options.policy = TunePolicy::full;
    options.random = true;
    double fraction = 0; // of many seeds: one draw says nothing
    constexpr int draws = 25;
    tuning::ReplayResult random;
    for (int draw = 0; draw < draws; ++draw) {
      options.seed = request.searchSeed + static_cast<uint64_t>(draw);
      random = tuning::replay(cases[i], options);
      fraction += std::log(std::max(random.fraction, 1e-9)) / draws;
    }
    random.fraction = std::exp(fraction);
    rows[4].results.push_back(random);
    auto text = [](const tuning::ReplayResult &result) { return fmt::format("{:.3f}", result.fraction); };
    each.add({table.kernel, shapeText(table.shape), std::to_string(table.rows.size()),
              secondsText(table.best()->outcome.seconds), text(rows[0].results.back()), text(rows[1].results.back()),
              text(rows[2].results.back()), experience.empty() ? "-" : text(rows[3].results.back()),
              text(rows[4].results.back())});
    Json row = {{"kernel", table.kernel},
                {"shape", table.shape},
                {"dtype", table.dtype},
                {"target", table.target},
                {"configurations", table.rows.size()},
                {"outside", outside[i]},
                {"optimum", table.best()->outcome.seconds},
                {"optimum_expected", optimumExpected(cases[i])}};
    for (const StrategyRow &strategy : rows)
      if (strategy.name != "warm" || !experience.empty())
        row[strategy.name] = {{"fraction", strategy.results.back().fraction},
                              {"measured", strategy.results.back().measured},
                              {"random_needs", strategy.results.back().randomNeeds}};
    row["rows"] = Json::array();
    for (size_t each = 0; each < table.rows.size(); ++each)
      row["rows"].push_back({{"configuration", table.rows[each].configuration.values()},
                             {"seconds", table.rows[each].outcome.measured() ? Json(table.rows[each].outcome.seconds)
                                                                             : Json(nullptr)},
                             {"predicted", cases[i].candidates[each].predicted}});
    report.add(std::move(row));
  }
  double share = 0;
  for (double one : costShares)
    share += one / static_cast<double>(costShares.size());
  Table summary({{"choice"}, {"fraction of the optimum, geometric mean", right}, {"configurations", right}, {"cost"}});
  Json means = Json::object();
  for (const StrategyRow &row : rows) {
    if (row.results.empty())
      continue;
    tuning::ReplayResult mean = tuning::meanOf(row.results);
    std::string cost = row.name == "analytic" ? fmt::format("at most {:.1f} ms", rankSeconds * 1e3)
                       : row.name == "full"
                           ? fmt::format("{:.1f}% of the exhaustive time; random search needs {:.0f} for this",
                                         share * 100, mean.randomNeeds)
                           : fmt::format("{:.1f} s", mean.cost);
    summary.add({row.name, fmt::format("{:.3f}", mean.fraction), std::to_string(mean.measured), cost});
    means[row.name] = {{"fraction", mean.fraction}, {"measured", mean.measured}, {"cost", mean.cost},
                       {"random_needs", mean.randomNeeds}, {"tables", row.results.size()}};
  }
  report.set("replay", means);
  if (!report.quiet()) {
    each.print();
    fmt::print("\n");
    summary.print();
    if (size_t all = std::accumulate(outside.begin(), outside.end(), size_t(0)))
      fmt::print("{} rows of {} tables do not count: they are not in the space of today\n", all,
                 outside.size() - static_cast<size_t>(std::count(outside.begin(), outside.end(), 0)));
  }
  report.write();
  return done;
}

} // namespace tenon::tool
