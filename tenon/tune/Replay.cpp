// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Replay.h"

#include "tenon/base/Error.h"

#include <algorithm>
#include <cmath>

namespace tenon::tuning {

ReplayResult replay(const ReplayCase &one, const StrategyOptions &options, const std::vector<Experience> &experience) {
  const std::vector<TuneTable::Row> &rows = one.table.rows;
  const TuneTable::Row *optimum = one.table.best();
  if (!optimum)
    throw Error("a table in which every configuration failed cannot be replayed");
  Strategy strategy(one.candidates, options, experience);
  ReplayResult result;
  double best = 0;
  auto look = [&](size_t index) -> std::optional<double> {
    const Outcome &outcome = rows[index].outcome;
    if (!outcome.measured())
      return std::nullopt;
    best = best == 0 ? outcome.seconds : std::min(best, outcome.seconds);
    return outcome.seconds;
  };
  if (options.policy == TunePolicy::off || options.policy == TunePolicy::cached) {
    look(strategy.order().front()); // if that fails, so does the launch
  } else {
    for (std::vector<size_t> batch; !(batch = strategy.next()).empty();)
      for (size_t index : batch) {
        strategy.tell(index, look(index));
        ++result.measured;
        result.cost += rows[index].outcome.cost;
      }
  }
  result.fraction = best > 0 ? optimum->outcome.seconds / best : 0;
  // Without replacement: of n, with m as good, the first good one comes after (n + 1) / (m + 1) draws on the average.
  size_t asGood = 0;
  for (const TuneTable::Row &row : rows)
    asGood += row.outcome.measured() && row.outcome.seconds <= best;
  result.randomNeeds = static_cast<double>(rows.size() + 1) / static_cast<double>(asGood + 1);
  return result;
}

std::vector<Experience> experienceOf(const std::vector<ReplayCase> &all, size_t except) {
  std::vector<TuneRecord> records;
  auto labelOf = [](const TuneTable &table) {
    std::string label = table.dtype;
    for (int64_t size : table.shape)
      label += " " + std::to_string(size);
    return label;
  };
  const TuneTable &own = all[except].table;
  for (size_t i = 0; i < all.size(); ++i) {
    const TuneTable &table = all[i].table;
    if (i == except || table.kernel != own.kernel || table.target != own.target)
      continue;
    for (size_t row = 0; row < table.rows.size(); ++row) {
      TuneRecord record;
      record.key = {table.kernel, labelOf(table), table.target, table.device, "", table.compiler};
      record.configuration = table.rows[row].configuration;
      record.outcome = table.rows[row].outcome;
      record.features = {all[i].candidates[row].features.begin(), all[i].candidates[row].features.end()};
      records.push_back(std::move(record));
    }
  }
  return experienceFrom(records, {own.kernel, labelOf(own), own.target, own.device, "", own.compiler});
}

ReplayResult meanOf(const std::vector<ReplayResult> &results) {
  ReplayResult mean;
  double logs = 0, measured = 0;
  for (const ReplayResult &one : results) {
    logs += std::log(std::max(one.fraction, 1e-9));
    measured += static_cast<double>(one.measured);
    mean.cost += one.cost;
    mean.randomNeeds += one.randomNeeds;
  }
  auto count = static_cast<double>(std::max<size_t>(results.size(), 1));
  mean.fraction = results.empty() ? 0 : std::exp(logs / count);
  mean.measured = static_cast<size_t>(std::lround(measured / count));
  mean.cost /= count;
  mean.randomNeeds /= count;
  return mean;
}

} // namespace tenon::tuning
