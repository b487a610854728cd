// SPDX-License-Identifier: Apache-2.0
#include "tenon/profile/Profile.h"

#include "tenon/profile/Cupti.h"
#include "tenon/profile/Nvtx.h"
#include "tenon/profile/PerfCounters.h"
#include "tenon/profile/Recorder.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include <unistd.h>

namespace tenon {
namespace {

using profile::Event;

/// Whether the NVIDIA driver is open, and who waits for it. Never destroyed.
struct DeviceState {
  std::mutex mutex;
  bool opened = false;
  int waiting = 0; ///< profiles that want a device's records once there is a device
};
DeviceState &deviceState() {
  static DeviceState &state = *new DeviceState();
  return state;
}

ProfileEvent publicEvent(const Event &event, int64_t start, std::unordered_map<uint32_t, std::string> &texts) {
  auto text = [&](uint32_t number) -> const std::string & {
    auto [entry, isNew] = texts.try_emplace(number);
    if (isNew)
      entry->second = profile::textOf(number);
    return entry->second;
  };
  ProfileEvent result;
  result.kind = static_cast<ProfileEvent::Kind>(event.kind);
  result.name = text(event.name);
  result.detail = text(event.detail);
  result.site = text(event.site);
  result.begin = event.begin - start;
  result.end = event.end - start;
  result.device = event.device;
  result.thread = event.thread;
  result.onDevice = event.foreign;
  result.implicit = event.implicit;
  result.launch = event.launch;
  result.bytes = event.bytes;
  result.flops = event.flops;
  for (int i = 0; i < event.memories; ++i)
    result.memory.push_back({event.memory[i].address, event.memory[i].bytes, event.memory[i].written != 0});
  return result;
}

/// A device tells the name of a kernel and the number of the driver's call that asked for it, not our launch: in the
/// order of those numbers, the n-th run of a name is that of its n-th submission. What graphs ran is matched already
/// (matchGraphs), and what was captured never ran.
void matchRuns(std::vector<ProfileEvent> &events) {
  std::unordered_map<std::string, std::vector<size_t>> submitted, ran;
  for (size_t i = 0; i < events.size(); ++i) {
    ProfileEvent &event = events[i];
    if (event.kind == ProfileEvent::Kind::submit && event.launch)
      submitted[event.name].push_back(i);
    else if (event.onDevice && event.kind == ProfileEvent::Kind::run && event.detail != ProfileEvent::ofGraph)
      ran[event.name].push_back(i);
  }
  for (auto &[name, runs] : ran)
    std::sort(runs.begin(), runs.end(),
              [&](size_t a, size_t b) { return std::pair(events[a].launch, a) < std::pair(events[b].launch, b); });
  for (ProfileEvent &event : events)
    if (event.onDevice && event.detail != ProfileEvent::ofGraph)
      event.launch = 0;
  for (const auto &[name, runs] : ran) {
    const std::vector<size_t> &candidates = submitted[name];
    for (size_t i = 0; i < std::min(runs.size(), candidates.size()); ++i)
      events[runs[i]].launch = events[candidates[i]].launch;
  }
}

std::string programName() {
  char path[4096];
  ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string("?");
}

} // namespace

std::string_view nameOf(ProfileEvent::Kind kind) {
  using enum ProfileEvent::Kind;
  switch (kind) {
  case launch: return "launch";
  case submit: return "submit";
  case run: return "run";
  case compile: return "compile";
  case phase: return "phase";
  case copy: return "copy";
  case fill: return "fill";
  case synchronize: return "synchronize";
  case range: return "range";
  }
  return "";
}

//===--- Profile --------------------------------------------------------------------------------------------------===//

struct Profile::Impl {
  int64_t start = 0;
  bool isStopped = false;
  profile::PerfCounters counters;
  std::map<std::string, uint64_t> countersBefore;
  ProfileData data;
};

void profile::deviceOpened() {
  DeviceState &state = deviceState();
  std::lock_guard lock(state.mutex);
  if (state.opened)
    return;
  state.opened = true;
  for (int i = 0; i < state.waiting; ++i)
    Cupti::instance().start();
}

Profile::Profile() : impl_(std::make_unique<Impl>()) {
  {
    DeviceState &state = deviceState();
    std::lock_guard lock(state.mutex);
    ++state.waiting;
    if (state.opened)
      profile::Cupti::instance().start();
  }
  impl_->counters.start();
  impl_->countersBefore = impl_->counters.read();
  profile::startRecording();
  impl_->start = profile::now();
}

Profile::~Profile() { stop(); }

const ProfileData &Profile::stop() {
  ProfileData &data = impl_->data;
  if (impl_->isStopped)
    return data;
  impl_->isStopped = true;
  data.nanoseconds = profile::now() - impl_->start;
  {
    DeviceState &state = deviceState();
    std::lock_guard lock(state.mutex);
    --state.waiting;
    if (state.opened) {
      profile::Cupti &cupti = profile::Cupti::instance();
      cupti.flush();
      cupti.stop();
      if (!cupti.reason().empty())
        data.notes.push_back("times are the host's only: " + cupti.reason());
    }
  }
  uint64_t dropped = 0;
  std::vector<Event> events = profile::stopRecording(impl_->start, dropped);
  profile::matchGraphs(events);
  profile::releaseGraphs();
  std::unordered_map<uint32_t, std::string> texts;
  data.events.reserve(events.size());
  for (const Event &event : events)
    data.events.push_back(publicEvent(event, impl_->start, texts));
  std::sort(data.events.begin(), data.events.end(), [](const ProfileEvent &a, const ProfileEvent &b) {
    return std::tuple(a.begin, -a.end, a.kind, a.thread) < std::tuple(b.begin, -b.end, b.kind, b.thread);
  });
  matchRuns(data.events);
  data.process = ::getpid();
  data.program = programName();
  for (const auto &[name, value] : impl_->counters.read()) {
    uint64_t before = impl_->countersBefore[name];
    data.counters[name] = value > before ? value - before : 0;
  }
  if (!impl_->counters.reason().empty())
    data.notes.push_back("no processor counters: " + impl_->counters.reason());
  if (dropped)
    data.notes.push_back(std::to_string(dropped) + " events did not fit and are missing: profile a shorter time");
  return data;
}

//===--- ProfileRange ---------------------------------------------------------------------------------------------===//

struct ProfileRange::Impl {
  explicit Impl(std::string_view name) : span(profile::Kind::range, name) {}
  profile::Span span;
};

ProfileRange::ProfileRange(std::string_view name) {
  if (profile::enabled())
    impl_ = new Impl(name);
}

ProfileRange::~ProfileRange() { delete impl_; }

//===--- By the environment ---------------------------------------------------------------------------------------===//

namespace {

/// TENON_PROFILE=trace.json PROGRAM: everything from the library's loading to the end of the program. %p in the name is
/// the process's number, so that several processes write several files.
struct FromEnvironment {
  FromEnvironment() {
    if (profile::startNvtx())
      profile::listeners.fetch_or(profile::nvtx, std::memory_order_relaxed);
    const char *file = std::getenv("TENON_PROFILE");
    if (!file || !*file)
      return;
    static std::string &path = *new std::string(file);
    static Profile &everything = *new Profile();
    static const pid_t process = ::getpid();
    std::atexit([] {
      if (size_t mark = path.find("%p"); mark != std::string::npos)
        path.replace(mark, 2, std::to_string(::getpid()));
      else if (::getpid() != process)
        return; // a fork: the file is its parent's
      const ProfileData &data = everything.stop();
      std::ofstream out(path, std::ios::binary);
      out << traceJson(data);
      out.close();
      if (!out)
        std::fprintf(stderr, "tenon: cannot write the profile '%s'\n", path.c_str());
    });
  }
} fromEnvironment;

} // namespace

} // namespace tenon
