// SPDX-License-Identifier: Apache-2.0
#include "ReportHtml.h"

#include "Format.h"
#include "ReportAssets.h"

#include "tenon/measure/Machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

namespace tenon::tool {
namespace {

bool isYardstick(const std::string &peer) {
  return peer == "copy" || peer == "read" || peer == "tenon_copy" || peer == "tenon_read";
}

std::string textIn(const Json &json, const char *field) {
  auto found = json.find(field);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<Estimate> estimateIn(const Json &json) {
  const Json *seconds = &json;
  if (json.is_object() && json.contains("seconds"))
    seconds = &json["seconds"];
  if (!seconds->is_object())
    return std::nullopt;
  Estimate estimate;
  for (auto [field, value] :
       {std::pair("median", &estimate.median), {"low", &estimate.low}, {"high", &estimate.high}}) {
    auto found = seconds->find(field);
    if (found == seconds->end() || !found->is_number())
      return std::nullopt;
    *value = found->get<double>();
  }
  return estimate.median > 0 ? std::optional(estimate) : std::nullopt;
}

/// The work of a row in which it is not said: of two small problems, since it grows with the rows.
double flopsOf(const ResultRow &row) {
  if (row.flops > 0 || row.shape.empty() || row.shape[0] < 1)
    return row.flops;
  std::optional<DType> dtype = parseDType(row.dtype);
  for (const zoo::Entry &entry : zoo::entries())
    if (dtype && entry.name == row.kernel && entry.dimensions.size() == row.shape.size()) {
      std::vector<int64_t> shape = row.shape;
      shape[0] = 1;
      double one = entry.makeProblem(shape, *dtype, 1).flops;
      shape[0] = 2;
      double two = entry.makeProblem(shape, *dtype, 1).flops;
      return one + static_cast<double>(row.shape[0] - 1) * (two - one);
    }
  return 0;
}

std::optional<model::Precision> precisionOf(std::string_view dtype) {
  using enum model::Precision;
  for (auto [name, precision] : {std::pair("f64", f64),
                                 {"f32", f32},
                                 {"f16", f16},
                                 {"bf16", bf16},
                                 {"f8e4m3", f8},
                                 {"f8e5m2", f8},
                                 {"i8", i8},
                                 {"u8", i8}})
    if (dtype == name)
      return precision;
  return std::nullopt;
}

/// The roofs that are drawn, and those that a row lies under.
struct Roofs {
  double bytesPerSecond = 0;
  Json drawn = Json::array();
};

Roofs roofsOf(const model::Ceilings &ceilings, const std::set<std::string> &dtypes) {
  Roofs roofs;
  if (!ceilings.levels.empty()) {
    roofs.bytesPerSecond = std::max(ceilings.memory().copyBytesPerSecond, ceilings.memory().readBytesPerSecond);
    roofs.drawn.push_back({{"name", "memory"}, {"gbps", roofs.bytesPerSecond / 1e9}, {"measured", ceilings.measured}});
  }
  for (const std::string &dtype : dtypes)
    if (auto precision = precisionOf(dtype)) {
      double matrix = ceilings.matrixRate(*precision), vector = ceilings.vectorRate(*precision);
      if (vector > 0)
        roofs.drawn.push_back(
            {{"name", dtype + " vectors"}, {"gflops", vector / 1e9}, {"measured", ceilings.measured}});
      if (matrix > vector * 1.5)
        roofs.drawn.push_back(
            {{"name", dtype + " matrices"}, {"gflops", matrix / 1e9}, {"measured", ceilings.measured}});
    }
  return roofs;
}

/// How much of the roof above it a row reaches, and which roof that is.
void addRoof(Json &out, const ResultRow &row, double flops, double bytes, const model::Ceilings &ceilings) {
  double memory = ceilings.levels.empty()
                      ? 0
                      : std::max(ceilings.memory().copyBytesPerSecond, ceilings.memory().readBytesPerSecond);
  auto precision = precisionOf(row.dtype);
  double rate = precision ? std::max(ceilings.matrixRate(*precision), ceilings.vectorRate(*precision)) : 0;
  double byMemory = memory > 0 ? bytes / memory : 0, byWork = rate > 0 ? flops / rate : 0;
  double least = std::max(byMemory, byWork);
  if (least <= 0)
    return;
  out["ofRoof"] = least / row.seconds->median;
  out["boundBy"] = byMemory >= byWork ? "memory" : "arithmetic";
}

/// The ratio that was taken within pairs, if there is one; its median is not the medians' ratio.
std::optional<double> pairedRatio(const Json &from, const char *field) {
  auto found = from.find(field);
  if (found == from.end() || !found->is_object() || !found->contains("median") || !(*found)["median"].is_number())
    return std::nullopt;
  return (*found)["median"].get<double>();
}

Json peersOf(const ResultRow &row, Json &best) {
  Json peers = Json::array();
  auto add = [&](const std::string &name, const char *kind, const std::string &status,
                 const std::optional<Estimate> &seconds, std::optional<double> paired) {
    Json peer = {{"name", name}, {"kind", kind}, {"status", status}, {"seconds", nullptr}};
    if (seconds && row.seconds) {
      peer["seconds"] = toJson(*seconds);
      double ratio = paired.value_or(seconds->median / row.seconds->median);
      peer["ratio"] = ratio;
      bool counts = std::string_view(kind) == "peer" && !isYardstick(name) && !name.starts_with("tenon ");
      if (counts && (best.is_null() || ratio < best["ratio"].get<double>()))
        best = {{"name", name}, {"ratio", ratio}};
    }
    peers.push_back(std::move(peer));
  };
  if (row.json.contains("plain_loop"))
    if (auto seconds = estimateIn(row.json["plain_loop"]))
      add("plain loop", "plain", "measured", seconds, pairedRatio(row.json, "speed_up"));
  if (row.json.contains("peers") && row.json["peers"].is_object())
    for (const auto &[name, peer] : row.json["peers"].items()) {
      std::string status = textIn(peer, "status");
      if (status == "not asked" || status == "none")
        continue;
      auto time = peer.find("time");
      add(name, "peer", status, time != peer.end() ? estimateIn(*time) : std::nullopt,
          pairedRatio(peer, "ratio"));
    }
  return peers;
}

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

Json rowOf(const ReportData &data, const Results &file, const ResultRow &row, size_t index) {
  std::string place = placeOf(file, row), shape = shapeText(row.shape);
  std::string label =
      fmt::format("{} {} {}{}", row.kernel, shape, row.dtype, row.variant.empty() ? "" : ", " + row.variant);
  if (data.files.size() > 1)
    label += " (" + file.name + ")";
  Json best, out = {{"index", index},
                    {"kernel", row.kernel},
                    {"shape", shape},
                    {"dtype", row.dtype},
                    {"where", place},
                    {"label", label},
                    {"status", nameOf(row.status)},
                    {"reason", row.reason},
                    {"search", lowered(label + " " + place + " " + std::string(nameOf(row.status)))},
                    {"seconds", nullptr},
                    {"code", nullptr}};
  out["peers"] = peersOf(row, best);
  out["bestPeer"] = best;
  if (auto found = data.codeByKey.find(codeKey(row)); found != data.codeByKey.end())
    out["code"] = found->second;
  if (!row.seconds)
    return out;
  out["seconds"] = toJson(*row.seconds);
  double flops = flopsOf(row), bytes = row.bytes, median = row.seconds->median;
  if (bytes > 0)
    out["gbps"] = bytes / median / 1e9;
  if (flops > 0)
    out["gflops"] = flops / median / 1e9;
  if (flops > 0 && bytes > 0)
    out["intensity"] = flops / bytes;
  if (auto found = data.ceilings.find(place); found != data.ceilings.end())
    addRoof(out, row, flops, bytes, found->second);
  return out;
}

Json aboutFile(const ReportData &data, const Results &file) {
  Json facts = Json::object();
  auto fact = [&](const char *name, const std::string &value) {
    if (!value.empty())
      facts[name] = value;
  };
  fact("command", "tenon " + file.command);
  fact("machine", file.machine);
  fact("version", file.version);
  fact("commit", file.commit);
  Json warnings = Json::array();
  if (file.version != tenonVersion())
    warnings.push_back(
        fmt::format("measured by version {}, and this report is made by {}", file.version, tenonVersion()));
  if (!file.complete)
    warnings.push_back("not complete: the measurement was broken off, and what is missing is not shown");
  if (!file.conditions.empty())
    warnings.push_back("conditions: " + file.conditions);
  if (file.machine != data.files.front().machine)
    warnings.push_back("of another machine than " + data.files.front().name + ": their times do not compare");
  size_t impossible = std::count_if(file.rows.begin(), file.rows.end(),
                                    [](const ResultRow &row) { return row.status == ResultRow::Status::impossible; });
  if (impossible)
    warnings.push_back(fmt::format("{} time{} beat the datasheet's peak and cannot be: not shown", impossible,
                                   impossible == 1 ? "" : "s"));
  return {{"name", file.name}, {"facts", facts}, {"warnings", warnings}};
}

/// The trials of a search: rows of kind "sweep" of one case, or a list that a row carries, in their order.
Json tuningOf(const ReportData &data) {
  Json histories = Json::array();
  for (const Results &file : data.files) {
    std::map<std::string, Json> sweeps;
    for (const ResultRow &row : file.rows) {
      if (row.json.contains("tuning") && row.json["tuning"].is_array()) {
        Json trials = Json::array();
        for (const Json &trial : row.json["tuning"]) {
          auto seconds = trial.contains("time") ? estimateIn(trial["time"]) : std::nullopt;
          trials.push_back({{"label", trial.contains("params") ? trial["params"].dump() : textIn(trial, "label")},
                            {"seconds", seconds ? Json(seconds->median) : Json(nullptr)}});
        }
        histories.push_back({{"label", row.label()}, {"trials", trials}});
      }
      if (textIn(row.json, "kind") == "sweep")
        sweeps[textIn(row.json, "case")].push_back(
            {{"label", row.variant}, {"seconds", row.seconds ? Json(row.seconds->median) : Json(nullptr)}});
    }
    for (auto &[label, trials] : sweeps)
      histories.push_back({{"label", label}, {"trials", trials}});
  }
  return histories;
}

Json codeOf(const KernelCode &code) {
  Json listings = Json::array();
  for (const Listing &listing : code.listings) {
    Json lines = Json::array();
    for (const CodeLine &line : listing.lines)
      lines.push_back({line.text, line.source});
    listings.push_back({{"phase", listing.phase}, {"title", listing.title}, {"lines", lines}});
  }
  return {{"label", code.label},
          {"file", code.file},
          {"firstLine", code.firstLine},
          {"source", code.source},
          {"listings", listings}};
}

void replace(std::string &page, std::string_view mark, std::string_view text) {
  page.replace(page.find(mark), mark.size(), text);
}

} // namespace

std::string placeOf(const Results &results, const ResultRow &row) {
  if (row.target == "cuda" && results.json.contains("gpu") && results.json["gpu"].is_object())
    return textIn(results.json["gpu"], "name");
  std::string cpu = results.json.contains("machine") ? textIn(results.json["machine"], "cpu") : "";
  return row.target == "cpu" || row.target.empty() ? cpu : cpu + ", " + row.target;
}

std::string codeKey(const ResultRow &row) {
  std::string key = row.kernel + "|" + row.dtype + "|" + row.target;
  for (const auto &[name, value] : row.params)
    key += fmt::format("|{}={}", name, value);
  return key;
}

Json pageData(const ReportData &data) {
  Json files = Json::array(), rows = Json::array(), places = Json::array(), code = Json::array();
  std::map<std::string, std::set<std::string>> dtypes; // by place
  for (const Results &file : data.files) {
    files.push_back(aboutFile(data, file));
    for (const ResultRow &row : file.rows) {
      if (textIn(row.json, "kind") == "sweep")
        continue; // the search's, not the overview's
      dtypes[placeOf(file, row)].insert(row.dtype);
      rows.push_back(rowOf(data, file, row, rows.size()));
    }
  }
  for (const auto &[place, types] : dtypes) {
    auto found = data.ceilings.find(place);
    places.push_back({{"name", place},
                      {"roofs", found == data.ceilings.end() ? Json::array() : roofsOf(found->second, types).drawn}});
  }
  for (const KernelCode &one : data.code)
    code.push_back(codeOf(one));
  return {{"files", files}, {"rows", rows}, {"places", places}, {"code", code}, {"tuning", tuningOf(data)}};
}

std::string pageOf(const Json &data) {
  // Inside a script element nothing may look like its end, or like the beginning of a comment.
  std::string text, raw = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (char c : raw)
    text += c == '<' ? "\\u003c" : std::string(1, c);
  std::string script;
  for (std::string_view part : assets::scripts)
    script += part;
  std::string page(assets::page);
  replace(page, "@STYLE@", assets::style);
  replace(page, "@SCRIPT@", script);
  replace(page, "@DATA@", text); // last: what it contains is not looked at
  return page;
}

} // namespace tenon::tool
