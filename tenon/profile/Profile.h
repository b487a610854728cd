// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// What the library did and when: launches, compilations, copies, waits.
///
///     Profile profile;
///     train();
///     std::cout << summaryText(profile.stop());
///     std::ofstream("trace.json") << traceJson(profile.stop());   // for ui.perfetto.dev
///
/// Or without touching the program: `tenon profile -- PROGRAM`.
#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

struct ProfileEvent {
  enum class Kind : uint8_t { launch, submit, run, compile, phase, copy, fill, synchronize, range };
  static constexpr std::string_view ofGraph = "of a graph"; ///< the detail of a run that a graph made, not a launch
  static constexpr std::string_view captured = "captured into a graph"; ///< of a launch that ran nothing
  static constexpr std::string_view failed = "failed"; ///< of a launch that was refused, or ended in an error
  struct Memory {
    uint64_t address = 0, bytes = 0;
    bool written = false;
  };

  Kind kind = Kind::launch;
  std::string name;           ///< of the kernel, phase or range; the direction of a copy; what is waited for
  std::string detail;         ///< of a compilation: why, and how it went; of a wait: why nobody had asked for it
  std::string site;           ///< frames of the caller, for describeSite
  int64_t begin = 0, end = 0; ///< ns since the profile began
  int device = -1;            ///< where a kernel runs or memory is; -1: the CPU
  uint32_t thread = 0;        ///< of the host, from 1; of what a device did, its stream's number
  bool onDevice = false;      ///< by a device's own clock
  bool implicit = false;
  uint64_t launch = 0;        ///< the same for a launch and its run, and for a graph's launch and its runs
  uint64_t bytes = 0;         ///< moved; of a launch or a run that a graph made, what it must move at least
  double flops = 0;           ///< of a launch or a run that a graph made; 0: not counted
  std::vector<Memory> memory; ///< the tensors of a launch, the first few

  double seconds() const { return static_cast<double>(end - begin) * 1e-9; }
};
std::string_view nameOf(ProfileEvent::Kind kind);

struct ProfileData {
  std::vector<ProfileEvent> events; ///< by their beginning
  int64_t nanoseconds = 0;          ///< from start to stop
  int64_t process = 0;
  std::string program;
  std::map<std::string, uint64_t> counters; ///< of the processor: cycles, instructions, cache-misses
  std::vector<std::string> notes;           ///< what could not be recorded, and why
};

/// Records from its construction to stop(). Several may be active at once, each sees what began in its time. What is
/// still under way when it stops is not in it.
class Profile {
public:
  Profile();
  ~Profile();
  Profile(const Profile &) = delete;
  Profile &operator=(const Profile &) = delete;

  const ProfileData &stop();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Names a part of the program in profiles and in NVIDIA's tools. Ranges nest: a row of the table of ops each. Costs
/// one load while nobody looks.
class ProfileRange {
public:
  explicit ProfileRange(std::string_view name);
  ~ProfileRange();
  ProfileRange(const ProfileRange &) = delete;
  ProfileRange &operator=(const ProfileRange &) = delete;

private:
  struct Impl;
  Impl *impl_ = nullptr;
};

/// As a trace for ui.perfetto.dev and chrome://tracing, with everything that the other forms are made from.
std::string traceJson(const ProfileData &data);
/// Tables and findings as text.
std::string summaryText(const ProfileData &data);

} // namespace tenon
#pragma GCC visibility pop
