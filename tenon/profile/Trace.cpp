// SPDX-License-Identifier: Apache-2.0
//
// The JSON trace format that chrome://tracing introduced and Perfetto reads: complete events ("X") in microseconds,
// names of threads as metadata ("M"), arrows from a launch to its run ("s", "f").
#include "tenon/profile/Profile.h"

#include <cstdio>
#include <set>
#include <utility>

namespace tenon {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string microseconds(int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(nanoseconds) * 1e-3);
  return text;
}

/// What a device does is shown as threads of their own below the host's.
uint64_t trackOf(const ProfileEvent &event) {
  constexpr uint64_t firstDevice = 1000000, perDevice = 10000;
  return event.onDevice ? firstDevice + perDevice * static_cast<uint64_t>(event.device) + event.thread : event.thread;
}

std::string trackName(const ProfileEvent &event) {
  if (event.onDevice)
    return "cuda:" + std::to_string(event.device) + " stream " + std::to_string(event.thread);
  return "thread " + std::to_string(event.thread);
}

std::string argumentsOf(const ProfileEvent &event) {
  std::string text = "{";
  auto add = [&](const char *name, const std::string &value) {
    text += (text.size() > 1 ? "," : "") + quoted(name) + ":" + value;
  };
  if (!event.detail.empty())
    add("detail", quoted(event.detail));
  if (!event.site.empty())
    add("site", quoted(event.site));
  if (event.device >= 0)
    add("device", std::to_string(event.device));
  if (event.onDevice)
    add("stream", std::to_string(event.thread));
  if (event.implicit)
    add("implicit", "true");
  if (event.launch)
    add("launch", std::to_string(event.launch));
  if (event.bytes)
    add("bytes", std::to_string(event.bytes));
  if (event.flops > 0) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", event.flops);
    add("flops", text);
  }
  if (!event.memory.empty()) {
    std::string memory = "[";
    for (const ProfileEvent::Memory &one : event.memory)
      memory += (memory.size() > 1 ? ",[" : "[") + std::to_string(one.address) + "," + std::to_string(one.bytes) + "," +
                (one.written ? "1]" : "0]");
    add("memory", memory + "]");
  }
  return text + "}";
}

} // namespace

std::string traceJson(const ProfileData &data) {
  std::string process = std::to_string(data.process);
  std::string text = "{\"displayTimeUnit\":\"ns\",\"tenon_profile\":{\"format\":1,\"program\":" + quoted(data.program) +
                     ",\"process\":" + process + ",\"nanoseconds\":" + std::to_string(data.nanoseconds) +
                     ",\"counters\":{";
  const char *separator = "";
  for (const auto &[name, value] : data.counters) {
    text += separator + quoted(name) + ":" + std::to_string(value);
    separator = ",";
  }
  text += "},\"notes\":[";
  separator = "";
  for (const std::string &note : data.notes) {
    text += separator + quoted(note);
    separator = ",";
  }
  text += "]},\n\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + process +
          ",\"args\":{\"name\":" + quoted(data.program) + "}}";
  std::set<uint64_t> named, arrived; // of a graph's runs only the first has an arrow
  for (const ProfileEvent &event : data.events) {
    uint64_t track = trackOf(event);
    std::string where = ",\"pid\":" + process + ",\"tid\":" + std::to_string(track);
    if (named.insert(track).second)
      text += ",\n{\"ph\":\"M\",\"name\":\"thread_name\"" + where + ",\"args\":{\"name\":" + quoted(trackName(event)) +
              "}}";
    text += ",\n{\"ph\":\"X\",\"name\":" + quoted(event.name) + ",\"cat\":" + quoted(nameOf(event.kind)) +
            ",\"ts\":" + microseconds(event.begin) + ",\"dur\":" + microseconds(event.end - event.begin) + where +
            ",\"args\":" + argumentsOf(event) + "}";
    bool leaves = event.kind == ProfileEvent::Kind::submit;
    if (event.launch && (leaves || (event.onDevice && arrived.insert(event.launch).second)))
      text += ",\n{\"ph\":" + std::string(leaves ? "\"s\"" : "\"f\",\"bp\":\"e\"") +
              ",\"name\":\"launch\",\"cat\":\"launch\",\"id\":" + std::to_string(event.launch) +
              ",\"ts\":" + microseconds(event.begin) + where + "}";
  }
  return text + "\n]}\n";
}

} // namespace tenon
