// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon::profile {

/// The processor's counters (Linux perf events) over all threads of the process, and those they start; user code only,
/// which needs no privileges on most machines.
class PerfCounters {
public:
  PerfCounters() = default;
  ~PerfCounters();
  PerfCounters(const PerfCounters &) = delete;
  PerfCounters &operator=(const PerfCounters &) = delete;

  void start();
  /// By name: "cycles", "instructions", "cache-misses"; what cannot be counted is absent.
  std::map<std::string, uint64_t> read() const;
  /// Why there is none; empty if there is one.
  const std::string &reason() const { return reason_; }

private:
  struct Counter {
    int file;
    const char *name;
  };
  std::vector<Counter> counters_;
  std::string reason_ = "not started";
};

} // namespace tenon::profile
