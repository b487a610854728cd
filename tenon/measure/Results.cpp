// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Results.h"

#include "tenon/base/Error.h"
#include "tenon/model/Ceilings.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;
using Status = ResultRow::Status;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string text(const Json &json, const char *field) {
  auto found = json.find(field);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}
double real(const Json &json, const char *field) {
  auto found = json.find(field);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}
bool flag(const Json &json, const char *field, bool otherwise) {
  auto found = json.find(field);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

/// {"median", "low", "high"}, positive and in order; nothing for anything else.
std::optional<Estimate> estimateOf(const Json &json) {
  if (!json.is_object())
    return std::nullopt;
  Estimate estimate{real(json, "median"), real(json, "low"), real(json, "high")};
  bool isOne = std::isfinite(estimate.median) && estimate.median > 0 && estimate.low > 0 &&
               estimate.low <= estimate.median && estimate.median <= estimate.high;
  return isOne ? std::optional(estimate) : std::nullopt;
}

std::string variantOf(const Json &row) {
  std::string variant = text(row, "variant");
  auto add = [&](const std::string &part) { variant += (variant.empty() ? "" : ", ") + part; };
  if (real(row, "graph_launches") > 0)
    add("graph");
  if (double threads = real(row, "threads"); threads > 0)
    add(number(threads) + (threads == 1 ? " thread" : " threads"));
  if (text(row, "kind") == "sweep") {
    if (row.contains("params") && row["params"].is_object())
      for (const auto &[name, value] : row["params"].items())
        add(name + "=" + value.dump());
    for (const char *name : {"warps", "cluster", "stages", "split", "tail"})
      if (row.contains(name))
        add(std::string(name) + "=" + row[name].dump());
  }
  return variant;
}

/// A row of kernels, or nothing: files have rows of other kinds, too (what compiling costs).
std::optional<ResultRow> parseRow(const Json &json, const Results &results, const std::string &target) {
  std::string kind = text(json, "kind");
  if (!json.is_object() || (!kind.empty() && kind != "case" && kind != "sweep"))
    return std::nullopt;
  ResultRow row;
  row.json = json;
  row.kernel = text(json, "kernel").empty() ? text(json, "case") : text(json, "kernel");
  if (row.kernel.empty())
    return std::nullopt;
  row.dtype = text(json, "dtype");
  row.target = text(json, "target").empty() ? target : text(json, "target");
  if (json.contains("shape") && json["shape"].is_array())
    for (const Json &size : json["shape"])
      if (size.is_number_integer())
        row.shape.push_back(size.get<int64_t>());
  if (json.contains("params") && json["params"].is_object())
    for (const auto &[name, value] : json["params"].items())
      if (value.is_number_integer())
        row.params[name] = value.get<int64_t>();
  row.variant = variantOf(json);
  row.flops = real(json, "flops");
  row.bytes = real(json, "bytes");
  row.cold = flag(json, "cold", true);

  const Json none;
  auto field = [&](const char *name) -> const Json & { return json.contains(name) ? json[name] : none; };
  const Json &verdict = field("verdict"), &time = field("time");
  std::optional<Estimate> seconds;
  if (time.is_object()) {
    seconds = estimateOf(time.contains("seconds") ? time["seconds"] : time);
    row.trials = static_cast<size_t>(std::max(real(time, "trials"), real(json, "bursts")));
    row.steady = flag(time, "steady", true);
  }
  if (verdict.is_object() && !flag(verdict, "passed", false)) {
    row.status = Status::wrong;
    row.reason = text(verdict, "reason").empty() ? "it failed its check" : text(verdict, "reason");
  } else if (!text(json, "failure").empty()) {
    row.status = Status::failed;
    row.reason = text(json, "failure");
  } else if (seconds) {
    row.verified = verdict.is_object();
    const Json &machine = results.json["machine"];
    auto processors = static_cast<int>(std::max(real(machine, "processors"), 1.0));
    std::vector<std::string> extras;
    if (machine.is_object() && machine.contains("isa_extras"))
      for (const Json &extra : machine["isa_extras"])
        if (extra.is_string())
          extras.push_back(extra.get<std::string>());
    row.reason = whyImpossible(seconds->median, row.flops, row.bytes, row.dtype,
                               row.target == "cuda" ? results.peaks : cpuPeaks(processors, extras));
    row.status = row.reason.empty() ? Status::measured : Status::impossible;
    if (row.reason.empty())
      row.seconds = seconds;
  }
  return row;
}

std::string machineText(const Json &json) {
  const Json none = Json::object();
  const Json &machine = json.contains("machine") ? json["machine"] : none;
  std::string described = text(machine, "cpu");
  if (double processors = real(machine, "processors"); processors > 0)
    described += ", " + number(processors) + (processors == 1 ? " processor" : " processors");
  if (json.contains("gpu") && json["gpu"].is_object())
    described += ", " + text(json["gpu"], "name");
  return described;
}

} // namespace

std::string_view nameOf(Status status) {
  constexpr std::string_view names[] = {"measured", "wrong", "failed", "impossible", "not measured"};
  return names[static_cast<size_t>(status)];
}

std::string_view nameOf(Change change) {
  constexpr std::string_view names[] = {"faster", "slower", "no difference", "new",
                                        "gone",   "broken", "mended",        "not measured"};
  return names[static_cast<size_t>(change)];
}

std::string ResultRow::label() const {
  std::string label = kernel, sizes;
  for (int64_t size : shape)
    sizes += (sizes.empty() ? "" : "x") + std::to_string(size);
  for (const std::string &part : {sizes, dtype, target})
    if (!part.empty())
      label += " " + part;
  return variant.empty() ? label : label + " (" + variant + ")";
}

std::string ResultRow::key() const { return label(); }

//===--- Peaks ----------------------------------------------------------------------------------------------------===//

DatasheetPeaks gpuPeaks(const std::string &name) {
  DatasheetPeaks peaks;
  auto sheet = model::gpuDatasheet(name);
  if (!sheet)
    return peaks;
  using enum model::Precision;
  peaks.bytesPerSecond = sheet->memory().readBytesPerSecond;
  peaks.cacheBytes = 2 * sheet->levels.front().bytes;
  // f32 may be multiplied as tf32 where the kernel allows it.
  double single = std::max(sheet->matrixRate(tf32), sheet->vectorRate(f32));
  peaks.flopsPerSecond = {{"f64", std::max(sheet->matrixRate(f64), sheet->vectorRate(f64))},
                          {"f32", single},
                          {"f16", sheet->matrixRate(f16)},
                          {"bf16", std::max(sheet->matrixRate(bf16), single)},
                          {"f8e4m3", std::max(sheet->matrixRate(f8), single)},
                          {"f8e5m2", std::max(sheet->matrixRate(f8), single)},
                          {"i8", std::max(sheet->matrixRate(i8), single)}};
  return peaks;
}

DatasheetPeaks cpuPeaks(int processors, const std::vector<std::string> &extras) {
  // Two 64-byte vectors a clock, two multiply-adds on them, matrix units of 1024 multiply-adds, and a sixth of that for f32
  // where they are AMX's, at 6 GHz: no processor has more. Data may be in the nearest cache, so its bandwidth is the bound.
  double clock = 6e9 * processors;
  bool hasTiles = std::find(extras.begin(), extras.end(), "amx-bf16") != extras.end();
  DatasheetPeaks peaks;
  peaks.bytesPerSecond = 3 * 64 * clock;
  peaks.flopsPerSecond = {{"f64", 2 * 2 * 8 * clock}, {"f32", (hasTiles ? 2048.0 / 6 : 2 * 2 * 16) * clock}, {"f16", 4096 * clock},
                          {"bf16", 2048 * clock},     {"i8", 4096 * clock},        {"u8", 4096 * clock}};
  return peaks;
}

std::string whyImpossible(double seconds, double flops, double bytes, const std::string &dtype,
                          const DatasheetPeaks &peaks) {
  constexpr double slack = 1.02; // clocks are told in round numbers
  if (!(seconds > 0))
    return "";
  auto peak = peaks.flopsPerSecond.find(dtype);
  if (peak != peaks.flopsPerSecond.end() && peak->second > 0 && flops / seconds > slack * peak->second)
    return number(flops / seconds / 1e12) + " TFLOP/s is more than the machine's peak of " + number(peak->second / 1e12) +
           " TFLOP/s in " + dtype;
  if (peaks.bytesPerSecond > 0 && bytes > peaks.cacheBytes && bytes / seconds > slack * peaks.bytesPerSecond)
    return number(bytes / seconds / 1e9) + " GB/s is more than the machine's peak of " +
           number(peaks.bytesPerSecond / 1e9) + " GB/s";
  return "";
}

//===--- Reading --------------------------------------------------------------------------------------------------===//

Results parseResults(const std::string &contents, const std::string &name) {
  Results results;
  results.name = name;
  if (contents.find_first_not_of(" \t\r\n") == std::string::npos)
    throw Error("'" + name + "' is empty: a results file is what `tenon bench --json FILE` writes");
  try {
    results.json = Json::parse(contents);
  } catch (const Json::parse_error &error) {
    bool isCut = error.byte >= contents.size();
    throw Error("'" + name + "' " +
                (isCut ? "ends in the middle of its text: it was cut short"
                       : "is not JSON (see byte " + std::to_string(error.byte) + ")") +
                "; a results file is what `tenon bench --json FILE` writes");
  }
  const Json &json = results.json;
  bool isResults = json.is_object() && json.contains("tenon") && json["tenon"].is_string() &&
                   json.contains("results") && json["results"].is_array();
  if (!isResults)
    throw Error("'" + name +
                "' is not a results file: it has no Tenon version or no list of results; `tenon bench --json FILE` "
                "writes one");
  results.version = text(json, "tenon");
  // Files from before there were schemas have the fields of the first.
  if (json.contains("schema")) {
    if (!json["schema"].is_number_integer())
      throw Error("'" + name + "' is not a results file: its schema is no number");
    results.schema = json["schema"].get<int>();
  }
  if (results.schema != resultsSchema)
    throw Error("'" + name + "' has results of schema " + std::to_string(results.schema) + ", written by Tenon " +
                results.version + ", and this Tenon reads schema " + std::to_string(resultsSchema) + ": measure again");
  results.command = text(json, "command");
  if (results.command == "profile")
    throw Error("'" + name + "' is a profile, which says what a program did and measures no kernel: `tenon bench --json "
                "FILE` writes results");
  results.commit = text(json, "commit");
  results.build = text(json, "build");
  results.complete = flag(json, "complete", true);
  results.machine = machineText(json);
  if (json.contains("conditions") && json["conditions"].is_object())
    results.conditions = text(json["conditions"], "complaint");
  if (!json.contains("machine") || !json["machine"].is_object())
    throw Error("'" + name + "' does not say what machine it is of: such times mean nothing");
  if (json.contains("gpu") && json["gpu"].is_object()) {
    results.peaks = gpuPeaks(text(json["gpu"], "name"));
    results.peaks.bytesPerSecond = std::max(results.peaks.bytesPerSecond, real(json["gpu"], "datasheet_bytes_per_s"));
  }
  std::string target = results.command == "bench gpu" ? "cuda" : "cpu";
  for (const Json &row : json["results"]) {
    auto parsed = parseRow(row, results, target);
    if (!parsed)
      continue;
    results.rows.push_back(std::move(*parsed));
    if (!row.contains("warm") || !row["warm"].is_object())
      continue;
    Json warm = row; // a measurement of its own
    std::string variant = text(row, "variant");
    warm["variant"] = variant.empty() ? "warm" : variant + ", warm";
    warm["time"] = row["warm"];
    warm["cold"] = false;
    results.rows.push_back(*parseRow(warm, results, target));
  }
  return results;
}

Results readResults(const std::string &file) {
  errno = 0;
  std::ifstream stream(file);
  std::stringstream contents;
  if (stream)
    contents << stream.rdbuf();
  if (!stream || contents.bad())
    throw Error("cannot read '" + file + "': " + std::strerror(errno ? errno : EIO));
  return parseResults(contents.str(), file);
}

//===--- What changed ---------------------------------------------------------------------------------------------===//

namespace {

RowChange compareRows(const ResultRow &before, const ResultRow &after, const CompareOptions &options) {
  RowChange row;
  row.before = &before;
  row.after = &after;
  if (!before.seconds || !after.seconds) {
    row.change = before.seconds ? Change::broken : after.seconds ? Change::mended : Change::unmeasured;
    if (before.seconds && after.status == Status::untimed)
      row.change = Change::unmeasured;
    if (!before.seconds && before.status == Status::untimed)
      row.change = Change::unmeasured;
    const ResultRow &culprit = after.seconds ? before : after;
    row.note = std::string(nameOf(culprit.status)) + (culprit.reason.empty() ? "" : ": " + culprit.reason);
    return row;
  }
  row.ratio = after.seconds->median / before.seconds->median;
  row.low = after.seconds->low / before.seconds->high;
  row.high = after.seconds->high / before.seconds->low;
  if (row.high < 1 && row.ratio < 1 - options.noise)
    row.change = Change::faster;
  else if (row.low > 1 && row.ratio > 1 + options.noise)
    row.change = Change::slower;
  return row;
}

void remarkOn(const Results &before, const Results &after, FileChange &change) {
  for (const Results *file : {&before, &after}) {
    if (!file->complete)
      change.remarks.push_back("'" + file->name + "' is not complete: its measurement was interrupted");
    if (!file->conditions.empty())
      change.remarks.push_back("'" + file->name + "' was measured in bad conditions: " + file->conditions);
    for (const ResultRow &row : file->rows)
      if (row.seconds && !row.verified) {
        change.remarks.push_back("'" + file->name + "' has times of results that were not verified");
        break;
      }
  }
  if (before.version != after.version)
    change.remarks.push_back("the files are of Tenon " + before.version + " and " + after.version);
}

} // namespace

bool FileChange::regression() const {
  return std::any_of(rows.begin(), rows.end(), [](const RowChange &row) {
    return row.change == Change::slower || row.change == Change::broken;
  });
}

FileChange compareResults(const Results &before, const Results &after, const CompareOptions &options,
                          bool otherMachine) {
  if (before.machine != after.machine && !otherMachine)
    throw Error("'" + before.name + "' is of " + before.machine + " and '" + after.name + "' of " + after.machine +
                ": times of different machines say nothing about a change (--other-machine compares them all the "
                "same)");
  FileChange change;
  if (before.machine != after.machine)
    change.remarks.push_back("the files are of different machines: " + before.machine + "; " + after.machine);
  remarkOn(before, after, change);

  std::map<std::string, std::vector<const ResultRow *>> known; // a key may occur more than once: in order, then
  for (const ResultRow &row : before.rows)
    known[row.key()].push_back(&row);
  size_t common = 0;
  for (const ResultRow &row : after.rows) {
    std::vector<const ResultRow *> &candidates = known[row.key()];
    if (candidates.empty()) {
      RowChange appeared;
      appeared.change = Change::appeared;
      appeared.after = &row;
      change.rows.push_back(appeared);
      continue;
    }
    ++common;
    change.rows.push_back(compareRows(*candidates.front(), row, options));
    candidates.erase(candidates.begin());
  }
  if (common == 0)
    throw Error("'" + before.name + "' and '" + after.name +
                "' have no measurement in common: they must be of the same kernels, shapes, types and targets");
  for (const ResultRow &row : before.rows) {
    std::vector<const ResultRow *> &left = known[row.key()];
    if (std::find(left.begin(), left.end(), &row) != left.end()) {
      RowChange gone;
      gone.change = Change::gone;
      gone.before = &row;
      change.rows.push_back(gone);
    }
  }
  return change;
}

} // namespace tenon
