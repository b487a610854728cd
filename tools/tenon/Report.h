// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/measure/Bench.h"
#include "tenon/measure/Machine.h"
#include "tenon/measure/Weather.h"
#include "tenon/verify/Verify.h"

#include <nlohmann/json.hpp>

#include <string>

/// What --json writes (measure/Results.h reads it):
///     {"schema": 1, "tenon": "0.1.0", "command": "bench", "commit": "...", "machine": {...}, "conditions": {...},
///      "results": [...]}
/// The fields are listed in docs/command-line.md; ones may be added, none changes its meaning within a schema.
namespace tenon::tool {

using Json = nlohmann::ordered_json;

class Report {
public:
  /// `file` is a path, "-" for the standard output (which then carries nothing else), or empty for no report. A path
  /// that cannot be written is refused here, before any work is done. `gpu`: the CUDA device whose clock and power are
  /// among the conditions; -1: none.
  Report(std::string command, std::string file, int gpu = -1);

  void add(Json result) { results_.push_back(std::move(result)); }
  /// What else there is to say about all results, between the machine and them.
  void set(const std::string &field, Json value) { fields_[field] = std::move(value); }
  /// Whether the usual text is wanted too.
  bool quiet() const { return file_ == "-"; }
  void write() const;
  /// On the standard output, if the text is wanted: what spoilt the figures, if anything did.
  void tellWeather() const;

private:
  std::string command_, file_;
  WeatherWatch weather_; ///< from the beginning to each write
  Json fields_ = Json::object(), results_ = Json::array();
};

Json toJson(const Machine &machine);
Json toJson(const Estimate &estimate);
Json toJson(const Timing &timing);
Json toJson(const Verdict &verdict);
Json toJson(const CompileReport &report);

} // namespace tenon::tool
