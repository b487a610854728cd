// SPDX-License-Identifier: Apache-2.0
#include "GpuMachine.h"

#include "Commit.h"

#include "tenon/runtime/Device.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

namespace tenon::tool {
namespace {

namespace fs = std::filesystem;

/// The first line that a shell command prints; empty where it fails or takes long.
std::string firstLineOf(const std::string &command) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> pipe(
      ::popen(("timeout 10 " + command + " 2>/dev/null").c_str(), "r"), ::pclose);
  char line[1024];
  if (!pipe || !std::fgets(line, sizeof line, pipe.get()))
    return "";
  std::string text = line;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
    text.pop_back();
  return text;
}

} // namespace

std::string programPath() {
  std::error_code error;
  fs::path path = fs::read_symlink("/proc/self/exe", error);
  return error ? std::string() : path.string();
}

std::string programDirectory() { return fs::path(programPath()).parent_path().string(); }

Json gpuProperties(int device) {
  const CudaProperties &p = cudaProperties(device);
  return {{"name", p.name},
          {"architecture", p.architecture()},
          {"cuda", fmt::format("{}.{}", cudaDriverVersion() / 1000, cudaDriverVersion() % 1000 / 10)},
          {"multiprocessors", p.multiprocessors},
          {"memory_bytes", p.memoryBytes},
          {"l2_bytes", p.l2Bytes},
          {"clock_khz", p.clockKilohertz},
          {"memory_clock_khz", p.memoryClockKilohertz},
          {"datasheet_bytes_per_s", p.bytesPerSecond()}};
}

Json gpuState(int device) {
  const char *fields[] = {"driver_version", "clocks.sm",   "clocks.max.sm",   "clocks.mem",     "clocks.max.mem",
                          "power.draw",     "power.limit", "temperature.gpu", "compute_mode",
                          "clocks_event_reasons.active"};
  auto ask = [&](size_t count) {
    std::string query = fmt::format("{}", fmt::join(fields, fields + count, ","));
    std::stringstream parts(
        firstLineOf(fmt::format("nvidia-smi -i {} --query-gpu={} --format=csv,noheader", device, query)));
    Json state = Json::object();
    size_t found = 0;
    for (std::string part; found < count && std::getline(parts, part, ',');)
      state[fields[found++]] = part.substr(std::min(part.find_first_not_of(' '), part.size()));
    return found == count ? state : Json(nullptr);
  };
  Json state = ask(std::size(fields));
  return state.is_null() ? ask(std::size(fields) - 1) : state; // the last one has another name in older drivers
}

std::string commitText() { return builtCommit; }

} // namespace tenon::tool
