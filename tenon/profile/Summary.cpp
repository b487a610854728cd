// SPDX-License-Identifier: Apache-2.0
#include "tenon/profile/Summary.h"

#include "tenon/profile/Analysis.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace tenon {
namespace profile {

using Kind = ProfileEvent::Kind;

std::string placeOf(const ProfileEvent &event) {
  return event.device < 0 ? "cpu" : "cuda:" + std::to_string(event.device);
}

//===--- Nesting --------------------------------------------------------------------------------------------------===//

Nesting::Nesting(const ProfileData &data) : parent(data.events.size(), none), inside(data.events.size(), 0) {
  std::unordered_map<uint32_t, std::vector<size_t>> open; // by thread; events come by their beginning, outer first
  std::vector<size_t> compilations;
  for (size_t i = 0; i < data.events.size(); ++i) {
    const ProfileEvent &event = data.events[i];
    if (event.onDevice)
      continue;
    std::vector<size_t> &stack = open[event.thread];
    while (!stack.empty() && data.events[stack.back()].end < event.end)
      stack.pop_back();
    if (!stack.empty()) {
      parent[i] = stack.back();
    } else if (event.kind == Kind::phase) { // compiled by a thread of its own, for the one that waits
      auto holds = [&](size_t at) { return data.events[at].begin <= event.begin && data.events[at].end >= event.end; };
      auto found = std::find_if(compilations.rbegin(), compilations.rend(), holds);
      if (found != compilations.rend())
        parent[i] = *found;
    }
    if (parent[i] != none)
      inside[parent[i]] += event.end - event.begin;
    if (event.kind == Kind::compile)
      compilations.push_back(i);
    stack.push_back(i);
  }
}

//===--- Launches and their runs ----------------------------------------------------------------------------------===//

std::vector<Launch> launchesOf(const ProfileData &data, const Nesting &nesting) {
  std::vector<Launch> launches;
  std::unordered_map<uint64_t, size_t> byNumber;
  for (size_t i = 0; i < data.events.size(); ++i)
    if (data.events[i].kind == Kind::launch && data.events[i].detail != ProfileEvent::captured &&
        data.events[i].detail != ProfileEvent::failed) {
      byNumber[data.events[i].launch] = launches.size();
      launches.push_back({i, Nesting::none, 0});
    }
  for (size_t i = 0; i < data.events.size(); ++i) {
    const ProfileEvent &event = data.events[i];
    if (event.kind == Kind::run) {
      auto found = event.launch ? byNumber.find(event.launch) : byNumber.end();
      if (found == byNumber.end())
        continue;
      if (event.detail == ProfileEvent::ofGraph)
        launches[found->second].graph += event.end - event.begin;
      else
        launches[found->second].run = i;
    } else if (event.kind == Kind::compile || event.kind == Kind::synchronize || event.name == "counting") {
      for (size_t at = nesting.parent[i]; at != Nesting::none; at = nesting.parent[at])
        if (auto found = byNumber.find(data.events[at].launch);
            data.events[at].kind == Kind::launch && found != byNumber.end()) {
          launches[found->second].apart += event.end - event.begin;
          break;
        }
    }
  }
  return launches;
}

} // namespace profile

namespace {

using namespace profile;

/// How long each event took by itself. A kernel may begin before the one ahead of it in its stream has ended, and wait for
/// it: the time until then is the other's.
std::vector<double> ownSeconds(const ProfileData &data) {
  std::map<std::pair<int, uint32_t>, int64_t> ends; // of each stream
  std::vector<double> seconds;
  seconds.reserve(data.events.size());
  for (const ProfileEvent &event : data.events) {
    int64_t begin = event.begin;
    if (event.onDevice && event.kind == Kind::run) {
      int64_t &end = ends.try_emplace({event.device, event.thread}, event.begin).first->second;
      begin = std::min(std::max(begin, end), event.end);
      end = std::max(end, event.end);
    }
    seconds.push_back(static_cast<double>(event.end - begin) * 1e-9);
  }
  return seconds;
}

std::vector<ProfileSummary::Kernel> kernelsOf(const ProfileData &data, const std::vector<Launch> &launches,
                                              const std::map<std::string, ProfileCeilings> &ceilings) {
  std::map<std::pair<std::string, std::string>, ProfileSummary::Kernel> rows;
  std::vector<bool> isLaunched(data.events.size(), false);
  std::vector<double> own = ownSeconds(data);
  auto addRun = [&](ProfileSummary::Kernel &row, size_t run) {
    row.fastest = row.self == 0 ? own[run] : std::min(row.fastest, own[run]);
    row.self += own[run];
  };
  for (const Launch &launch : launches) {
    const ProfileEvent &event = data.events[launch.event];
    ProfileSummary::Kernel &row = rows[{event.name, placeOf(event)}];
    ++row.calls;
    row.bytes += event.bytes;
    row.flops += event.flops;
    row.total += event.seconds();
    double host = event.seconds() - static_cast<double>(launch.apart) * 1e-9;
    if (launch.run == Nesting::none) {
      row.isTimed &= event.device < 0 || launch.graph > 0;
    } else {
      const ProfileEvent &run = data.events[launch.run];
      isLaunched[launch.run] = true;
      addRun(row, launch.run);
      if (!run.onDevice && run.thread == event.thread)
        host -= run.seconds();
    }
    row.host += std::max(host, 0.0);
  }
  for (size_t i = 0; i < data.events.size(); ++i) // of graphs, and of other libraries
    if (data.events[i].kind == Kind::run && !isLaunched[i]) {
      const ProfileEvent &event = data.events[i];
      std::string name = event.detail == ProfileEvent::ofGraph ? event.name + " (graph)" : event.name;
      ProfileSummary::Kernel &row = rows[{name, placeOf(event)}];
      ++row.calls;
      addRun(row, i);
      row.bytes += event.bytes;
      row.flops += event.flops;
      if (event.bytes == 0 && event.flops == 0)
        row.uncounted += own[i];
    }
  std::vector<ProfileSummary::Kernel> kernels;
  for (auto &[key, row] : rows) {
    std::tie(row.name, row.place) = key;
    row.isTimed |= row.self > 0;
    row.share = data.nanoseconds > 0 ? row.self / (static_cast<double>(data.nanoseconds) * 1e-9) : 0;
    if (auto found = ceilings.find(row.place); found != ceilings.end()) {
      if (double most = found->second.bytesPerSecond; most > 0)
        row.ofCeiling = row.bytesPerSecond() / most;
      if (double most = found->second.flopsPerSecond; most > 0)
        row.ofCeiling = std::max(row.ofCeiling, row.flopsPerSecond() / most);
    }
    kernels.push_back(std::move(row));
  }
  std::sort(kernels.begin(), kernels.end(), [](const auto &a, const auto &b) {
    return std::tuple(-a.self, -a.total, a.name, a.place) < std::tuple(-b.self, -b.total, b.name, b.place);
  });
  return kernels;
}

std::vector<ProfileSummary::Op> opsOf(const ProfileData &data, const Nesting &nesting,
                                      const std::vector<Launch> &launches) {
  std::vector<ProfileSummary::Op> ops;
  std::unordered_map<std::string, size_t> byPath;
  std::vector<size_t> opOf(data.events.size(), Nesting::none);
  auto outerRange = [&](size_t i) {
    for (size_t at = nesting.parent[i]; at != Nesting::none; at = nesting.parent[at])
      if (data.events[at].kind == Kind::range)
        return at;
    return Nesting::none;
  };
  for (size_t i = 0; i < data.events.size(); ++i) {
    const ProfileEvent &event = data.events[i];
    if (event.kind != Kind::range)
      continue;
    size_t outer = outerRange(i);
    std::string path = outer == Nesting::none ? event.name : ops[opOf[outer]].path + " / " + event.name;
    auto [entry, isNew] = byPath.try_emplace(path, ops.size());
    if (isNew) {
      ops.push_back({});
      ops.back().path = path;
      ops.back().depth = outer == Nesting::none ? 0 : ops[opOf[outer]].depth + 1;
    }
    ProfileSummary::Op &op = ops[opOf[i] = entry->second];
    ++op.calls;
    op.total += event.seconds();
    op.self += event.seconds();
    if (outer != Nesting::none)
      ops[opOf[outer]].self -= event.seconds();
  }
  for (const Launch &launch : launches)
    for (size_t at = outerRange(launch.event); at != Nesting::none; at = outerRange(at)) {
      ++ops[opOf[at]].launches;
      ops[opOf[at]].kernels += static_cast<double>(launch.graph) * 1e-9;
      if (launch.run != Nesting::none)
        ops[opOf[at]].kernels += data.events[launch.run].seconds();
    }
  return ops;
}

/// What the host did most between two moments.
std::string hostDuring(const ProfileData &data, int64_t begin, int64_t end) {
  std::map<std::string, int64_t> times;
  for (const ProfileEvent &event : data.events) {
    if (event.begin >= end)
      break;
    int64_t shared = std::min(end, event.end) - std::max(begin, event.begin);
    if (shared <= 0 || event.onDevice)
      continue;
    switch (event.kind) {
    case Kind::compile: times["compiling " + event.name] += shared; break;
    case Kind::copy: times["copying " + event.name] += shared; break;
    case Kind::synchronize: times["waiting for " + event.name] += shared; break;
    case Kind::launch: times["launching " + event.name] += shared; break;
    default: break;
    }
  }
  std::string best = "something else";
  int64_t most = (end - begin) / 2; // "most" means more than half
  for (const auto &[what, time] : times)
    // A launch that compiles is compiling: the more particular of two that take all the time.
    if (time > most || (time == most && best.starts_with("launching"))) {
      if (best.starts_with("compiling") && what.starts_with("launching"))
        continue;
      most = time;
      best = what;
    }
  return best;
}

void addPlaces(const ProfileData &data, ProfileSummary &summary) {
  constexpr int64_t shortest = 2000; // ns: less is no gap
  constexpr size_t kept = 10;
  std::map<std::string, std::pair<ProfileSummary::Place, int64_t>> places; // and the end of its last run
  for (const ProfileEvent &event : data.events) {
    bool works = event.kind == Kind::run || (event.onDevice && (event.kind == Kind::copy || event.kind == Kind::fill));
    if (!works)
      continue;
    auto [entry, isNew] = places.try_emplace(placeOf(event));
    auto &[place, until] = entry->second;
    if (isNew)
      until = event.begin;
    if (event.begin > until) {
      place.idle += static_cast<double>(event.begin - until) * 1e-9;
      if (event.begin - until >= shortest)
        summary.gaps.push_back({entry->first, until, event.begin, ""});
    }
    place.busy += static_cast<double>(std::max<int64_t>(event.end - std::max(until, event.begin), 0)) * 1e-9;
    place.runs += event.kind == Kind::run;
    until = std::max(until, event.end);
  }
  for (auto &[name, entry] : places) {
    entry.first.name = name;
    summary.places.push_back(entry.first);
  }
  std::sort(summary.gaps.begin(), summary.gaps.end(), [](const auto &a, const auto &b) {
    return std::tuple(a.begin - a.end, a.begin, a.place) < std::tuple(b.begin - b.end, b.begin, b.place);
  });
  if (summary.gaps.size() > kept)
    summary.gaps.resize(kept);
  for (ProfileSummary::Gap &gap : summary.gaps)
    gap.meanwhile = hostDuring(data, gap.begin, gap.end);
}

} // namespace

ProfileSummary summarize(const ProfileData &data, const std::map<std::string, ProfileCeilings> &ceilings) {
  ProfileSummary summary;
  summary.seconds = static_cast<double>(data.nanoseconds) * 1e-9;
  Nesting nesting(data);
  std::vector<Launch> launches = launchesOf(data, nesting);
  summary.kernels = kernelsOf(data, launches, ceilings);
  summary.ops = opsOf(data, nesting, launches);
  addPlaces(data, summary);
  for (const ProfileEvent &event : data.events) {
    if (event.onDevice)
      continue;
    auto add = [&](double &seconds, size_t &count) {
      seconds += event.seconds();
      ++count;
    };
    if (event.kind == Kind::compile)
      add(summary.compiling, summary.compilations);
    else if (event.kind == Kind::copy)
      add(summary.copying, summary.copies);
    else if (event.kind == Kind::synchronize)
      add(summary.waiting, summary.waits);
  }
  addFindings(data, launches, summary);
  return summary;
}

} // namespace tenon
