// SPDX-License-Identifier: Apache-2.0
//
// `tenon compare`: what changed between two files of measurements.
#include "Commands.h"
#include "Format.h"
#include "Options.h"
#include "Report.h"
#include "Table.h"

#include "tenon/measure/Results.h"

#include <fmt/format.h>

#include <array>

namespace tenon::tool {
namespace {

struct CompareRequest {
  std::string before, after, json;
  double noise = 2; ///< percent
  bool otherMachine = false;
};

Style styleOf(Change change) {
  switch (change) {
  case Change::faster:
  case Change::mended: return Style::good;
  case Change::slower:
  case Change::broken: return Style::bad;
  case Change::same: return Style::plain;
  default: return Style::warn;
  }
}

/// The time, or why there is none.
std::string timeText(const ResultRow *row) {
  if (!row)
    return "-";
  return row->seconds ? secondsText(*row->seconds) : std::string(nameOf(row->status));
}

Json describe(const RowChange &change) {
  const ResultRow &row = change.after ? *change.after : *change.before;
  Json json = {{"kernel", row.kernel}, {"shape", row.shape}, {"dtype", row.dtype}, {"target", row.target},
               {"variant", row.variant}, {"change", nameOf(change.change)}};
  for (auto [name, side] : {std::pair("before", change.before), std::pair("after", change.after)})
    json[name] = side && side->seconds ? toJson(*side->seconds) : Json(nullptr);
  bool isCompared = change.before && change.after && change.before->seconds && change.after->seconds;
  json["ratio"] = isCompared ? toJson(Estimate{change.ratio, change.low, change.high}) : Json(nullptr);
  json["note"] = change.note;
  return json;
}

int compareFiles(const CompareRequest &request) {
  if (request.after.empty())
    throw Error(std::string(request.before.empty() ? "which files?" : "with which file?") +
                " Say `tenon compare BEFORE AFTER`: two that `tenon bench --json FILE` wrote");
  Report report("compare", request.json);
  Results before = readResults(request.before), after = readResults(request.after);
  CompareOptions options;
  options.noise = request.noise / 100;
  FileChange change = compareResults(before, after, options, request.otherMachine);

  using enum Table::Align;
  Table table({{"kernel", left, Table::Narrow::shrinks}, {"before", right}, {"after", right}, {"after / before", right},
               {"change"}});
  std::array<int, 8> counts{};
  std::vector<std::string> notes;
  for (const RowChange &row : change.rows) {
    ++counts[static_cast<size_t>(row.change)];
    const ResultRow &named = row.after ? *row.after : *row.before;
    bool isCompared = row.before && row.after && row.before->seconds && row.after->seconds;
    table.add({named.label(), timeText(row.before), timeText(row.after),
               isCompared ? fmt::format("{:.2f} [{:.2f}, {:.2f}]", row.ratio, row.low, row.high) : "-",
               {std::string(nameOf(row.change)), styleOf(row.change)}});
    if (!row.note.empty())
      notes.push_back(named.label() + ": " + row.note);
    report.add(describe(row));
  }
  report.set("before", request.before);
  report.set("after", request.after);
  report.set("noise", options.noise);
  report.set("remarks", change.remarks);
  report.set("regression", change.regression());
  if (!report.quiet()) {
    table.print();
    std::vector<std::string> summary;
    for (size_t i = 0; i < counts.size(); ++i)
      if (counts[i])
        summary.push_back(fmt::format("{} {}", counts[i], nameOf(static_cast<Change>(i))));
    fmt::print("\n{}\n", joined(summary));
    for (const std::string &note : notes)
      fmt::print("{}\n", note);
    for (const std::string &remark : change.remarks)
      fmt::print("note: {}\n", remark);
  }
  report.write();
  return change.regression() ? checkFailed : done;
}

} // namespace

Command addCompare(CLI::App &app) {
  CLI::App *command = app.add_subcommand("compare", "What changed between two files of measurements");
  auto request = std::make_shared<CompareRequest>();
  command->add_option("before", request->before, "What `tenon bench --json` wrote")->type_name("A.json");
  command->add_option("after", request->after, "The same, later")->type_name("B.json");
  command->add_option("--noise", request->noise, "A change of fewer percent is none")
      ->check(between(0.0, 100.0))
      ->capture_default_str()
      ->type_name("PERCENT");
  command->add_flag("--other-machine", request->otherMachine, "Compare files of different machines all the same");
  addJsonOption(*command, request->json);
  command->footer("\nA change is told only where the 95% intervals do not overlap. Exit status 1: something became "
                  "slower or broke.\n\nExamples:\n  tenon compare before.json after.json\n"
                  "  tenon compare before.json after.json --noise 5 --json changes.json");
  return [request] { return compareFiles(*request); };
}

} // namespace tenon::tool
