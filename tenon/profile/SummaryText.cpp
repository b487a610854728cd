// SPDX-License-Identifier: Apache-2.0
#include "tenon/profile/Analysis.h"

#include <algorithm>
#include <cstdio>

namespace tenon {
namespace {

using namespace profile;

/// Columns aligned by spaces, at least two between them; the first is text, the others numbers.
std::string table(const std::vector<std::vector<std::string>> &rows) {
  std::vector<size_t> widths;
  for (const auto &row : rows)
    for (size_t c = 0; c < row.size(); ++c) {
      widths.resize(std::max(widths.size(), c + 1));
      widths[c] = std::max(widths[c], row[c].size());
    }
  std::string text;
  for (const auto &row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      std::string padding(widths[c] - row[c].size(), ' ');
      line += (c ? "  " : "") + (c ? padding + row[c] : row[c] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string rateText(double bytesPerSecond) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", bytesPerSecond / 1e9);
  return bytesPerSecond > 0 ? text : "-";
}

} // namespace

std::string summaryText(const ProfileData &data) {
  ProfileSummary summary = summarize(data);
  std::string text = timeText(summary.seconds) + " of " + data.program + "\n\n";
  std::vector<std::vector<std::string>> rows = {
      {"kernel", "place", "calls", "self", "% of time", "a call", "host", "total", "GB/s"}};
  for (const ProfileSummary::Kernel &kernel : summary.kernels) {
    double calls = static_cast<double>(std::max<size_t>(kernel.calls, 1));
    rows.push_back({kernel.name, kernel.place, std::to_string(kernel.calls),
                    kernel.isTimed ? timeText(kernel.self) : "?", kernel.isTimed ? percentText(kernel.share) : "?",
                    kernel.isTimed ? timeText(kernel.self / calls) : "?", timeText(kernel.host), timeText(kernel.total),
                    rateText(kernel.bytesPerSecond())});
  }
  text += summary.kernels.empty() ? "no kernel was launched\n" : table(rows);
  if (!summary.ops.empty()) {
    rows = {{"op", "calls", "launches", "self", "total", "kernels"}};
    for (const ProfileSummary::Op &op : summary.ops) {
      size_t slash = op.path.rfind(" / ");
      rows.push_back({std::string(2 * static_cast<size_t>(op.depth), ' ') +
                          op.path.substr(slash == std::string::npos ? 0 : slash + 3),
                      std::to_string(op.calls), std::to_string(op.launches), timeText(op.self), timeText(op.total),
                      timeText(op.kernels)});
    }
    text += "\n" + table(rows);
  }
  text += "\ncompiling " + timeText(summary.compiling) + " (" + std::to_string(summary.compilations) + "), copying " +
          timeText(summary.copying) + " (" + std::to_string(summary.copies) + "), waiting " +
          timeText(summary.waiting) + " (" + std::to_string(summary.waits) + ")\n";
  for (const ProfileSummary::Place &place : summary.places)
    text += place.name + ": busy " + timeText(place.busy) + ", idle " + timeText(place.idle) +
            " between its first and its last run\n";
  auto counter = [&](const char *name) {
    auto found = data.counters.find(name);
    return found == data.counters.end() ? 0.0 : static_cast<double>(found->second);
  };
  if (double cycles = counter("cycles")) {
    char line[160];
    std::snprintf(line, sizeof line, "processor: %.3g cycles, %.3g instructions (%.2f a cycle), %.3g cache misses\n",
                  cycles, counter("instructions"), counter("instructions") / cycles, counter("cache-misses"));
    text += line;
  }
  for (const ProfileSummary::Finding &finding : summary.findings)
    text += "- " + finding.text + "\n";
  for (const std::string &note : data.notes)
    text += "note: " + note + "\n";
  return text;
}

} // namespace tenon
