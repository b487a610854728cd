// SPDX-License-Identifier: Apache-2.0
//
// How good the model's first choice is where its factors were found without the tables that it is judged by: of each
// kernel, factors fitted on the tables of all others.
#include "Commands.h"
#include "Format.h"
#include "Report.h"
#include "Table.h"
#include "TuneCommon.h"

#include "tenon/tune/ModelFactors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tenon::tool {
namespace {

using Tables = std::vector<const LoadedTable *>;

/// What is made large: the geometric mean of what the first choice reaches of the optimum, and a little of what the
/// eight best reach on the average, so that factors which only order the rest are not left to chance.
double scoreOf(const Tables &tables, const ModelFactors &factors) {
  double logs = 0;
  for (const LoadedTable *table : tables) {
    setFactors(*table->ranker, factors);
    std::vector<std::pair<double, double>> order; // predicted, measured
    const TuneTable &rows = table->one.table;
    for (const TuneTable::Row &row : rows.rows)
      order.emplace_back(table->ranker->predict(row.configuration).seconds,
                         row.outcome.measured() ? row.outcome.seconds : HUGE_VAL);
    size_t some = std::min<size_t>(order.size(), 8);
    std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(some), order.end());
    double best = rows.best()->outcome.seconds, mean = 0;
    for (size_t i = 0; i < some; ++i)
      mean += best / order[i].second / static_cast<double>(some);
    logs += 0.5 * std::log(std::max(best / order[0].second, 1e-3)) + 0.5 * std::log(std::max(mean, 1e-3));
  }
  return logs / static_cast<double>(std::max<size_t>(tables.size(), 1));
}

/// Tables are measurements: what gains less than this is noise, and must not move a factor.
constexpr double worthwhile = 2e-3;

/// One factor at a time, up and down by ever smaller steps, as long as it helps.
ModelFactors fitted(const Tables &tables, const std::vector<ModelFactors::Named> &which) {
  ModelFactors factors;
  double score = scoreOf(tables, factors);
  for (double step : {2.0, 1.4, 1.15})
    for (const ModelFactors::Named &one : which)
      for (double change : {step, 1 / step})
        for (;;) {
          ModelFactors next = factors;
          next.*one.value *= change;
          double moved = next.*one.value / (ModelFactors().*one.value);
          if (moved > 4.1 || moved < 0.24)
            break;
          double reached = scoreOf(tables, next);
          if (reached <= score + worthwhile)
            break;
          factors = next;
          score = reached;
        }
  return factors;
}

std::string textOf(const ModelFactors &factors, const std::vector<ModelFactors::Named> &which) {
  std::vector<std::string> items;
  for (const ModelFactors::Named &one : which)
    items.push_back(fmt::format("{} {:.3g}", one.name, factors.*one.value));
  return joined(items);
}

} // namespace

double analyticFraction(const LoadedTable &table, std::string *choice) {
  const TuneTable::Row *chosen = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const TuneTable::Row &row : table.one.table.rows)
    if (double seconds = table.ranker->predict(row.configuration).seconds; seconds < least) {
      least = seconds;
      chosen = &row;
    }
  if (choice && chosen)
    *choice = chosen->configuration.str();
  return chosen && chosen->outcome.measured() ? table.one.table.best()->outcome.seconds / chosen->outcome.seconds : 0;
}

int judgeHeldOut(const TuneRequest &request) {
  Report report("tune", request.json);
  std::vector<LoadedTable> tables;
  for (const std::string &file : request.replay)
    tables.push_back(loadTable(file));
  std::map<bool, Tables> kinds; // factors of one kind of machine
  for (const LoadedTable &table : tables)
    kinds[table.one.table.ceilings.isGpu].push_back(&table);
  using enum Table::Align;
  Table each({{"kernel"}, {"shape"}, {"default factors", right}, {"fitted on others", right}, {"fitted on all", right},
              {"first choice", left, Table::Narrow::goes}});
  for (const auto &[isGpu, all] : kinds) {
    std::vector<ModelFactors::Named> which = isGpu ? ModelFactors::gpu() : ModelFactors::cpu();
    ModelFactors ofAll = fitted(all, which);
    std::set<std::string> kernels;
    for (const LoadedTable *table : all)
      kernels.insert(table->one.table.kernel);
    double logs[3] = {0, 0, 0};
    for (const std::string &kernel : kernels) {
      Tables others;
      for (const LoadedTable *table : all)
        if (table->one.table.kernel != kernel)
          others.push_back(table);
      ModelFactors factors[3] = {{}, fitted(others, which), ofAll};
      if (!report.quiet())
        fmt::print("without {}: {}\n", kernel, textOf(factors[1], which));
      for (const LoadedTable *table : all) {
        const TuneTable &rows = table->one.table;
        if (rows.kernel != kernel)
          continue;
        std::vector<Table::Cell> cells = {kernel, shapeText(rows.shape)};
        Json row = {{"kernel", kernel}, {"shape", rows.shape}, {"target", rows.target}};
        const char *names[] = {"default", "held_out", "fitted"};
        std::string choice;
        for (int i = 0; i < 3; ++i) {
          setFactors(*table->ranker, factors[i]);
          double fraction = analyticFraction(*table, i == 0 ? &choice : nullptr);
          logs[i] += std::log(std::max(fraction, 1e-9)) / static_cast<double>(all.size());
          cells.emplace_back(fmt::format("{:.3f}", fraction));
          row[names[i]] = fraction;
        }
        cells.emplace_back(choice);
        row["choice"] = choice;
        each.add(std::move(cells));
        report.add(std::move(row));
      }
    }
    each.add({isGpu ? "GPU" : "CPU", "geometric mean", fmt::format("{:.3f}", std::exp(logs[0])),
              fmt::format("{:.3f}", std::exp(logs[1])), fmt::format("{:.3f}", std::exp(logs[2])), ""});
    if (!report.quiet())
      fmt::print("with all: {}\n", textOf(ofAll, which));
  }
  if (!report.quiet())
    each.print();
  report.write();
  return done;
}

} // namespace tenon::tool
