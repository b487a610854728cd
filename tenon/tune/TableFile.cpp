// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/TableFile.h"

#include "tenon/base/Error.h"
#include "tenon/measure/MeasuredCeilings.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <sstream>

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

constexpr int tableVersion = 1;

} // namespace

const TuneTable::Row *TuneTable::best() const {
  const Row *best = nullptr;
  for (const Row &row : rows)
    if (row.outcome.measured() && (!best || row.outcome.seconds < best->outcome.seconds))
      best = &row;
  return best;
}

double TuneTable::cost() const {
  double total = 0;
  for (const Row &row : rows)
    total += row.outcome.cost;
  return total;
}

std::string tableText(const TuneTable &table) {
  Json header = {{"tenon_table", tableVersion}, {"kernel", table.kernel},     {"shape", table.shape},
                 {"dtype", table.dtype},        {"target", table.target},     {"device", table.device},
                 {"compiler", table.compiler},  {"threads", table.threads},   {"rounds", table.rounds},
                 {"of", table.of},              {"names", table.names},
                 {"ceilings", toJson(table.ceilings)}};
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (const TuneTable::Row &row : table.rows) {
    for (const std::string &name : table.names)
      text += std::to_string(row.configuration[name]) + " ";
    char figures[64];
    if (row.outcome.measured()) {
      std::snprintf(figures, sizeof figures, "%.4g %.3g\n", row.outcome.seconds, row.outcome.cost);
      text += figures;
    } else {
      std::snprintf(figures, sizeof figures, "- %.3g ", row.outcome.cost);
      text += figures + std::string(nameOf(row.outcome.status)) + "\n";
    }
  }
  return text;
}

TuneTable parseTable(const std::string &text, const std::string &name) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  Json header = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object() || !header.contains("tenon_table"))
    throw Error("'" + name + "' is no table of measured configurations");
  if (header["tenon_table"] != tableVersion)
    throw Error("'" + name + "' is a table of version " + header["tenon_table"].dump() + ", and this Tenon reads " +
                std::to_string(tableVersion));
  TuneTable table;
  try {
    table.kernel = header.at("kernel");
    table.shape = header.at("shape").get<std::vector<int64_t>>();
    table.dtype = header.at("dtype");
    table.target = header.at("target");
    table.device = header.at("device");
    table.compiler = header.at("compiler");
    table.threads = header.at("threads");
    table.rounds = header.at("rounds");
    table.of = header.value("of", size_t(0));
    table.names = header.at("names").get<std::vector<std::string>>();
    auto ceilings = ceilingsFromJson(header.at("ceilings"));
    if (!ceilings)
      throw Error("the first line of '" + name + "' is damaged: its ceilings are none");
    table.ceilings = *ceilings;
  } catch (const nlohmann::json::exception &error) {
    throw Error("the first line of '" + name + "' is damaged: " + error.what());
  }
  for (size_t number = 2; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    TuneTable::Row row;
    std::string seconds;
    bool good = true;
    for (const std::string &value : table.names) {
      int64_t number = 0;
      good = good && words >> number;
      row.configuration.set(value, number);
    }
    good = good && words >> seconds >> row.outcome.cost;
    if (good && seconds == "-") {
      std::string status;
      std::getline(words >> std::ws, status);
      auto parsed = parseStatus(status);
      good = parsed && *parsed != Outcome::Status::measured;
      row.outcome.status = parsed.value_or(Outcome::Status::refused);
    } else if (good) {
      char *end = nullptr;
      row.outcome.status = Outcome::Status::measured;
      row.outcome.seconds = row.outcome.median = std::strtod(seconds.c_str(), &end);
      good = *end == 0 && row.outcome.seconds > 0 && (words >> std::ws).eof();
    }
    if (!good)
      throw Error("line " + std::to_string(number) + " of '" + name + "' is damaged: '" + line + "'");
    table.rows.push_back(std::move(row));
  }
  return table;
}

} // namespace tenon
