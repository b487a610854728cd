// SPDX-License-Identifier: Apache-2.0
#include "ProfileTrace.h"

#include "tenon/base/Error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>

namespace tenon::tool {
namespace {

using Json = nlohmann::json;

std::optional<ProfileEvent::Kind> kindOf(const std::string &name) {
  using enum ProfileEvent::Kind;
  for (ProfileEvent::Kind kind : {launch, submit, run, compile, phase, copy, fill, synchronize, range})
    if (nameOf(kind) == name)
      return kind;
  return std::nullopt;
}

ProfileEvent eventOf(const Json &json, ProfileEvent::Kind kind) {
  ProfileEvent event;
  event.kind = kind;
  event.name = json.at("name");
  auto nanoseconds = [&](const char *field) { return std::llround(json.at(field).get<double>() * 1000); };
  event.begin = nanoseconds("ts");
  event.end = event.begin + nanoseconds("dur");
  const Json &details = json.at("args");
  event.detail = details.value("detail", "");
  event.site = details.value("site", "");
  event.device = details.value("device", -1);
  event.onDevice = details.contains("stream");
  event.thread = event.onDevice ? details["stream"].get<uint32_t>() : json.at("tid").get<uint32_t>();
  event.implicit = details.value("implicit", false);
  event.launch = details.value("launch", uint64_t(0));
  event.bytes = details.value("bytes", uint64_t(0));
  event.flops = details.value("flops", 0.0);
  if (details.contains("memory"))
    for (const Json &memory : details["memory"])
      event.memory.push_back(
          {memory.at(0).get<uint64_t>(), memory.at(1).get<uint64_t>(), memory.at(2).get<int>() != 0});
  return event;
}

} // namespace

ProfileData parseTrace(const std::string &text, const std::string &name) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    throw Error(
        fmt::format("'{}' is not JSON, or was cut short: a profile is what `tenon profile --trace` writes", name));
  if (!json.is_object() || !json.contains("tenon_profile") || !json.contains("traceEvents"))
    throw Error(fmt::format("'{}' is no profile of Tenon: it has no tenon_profile", name));
  try {
    const Json &about = json["tenon_profile"];
    if (int format = about.at("format"); format != 1)
      throw Error(fmt::format("'{}' is a profile of format {}, and this version reads format 1", name, format));
    ProfileData data;
    data.program = about.at("program");
    data.process = about.at("process");
    data.nanoseconds = about.at("nanoseconds");
    data.counters = about.at("counters").get<std::map<std::string, uint64_t>>();
    data.notes = about.at("notes").get<std::vector<std::string>>();
    for (const Json &event : json["traceEvents"])
      if (event.at("ph") == "X")
        if (auto kind = kindOf(event.at("cat")))
          data.events.push_back(eventOf(event, *kind));
    return data;
  } catch (const Json::exception &error) {
    throw Error(fmt::format("'{}' is no complete profile of Tenon: {}", name, error.what()));
  }
}

ProfileData readTrace(const std::string &file) {
  std::ifstream stream(file, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw Error(fmt::format("cannot read '{}'", file));
  return parseTrace(text.str(), file);
}

} // namespace tenon::tool
