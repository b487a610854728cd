// SPDX-License-Identifier: Apache-2.0
#include "ProfileCounters.h"

#include "ChildProgram.h"
#include "Format.h"
#include "Table.h"

#include "tenon/base/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <sstream>

#include <glob.h>
#include <unistd.h>

namespace tenon::tool {
namespace {

/// Launches that are looked at: each is run some ten times.
constexpr int mostLaunches = 200;

enum Metric : unsigned char { duration, bytesRead, bytesWritten, tensor, issue, occupancy, metrics };
constexpr std::array<const char *, metrics> names = {
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__inst_issued.avg.pct_of_peak_sustained_active",
    "sm__warps_active.avg.pct_of_peak_sustained_active"};

std::string findNcu() {
  std::stringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::string path = folder + "/ncu"; ::access(path.c_str(), X_OK) == 0)
      return path;
  for (const char *pattern : {"/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu"}) {
    glob_t found{};
    std::string path;
    if (::glob(pattern, 0, nullptr, &found) == 0)
      path = found.gl_pathv[found.gl_pathc - 1]; // the newest
    ::globfree(&found);
    if (!path.empty() && ::access(path.c_str(), X_OK) == 0)
      return path;
  }
  throw Error("the GPU's counters are read by Nsight Compute, and there is no `ncu` (it comes with the CUDA toolkit)");
}

/// The cells of a line of quoted texts; a quote inside one is doubled.
std::vector<std::string> cellsOf(const std::string &line) {
  std::vector<std::string> cells(1);
  bool isQuoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && isQuoted && i + 1 < line.size() && line[i + 1] == '"')
      cells.back() += line[i++];
    else if (line[i] == '"')
      isQuoted = !isQuoted;
    else if (line[i] == ',' && !isQuoted)
      cells.emplace_back();
    else if (line[i] != '\r')
      cells.back() += line[i];
  }
  return cells;
}

/// "1,234.5" is a number, "n/a" is none.
double numberOf(std::string text) {
  std::erase(text, ',');
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  return end == text.c_str() ? 0 : value;
}

/// What one of this unit is in bytes, seconds or percent.
double scaleOf(const std::string &unit) {
  static const std::map<std::string, double> known = {
      {"byte", 1},   {"Kbyte", 1e3},  {"Mbyte", 1e6},    {"Gbyte", 1e9},  {"%", 1},      {"ns", 1e-9},
      {"us", 1e-6},  {"ms", 1e-3},    {"s", 1},          {"nsecond", 1e-9}, {"usecond", 1e-6}, {"msecond", 1e-3},
      {"second", 1}, {"", 1}};
  auto found = known.find(unit);
  if (found == known.end())
    throw Error(fmt::format("ncu gives counters in a unit that is not known: '{}'", unit));
  return found->second;
}

} // namespace

std::vector<CounterRow> parseCounters(const std::string &log) {
  if (log.find("ERR_NVGPUCTRPERM") != std::string::npos)
    throw Error("the GPU's counters are not for this user: an administrator opens them to all with the driver's option "
                "NVreg_RestrictProfilingToAdminUsers=0");
  std::map<std::string, CounterRow> byName;
  std::array<size_t, metrics> columns{};
  std::array<double, metrics> scales{};
  size_t nameColumn = 0;
  enum class Next : unsigned char { heading, units, rows } next = Next::heading;
  std::stringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('"'))
      continue;
    std::vector<std::string> cells = cellsOf(line);
    if (next == Next::heading) {
      auto columnOf = [&](const char *name) {
        auto found = std::find(cells.begin(), cells.end(), name);
        if (found == cells.end())
          throw Error(fmt::format("ncu does not tell '{}' of this GPU", name));
        return static_cast<size_t>(found - cells.begin());
      };
      nameColumn = columnOf("Kernel Name");
      std::transform(names.begin(), names.end(), columns.begin(), columnOf);
      next = Next::units;
      continue;
    }
    if (cells.size() <= std::max(nameColumn, *std::max_element(columns.begin(), columns.end())))
      throw Error("ncu's table is broken off");
    if (next == Next::units) {
      std::transform(columns.begin(), columns.end(), scales.begin(), [&](size_t at) { return scaleOf(cells[at]); });
      next = Next::rows;
      continue;
    }
    std::array<double, metrics> values{};
    for (size_t i = 0; i < metrics; ++i)
      values[i] = numberOf(cells[columns[i]]) * scales[i];
    CounterRow &row = byName[cells[nameColumn]];
    row.kernel = cells[nameColumn];
    ++row.launches;
    row.seconds += values[duration];
    row.bytesRead += values[bytesRead];
    row.bytesWritten += values[bytesWritten];
    row.tensor += values[tensor] * values[duration];
    row.issue += values[issue] * values[duration];
    row.occupancy += values[occupancy] * values[duration];
  }
  std::vector<CounterRow> rows;
  for (auto &[name, row] : byName) {
    for (double *share : {&row.tensor, &row.issue, &row.occupancy})
      *share = row.seconds > 0 ? *share / row.seconds : 0;
    rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end(), [](const CounterRow &a, const CounterRow &b) { return a.seconds > b.seconds; });
  return rows;
}

std::vector<CounterRow> readCounters(const std::vector<std::string> &program) {
  ScratchFolder folder;
  std::string log = folder.path() + "/counters.csv";
  std::vector<std::string> words = {findNcu(), "--csv", "--page", "raw", "--print-units", "base", "--log-file", log,
                                    "--target-processes", "all", "--launch-count", std::to_string(mostLaunches),
                                    "--metrics", fmt::format("{}", fmt::join(names, ","))};
  words.insert(words.end(), program.begin(), program.end());
  int status = runProgram(words, {{"TENON_PROFILE", ""}});
  std::string text = textOf(log);
  std::vector<CounterRow> rows = parseCounters(text);
  if (rows.empty()) {
    size_t error = text.find("==ERROR== ");
    std::string said = error == std::string::npos ? "" : text.substr(error + 10, text.find('\n', error) - error - 10);
    throw Error(fmt::format("ncu counted no kernel of '{}': {}", program[0],
                            !said.empty() ? said
                            : status      ? fmt::format("it ended with status {}", status)
                                          : "none ran on a GPU"));
  }
  return rows;
}

void printCounters(const std::vector<CounterRow> &rows, const ProfileSummary &summary) {
  using enum Table::Align;
  Table table({{"counters", left, Table::Narrow::shrinks},
               {"launches", right},
               {"memory read", right},
               {"written", right},
               {"GB/s", right},
               {"of what it must", right, Table::Narrow::goes},
               {"matrix %", right},
               {"issue %", right},
               {"occupancy %", right}});
  for (const CounterRow &row : rows) {
    auto each = static_cast<double>(row.launches);
    double bytes = row.bytesRead + row.bytesWritten;
    std::string overNeed = "-";
    for (const ProfileSummary::Kernel &kernel : summary.kernels)
      if (kernel.name == row.kernel && kernel.bytes && kernel.calls)
        overNeed = fmt::format("{:.2f}x", bytes / each / (static_cast<double>(kernel.bytes) /
                                                         static_cast<double>(kernel.calls)));
    table.add({row.kernel, std::to_string(row.launches), bytesText(row.bytesRead / each),
               bytesText(row.bytesWritten / each), fmt::format("{:.0f}", row.seconds > 0 ? bytes / row.seconds / 1e9 : 0),
               overNeed, fmt::format("{:.1f}", row.tensor), fmt::format("{:.1f}", row.issue),
               fmt::format("{:.1f}", row.occupancy)});
  }
  fmt::print("\n");
  table.print();
}

Json toJson(const std::vector<CounterRow> &rows) {
  Json all = Json::array();
  for (const CounterRow &row : rows)
    all.push_back({{"kernel", row.kernel},
                   {"launches", row.launches},
                   {"seconds", row.seconds},
                   {"memory_bytes_read", row.bytesRead},
                   {"memory_bytes_written", row.bytesWritten},
                   {"matrix_percent", row.tensor},
                   {"issue_percent", row.issue},
                   {"occupancy_percent", row.occupancy}});
  return all;
}

} // namespace tenon::tool
