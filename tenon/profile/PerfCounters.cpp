// SPDX-License-Identifier: Apache-2.0
#include "tenon/profile/PerfCounters.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tenon::profile {
namespace {

struct What {
  const char *name;
  uint64_t config;
};
constexpr What wanted[] = {{"cycles", PERF_COUNT_HW_CPU_CYCLES},
                           {"instructions", PERF_COUNT_HW_INSTRUCTIONS},
                           {"cache-misses", PERF_COUNT_HW_CACHE_MISSES}};
constexpr size_t maxThreads = 256; // one file each and counter

int openCounter(uint64_t config, pid_t thread) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = config;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, thread, /*cpu=*/-1, /*group=*/-1, PERF_FLAG_FD_CLOEXEC));
}

std::vector<pid_t> threads() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task", error))
    found.push_back(static_cast<pid_t>(std::strtol(entry.path().filename().c_str(), nullptr, 10)));
  return found;
}

std::string explain(int error) {
  if (error == EACCES || error == EPERM)
    return "the system does not allow perf events (see /proc/sys/kernel/perf_event_paranoid)";
  if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV)
    return "this processor, or the virtual machine, shows no hardware counters";
  return std::string("perf events cannot be opened: ") + std::strerror(error);
}

} // namespace

PerfCounters::~PerfCounters() {
  for (const Counter &counter : counters_)
    ::close(counter.file);
}

void PerfCounters::start() {
  std::vector<pid_t> all = threads();
  if (all.size() > maxThreads)
    all.resize(maxThreads);
  reason_.clear();
  int error = 0;
  for (const What &what : wanted)
    for (pid_t thread : all) {
      int file = openCounter(what.config, thread);
      if (file >= 0)
        counters_.push_back({file, what.name});
      else if (errno != ESRCH) // a thread that has ended meanwhile is no trouble
        error = errno;
    }
  if (counters_.empty())
    reason_ = explain(error);
}

std::map<std::string, uint64_t> PerfCounters::read() const {
  std::map<std::string, uint64_t> sums;
  for (const Counter &counter : counters_) {
    uint64_t values[3] = {}; // count, time enabled, time running
    if (::read(counter.file, values, sizeof values) != static_cast<ssize_t>(sizeof values))
      continue;
    // More counters than the processor has take turns: what was seen stands for the rest.
    double scale = values[2] ? static_cast<double>(values[1]) / static_cast<double>(values[2]) : 0;
    sums[counter.name] += static_cast<uint64_t>(static_cast<double>(values[0]) * scale);
  }
  return sums;
}

} // namespace tenon::profile
