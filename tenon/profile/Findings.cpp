// SPDX-License-Identifier: Apache-2.0
//
// What a profile says in words. Each finding has a threshold below which it is not worth a sentence.
#include "tenon/profile/Analysis.h"
#include "tenon/profile/CallSite.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

namespace tenon::profile {
namespace {

using Kind = ProfileEvent::Kind;
using Finding = ProfileSummary::Finding;

constexpr size_t fewLaunches = 10;       ///< too few to speak of a rate
constexpr double muchOverhead = 0.3;     ///< of the time, not spent running kernels
constexpr uint64_t smallCopy = 64 << 10; ///< bytes, below which a copy is mostly its own overhead
constexpr size_t manyCopies = 8;
constexpr double muchCompiling = 0.2;
constexpr size_t manyCompilations = 4; ///< of one kernel

std::string count(size_t number, const char *what) {
  return std::to_string(number) + " " + what +
         (number == 1                                             ? ""
          : what[std::char_traits<char>::length(what) - 1] == 'h' ? "es"
                                                                  : "s");
}

//===--- Launch-bound ---------------------------------------------------------------------------------------------===//

/// Where kernels run on the calling thread, what launch() takes above them; on a device, its idle time while the host
/// was launching.
void findLaunchBound(const ProfileData &data, const std::vector<Launch> &launches, ProfileSummary &summary) {
  struct Sum {
    size_t launches = 0;
    double host = 0, run = 0;
  };
  std::map<std::string, Sum> places;
  for (const Launch &launch : launches) {
    if (launch.run == Nesting::none)
      continue;
    const ProfileEvent &event = data.events[launch.event], &run = data.events[launch.run];
    double host = event.seconds() - static_cast<double>(launch.apart) * 1e-9;
    if (!run.onDevice) {
      if (run.thread != event.thread)
        continue; // on a stream, beside the caller
      host -= run.seconds();
    }
    Sum &sum = places[placeOf(event)];
    ++sum.launches;
    sum.host += std::max(host, 0.0);
    sum.run += run.seconds();
  }
  for (const auto &[name, sum] : places) {
    if (sum.launches < fewLaunches)
      continue;
    bool isCpu = name == "cpu";
    double all = sum.host + sum.run, overhead = sum.host;
    if (!isCpu) { // the device works while the host launches: only what it waits for counts
      for (const ProfileSummary::Place &place : summary.places)
        if (place.name == name) {
          all = place.busy + place.idle;
          overhead = std::min(sum.host, place.idle);
        }
    }
    if (all <= 0 || overhead / all < muchOverhead)
      continue;
    double perLaunch = sum.host / static_cast<double>(sum.launches);
    std::string text = "launch-bound on " + name + ": " + percentText(overhead / all) +
                       " of the time is host overhead (" + timeText(perLaunch) + " a launch for " +
                       timeText(sum.run / static_cast<double>(sum.launches)) + " of work, " +
                       count(sum.launches, "launch") + "): ";
    text +=
        isCpu ? "fuse the kernels, or give each more work" : "use a graph (LaunchGraph::capture), or fuse the kernels";
    summary.findings.push_back({"launch-bound", text, "", overhead});
  }
}

//===--- Waits that nobody asked for ------------------------------------------------------------------------------===//

void findImplicit(const ProfileData &data, ProfileSummary &summary) {
  struct Sum {
    size_t count = 0;
    double seconds = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> groups; // by reason and the caller
  auto add = [&](const std::string &reason, const ProfileEvent &event) {
    Sum &sum = groups[{reason, describeSite(event.site)}];
    ++sum.count;
    sum.seconds += event.seconds();
  };
  std::map<int, bool> isQueued; // by device: launches that nobody has waited for
  for (const ProfileEvent &event : data.events) {
    if (event.onDevice)
      continue;
    if (event.kind == Kind::launch && event.device >= 0) {
      isQueued[event.device] = true;
    } else if (event.kind == Kind::synchronize) {
      isQueued.clear();
      if (event.implicit)
        add(event.detail, event);
    } else if (event.kind == Kind::copy && isQueued[event.device]) {
      isQueued[event.device] = false;
      add("a copy " + event.name + " waits for the kernels queued before it", event);
    }
  }
  for (const auto &[key, sum] : groups) {
    const std::string &site = key.second;
    std::string text = "implicit synchronisation: " + key.first + ", " + std::to_string(sum.count) +
                       (sum.count == 1 ? " time, " : " times, ") + timeText(sum.seconds) + " in all";
    if (!site.empty())
      text += ", called by " + site;
    summary.findings.push_back({"implicit-synchronisation", text, site, sum.seconds});
  }
}

//===--- Chains that could be one kernel --------------------------------------------------------------------------===//

using Range = std::pair<uint64_t, uint64_t>;
Range rangeOf(const ProfileEvent::Memory &memory) { return {memory.address, memory.bytes}; }

/// For each launch, how often each range that it writes is read before it is written again.
std::vector<std::map<Range, size_t>> laterReads(const ProfileData &data, const std::vector<Launch> &launches) {
  std::vector<std::map<Range, size_t>> reads(launches.size());
  std::map<Range, size_t> later; // counted from the end
  for (size_t i = launches.size(); i-- > 0;) {
    const ProfileEvent &event = data.events[launches[i].event];
    for (const ProfileEvent::Memory &memory : event.memory)
      if (memory.written) {
        size_t &count = later[rangeOf(memory)];
        reads[i][rangeOf(memory)] = count;
        count = 0;
      }
    for (const ProfileEvent::Memory &memory : event.memory)
      if (!memory.written)
        ++later[rangeOf(memory)];
  }
  return reads;
}

/// Launches of which each reads all of what the one before it wrote, in the same place: the memory between them need
/// not be. What fusing saves is the write and the read; or the read alone, where the memory is read again later.
void findUnfused(const ProfileData &data, const std::vector<Launch> &launches, ProfileSummary &summary) {
  struct Chain {
    size_t count = 0;
    double saved = 0, moved = 0, seconds = 0; ///< bytes; seconds of all its kernels
    bool isKept = false;                      ///< some of the memory is read again
  };
  std::vector<std::map<Range, size_t>> reads = laterReads(data, launches);
  auto savedBetween = [&](size_t i, bool &isKept) {
    const ProfileEvent &first = data.events[launches[i].event], &second = data.events[launches[i + 1].event];
    double bytes = 0;
    for (const ProfileEvent::Memory &written : first.memory)
      for (const ProfileEvent::Memory &read : second.memory)
        if (written.written && !read.written && rangeOf(written) == rangeOf(read)) {
          bool again = reads[i][rangeOf(written)] > 1;
          isKept |= again;
          bytes += static_cast<double>(read.bytes) * (again ? 1 : 2);
        }
    return bytes;
  };
  std::map<std::string, Chain> chains; // by the names
  for (size_t i = 0; i < launches.size();) {
    Chain now;
    std::vector<std::string> names;
    for (;; ++i) {
      const ProfileEvent &event = data.events[launches[i].event];
      names.push_back(event.name);
      now.moved += static_cast<double>(event.bytes);
      if (launches[i].run != Nesting::none)
        now.seconds += data.events[launches[i].run].seconds();
      if (i + 1 == launches.size() || launches[i].run == Nesting::none || launches[i + 1].run == Nesting::none)
        break;
      const ProfileEvent &next = data.events[launches[i + 1].event];
      // A loop's next turn; not where one kernel is all there is.
      bool repeats = std::find(names.begin(), names.end(), next.name) != names.end() &&
                     std::count(names.begin(), names.end(), next.name) != std::ssize(names);
      double bytes = next.device == event.device && !repeats ? savedBetween(i, now.isKept) : 0;
      if (bytes == 0)
        break;
      now.saved += bytes;
    }
    ++i;
    if (now.saved == 0 || now.moved == 0)
      continue;
    std::string text;
    for (size_t n = 0, end = 0; n < names.size(); n = end) {
      while (end < names.size() && names[end] == names[n])
        ++end;
      text += (text.empty() ? "" : ", ") + names[n];
      if (end - n > 1)
        text += " " + std::to_string(end - n) + " times in a row";
    }
    Chain &chain = chains[text];
    ++chain.count;
    chain.saved += now.saved;
    chain.moved += now.moved;
    chain.seconds += now.seconds;
    chain.isKept |= now.isKept;
  }
  for (const auto &[names, chain] : chains) {
    double seconds = chain.seconds * chain.saved / chain.moved;
    std::string text =
        "unfused: " + names + " (" + std::to_string(chain.count) + (chain.count == 1 ? " time" : " times") +
        ") pass their results through memory: as one kernel they would move " + bytesText(chain.saved) +
        " less and, as far as memory bounds them, save " + timeText(seconds) + " of " + timeText(chain.seconds);
    if (chain.isKept)
      text += "; some of it is also read later and must still be written";
    summary.findings.push_back({"unfused", text, "", seconds});
  }
}

//===--- Copies ---------------------------------------------------------------------------------------------------===//

void findSmallCopies(const ProfileData &data, ProfileSummary &summary) {
  struct Sum {
    size_t count = 0;
    double bytes = 0, seconds = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> groups;
  for (const ProfileEvent &event : data.events)
    if (event.kind == Kind::copy && !event.onDevice && event.bytes < smallCopy && event.device >= 0) {
      Sum &sum = groups[{event.name, describeSite(event.site)}];
      ++sum.count;
      sum.bytes += static_cast<double>(event.bytes);
      sum.seconds += event.seconds();
    }
  for (const auto &[key, sum] : groups) {
    if (sum.count < manyCopies)
      continue;
    const std::string &site = key.second;
    double number = static_cast<double>(sum.count);
    std::string text = "small copies: " + std::to_string(sum.count) + " copies " + key.first + " of " +
                       bytesText(sum.bytes / number) + " each take " + timeText(sum.seconds / number) +
                       ", which is overhead: copy them as one (" + bytesText(sum.bytes) + ")";
    if (!site.empty())
      text += ", called by " + site;
    summary.findings.push_back({"small-copies", text, site, sum.seconds * (1 - 1 / number)});
  }
}

//===--- Compiling, idling ----------------------------------------------------------------------------------------===//

void findCompiling(const ProfileData &data, ProfileSummary &summary) {
  struct Sum {
    size_t count = 0;
    double seconds = 0;
    std::map<std::string, size_t> reasons;
  };
  std::map<std::string, Sum> kernels;
  for (const ProfileEvent &event : data.events)
    if (event.kind == Kind::compile) {
      Sum &sum = kernels[event.name];
      ++sum.count;
      sum.seconds += event.seconds();
      ++sum.reasons[event.detail.substr(0, event.detail.find("; "))];
    }
  for (const auto &[name, sum] : kernels) {
    if (sum.count < manyCompilations)
      continue;
    auto most = std::max_element(sum.reasons.begin(), sum.reasons.end(),
                                 [](const auto &a, const auto &b) { return a.second < b.second; });
    summary.findings.push_back({"compiling",
                                "compiled often: " + name + " was compiled " + std::to_string(sum.count) + " times (" +
                                    timeText(sum.seconds) + "), mostly because: " + most->first,
                                "", sum.seconds});
  }
  if (summary.seconds > 0 && summary.compiling / summary.seconds >= muchCompiling)
    summary.findings.push_back(
        {"compiling",
         "compiling takes " + percentText(summary.compiling / summary.seconds) + " of the time (" +
             timeText(summary.compiling) + ", " + count(summary.compilations, "specialisation") +
             "): it is paid once, and from the disk cache less; call prepare() before what is timed",
         "", summary.compiling});
}

void findIdle(const ProfileData &, ProfileSummary &summary) {
  for (const ProfileSummary::Place &place : summary.places) {
    double all = place.busy + place.idle;
    if (place.name == "cpu" || place.runs < fewLaunches || all <= 0 || place.idle / all < muchOverhead)
      continue;
    std::map<std::string, double> during;
    for (const ProfileSummary::Gap &gap : summary.gaps)
      if (gap.place == place.name)
        during[gap.meanwhile] += gap.seconds();
    auto most = std::max_element(during.begin(), during.end(),
                                 [](const auto &a, const auto &b) { return a.second < b.second; });
    if (most == during.end() || most->first.starts_with("launching"))
      continue; // said already
    summary.findings.push_back(
        {"idle",
         place.name + " is idle " + percentText(place.idle / all) +
             " of the time between its first and its last kernel; the longest gaps are while the host is busy with: " +
             most->first,
         "", place.idle});
  }
}

} // namespace

std::string timeText(double seconds) {
  char text[32];
  auto digits = [](double value) { return value < 9.995 ? 2 : value < 99.95 ? 1 : 0; };
  const char *unit = seconds >= 1 ? "s" : seconds >= 1e-3 ? "ms" : seconds >= 1e-6 ? "us" : "ns";
  double value = seconds >= 1      ? seconds
                 : seconds >= 1e-3 ? seconds * 1e3
                 : seconds >= 1e-6 ? seconds * 1e6
                                   : seconds * 1e9;
  std::snprintf(text, sizeof text, "%.*f %s", digits(value), value, unit);
  return text;
}

std::string bytesText(double bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s", unit ? 1 : 0, bytes, units[unit]);
  return text;
}

std::string percentText(double part) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f%%", part * 100);
  return text;
}

void addFindings(const ProfileData &data, const std::vector<Launch> &launches, ProfileSummary &summary) {
  findLaunchBound(data, launches, summary);
  findImplicit(data, summary);
  findUnfused(data, launches, summary);
  findSmallCopies(data, summary);
  findCompiling(data, summary);
  findIdle(data, summary);
  std::sort(summary.findings.begin(), summary.findings.end(), [](const Finding &a, const Finding &b) {
    return std::tuple(-a.seconds, a.text) < std::tuple(-b.seconds, b.text);
  });
}

} // namespace tenon::profile
